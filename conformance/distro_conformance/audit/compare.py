"""Readings of all members, some seconds apart, compared: what differs and is not merely on its way.

A change needs a second or two to every other member, and a verify five. So a client has diverged when members differ
about it in two readings and one of them still holds what it held in the first, although another one held something
else even then: it had the whole time to hear of that. A member that moves is catching up, or its client is busy.
Revisions are shown and not compared: up to 2.2.x a copy does not take the revision of a CHANGE (B10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from distro_conformance.audit.member import NOTHING, Holding, Member, Reading
from distro_conformance.verdict import TargetError, Verdict
from distro_conformance.waiting import Clock

Now = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Held:
    """What one member holds of a diverged client; `holding` is None when it does not have it."""

    member: str
    holding: Holding | None
    is_stuck: bool  # the same in both readings, while another member already held something else in the first


@dataclass(frozen=True, slots=True)
class Diverged:
    """A client about which members differ. `since` is when that was seen first; it may have begun before."""

    client: str
    since: datetime
    seen_for_s: float
    members: tuple[Held, ...]

    def sentence(self) -> str:
        """For people."""
        groups: dict[str, list[str]] = {}
        for held in self.members:
            groups.setdefault(_text(held.holding), []).append(held.member)
        sides = "; ".join(f"{', '.join(members)}: {text}" for text, members in groups.items())
        return f"{self.client} since {self.since:%H:%M:%S} ({self.seen_for_s:.0f} s): {sides}"


@dataclass(frozen=True, slots=True)
class Audited:
    """The state of affairs after a reading."""

    readings: tuple[Reading, ...]
    clients: int
    diverged: tuple[Diverged, ...]
    rounds: int

    @property
    def verdict(self) -> Verdict:
        if self.diverged:
            return Verdict.VIOLATES
        if self.rounds < 2 or not self.clients or any(reading.error for reading in self.readings):
            return Verdict.INCONCLUSIVE  # of members that hold nothing nothing was compared
        return Verdict.CONFORMS


class Audit:
    """Reads `members` round by round; `look` may be called as often as one likes."""

    def __init__(self, members: Sequence[Member], clock: Clock, now: Now = _now) -> None:
        self._members, self._clock, self._now = members, clock, now
        self._before: Mapping[str, Reading] = {}
        self._differ_since_ms: dict[str, int] = {}
        self.rounds = 0

    async def look(self) -> Audited:
        """One reading of all members at a time, compared with the one before. Raises TargetError."""
        readings = await asyncio.gather(*(member.read() for member in self._members))
        answering = {reading.member: reading for reading in readings if reading.error is None}
        if len(answering) < 2:
            reasons = "; ".join(f"{reading.member}: {reading.error}" for reading in readings if reading.error)
            raise TargetError(f"fewer than two members can be read, so nothing can be compared ({reasons})")
        now_ms = self._clock.now_ms()
        clients = {client for reading in answering.values() for client in reading.clients}
        differ = {client for client in clients if _differ(answering, client)}
        self._differ_since_ms = {client: self._differ_since_ms.get(client, now_ms) for client in sorted(differ)}
        stuck = {client: _stuck(self._before, answering, client) for client in self._differ_since_ms}
        diverged = tuple(
            self._diverged(client, answering, members, now_ms) for client, members in stuck.items() if members
        )
        self._before = answering
        self.rounds += 1
        return Audited(tuple(readings), len(clients), diverged, self.rounds)

    def _diverged(self, client: str, answering: Mapping[str, Reading], stuck: frozenset[str], now_ms: int) -> Diverged:
        seen_for_ms = now_ms - self._differ_since_ms[client]
        held = tuple(
            Held(name, reading.clients.get(client), name in stuck) for name, reading in sorted(answering.items())
        )
        since = self._now() - timedelta(milliseconds=seen_for_ms)
        return Diverged(client, since, seen_for_ms / 1000, held)


def _differ(readings: Mapping[str, Reading], client: str) -> bool:
    return len({_view(readings, name, client) for name in readings}) > 1


def _stuck(before: Mapping[str, Reading], now: Mapping[str, Reading], client: str) -> frozenset[str]:
    """The members that hold what they held, while another one held something else in both readings."""
    both = {name: now[name] for name in now if name in before}
    if not _differ({name: before[name] for name in both}, client) or not _differ(both, client):
        return frozenset()
    return frozenset(name for name in both if _view(before, name, client) == _view(both, name, client))


def _view(readings: Mapping[str, Reading], name: str, client: str) -> str:
    """What a subscriber could see of it, as finely as all members that answered show it."""
    holding = readings[name].clients.get(client, NOTHING)
    is_whole = all(reading.source == "snapshot" for reading in readings.values())
    return (holding.digest or "") if is_whole else holding.addresses


def _text(holding: Holding | None) -> str:
    if holding is None:
        return "does not have it"
    revision = "" if holding.revision is None else f" (revision {holding.revision})"
    return (", ".join(holding.published) or "publishes nothing") + revision
