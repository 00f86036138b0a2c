"""The logs of all nodes as one recording, and the troubles that they report.

Two passes, each a stream: the first (`survey`) collects the facts for the header, which comes before the first row; the
second writes the rows. The header lists the facts that the logs cannot show; skipped records are counted by reason.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path

from distro_traces.endings import Endings
from distro_traces.header import UNKNOWN_RELEASE
from distro_traces.nacos_logs.blocks import OnRead
from distro_traces.nacos_logs.coverage import CALLS, CLIENTS, COPIES
from distro_traces.nacos_logs.facts import MARKS, Fact, What, fact_of
from distro_traces.nacos_logs.files import LogFiles, find
from distro_traces.nacos_logs.history import History
from distro_traces.nacos_logs.records import Quiet, records
from distro_traces.nacos_logs.survey import Node, NoLogsError, OnPart, logs_of, report, size_of, survey
from distro_traces.nacos_logs.troubles import Trouble, Troubles
from distro_traces.nacos_logs.window import Action, actions
from distro_traces.ndjson import Recorder
from distro_traces.observed import ARROW, EVERY, FACTS, Observed
from distro_traces.unreached import Unreachables

SAYS_NOTHING = "says nothing of replication"
VERIFIED_RELEASES = ("2.0.", "2.1.", "2.2.", "2.3.", "2.4.", "2.5.", "3.0.", "3.1.")
UNSTEADY = "calls arrive before they are sent, as if its clock or the sender's was set; revisions are not judged"
TROUBLES_MAX = 1000
"""So many are kept, the first ones."""

_APPLIES = frozenset({What.APPLY, What.REMOVE})
_CONTENT = frozenset({What.CONNECT, What.DISCONNECT, What.PUBLISH, What.WITHDRAW})


@dataclass(frozen=True, slots=True)
class LogSpan:
    """The logs read of one node: `logs` with their lowest level, `from_ms` and `until_ms` since the trace began;
    `is_named`: do the logs, or the user, say its address? `notes`: what to know about its times and its address."""

    node: str
    logs: tuple[str, ...]
    from_ms: int
    until_ms: int
    is_named: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `troubles` are reports of the servers, in order of time, not verdicts."""

    path: Path
    events: int
    nodes: Mapping[str, str]  # directory or part of the file name, to node
    profile: str
    skipped: Mapping[str, int]  # records and lines, by reason
    limits: tuple[str, ...]
    began: str  # the first stamp, from which the trace counts its milliseconds
    spans: tuple[LogSpan, ...]
    troubles: tuple[Trouble, ...]
    troubles_left_out: int


def import_logs(
    directory: Path,
    out: Path,
    *,
    run: str = "nacos-logs",
    zone: tzinfo = UTC,
    zones: Mapping[str, tzinfo] | None = None,
    names: Mapping[str, str] | None = None,
    profile: str | None = None,
    on_part: OnPart | None = None,
) -> Imported:
    """Read the server logs below `directory` and record run `run` in `out`.

    `zone` is that of stamps without an offset, `zones` another one for single directories; `names` says which address
    a directory is where its logs do not. `on_part` is called while the files are read. Raises the TraceError family.
    """
    zones, names = zones or {}, names or {}
    found = find(directory)
    known = survey(found, zones, zone, names, on_part)
    _refuse_unknown({*zones, *names}, found, known)
    if not known:
        raise NoLogsError(
            f"{directory}: no record of Distro in {sum(len(paths) for one in found for paths in one.by_log.values())} "
            "files; they need dates like 2025-09-02 16:45:13 (no bare time, no number) and the logs protocol-distro, "
            "naming-distro, naming-server"
        )
    addresses, several = _earlier_addresses(known), _several_releases(_running(known))
    release = None if several else _release(known)
    first = min(known, key=lambda one: one.first_ms)
    began_ms, skipped = first.first_ms, Counter[str]()
    observed = _observed(known, release, several, began_ms)
    troubles, unreached, endings = Troubles(addresses), Unreachables(observed), Endings(observed)
    with Recorder(
        out,
        run,
        profile=profile or (f"nacos-{release}" if release else UNKNOWN_RELEASE),
        target=f"nacos-logs:{release or 'unknown'}",
        clock="wall",
        nodes=sorted({addresses.get(each, each) for one in known for each in (one.name, *one.members)}),
        observed=observed,
        began=datetime.fromtimestamp(began_ms / 1000, first.zone).isoformat(timespec="milliseconds"),
    ) as recorder:
        history = History(
            recorder,
            began_ms,
            skipped,
            release=release or (profile or "").removeprefix("nacos-"),
            addresses=addresses,
            coverage={one.name: one.coverage for one in known},
            holes={one.name: one.sure_holes for one in known},
            unreached=unreached,
            endings=endings,
            troubles=troubles,
        )
        total = sum(size_of(part.path) for one in known for part in one.to_read_again)
        on_read = None if on_part is None else partial(report, on_part, None, Counter[str](), total)
        streams = [_actions_of(one, addresses, troubles, skipped, on_read) for one in known]
        for _, _, name, action in heapq.merge(*streams, key=lambda item: item[:2]):
            history.take(name, action)
    missing = [(one.name, hole) for one in known for hole in one.sure_holes]
    reported = troubles.found(began_ms, list(unreached.found()), list(endings.found()), missing)
    return Imported(
        recorder.path,
        recorder.events,
        {one.label: one.name for one in known},
        recorder.header.profile,
        {reason: count for reason, count in skipped.items() if count},
        observed.limits,
        recorder.header.began or "",
        tuple(_span(one, began_ms) for one in known),
        tuple(reported[:TROUBLES_MAX]),
        max(0, len(reported) - TROUBLES_MAX),
    )


def _span(one: Node, began_ms: int) -> LogSpan:
    return LogSpan(
        one.name, tuple(logs_of(one)), one.first_ms - began_ms, one.last_ms - began_ms, one.is_named, _notes_of(one)
    )


def _refuse_unknown(labels: set[str], found: tuple[LogFiles, ...], known: list[Node]) -> None:
    every = sorted({*(one.label for one in found), *(one.label for one in known)})
    unknown = sorted(label for label in labels if label and label not in every)
    if unknown:
        raise NoLogsError(
            f"{', '.join(unknown)}: no such directory or part of a file name; the logs are of {', '.join(every)}"
        )


def _actions_of(
    one: Node, addresses: Mapping[str, str], troubles: Troubles, skipped: Counter[str], on_read: OnRead | None
) -> Iterator[tuple[int, int, str, Action]]:
    """Each action with its sort key: a time that never goes back within a node, and the place in its log."""
    latest_ms = 0
    for position, action in enumerate(actions(_facts(one, addresses, troubles, skipped, on_read), skipped)):
        latest_ms = max(latest_ms, action.fact.at_ms)
        yield latest_ms, position, one.name, action


_TROUBLES_ONLY = frozenset(
    {
        *(What.LOADED, What.NOT_LOADED, What.NO_MEMBERS, What.STATES, What.MEMBER_UNHEALTHY, What.REPORT_FAILS),
        *(What.STATUS_FAILS, What.REDIRECT_REFUSED, What.REGISTER_DROPPED, What.OLD_MODE, What.NEW_MODE, What.OUTDATED),
        *(What.UNREGISTERED, What.OVERLOADED, What.PUSH_FAILS),
    }
)
"""What no row of a trace says."""


def _facts(
    one: Node, addresses: Mapping[str, str], troubles: Troubles, skipped: Counter[str], on_read: OnRead | None
) -> Iterator[Fact]:
    parts = one.to_read_again
    left = [part for part in one.parts if part not in parts]
    skipped[SAYS_NOTHING] += sum(part.amount for part in left)
    latest = _Latest([part.last_ms for part in left])
    for record in records(parts, one.zone, skipped, MARKS, on_read):
        if isinstance(record, Quiet):
            skipped[SAYS_NOTHING] += record.amount
            latest.pass_over(record)
            continue
        fact = fact_of(record)
        starts = fact is not None and fact.what is What.STARTS
        last_ms = latest.before(record.at_ms) if starts else None
        latest.take(record.at_ms)
        if fact is None:
            skipped[SAYS_NOTHING] += 1
            continue
        if one.ahead_ms or fact.details.get("target") in addresses:
            fact = _by_the_others(fact, one.ahead_ms, addresses)
        if fact.what is not What.CALL_FAILS or fact.client is not None:  # `History` finds the call
            troubles.take(one.name, fact)
        if last_ms is not None:
            yield Fact(fact.at_ms, fact.what, {"last_ms": str(last_ms - one.ahead_ms)}, fact.log, fact.place)
        elif fact.what not in _TROUBLES_ONLY:
            yield fact


def _by_the_others(fact: Fact, ahead_ms: int, addresses: Mapping[str, str]) -> Fact:
    """The fact by the clock of the other nodes, with the present address of its target."""
    details = dict(fact.details)
    if details.get("target") in addresses:
        details["target"] = addresses[details["target"]]
    return replace(fact, at_ms=fact.at_ms - ahead_ms, details=details)


class _Latest:
    """The time of the last record of a node, with or without a fact."""

    def __init__(self, ends: list[int]) -> None:
        self._ends = ends  # of parts that are not read again
        self._at_ms: int | None = None
        self._passed: list[Quiet] = []  # those that a later record may lie within

    def take(self, at_ms: int) -> None:
        self._at_ms = at_ms

    def pass_over(self, quiet: Quiet) -> None:
        self._passed = [each for each in self._passed if each.last_ms > quiet.first_ms] + [quiet]
        self._at_ms = max((self._at_ms or 0, *(e.last_ms for e in self._passed if e.last_ms <= quiet.first_ms)))

    def before(self, at_ms: int) -> int | None:
        """Before a record at that time."""
        found = [each.last_before(at_ms) for each in self._passed if each.first_ms < at_ms]
        found += [each for each in self._ends if each < at_ms]
        return max((*found, *(() if self._at_ms is None else (self._at_ms,))), default=None)


def _earlier_addresses(known: list[Node]) -> dict[str, str]:
    """The addresses that nodes had before a restart, and no other node has, with the present one."""
    counted = Counter(address for one in known for address in {one.name, *one.own})
    return {address: one.name for one in known for address in one.earlier if counted[address] == 1}


def _running(known: list[Node]) -> dict[str, list[tuple[int, str]]]:
    """By member its releases, each with the time since which it is listed with it."""
    found: dict[str, dict[str, int]] = {}
    for one in known:
        for (member, release), at_ms in one.running.items():
            by_release = found.setdefault(member, {})
            by_release[release] = min(at_ms, by_release.get(release, at_ms))
    return {member: sorted((at_ms, release) for release, at_ms in each.items()) for member, each in found.items()}


def _release(known: list[Node]) -> str | None:
    """The release that most records name; None: it is not logged."""
    releases = sum((one.releases for one in known), Counter[str]())
    return releases.most_common(1)[0][0] if releases else None


def _several_releases(running: Mapping[str, list[tuple[int, str]]]) -> str:
    """The releases of the members in words, if they differ; else nothing."""
    if len({release for each in running.values() for _, release in each}) < 2:
        return ""
    each = [f"{member} {', then '.join(release for _, release in found)}" for member, found in sorted(running.items())]
    return f"several releases run, so nothing can be judged: {'; '.join(each)}."


def _observed(known: list[Node], release: str | None, several: str, began_ms: int) -> Observed:
    limits = [
        "Nacos drops log records under load (naming-server, naming-distro): the absence of a row proves nothing.",
        "Calls are matched by client, operation, target and order: the log of a receiver does not name the sender.",
        "The answer of a receiver is not logged; the outcome is what the sender read of it.",
        "Whether the members agree in the end: records are dropped, so a node may hold what none names; audit asks it.",
    ]
    limits += [f"{one.name}: {limit}" for one in known for limit in _limits_of(one)]
    there = {one.name for one in known}.union(*(one.own for one in known))
    missing = sorted(set().union(*(one.members for one in known)) - there)
    limits += [f"{member}: no logs, nothing is known of what it holds." for member in missing]
    if several:
        limits.append(several)
    elif release is None:
        limits.append("The release is not logged; name the profile.")
    elif not release.startswith(VERIFIED_RELEASES):
        limits.append(f"The phrases of {release} are read from documents, not verified on a running server.")
    covered = tuple(
        each
        for one in known
        for each in one.coverage.covered(one.name, began_ms)
        if not (one.is_unsteady and each.fact == "revision")  # which copy a call changed is not sure
    )
    nodes = {fact: {each.node for each in covered if each.fact == fact} for fact in FACTS}
    values = {
        "owned": all(one.name in nodes["owned"] for one in known),
        "revision": any(one.has_revisions for one in known),
        "digest": all(one.name in nodes["state"] for one in known),
    }
    if values["digest"]:
        limits.append("A digest stands for the services that a client publishes, not for its instances' fields.")
    calls = [one.name for one in known if one.name in nodes["sent"]]
    return Observed(
        reported=tuple(one.name for one in known if one.shows(_CONTENT | _APPLIES)),
        sent=tuple(name + ARROW + EVERY for name in calls),
        received=tuple(EVERY + ARROW + name for name in calls),
        operations=("CHANGE", "DELETE", "SNAPSHOT"),  # only its receiver logs a VERIFY that succeeds
        values=tuple(name for name, is_shown in values.items() if is_shown),
        lossless=False,
        covered=covered,
        limits=tuple(limits),
    )


def _notes_of(one: Node) -> tuple[str, ...]:
    clock = () if one.clock is None else (str(one.clock),)
    unsteady = (UNSTEADY,) if one.is_unsteady else ()
    earlier = (f"its address was {', '.join(one.earlier)} before",) if one.earlier else ()
    return (*clock, *unsteady, *earlier)


def _limits_of(one: Node) -> Iterator[str]:
    yield from (f"{note}." for note in _notes_of(one))
    if not one.coverage.read(CALLS):
        yield "no record of calls (protocol-distro at INFO)."
    if not one.coverage.read(COPIES):
        yield "no record of clients received (naming-distro at INFO): native or synced, and revisions, are not shown."
    elif one.facts[What.APPLY] and not one.has_revisions:
        yield "revisions are not logged (from 2.1.2 on)."
    if not one.coverage.read(CLIENTS):
        yield "no record of clients and services (naming-server at INFO): what a client publishes is not shown."
    if one.facts[What.VERIFY]:
        yield "of a VERIFY that passed there is the request at its receiver, without its revision."
    else:
        yield "no record of verify requests (protocol-distro at DEBUG); only those that failed are shown."
    if not one.facts[What.STARTS]:
        yield "its start is not in the logs; of clients that are older than them the content is unknown."
