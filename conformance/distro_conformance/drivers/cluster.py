"""The driver contract: what a run needs of any cluster.

A driver starts nodes, performs the model's actions, reads what the nodes hold, and provides the clock. Walks,
scenarios, the gate and the pytest fixture use this contract and nothing below it. `cannot` returns a sentence for an
action that a driver cannot perform; a run that needs the action is inconclusive with that sentence. A kind of cluster
is one file and one entry in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from distro_conformance.node.player import ClientAnswer
from distro_conformance.verdict import KitError
from distro_conformance.waiting import Clock
from distro_model.actions import Action, Advance
from distro_model.possible import Observation

Ends = tuple[str, str]
Lists = Mapping[str, tuple[str, ...]]
"""Service -> the instance texts in it, sorted. A service that is missing is empty."""


class CannotError(KitError):
    """The run needs something that this driver cannot do; the message says what."""

    exit_code = 3


class VirtualTime(Clock):
    """Time from 0 that passes only by an action of its cluster, so that nothing happens between two actions."""

    def __init__(self, now_ms: Callable[[], int], perform: Callable[[Action], Awaitable[None]]) -> None:
        self._now_ms, self._perform = now_ms, perform
        self._zero_ms = now_ms()

    def now_ms(self) -> int:
        return self._now_ms() - self._zero_ms

    async def pass_ms(self, ms: int) -> None:
        await self._perform(Advance(ms))


class Cluster(Protocol):
    """`start` returns when all nodes are up, loaded and quiet; time is 0 from there on."""

    names: Sequence[str]
    clock: Clock
    links: Collection[Ends]
    """The directed links, (source, target), on which faults can be put."""
    incomparable: str | None = None
    """Why the model cannot watch every step of this cluster, or None where it does."""
    one_release: str | None = None
    """Why all nodes are of one release, or None where each may have its own."""
    answers: tuple[ClientAnswer, ...] = ()
    """The answers to the last request of a client; more than one if several states are possible."""

    def unjudged(self) -> str:
        """What the comparison with the model could not judge so far; empty if there is nothing."""
        return ""

    def set_release(self, node: str, profile: str) -> None:
        """The node has this behaviour from its next start on. Raises CannotError."""
        raise CannotError(f"node {node} {profile}: {self.one_release}")

    def cannot(self, action: Action) -> str | None:
        """Why this driver can never perform such an action, or None."""
        ...

    def forbidden(self, action: Action) -> str | None:
        """Why the action makes no sense now, or None."""
        return self.cannot(action)

    def excluded_from_walk(self, action: Action) -> str | None:
        """Why a walk does not use the action now, or None."""
        return self.forbidden(action)

    @property
    def is_at_rest(self) -> bool:
        """Whether no repair is known to be pending."""
        return True

    @property
    def is_loaded(self) -> bool:
        return True

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        """`spare` are addresses under which nodes may come back: no list names them and no node listens there.

        Raises UsageError, TargetError, and the look-up errors of profiles; `stop` must be called all the same."""
        ...

    def unreached(self, action: Action) -> str | None:
        """Why no request of the client reaches a node now, or None: its node is down, or its connection has ended."""
        ...

    async def perform(self, action: Action) -> None:
        """Raises CannotError, RefusedError when a node refuses what a client asks, TargetError when it is gone."""
        ...

    async def observe(self) -> Sequence[Observation]:
        """What each node holds, None for one that is down. More than one where several states are possible."""
        ...

    async def query(self, node: str, service: str) -> Sequence[tuple[str, ...]]:
        """The list of a service, sorted instance texts, as the node shows it; one for each possible state."""
        ...

    async def subscribe(self, client: str, service: str) -> None: ...

    async def subscription(self, client: str, service: str) -> Sequence[tuple[str, ...]]:
        """The last list that its node sent to a subscriber; one for each possible state."""
        ...

    async def members(self, node: str) -> Sequence[Mapping[str, str]]:
        """Name of a member to the state (UP, SUSPICIOUS, DOWN) in which the node sees it."""
        ...

    async def snapshot_sources(self, node: str) -> frozenset[str]:
        """The members that have given the node a snapshot since it was started last."""
        ...

    def last_event(self) -> str | None:
        """The last known event, with its time, that changed the state of a node or ended a call about it. A VERIFY that
        succeeds does not count."""
        ...

    async def checkpoint(self) -> None:
        """Writes a checkpoint into the recording, if any: the nodes that are up must agree at it. None is written while
        a fault may still lose messages, since nodes that differ then may be right."""
        ...

    async def stop(self) -> None:
        """Leaves nothing behind; safe to call twice, and after a start that failed."""
        ...
