"""The first pass over the logs: the facts that are needed before the first row can be written.

It finds the node of each file, the members, the release, the coverage of the logs (`Coverage`), and the order of the
files of a log. Every file is read once, by itself; memory does not grow with its size.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath

from distro_protos.addresses import entries, one_name, split_address
from distro_traces.errors import TraceError
from distro_traces.nacos_logs.blocks import OnRead
from distro_traces.nacos_logs.clocks import Ahead, Calls, ahead, unsteady
from distro_traces.nacos_logs.coverage import Coverage, Span, joined
from distro_traces.nacos_logs.facts import LOG_OF, MARKS, VERSION, What, fact_of, releases_in, states_in
from distro_traces.nacos_logs.files import LogFiles, split_name
from distro_traces.nacos_logs.holes import Hole, holes
from distro_traces.nacos_logs.records import Part, Quiet, Record, read_file

OnPart = Callable[[Path | None, int, int], None]
"""Called while files are read, with the one in question, and with the bytes on disk read so far and of all: those of
the first pass, and of the second one, in which the file is None, those that are read again."""


_MARKS = (*MARKS, b"Member{", b"version=", b"Nacos ")


class NoLogsError(TraceError):
    """The files hold no record with a date and time, or none about replication."""


@dataclass(slots=True)
class Node:
    """Results of the first pass for one node. `label`: the directory or part of the file names; `name`: its address,
    else the label."""

    label: str
    zone: tzinfo
    directory: str = ""  # the label without what lines name as their source
    parts: list[Part] = field(default_factory=list)
    own: dict[str, Span] = field(default_factory=dict)  # addresses at which it received requests, from when to when
    others: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    releases: Counter[str] = field(default_factory=Counter)
    running: dict[tuple[str, str], int] = field(default_factory=dict)  # member, release: since when
    calls: Calls = field(default_factory=Calls)
    clock: Ahead | None = None
    is_unsteady: bool = False  # its clock, or that of a node that it exchanges calls with, was set meanwhile
    facts: Counter[What] = field(default_factory=Counter)
    starts: list[int] = field(default_factory=list)  # since 1970
    has_revisions: bool = False
    name: str = ""
    coverages: dict[str, list[Coverage]] = field(default_factory=dict)  # by log, one for each file
    coverage: Coverage = field(default_factory=Coverage)  # of all files together
    holes: list[Hole] = field(default_factory=list)

    @property
    def ahead_ms(self) -> int:
        """Added to its stamps by its clock. The times below are corrected, those of parts are not."""
        return 0 if self.clock is None else self.clock.ms

    @property
    def first_ms(self) -> int:
        return min(part.first_ms for part in self.parts) - self.ahead_ms

    @property
    def last_ms(self) -> int:
        return max(part.last_ms for part in self.parts) - self.ahead_ms

    @property
    def earlier(self) -> list[str]:
        """Its addresses before the last restart."""
        return [address for address in self.own if address != self.name]

    @property
    def sure_holes(self) -> list[Hole]:
        return [hole for hole in self.holes if hole.is_sure]

    @property
    def to_read_again(self) -> list[Part]:
        """The parts with facts, and those with a start of the node: their last record before the start counts."""
        return [
            part
            for part in self.parts
            if not part.is_silent or any(part.first_ms < start <= part.last_ms for start in self.starts)
        ]

    @property
    def is_named(self) -> bool:
        """Is `name` an address?"""
        return self.name.rpartition(":")[2].isdigit()

    def shows(self, kinds: frozenset[What]) -> bool:
        return any(self.facts[kind] for kind in kinds)


def survey(
    found: tuple[LogFiles, ...],
    zones: Mapping[str, tzinfo],
    zone: tzinfo,
    names: Mapping[str, str],
    on_part: OnPart | None = None,
) -> list[Node]:
    """The nodes whose files have facts of replication. Raises NoLogsError, DisorderError."""
    nodes: dict[str, Node] = {}
    sizes = {path: size_of(path) for files in found for paths in files.by_log.values() for path in paths}
    done, total = 0, sum(sizes.values())
    for files in found:
        its_zone = zones.get(files.label, zone)
        for log, paths in files.by_log.items():
            for path in paths:
                on_read = None if on_part is None else partial(report, on_part, path, Counter(done=done), total)
                for label in _learn(nodes, files.label, log, path, its_zone, on_read):
                    nodes[label].zone = its_zone
                done += sizes[path]
    known = [node for node in nodes.values() if node.facts]
    for node in known:
        if [each.directory for each in known].count(node.directory) == 1:  # one host, so the directory names it too
            node.label = node.directory
    _name(known, names)
    known = _joined(known, names)
    calls = [node.calls for node in known]
    clocks = ahead(calls)
    there = {node.name for node in known}.union(*(node.own for node in known))
    first_ms = [node.first_ms for node in known]
    doubtful = unsteady(calls, clocks, first_ms, is_whole=set().union(*(node.members for node in known)) <= there)
    for position, node in enumerate(known):
        node.clock, node.is_unsteady = clocks.get(position), position in doubtful
        _look_for_holes(node)
    return known


def report(on_part: OnPart, path: Path | None, count: Counter[str], total: int, read: int) -> None:
    """Pass on the progress, with `read` bytes more; `count`: the bytes so far."""
    count["done"] += read
    on_part(path, count["done"], total)


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it is refused when it is read
        return 0


def _learn(nodes: dict[str, Node], label: str, log: str, path: Path, zone: tzinfo, on_read: OnRead | None) -> set[str]:
    """Read a file; each source in it is a part, of the node that the source names or of the directory's."""
    parts: dict[str, tuple[Node, Part, Coverage]] = {}
    touched = set()
    for source, record in read_file(log, path, zone, Counter(), _MARKS, on_read):
        if source not in parts:
            its_log, its_label = _of_source(source, log, label)
            node = nodes.setdefault(its_label, Node(its_label, zone, label))
            touched.add(its_label)
            part, coverage = Part(path, source, its_log), Coverage()
            node.parts.append(part)
            node.coverages.setdefault(its_log, []).append(coverage)
            parts[source] = (node, part, coverage)
        node, part, coverage = parts[source]
        part.extend(record)
        if isinstance(record, Quiet):
            coverage.pass_over(record)
        else:
            _note(node, part, coverage, record._replace(log=part.log))
    for _, part, _ in parts.values():
        part.ordered()  # refuses files without an order before any row is written
    return touched


def _look_for_holes(node: Node) -> None:
    """Set the joint coverage of a node's files, and the holes between them, for the logs that have a fact."""
    with_facts = {log for log, files in node.coverages.items() if any(each.spans for each in files)}
    node.holes = holes(part for part in node.parts if part.log in with_facts)
    whole = [joined(files, [hole for hole in node.holes if hole.log == log]) for log, files in node.coverages.items()]
    node.coverage = joined(whole, node.holes)
    node.coverage.begin_at(node.starts, node.holes)
    node.coverage.shift(-node.ahead_ms)
    node.holes = [
        replace(hole, from_ms=hole.from_ms - node.ahead_ms, until_ms=hole.until_ms - node.ahead_ms)
        for hole in node.holes
    ]


def _of_source(source: str, log: str, label: str) -> tuple[str, str]:
    """Log and node of the source that a line names, `n1/logs/naming-server.log.1` or a host or both."""
    if not source:
        return log, label
    path = PurePosixPath(source)
    known, rest = split_name(path.name)
    folders = [part for part in path.parts[:-1] if part not in ("/", ".", "logs", "log", "nacos", "home", "var", "opt")]
    if known is None and "." not in path.name:  # a host alone
        return log, "/".join((label, source))
    names = [*folders, *([rest] if known is not None and rest else [])]
    return known or log, "/".join((label, *names)) if names else label


def _note(node: Node, part: Part, coverage: Coverage, record: Record) -> None:
    if "Member{" in record.text:
        node.members.update(member for member, _ in states_in(record.text))
        for running in releases_in(record.text):
            node.running[running] = min(record.at_ms, node.running.get(running, record.at_ms))
    if "version=" in record.text or "Nacos " in record.text:
        for release in VERSION.findall(record.text):
            node.releases[release[0] or release[1]] += 1
    fact = fact_of(record)
    coverage.add(record, None if fact is None else fact.what)
    if fact is None:
        return
    node.facts[fact.what] += 1
    part.is_silent = False
    if fact.what is What.STARTS:
        node.starts.append(record.at_ms)
    node.has_revisions = node.has_revisions or "revision" in fact.details
    if fact.what is What.MEMBERS:
        node.members.update(map(one_name, entries(fact["members"])))
    elif fact.what is What.RECEIVED:
        first_ms, last_ms = node.own.get(fact["target"], (record.at_ms, record.at_ms))
        node.own[fact["target"]] = (min(first_ms, record.at_ms), max(last_ms, record.at_ms))
        node.calls.take(fact)
    elif fact.what is not What.VERIFY and fact.details.get("target", "null") != "null":
        node.others.add(fact["target"])
        if fact.what is What.CALL:
            node.calls.take(fact)


def _name(nodes: list[Node], names: Mapping[str, str]) -> None:
    """Each node its address: as given, as received messages name it, as the only member left, as the only member with
    the host that the directory is called after; or its label."""
    addresses = set().union(*(node.members | node.others for node in nodes), *(node.own for node in nodes))
    for node in nodes:
        left = node.members - node.others
        host = node.label.rpartition("/")[2]
        alike = {member for member in addresses if split_address(member)[0].strip("[]") == host}
        found = [*_last_address(node, names), *(left if len(left) == 1 else ())]
        found += alike if len(alike) == 1 else ()
        node.name = one_name(names.get(node.label) or (found[0] if found else node.label))
        node.members |= node.others
        if node.own and node.label in names and node.name not in node.own:
            own = ", ".join(node.own)
            raise NoLogsError(
                f"{node.label}: --node names it {node.name}, and its own logs {own}; leave one of them out"
            )


def _last_address(node: Node, names: Mapping[str, str]) -> list[str]:
    """The address at which the node received requests last; before a restart it may have had others."""
    by_time = sorted(node.own, key=lambda address: node.own[address])
    for one, other in pairwise(by_time):
        if node.own[other][0] < node.own[one][1] and node.label not in names:
            raise NoLogsError(
                f"{node.label}: requests to {one} and to {other} arrive in turn. If these are two nodes, keep their "
                "logs apart or print the name of the node before each line (kubectl logs --prefix, grep -H); if they "
                f"are one, name it with --node {node.label}=HOST:PORT"
            )
    return by_time[-1:]


def _joined(nodes: list[Node], names: Mapping[str, str]) -> list[Node]:
    """One node for each name: several directories are joined where the logs themselves name their node."""
    by_name: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        by_name[node.name].append(node)
    return [_one_of(name, each, names) for name, each in by_name.items()]


def _one_of(name: str, nodes: list[Node], names: Mapping[str, str]) -> Node:
    first, *others = nodes
    doubtful = [node.label for node in nodes if name not in node.own and node.label not in names]
    if others and doubtful:
        raise NoLogsError(
            f"{' and '.join(node.label for node in nodes)}: both seem to be the logs of {name}, and those of "
            f"{', '.join(doubtful)} do not say so; name each with --node DIRECTORY=HOST:PORT"
        )
    for node in others:
        first.label += f" and {node.label}"
        first.parts += node.parts
        for counted in ("releases", "facts"):
            getattr(first, counted).update(getattr(node, counted))
        for address, (from_ms, until_ms) in node.own.items():
            since_ms, last_ms = first.own.get(address, (from_ms, until_ms))
            first.own[address] = (min(since_ms, from_ms), max(last_ms, until_ms))
        for running, at_ms in node.running.items():
            first.running[running] = min(at_ms, first.running.get(running, at_ms))
        first.calls.add(node.calls)
        first.members |= node.members
        first.others |= node.others
        first.has_revisions = first.has_revisions or node.has_revisions
        first.starts += node.starts
        for log, files in node.coverages.items():
            first.coverages.setdefault(log, []).extend(files)
    return first


def logs_of(node: Node) -> Iterator[str]:
    """The logs that were read of a node, each with the levels found in it."""
    order = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
    for log in sorted(
        {part.log for part in node.parts} | {log for log in set(LOG_OF.values()) if node.coverage.read(log)}
    ):
        levels = [level for level in order if level in node.coverage.levels[log]]
        yield f"{log} ({levels[0]})" if levels else log
