"""The conformance kit: everything that stands around a node under test.

Read in this order: `wire` speaks to a node, `links` stand between nodes, `targets` start them, `peer` and `player`
are the members and clients that the kit plays, `requirements` says what must hold, `lockstep` compares nodes with the
model, `scenario` and `replay` are the text that a person reads, `gate` runs it all, `cli` is the door.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
"""gRPC core reports every connection that a fault ends; read when grpc is first imported, hence here."""
