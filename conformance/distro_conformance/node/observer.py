"""The observations of a check, its waits in the target's own time, and the two ways in which it fails to pass.

A check is *violated* when something that must come does not come, or something comes that must not. When it cannot get
that far (the node never connected to the played member, a client was refused) it is *not judged*: that is never a pass
and never a fault of the node in this respect. `eventually` and `never` are the first kind, `arrange` is the second.

The method decides whether time matters. `require` is about what the node holds, answers or sends, whenever: it is
judged on any machine. `eventually`, `never`, `require_within` and `require_apart` are about time: if delays of the
machine may be the reason, the check is not judged (`waiting.py`). A check never compares times by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import grpc.aio

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.errors import BeyondError, LacksError, NotJudgedError, Observed, ViolationError
from distro_conformance.node.peer import Arrival, OnArrival, PlayedPeer
from distro_conformance.release import Timings
from distro_conformance.targets.target import Target
from distro_conformance.verdict import KitError
from distro_conformance.waiting import (
    STEP_MS,
    Poll,
    Timeliness,
    WaitResult,
    never,
    poll_local,
    settled,
    timeliness,
    wait_until_found,
)
from distro_traces.content import Replica

T = TypeVar("T")
P = ParamSpec("P")
W = TypeVar("W", bound="Observer")
ELSES = "one that the kit did not start"


def require_feature(target: Target, feature: str) -> None:
    """Raises LacksError if the server lacks the feature."""
    if feature in target.limits.lacks:
        raise LacksError(f"the description says that the server lacks {feature!r}")


def assumed(
    wait: Callable[Concatenate[W, P], Awaitable[T]],
) -> Callable[Concatenate[W, P], Coroutine[Any, Any, T]]:
    """The same wait for an assumption of a check: a late result is good enough. Raises NotJudgedError instead of
    ViolationError."""

    async def arranged(observer: W, /, *args: P.args, **named: P.kwargs) -> T:
        try:
            return await wait(observer, *args, **named)
        except (ViolationError, NotJudgedError) as missing:
            if missing.found is not None:
                return cast("T", missing.found)
            if isinstance(missing, NotJudgedError):
                raise
            raise NotJudgedError(f"cannot go on without {missing.expected}{observer._last_seen('; ')}") from None

    return arranged


@dataclass
class Observer:
    """The observations of one check: `evidence` is in order and covers only its own clients."""

    target: Target
    played: tuple[PlayedPeer, ...]
    evidence: list[str] = field(default_factory=list)
    _own: set[str] = field(default_factory=set)
    _seen_before: dict[str, int] = field(default_factory=dict)
    _listening: list[tuple[PlayedPeer, OnArrival]] = field(default_factory=list)
    _keep_alive_task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.began_ms = self.target.clock.now_ms()
        self.timings = Timings.of(self.target.profile, self.target.lease_ms)
        for peer in self.played:
            self._seen_before[peer.address] = len(peer.arrivals)
            listener = self._listener(peer)
            self._listening.append((peer, listener))
            peer.listeners.append(listener)

    @property
    def peers(self) -> tuple[PlayedPeer, ...]:
        """All members, which the node has on its list. Raises NotJudgedError when it has not."""
        if not self.target.limits.counts_members:
            raise BeyondError(f"cannot go on without a node that has members of the kit on its list; seen: {ELSES}")
        return self.played

    @property
    def peer(self) -> PlayedPeer:
        """The member that sends to the node."""
        return self.played[0]

    @property
    def other(self) -> PlayedPeer:
        """A second member. Raises NotJudgedError when there is none."""
        if len(self.peers) < 2:
            raise NotJudgedError("cannot go on with only one played member")
        return self.peers[1]

    # Observations.

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
    ) -> Poll[Arrival]:
        """Polls for the first such request at a member (default: `peer`), since the check began or after another;
        `carrying`: the content must satisfy this."""

        def is_meant(arrival: Arrival) -> bool:
            is_such = carrying is None or (arrival.replica is not None and carrying(arrival.replica))
            return arrival.is_about(operation, client) and is_such

        def find() -> Arrival | None:
            arrivals = self.arrivals(client, at)
            later = arrivals if after is None else arrivals[arrivals.index(after) + 1 :]
            return next(filter(is_meant, later), None)

        return poll_local(find)

    def note(self, what: str) -> None:
        self.evidence.append(f"{self.target.clock.now_ms()} ms: {what}")

    def require(self, holds: bool, expected: str, seen: object, *, observed: Observed = NOTHING) -> None:
        """Raises ViolationError unless it holds."""
        if not holds:
            raise ViolationError(f"expected {expected}; seen: {_text(seen)}", expected=expected, observed=observed)

    def assume(self, holds: bool, needed: str, seen: object) -> None:
        """Raises NotJudgedError unless it holds."""
        if not holds:
            raise NotJudgedError(f"cannot go on without {needed}; seen: {_text(seen)}")

    def assume_turns(self, gap_ms: int, within_ms: int, what: str) -> None:
        """Assumes that the kit acted in time. Raises NotJudgedError if it did not: then a lease that expired meanwhile
        expired rightly."""
        self.assume(gap_ms < within_ms, f"{what} within {within_ms} ms", f"{gap_ms} ms")

    def assume_answers(self, since_ms: int) -> None:
        """Assumes that since then neither side waited so long for an answer that it dropped the other. Raises
        NotJudgedError."""
        is_starved = self.target.clock.is_starved_since(since_ms)
        self.assume(not is_starved, "answers in time on both sides", self._taken_since(since_ms))

    def require_within(self, took_ms: int, within_ms: int, what: str, *, since_ms: int) -> None:
        """Requires a duration from then on. Raises ViolationError if it is too long, NotJudgedError if the machine may
        be the reason."""
        how = timeliness(took_ms, within_ms, self.target.clock, since_ms)
        expected, seen = f"{what} within {within_ms} ms", f"{took_ms} ms"
        self.assume(how is not Timeliness.OPEN, expected, f"{seen}; {self._taken_since(since_ms)}")
        self.require(how is Timeliness.IN_TIME, expected, seen)

    def require_apart(self, earlier_ms: int, later_ms: int, least_ms: int, what: str) -> None:
        """Requires this time between the two at least. Raises ViolationError if the second came sooner, NotJudgedError
        if the first may have been observed late."""
        gap_ms, since_ms = later_ms - earlier_ms, earlier_ms - least_ms
        is_open = 0 < least_ms - gap_ms <= self.target.clock.slack_since(since_ms)
        expected, seen = f"at least {least_ms} ms between {what}", f"{gap_ms} ms"
        self.assume(not is_open, expected, f"{seen}; {self._taken_since(since_ms)}")
        self.require(gap_ms >= least_ms, expected, seen)

    def _taken_since(self, at_ms: int) -> str:
        return f"this machine took {self.target.clock.slack_since(at_ms)} ms"

    # Waiting, in the target's time.

    async def eventually(
        self, poll: Poll[T], *, within_ms: int, what: str, otherwise: Callable[[], Awaitable[Observed]] | None = None
    ) -> T:
        """The result of `poll` within the time. Raises ViolationError with the values of `otherwise`; NotJudgedError if
        the machine may have been late."""
        wait = await self._wait_until_found(poll, within_ms)
        expected, found = f"{what} within {within_ms} ms", wait.found
        if wait.timeliness is Timeliness.OPEN:
            raise NotJudgedError(f"cannot tell whether {expected}: {wait.why_open}", found=found)
        if wait.timeliness is Timeliness.MISSED:
            observed = await otherwise() if otherwise else NOTHING
            seen = "not seen" if found is None else f"seen after {wait.took_ms} ms"
            seen += f", of which this machine took {wait.slack_ms} ms" if wait.slack_ms else ""
            nothing = "" if self._arrived() else self._last_seen(", ")
            raise ViolationError(
                f"expected {expected}; {seen}{nothing}", expected=expected, observed=observed, found=found
            )
        return cast("T", found)

    async def _wait_until_found(self, poll: Poll[T], within_ms: int) -> WaitResult[T]:
        return await wait_until_found(self._with_keep_alive(poll), self.target.clock, within_ms, step_ms=self._step_ms)

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
        poll = self.arrival(operation, client, after=after, at=at)
        due_ms = self.timings.verify_ms if operation == "VERIFY" else self.timings.sync_ms
        what = _sent(operation, client, after, at or self.peer)
        return await self.eventually(poll, within_ms=within_ms or due_ms, what=what)

    # Assumptions of a check.
    arrange = assumed(eventually)
    arrange_sent = assumed(eventually_sent)

    async def never(
        self, poll: Poll[T], *, for_ms: int, what: str, otherwise: Callable[[], Observed] = lambda: NOTHING
    ) -> None:
        """Watch for the whole time. Raises ViolationError with the values of `otherwise` when `poll` finds something;
        NotJudgedError if one side may have dropped the other before that, without an answer, or if the kit may have
        found it too late."""
        wait = await never(self._with_keep_alive(poll), self.target.clock, for_ms, step_ms=self._step_ms)
        if wait.found is not None:
            self.assume_answers(self.began_ms)
            message = f"{what}, but at {self.target.clock.now_ms()} ms there was: {wait.found}"
            if wait.timeliness is Timeliness.OPEN:
                raise NotJudgedError(f"cannot tell whether within {for_ms} ms: {message}", found=wait.found)
            raise ViolationError(message, expected=f"{what}, for {for_ms} ms", observed=otherwise())

    async def sleep(self, ms: int) -> None:
        """Sleeps exactly this time, for actions at the kit's own pace."""
        await self.target.clock.pass_ms(ms)

    async def settle(self, ms: int) -> None:
        """Waits until the node has had this time: longer if the machine took some of it."""
        await settled(self.target.clock, ms)

    def stop_watching(self) -> None:
        """The check is over."""
        if self._keep_alive_task is not None:
            self._keep_alive_task.cancel()
        for peer, listener in self._listening:
            peer.listeners.remove(listener)

    async def keep_alive(self) -> None:
        """The played member stays a member during a wait."""
        await self.peer.keep_alive()

    def _with_keep_alive(self, poll: Poll[T]) -> Poll[T]:
        """A poll beside which signs of life are sent: the time of their answers is not part of the wait."""

        async def keep_alive_and_poll() -> T | None:
            if not self.target.clock.is_real:
                await self.keep_alive()
            elif self._keep_alive_task is None or self._keep_alive_task.done():
                self._keep_alive_task = asyncio.create_task(self._keep_alive(), name="signs of life")
            return await poll()

        return keep_alive_and_poll

    async def _keep_alive(self) -> None:
        with contextlib.suppress(KitError, grpc.aio.AioRpcError):  # the check notices a client without an answer
            await self.keep_alive()

    @property
    def _step_ms(self) -> int:
        """The interval of polls, longer in real time, where many checks query one node."""
        return 100 if self.target.clock.is_real else STEP_MS

    def _arrived(self) -> list[Arrival]:
        """Distro requests about clients of this check at played members."""
        return [each for client in self._own for peer in self.played for each in self.arrivals(client, peer)]

    def _last_seen(self, separator: str) -> str:
        """A clause of a message; empty for a node that has no played member on its list."""
        if not self.target.limits.counts_members:
            return ""
        arrivals = self._arrived()
        if not arrivals:
            text = f"no played member got a Distro request of {self.target.address} about a client of this check"
        else:
            last = max(arrivals, key=lambda arrival: arrival.at_ms)
            text = f"the last that {self.target.address} sent about a client of this check: {last} at {last.at_ms} ms"
        return separator + text

    def _listener(self, peer: PlayedPeer) -> OnArrival:
        def arrived(arrival: Arrival) -> None:
            if arrival.call is not None and arrival.call.client in self._own:
                where = f"{self.target.address} -> {peer.address}"
                self.evidence.append(f"{arrival.at_ms} ms: {where}: {arrival}")

        return arrived


def _text(seen: object) -> str:
    """The body of an answer reads as a sentence does."""
    return ", ".join(f"{name} {value}" for name, value in seen.items()) if isinstance(seen, Mapping) else str(seen)


def _sent(operation: str, client: str, after: Arrival | None, at: PlayedPeer) -> str:
    later = "" if after is None else f" after that of {after.at_ms} ms"
    return f"a {operation} of {client}{later} at {at.address}"
