"""Comparison of readings of all members, some seconds apart: member lists, lists of services, clients.

They are listed from cause to effect: a member that is missing in a member list gets no requests, so its clients differ.
`difference_tracker.py` decides whether a difference is a divergence or a message on its way. Revisions are printed but
not compared, since up to 2.2.x a copy does not take the revision of a CHANGE (B10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from distro_conformance.audit.cluster_view import About, Disagreement, views_of_each_other
from distro_conformance.audit.difference_tracker import Difference, DifferenceTracker, Views
from distro_conformance.audit.lists import ServiceName
from distro_conformance.audit.member import NOTHING, Holding, Member, Reading
from distro_conformance.verdict import TargetError, Verdict
from distro_conformance.waiting import Clock

Now = Callable[[], datetime]
LISTS_PER_ROUND = 200
"""The number of services whose lists are read in one round, in turn. Lists that differed are read in every round."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Held:
    """The state of a diverged client on one member; `holding` is None when the member does not have it."""

    member: str
    holding: Holding | None
    is_stuck: bool  # unchanged since the reading before, in which another member already held something else


@dataclass(frozen=True, slots=True)
class Diverged:
    """A client about which members differ. `since`: the first reading with the difference, which may be older."""

    client: str
    since: datetime
    seen_for_s: float
    members: tuple[Held, ...]

    def sentence(self) -> str:
        """The difference as a sentence."""
        sides = _sides((held.member, _text(held.holding)) for held in self.members)
        return f"{self.client} {_since(self.since, self.seen_for_s)}: {sides}"


@dataclass(frozen=True, slots=True)
class DivergedList:
    """A service with different lists on the members. `members`: for each, its instances that not all members return."""

    service: str
    since: datetime
    seen_for_s: float
    members: Mapping[str, tuple[str, ...]]

    def sentence(self) -> str:
        """The difference as a sentence."""
        sides = _sides((member, ", ".join(shown) or "none of these") for member, shown in self.members.items())
        return f"list of {self.service} {_since(self.since, self.seen_for_s)}: {sides}"


@dataclass(frozen=True, slots=True)
class Audited:
    """The result of a reading. `services`: the number of services with instances; `lists`: the number of those whose
    lists were compared. `once`: the members that the reading before lacks."""

    readings: tuple[Reading, ...]
    clients: int
    diverged: tuple[Diverged, ...]
    rounds: int
    disagreements: tuple[Disagreement, ...] = ()
    diverged_lists: tuple[DivergedList, ...] = ()
    services: int = 0
    lists: int = 0
    once: tuple[str, ...] = ()

    @property
    def violations(self) -> tuple[Disagreement | DivergedList | Diverged, ...]:
        """All violations, causes first."""
        wrong = tuple(each for each in self.disagreements if each.is_violation)
        return (*wrong, *self.diverged_lists, *self.diverged)

    @property
    def verdict(self) -> Verdict:
        if self.violations:
            return Verdict.VIOLATES
        return Verdict.INCONCLUSIVE if self.reasons else Verdict.CONFORMS

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why too little was compared. A difference counts once it was in two readings of the same members."""
        return tuple(self._reasons())

    def _reasons(self) -> Iterator[str]:
        read = [reading for reading in self.readings if reading.error is None]
        if not self.clients:
            yield "no member holds a client, so nothing was compared"
        elif all(not each.published for reading in read for each in reading.clients.values()):
            yield "no client publishes an instance, so nothing was compared"
        if self.rounds < 2:
            yield "there is one reading, and a difference may be a change on its way"
        elif self.once:
            names = ", ".join(self.once)
            yield f"{names} could not be read the time before, so a difference may be a change on its way"
        if silent := [reading.member for reading in self.readings if reading.error is not None]:
            yield f"{', '.join(silent)} cannot be read"
        some = frozenset().union(*(reading.lists for reading in read))
        for reading in read:
            if lacking := len(some - reading.lists.keys()):
                yield f"{reading.member} shows no list of {lacking} of {len(some)} services that another member shows"


class Audit:
    """Reads `members` round by round; `compare` may be called any number of times."""

    def __init__(self, members: Sequence[Member], clock: Clock, now: Now = _now) -> None:
        self._members, self._clock, self._now = members, clock, now
        self._clients = DifferenceTracker[str]()
        self._lists = DifferenceTracker[ServiceName](is_whole=False)
        self._each_other = DifferenceTracker[About]()
        self._turn = 0
        self._read: frozenset[str] = frozenset()
        self.rounds = 0

    async def compare(self) -> Audited:
        """Read all members at the same time, and compare with the reading before. Raises TargetError."""
        readings = await asyncio.gather(*(member.read() for member in self._members))
        answering = [reading for reading in readings if reading.error is None]
        if len(answering) < 2:
            reasons = "; ".join(f"{reading.member}: {reading.error}" for reading in readings if reading.error)
            raise TargetError(f"fewer than two members can be read, so nothing can be compared ({reasons})")
        services = sorted(frozenset().union(*(reading.services for reading in answering)))
        readings = await self._with_lists(readings, self._chosen(services))
        answering = [reading for reading in readings if reading.error is None]
        now_ms = self._clock.now_ms()
        clients = _views_of_clients(answering)
        lists = _views_of_lists(answering)
        before, self._read = self._read, frozenset(reading.member for reading in answering)
        self.rounds += 1
        return Audited(
            tuple(readings),
            len(clients),
            tuple(self._diverged(found, answering) for found in self._clients.update(clients, now_ms)),
            self.rounds,
            tuple(map(self._disagreement, self._each_other.update(views_of_each_other(readings), now_ms))),
            tuple(self._diverged_list(found, answering) for found in self._lists.update(lists, now_ms)),
            len(services),
            sum(len(views) == len(answering) for views in lists.values()),
            tuple(sorted(self._read - before)),
        )

    def _chosen(self, services: Sequence[ServiceName]) -> list[ServiceName]:
        """The services that differed last time, and the next ones in turn."""
        turn, self._turn = self._turn, self._turn + LISTS_PER_ROUND
        if len(services) <= LISTS_PER_ROUND:
            return sorted({*services, *self._lists.open})
        start = turn // 2 % len(services)  # each is read in two consecutive rounds
        return sorted({*self._lists.open, *(*services[start:], *services[:start])[:LISTS_PER_ROUND]})

    async def _with_lists(self, readings: Sequence[Reading], services: Sequence[ServiceName]) -> list[Reading]:
        members = dict(zip((reading.member for reading in readings), self._members, strict=True))

        async def read(reading: Reading) -> Reading:
            if reading.error is not None:
                return reading
            return replace(reading, lists=await members[reading.member].read_lists(services))

        return list(await asyncio.gather(*map(read, readings)))

    def _diverged(self, found: Difference[str], answering: Sequence[Reading]) -> Diverged:
        held = tuple(
            Held(reading.member, reading.clients.get(found.key), reading.member in found.stuck)
            for reading in sorted(answering, key=lambda each: each.member)
        )
        return Diverged(found.key, *self._since(found), held)

    def _diverged_list(self, found: Difference[ServiceName], answering: Sequence[Reading]) -> DivergedList:
        shown = {each.member: each.lists[found.key] for each in answering if found.key in each.lists}
        common = frozenset.intersection(*map(frozenset, shown.values()))
        own = {member: tuple(each for each in lines if each not in common) for member, lines in shown.items()}
        return DivergedList(str(found.key), *self._since(found), own)

    def _disagreement(self, found: Difference[About]) -> Disagreement:
        return Disagreement(*found.key, *self._since(found), found.views)

    def _since(self, found: Difference[str] | Difference[ServiceName] | Difference[About]) -> tuple[datetime, float]:
        return self._now() - timedelta(milliseconds=found.seen_for_ms), found.seen_for_ms / 1000


def _views_of_clients(readings: Sequence[Reading]) -> dict[str, Views]:
    """By client the view of each member, in the detail that all answering members report."""
    is_whole = all(reading.source == "snapshot" for reading in readings)

    def view(holding: Holding) -> str:
        return (holding.content or "") if is_whole else holding.addresses

    clients = sorted(frozenset().union(*(reading.clients for reading in readings)))
    return {
        client: {reading.member: view(reading.clients.get(client, NOTHING)) for reading in readings}
        for client in clients
    }


def _views_of_lists(readings: Sequence[Reading]) -> dict[ServiceName, Views]:
    services = sorted(frozenset().union(*(reading.lists for reading in readings)))
    return {
        service: {each.member: "\n".join(each.lists[service]) for each in readings if service in each.lists}
        for service in services
    }


def _since(since: datetime, seen_for_s: float) -> str:
    return f"since {since:%H:%M:%S} ({seen_for_s:.0f} s)"


def _sides(texts: Iterable[tuple[str, str]]) -> str:
    """The text of each member; members with the same text are grouped."""
    groups: dict[str, list[str]] = {}
    for member, text in texts:
        groups.setdefault(text, []).append(member)
    return "; ".join(f"{', '.join(members)}: {text}" for text, members in groups.items())


def _text(holding: Holding | None) -> str:
    if holding is None:
        return "does not have it"
    revision = "" if holding.revision is None else f" (revision {holding.revision})"
    return (", ".join(holding.published) or "publishes nothing") + revision
