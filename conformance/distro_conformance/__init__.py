"""The conformance kit: everything around a node under test.

| folder | what lives there |
|---|---|
| `wire` | connections, Distro messages, links with faults, forwarders on real sockets |
| `targets` | how a node under test is started: embedded, a real Nacos, any process |
| `node` | one node: the played peer and clients, and the run over all requirements |
| `node_mutants` | deliberate bugs of the reference node, which the kit must find |
| `requirements` | what a node must do, one sentence and one check each |
| `drivers` | clusters of every kind behind one contract: model, embedded, real, mixed; lockstep |
| `language` | the actions and expectations of a run, their text form, the one runner |
| `walks` | random walks, tours of every transition, rare starts |
| `recording` | trace rows from events |
| `simulation` | random timed runs of the model, written as traces |
| `scenario` | the explorer for the command line; counterexamples as scenarios |
| `plugin` | the pytest plugin: a cluster for tests, requirements as test items |
| `waiting` | clocks, and the one way to wait |
| `interruption` | how Ctrl-C ends the command |
| `gate`, `report` | the pipeline and its report |
| `cli` | the command, one file a verb |

`distro_interop`, beside this package and not in the wheel, checks the reference node against real servers and SDKs.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""Without this, gRPC core logs every connection that a fault ends; it is read at the first import of grpc."""

os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
"""Without its event engine gRPC core moves bytes on the waiting thread, instead of on a pool of threads. With one call
at a time, as in lockstep, a call takes a third less time."""
