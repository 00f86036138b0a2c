"""The cluster of the fixture `distro_cluster`: reference nodes a, b, c … on free ports of this machine, with faults.

It can do all that a scenario can, as a method or as a line. Every method blocks until it is done; in an
`async` test it returns something to `await`. Real SDKs run in real time, so that is the default; in virtual time the
nodes' clock stands still until `advance`, and five seconds cost nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, Literal

from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.language.beating import Repeat
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.running import Running
from distro_conformance.language.steps import Query
from distro_conformance.language.text import read_line
from distro_conformance.plugin.background import Pending, do, do_now
from distro_conformance.targets.ports import SDK_OFFSET, with_offset
from distro_conformance.verdict import TargetError, UsageError, Verdict, named
from distro_conformance.wire.transports import OVER_GRPC
from distro_model.actions import Action, Advance, Crash, Restart

Done = Any
"""The result of a method: nothing or a value; in an `async` test an awaitable of it."""

Time = Literal["real", "virtual"]
NODES_MAX = 9
ATTEMPTS = 3
"""A free port may be taken by another process, another worker of xdist for instance, before it is bound here."""


@contextlib.contextmanager
def started(
    *, nodes: int = 3, profile: str = "strict", time: Time = "real", http: bool = True
) -> Iterator[TestCluster]:
    """A running cluster. Raises UsageError for impossible options, TargetError when it cannot be started."""
    if not isinstance(nodes, int) or not 2 <= nodes <= NODES_MAX or time not in ("real", "virtual"):
        raise UsageError(
            f"a test cluster has 2 to {NODES_MAX} nodes and real or virtual time, not {nodes!r} and {time!r}"
        )
    names = tuple("abcdefghi"[:nodes])
    for attempt in range(1, ATTEMPTS + 1):
        cluster = EmbeddedCluster(serves_http=http, real_time=time == "real", wire=OVER_GRPC)
        try:
            do_now(cluster.start(names, profile))
        except TargetError:
            do_now(cluster.stop())
            if attempt == ATTEMPTS:
                raise
        else:
            break
    try:
        yield TestCluster(cluster)
    finally:
        do_now(cluster.stop())


class TestCluster:
    """`addresses` are what an SDK takes as its server list: `ip:port` of the HTTP API, the gRPC port is 1000 higher."""

    __test__ = False  # not a class of tests, despite its name

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._running = Running(cluster)
        self._pending: list[tuple[str, Pending[Any]]] = []

    @property
    def unawaited(self) -> tuple[str, ...]:
        """The calls of `async` tests whose result was never awaited: an expectation among them was not judged."""
        return tuple(text for text, each in self._pending if not each.is_awaited)

    @property
    def names(self) -> tuple[str, ...]:
        return self._cluster.names

    @property
    def addresses(self) -> tuple[str, ...]:
        """One a node, in the order of the names."""
        return tuple(self._cluster.servers[name].address for name in self.names)

    def address(self, node: str) -> str:
        """Raises UsageError for an unknown node."""
        return named("node", self._cluster.servers, node).address

    def sdk_address(self, node: str) -> str:
        """The port that speaks gRPC with SDKs."""
        return with_offset(self.address(node), SDK_OFFSET)

    def cut(self, source: str, target: str) -> Done:
        """From now on no message gets from source to target. The other direction is a link of its own."""
        return self.do(f"cut {source}->{target}")

    def heal(self, source: str, target: str) -> Done:
        return self.do(f"heal {source}->{target}")

    def hold(self, source: str, target: str) -> Done:
        """Messages from source to target wait until `release`, or until their sender stops waiting."""
        return self.do(f"hold {source}->{target}")

    def release(self, source: str, target: str) -> Done:
        return self.do(f"release {source}->{target}")

    def crash(self, node: str) -> Done:
        """The node is gone with all its memory."""
        return self.do(f"crash {node}")

    def restart(self, node: str) -> Done:
        """It comes back at its address, empty, and loads from the others."""
        return self.do(f"restart {node}")

    def advance(self, duration: str) -> Done:
        """Let `300ms`, `5s` or `3m` pass: of virtual time at once, of real time by waiting."""
        return self.do(f"advance {duration}")

    def do(self, line: str) -> Done:
        """One line of a scenario, `swallow a->b CHANGE` or `expect within 5s: all agree`; its outcome.

        Raises ScenarioError for an invalid line, AssertionError when an expectation is not met.
        """
        return self._done(line, self._run(line))

    def held(self) -> Done:
        """What each node holds: node -> client -> view with revision and content; None for a node that is down."""
        return self._done("held()", self._cluster.held_by(self.names))

    def _done(self, text: str, coroutine: Coroutine[Any, Any, Any]) -> Done:
        done = do(coroutine)
        if isinstance(done, Pending):
            self._pending.append((text, done))
        return done

    async def _run(self, line: str) -> str:
        match read_line(line, self.names):
            case Query(service, node):
                ((*instances,),) = await self._cluster.query(node, service)
                return " and ".join(instances)
            case Repeat() if self._cluster.virtual is None:
                raise UsageError("in real time nothing sends a beat while the test does something else; send each")
            case ExpectModel():
                raise UsageError("a test cluster is not compared with the model; play a scenario for that")
            case step if isinstance(step, Action):
                await self._perform(step)
                return "done"
            case step:
                held = await self._running.run(step)
                assert held.verdict is Verdict.CONFORMS, f"{line}: {held.outcome}"
                return held.outcome

    async def _perform(self, action: Action) -> None:
        match action:
            case Crash(node) if self._cluster.servers[node].node is None:
                raise UsageError(f"{node} is down: it cannot crash before it is restarted")
            case Restart(node) if self._cluster.servers[node].node is not None:
                raise UsageError(f"{node} is up: it can be restarted once it has crashed")
        if isinstance(action, Advance):
            await self._running.run(action)
            return
        try:
            await self._cluster.perform(action)
        finally:
            self._running.answers = self._cluster.answers
