"""What a check has seen of a node so far, how it waits in the target's own time, and the two ways in which it ends.

A check *violates* when something that must come does not come, or something comes that must not. When it cannot get
that far (the node never connected to the played member, a client was refused) it *cannot tell*: that is never a pass
and never a fault of the node in this respect. `eventually` and `never` are the first kind, `arrange` is the second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.peer import Arrival, OnArrival, PlayedPeer
from distro_conformance.node.timings import Timings
from distro_conformance.targets.target import Target
from distro_conformance.waiting import STEP_MS, Look, eventually, known, never
from distro_traces.content import Replica

T = TypeVar("T")
P = ParamSpec("P")
W = TypeVar("W", bound="Observer")
ELSES = "one that runs for somebody else"

Observed = Mapping[str, object]


class ViolationError(Exception):
    """The node does not do what the requirement says: what was expected and seen, and under names what the symptoms of
    known failures are told by."""

    def __init__(self, message: str, *, expected: str, observed: Observed = NOTHING) -> None:
        super().__init__(message)
        self.expected = expected
        self.observed = observed


class CannotTellError(Exception):
    """The check could not be carried out; the message says what was missing."""


def presupposed(
    wait: Callable[Concatenate[W, P], Awaitable[T]],
) -> Callable[Concatenate[W, P], Coroutine[Any, Any, T]]:
    """The same wait for what a check presupposes. Raises CannotTellError in the place of ViolationError."""

    async def arranged(observer: W, /, *args: P.args, **named: P.kwargs) -> T:
        try:
            return await wait(observer, *args, **named)
        except ViolationError as missing:
            raise CannotTellError(f"cannot go on without {missing.expected}; {observer._heard()}") from None

    return arranged


@dataclass
class Observer:
    """Of one check: `evidence` is told in order, of its own clients only."""

    target: Target
    played: tuple[PlayedPeer, ...]
    evidence: list[str] = field(default_factory=list)
    _own: set[str] = field(default_factory=set)
    _seen_before: dict[str, int] = field(default_factory=dict)
    _listening: list[tuple[PlayedPeer, OnArrival]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timings = Timings.of(self.target.profile, self.target.lease_ms)
        for peer in self.played:
            self._seen_before[peer.address] = len(peer.arrivals)
            listener = self._listener(peer)
            self._listening.append((peer, listener))
            peer.listeners.append(listener)

    @property
    def peers(self) -> tuple[PlayedPeer, ...]:
        """All members, which the node has on its list. Raises CannotTellError when it has not."""
        self.presuppose(self.target.limits.counts_members, "a node that has members of the kit on its list", ELSES)
        return self.played

    @property
    def peer(self) -> PlayedPeer:
        """The member that speaks to the node."""
        return self.played[0]

    @property
    def other(self) -> PlayedPeer:
        """A member that is there as well. Raises CannotTellError when there is none."""
        if len(self.peers) < 2:
            raise CannotTellError("cannot go on with only one played member")
        return self.peers[1]

    # What has been seen.

    def arrivals(self, client: str, at: PlayedPeer | None = None) -> list[Arrival]:
        """Distro requests about that client at a member (default: `peer`) since the check began."""
        peer = at or self.peers[0]
        later = peer.arrivals[self._seen_before[peer.address] :]
        return [arrival for arrival in later if arrival.call is not None and arrival.call.client == client]

    def arrival(
        self,
        operation: str,
        client: str,
        *,
        after: Arrival | None = None,
        at: PlayedPeer | None = None,
        carrying: Callable[[Replica], bool] | None = None,
    ) -> Look[Arrival]:
        """Looks for the first such request at a member (default: `peer`), since the check began or after another;
        `carrying`: with such a content."""

        def is_meant(arrival: Arrival) -> bool:
            replica = arrival.call.replica if arrival.call else None
            is_such = carrying is None or (replica is not None and carrying(replica))
            return arrival.is_about(operation, client) and is_such

        def find() -> Arrival | None:
            arrivals = self.arrivals(client, at)
            later = arrivals if after is None else arrivals[arrivals.index(after) + 1 :]
            return next(filter(is_meant, later), None)

        return known(find)

    def note(self, what: str) -> None:
        self.evidence.append(f"{self.target.clock.now_ms()} ms: {what}")

    def require(self, holds: bool, expected: str, seen: object, *, observed: Observed = NOTHING) -> None:
        """Raises ViolationError unless it holds."""
        if not holds:
            raise ViolationError(f"expected {expected}; seen: {_told(seen)}", expected=expected, observed=observed)

    def presuppose(self, holds: bool, needed: str, seen: object) -> None:
        """Raises CannotTellError unless it holds."""
        if not holds:
            raise CannotTellError(f"cannot go on without {needed}; seen: {_told(seen)}")

    def presuppose_turns(self, gap_ms: int, within_ms: int, what: str) -> None:
        """Where this process, or what runs it, had no turn for so long, what ended meanwhile is nobody's fault. Raises
        CannotTellError."""
        self.presuppose(gap_ms < within_ms, f"{what} within {within_ms} ms", f"{gap_ms} ms")

    # Waiting, in the target's time.

    async def eventually(
        self, look: Look[T], *, within_ms: int, what: str, otherwise: Callable[[], Awaitable[Observed]] | None = None
    ) -> T:
        """What `look` finds within the time. Raises ViolationError with what there is `otherwise`."""
        found = await self._found(look, within_ms)
        if found is None:
            expected = f"{what} within {self._window(within_ms)}"
            observed = await otherwise() if otherwise else NOTHING
            message = f"expected {expected}; not seen{'' if self._arrived() else f', {self._heard()}'}"
            raise ViolationError(message, expected=expected, observed=observed)
        return found

    async def _found(self, look: Look[T], within_ms: int) -> T | None:
        return await eventually(self._staying(look), self.target.clock, within_ms, step_ms=self._step_ms)

    async def eventually_sent(
        self,
        operation: str,
        client: str,
        *,
        after: Arrival | None = None,
        at: PlayedPeer | None = None,
        within_ms: int | None = None,
    ) -> Arrival:
        """The first such request at a member (default: `peer`), within the time. Raises ViolationError."""
        look = self.arrival(operation, client, after=after, at=at)
        due_ms = self.timings.verify_ms if operation == "VERIFY" else self.timings.sync_ms
        what = _sent(operation, client, after, at or self.peer)
        return await self.eventually(look, within_ms=within_ms or due_ms, what=what)

    # For what a check presupposes.
    arrange = presupposed(eventually)
    arrange_sent = presupposed(eventually_sent)

    async def never(self, look: Look[T], *, for_ms: int, what: str) -> None:
        """Watch for the whole time. Raises ViolationError when `look` finds something."""
        found = await never(self._staying(look), self.target.clock, for_ms, step_ms=self._step_ms)
        if found is not None:
            message = f"{what}, but at {self.target.clock.now_ms()} ms there was: {found}"
            raise ViolationError(message, expected=f"{what}, for {for_ms} ms")

    async def sleep(self, ms: int) -> None:
        await self.target.clock.pass_ms(ms)

    def look_no_more(self) -> None:
        """The check is over."""
        for peer, listener in self._listening:
            peer.listeners.remove(listener)

    async def stay(self) -> None:
        """The played member stays a member while somebody waits."""
        await self.peer.stay()

    def _staying(self, look: Look[T]) -> Look[T]:
        async def look_on() -> T | None:
            await self.stay()
            return await look()

        return look_on

    def _window(self, within_ms: int) -> str:
        slack_ms = self.target.clock.slack_ms
        return f"{within_ms} ms" + (f" (and {slack_ms} ms for a busy machine)" if slack_ms else "")

    @property
    def _step_ms(self) -> int:
        """Real time is looked at less often: many checks ask one node."""
        return 100 if self.target.clock.slack_ms else STEP_MS

    def _arrived(self) -> list[Arrival]:
        """Distro requests about clients of this check, at members that are played for the node."""
        played = self.played if self.target.limits.counts_members else ()
        return [each for client in self._own for peer in played for each in self.arrivals(client, peer)]

    def _heard(self) -> str:
        arrivals = self._arrived()
        if not arrivals:
            return f"no played member got a Distro request of {self.target.address} about a client of this check"
        last = max(arrivals, key=lambda arrival: arrival.at_ms)
        return f"the last that {self.target.address} sent about a client of this check: {last} at {last.at_ms} ms"

    def _listener(self, peer: PlayedPeer) -> OnArrival:
        def arrived(arrival: Arrival) -> None:
            if arrival.call is not None and arrival.call.client in self._own:
                where = f"{self.target.address} -> {peer.address}"
                self.evidence.append(f"{arrival.at_ms} ms: {where}: {arrival}")

        return arrived


def _told(seen: object) -> str:
    """The body of an answer reads as a sentence does."""
    return ", ".join(f"{name} {value}" for name, value in seen.items()) if isinstance(seen, Mapping) else str(seen)


def _sent(operation: str, client: str, after: Arrival | None, at: PlayedPeer) -> str:
    later = "" if after is None else f" after that of {after.at_ms} ms"
    return f"a {operation} of {client}{later} at {at.address}"
