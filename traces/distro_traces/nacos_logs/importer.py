"""The logs of all nodes as one recording, and what they tell of what went wrong.

Two passes, each a stream: the first (`survey`) learns what must be known before the first row, since the header comes
first; the second writes. What the logs cannot show stands in the header, what was skipped is counted by reason.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from distro_traces.header import UNKNOWN_RELEASE
from distro_traces.nacos_logs.coverage import CALLS, CLIENTS, COPIES
from distro_traces.nacos_logs.facts import Fact, What, fact_of
from distro_traces.nacos_logs.files import LogFiles, find
from distro_traces.nacos_logs.history import History
from distro_traces.nacos_logs.records import records
from distro_traces.nacos_logs.survey import Node, NoLogsError, OnFile, logs_of, survey
from distro_traces.nacos_logs.troubles import Trouble, Troubles
from distro_traces.nacos_logs.window import Deed, deeds
from distro_traces.ndjson import Recorder
from distro_traces.observed import ARROW, EVERY, FACTS, Observed
from distro_traces.unreached import Unreachables

SAYS_NOTHING = "says nothing of replication"
VERIFIED_RELEASES = ("2.0.", "2.1.", "2.2.", "2.3.", "2.4.", "2.5.")
TROUBLES_MAX = 1000
"""So many are kept, the first ones."""

_APPLIES = frozenset({What.APPLY, What.REMOVE})
_CONTENT = frozenset({What.CONNECT, What.DISCONNECT, What.PUBLISH, What.WITHDRAW})


@dataclass(frozen=True, slots=True)
class LogSpan:
    """What was read of one node: `logs` with their lowest level, `from_ms` and `until_ms` since the trace began;
    `is_named`: do the logs, or the user, say its address?"""

    node: str
    logs: tuple[str, ...]
    from_ms: int
    until_ms: int
    is_named: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `troubles` are not verdicts: they are what the servers say, in order of time."""

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
    on_file: OnFile | None = None,
) -> Imported:
    """Read the server logs below `directory` and record run `run` in `out`.

    `zone` is that of stamps without an offset, `zones` another one for single directories; `names` says which address
    a directory is where its logs do not. `on_file` is called in the first pass. Raises the TraceError family.
    """
    zones, names = zones or {}, names or {}
    found = find(directory)
    known = survey(found, zones, zone, names, on_file)
    _refuse_unknown({*zones, *names}, found, known)
    if not known:
        raise NoLogsError(
            f"{directory}: no record of Distro in {sum(len(paths) for one in found for paths in one.by_log.values())} "
            "files; they need dates like 2025-09-02 16:45:13 (no bare time, no number) and the logs protocol-distro, "
            "naming-distro, naming-server"
        )
    releases = sum((one.releases for one in known), Counter[str]())
    release = releases.most_common(1)[0][0] if releases else None
    first = min(known, key=lambda one: one.first_ms)
    began_ms, skipped = first.first_ms, Counter[str]()
    observed = _observed(known, release, began_ms)
    troubles, unreached = Troubles(), Unreachables()
    with Recorder(
        out,
        run,
        profile=profile or (f"nacos-{release}" if release else UNKNOWN_RELEASE),
        target=f"nacos-logs:{release or 'unknown'}",
        clock="wall",
        nodes=sorted({one.name for one in known}.union(*(one.members for one in known))),
        observed=observed,
        began=datetime.fromtimestamp(began_ms / 1000, first.zone).isoformat(timespec="milliseconds"),
    ) as recorder:
        history = History(
            recorder,
            began_ms,
            skipped,
            release=release or (profile or "").removeprefix("nacos-"),
            coverage={one.name: one.coverage for one in known},
            unreached=unreached,
            troubles=troubles,
        )
        streams = [_deeds_of(one, troubles, skipped) for one in known]
        for _, _, name, deed in heapq.merge(*streams, key=lambda item: item[:2]):
            history.take(name, deed)
    told = troubles.found(began_ms, list(unreached.found()))
    return Imported(
        recorder.path,
        recorder.events,
        {one.label: one.name for one in known},
        recorder.header.profile,
        dict(skipped),
        observed.limits,
        recorder.header.began or "",
        tuple(_span(one, began_ms) for one in known),
        tuple(told[:TROUBLES_MAX]),
        max(0, len(told) - TROUBLES_MAX),
    )


def _span(one: Node, began_ms: int) -> LogSpan:
    return LogSpan(one.name, tuple(logs_of(one)), one.first_ms - began_ms, one.last_ms - began_ms, one.is_named)


def _refuse_unknown(labels: set[str], found: tuple[LogFiles, ...], known: list[Node]) -> None:
    every = sorted({*(one.label for one in found), *(one.label for one in known)})
    unknown = sorted(label for label in labels if label and label not in every)
    if unknown:
        raise NoLogsError(
            f"{', '.join(unknown)}: no such directory or part of a file name; the logs are of {', '.join(every)}"
        )


def _deeds_of(one: Node, troubles: Troubles, skipped: Counter[str]) -> Iterator[tuple[int, int, str, Deed]]:
    """With what they are merged by: a time that never goes back within a node, and the place in its log."""
    latest_ms = 0
    for position, deed in enumerate(deeds(_facts(one, troubles, skipped), skipped)):
        latest_ms = max(latest_ms, deed.fact.at_ms)
        yield latest_ms, position, one.name, deed


_TROUBLES_ONLY = frozenset(
    {
        *(What.LOADED, What.NOT_LOADED, What.NO_MEMBERS, What.STATES, What.MEMBER_UNHEALTHY, What.REPORT_FAILS),
        *(What.STATUS_FAILS, What.REDIRECT_REFUSED, What.REGISTER_DROPPED, What.OLD_MODE, What.NEW_MODE, What.OUTDATED),
        *(What.UNREGISTERED, What.OVERLOADED, What.PUSH_FAILS),
    }
)
"""What no row of a trace says."""


def _facts(one: Node, troubles: Troubles, skipped: Counter[str]) -> Iterator[Fact]:
    last_ms: int | None = None
    for record in records(one.parts, one.zone, skipped):
        fact = fact_of(record)
        if fact is not None:
            if fact.what is not What.CALL_FAILS or fact.client is not None:  # whose call that was, `History` finds out
                troubles.take(one.name, fact)
            if fact.what in _TROUBLES_ONLY:
                last_ms = record.at_ms
                continue
        if fact is None:
            skipped[SAYS_NOTHING] += 1
        elif fact.what is What.STARTS and last_ms is not None:
            yield Fact(fact.at_ms, fact.what, {"last_ms": str(last_ms)}, fact.log, fact.place)
        else:
            yield fact
        last_ms = record.at_ms


def _observed(known: list[Node], release: str | None, began_ms: int) -> Observed:
    limits = [
        "Nacos drops log records under load (naming-server, naming-distro): the absence of a row proves nothing.",
        "Calls are matched by client, operation, target and order: the log of a receiver does not name the sender.",
        "The answer of a receiver is not logged; the outcome is what the sender read of it.",
        "Whether the members agree in the end: records are dropped, so a node may hold what none names; audit asks it.",
    ]
    limits += [f"{one.name}: {limit}" for one in known for limit in _limits_of(one)]
    missing = sorted(set().union(*(one.members for one in known)) - {one.name for one in known})
    limits += [f"{member}: no logs, nothing is known of what it holds." for member in missing]
    if release is None:
        limits.append("The release is not logged; name the profile.")
    elif not release.startswith(VERIFIED_RELEASES):
        limits.append(f"The phrases of {release} are read from documents, not verified on a running server.")
    covered = tuple(each for one in known for each in one.coverage.covered(one.name, began_ms))
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
        operations=("CHANGE", "DELETE", "SNAPSHOT"),  # a VERIFY that passes is logged by nobody but its receiver
        values=tuple(name for name, is_shown in values.items() if is_shown),
        lossless=False,
        covered=covered,
        limits=tuple(limits),
    )


def _limits_of(one: Node) -> Iterator[str]:
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
