"""The logs of all nodes as one recording.

Two passes, each a stream: the first learns what nobody says anywhere (which address each directory is, which members
there are, the release, which kinds of facts the levels let through), since the header comes before the first row; the
second writes. What the logs cannot show stands in the header, what was passed over is counted by reason.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from distro_protos.addresses import bracketed, entries, one_name
from distro_traces.errors import TraceError
from distro_traces.header import UNKNOWN_RELEASE
from distro_traces.nacos_logs.coverage import Coverage
from distro_traces.nacos_logs.facts import MEMBER, VERSION, Fact, What, fact_of
from distro_traces.nacos_logs.files import LogFiles, find
from distro_traces.nacos_logs.history import History
from distro_traces.nacos_logs.records import records
from distro_traces.nacos_logs.window import Deed, deeds
from distro_traces.ndjson import Recorder
from distro_traces.observed import ARROW, EVERY, FACTS, Observed

SAYS_NOTHING = "says nothing of replication"
VERIFIED_RELEASES = ("2.0.", "2.1.", "2.2.", "2.3.", "2.4.", "2.5.")

_CALLS = frozenset({What.CALL, What.CALL_ENDS, What.RECEIVED, What.LOAD, What.LOAD_ENDS})
_APPLIES = frozenset({What.APPLY, What.REMOVE})
_CONTENT = frozenset({What.CONNECT, What.DISCONNECT, What.PUBLISH, What.WITHDRAW})


class NoLogsError(TraceError):
    """The files hold no record with a date and time, or none about replication."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    path: Path
    events: int
    nodes: Mapping[str, str]  # directory or part of the file name, to node
    profile: str
    skipped: Mapping[str, int]  # records and lines, by reason
    limits: tuple[str, ...]
    began: str  # the first stamp, from which the trace counts its milliseconds


@dataclass(slots=True)
class _Known:
    """What the first pass learned of one directory."""

    files: LogFiles
    first_ms: int | None = None
    own: Counter[str] = field(default_factory=Counter)  # addresses that only the node itself can have
    others: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    releases: Counter[str] = field(default_factory=Counter)
    facts: Counter[What] = field(default_factory=Counter)
    has_revisions: bool = False
    name: str = ""
    coverage: Coverage = field(default_factory=Coverage)

    def shows(self, kinds: frozenset[What]) -> bool:
        return any(self.facts[kind] for kind in kinds)


def import_logs(
    directory: Path,
    out: Path,
    *,
    run: str = "nacos-logs",
    zone: tzinfo = UTC,
    zones: Mapping[str, tzinfo] | None = None,
    names: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> Imported:
    """Read the server logs below `directory` and record run `run` in `out`.

    `zone` is that of stamps without an offset, `zones` another one for single directories; `names` says which address
    a directory is where its logs do not. Raises the TraceError family.
    """
    zones, names = zones or {}, names or {}
    _refuse_unknown({*zones, *names}, nodes := find(directory))
    skipped: Counter[str] = Counter()
    found = [_learn(files, zones.get(files.label, zone)) for files in nodes]
    known = [one for one in found if one.facts]
    if not known:
        raise NoLogsError(
            f"{directory}: no record of Distro in {sum(len(paths) for one in nodes for paths in one.by_log.values())} "
            "files; they need dates like 2025-09-02 16:45:13 and the logs protocol-distro, naming-distro, naming-server"
        )
    _name(known, names)
    releases = sum((one.releases for one in known), Counter[str]())
    release = releases.most_common(1)[0][0] if releases else None
    began_ms, label = min((one.first_ms, one.files.label) for one in known if one.first_ms is not None)
    observed = _observed(known, release, began_ms)
    began = datetime.fromtimestamp(began_ms / 1000, zones.get(label, zone))
    members = sorted({one.name for one in known}.union(*(one.members for one in known)))
    with Recorder(
        out,
        run,
        profile=profile or (f"nacos-{release}" if release else UNKNOWN_RELEASE),
        target=f"nacos-logs:{release or 'unknown'}",
        clock="wall",
        nodes=members,
        observed=observed,
        began=began.isoformat(timespec="milliseconds"),
    ) as recorder:
        history = History(
            recorder,
            began_ms,
            skipped,
            release=release or (profile or "").removeprefix("nacos-"),
            coverage={one.name: one.coverage for one in known},
        )
        streams = [_deeds_of(one, zones.get(one.files.label, zone), skipped) for one in known]
        for _, _, name, deed in heapq.merge(*streams, key=lambda item: item[:2]):
            history.take(name, deed)
    return Imported(
        recorder.path,
        recorder.events,
        {one.files.label: one.name for one in known},
        recorder.header.profile,
        dict(skipped.most_common()),
        observed.limits,
        recorder.header.began or "",
    )


def _refuse_unknown(given: set[str], nodes: tuple[LogFiles, ...]) -> None:
    labels = [files.label for files in nodes]
    for label in sorted(given - set(labels)):
        raise NoLogsError(f"{label}: no such directory or part of a file name; the logs are of {', '.join(labels)}")


def _learn(files: LogFiles, zone: tzinfo) -> _Known:
    known = _Known(files)
    for record in records(files, zone, Counter()):
        known.first_ms = record.at_ms if known.first_ms is None else min(known.first_ms, record.at_ms)
        if "Member{" in record.text:
            known.members.update(one_name(f"{bracketed(ip)}:{port}") for ip, port in MEMBER.findall(record.text))
        for release in VERSION.findall(record.text):
            known.releases[release[0] or release[1]] += 1
        fact = fact_of(record)
        known.coverage.add(record, None if fact is None else fact.what)
        if fact is None:
            continue
        known.facts[fact.what] += 1
        known.has_revisions = known.has_revisions or "revision" in fact.details
        if fact.what is What.MEMBERS:
            known.members.update(map(one_name, entries(fact["members"])))
        elif fact.what is What.RECEIVED:
            known.own[fact["target"]] += 1
        elif "target" in fact.details and fact["target"] != "null":
            known.others.add(fact["target"])
    return known


def _name(known: list[_Known], names: Mapping[str, str]) -> None:
    """Each directory its node's address: as given, as received messages name it, as the only member left; or itself."""
    for one in known:
        left = one.members - one.others
        address = one.own.most_common(1)[0][0] if one.own else next(iter(left)) if len(left) == 1 else one.files.label
        one.name = one_name(names.get(one.files.label, address))
        one.members |= one.others
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for one in known:
        by_name[one.name].append(one.files.label)
    for name, labels in by_name.items():
        if len(labels) > 1:
            raise NoLogsError(
                f"{' and '.join(labels)}: both are the logs of {name}; import each on its own, or name them with --node"
            )


def _deeds_of(one: _Known, zone: tzinfo, skipped: Counter[str]) -> Iterator[tuple[int, int, str, Deed]]:
    """With what they are merged by: a time that never goes back within a node, and the place in its log."""
    latest_ms = 0
    for position, deed in enumerate(deeds(_facts(one, zone, skipped), skipped)):
        latest_ms = max(latest_ms, deed.fact.at_ms)
        yield latest_ms, position, one.name, deed


def _facts(one: _Known, zone: tzinfo, skipped: Counter[str]) -> Iterator[Fact]:
    last_ms: int | None = None
    for record in records(one.files, zone, skipped):
        fact = fact_of(record)
        if fact is None:
            skipped[SAYS_NOTHING] += 1
        elif fact.what is What.STARTS and last_ms is not None:
            yield Fact(fact.at_ms, fact.what, {"last_ms": str(last_ms)}, fact.log)
        else:
            yield fact
        last_ms = record.at_ms


def _observed(known: list[_Known], release: str | None, began_ms: int) -> Observed:
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


def _limits_of(one: _Known) -> Iterator[str]:
    if not one.shows(_CALLS):
        yield "no record of calls (protocol-distro at INFO)."
    if not one.coverage.spans["naming-distro"]:
        yield "no record of clients received (naming-distro at INFO): native or synced, and revisions, are not shown."
    elif one.facts[What.APPLY] and not one.has_revisions:
        yield "revisions are not logged (from 2.1.2 on)."
    if not one.shows(_CONTENT):
        yield "no record of clients and services (naming-server at INFO): what a client publishes is not shown."
    if one.facts[What.VERIFY]:
        yield "of a VERIFY that passed there is the request at its receiver, without its revision."
    else:
        yield "no record of verify requests (protocol-distro at DEBUG); only those that failed are shown."
    if not one.facts[What.STARTS]:
        yield "its start is not in the logs; of clients that are older than them the content is unknown."
