"""One finding with all there is of it: the run drawn, who holds what, the scenario, the commands that run it again.

All is derived from the report and the traces beside it. A trace of a million rows is read through windows, so the page
stays small. What a section lacks it says in a sentence (`missing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from distro_conformance.diagrams import charts
from distro_conformance.diagrams.evidence import sequence_of_evidence
from distro_conformance.diagrams.sequence import Fault
from distro_conformance.diagrams.svg import svg
from distro_conformance.diagrams.trace import sequence_of_client
from distro_conformance.findings.finding import Finding, Held, command, differ
from distro_conformance.language.text import parse
from distro_conformance.report.document import Failure, Report
from distro_model.actions import Advance
from distro_traces.content import shortened
from distro_traces.event import STATE_KINDS, Event, Kind

if TYPE_CHECKING:
    from distro_traces.windows import Windows

REAL = "nacos:2.2.4"
"""A real server to try what was found."""
THEN = "at that moment"
ROWS_AROUND = 60
BUSY_PARTS = 120
ROWS_TO_REPLAY_MAX = 5_000
SCENARIO_LINES_MAX = 60
_TIME = re.compile(r"(\d+) ms")
_REFERENCE = re.compile(r" of (\S+) at (-?\d+) ms \(seq (\d+)\)")


@dataclass(frozen=True, slots=True)
class Section:
    """One finding; `picture` is empty where neither a run was recorded nor a check noted what it did."""

    finding: Finding
    picture: str = ""
    scenario: str = ""
    when: str = THEN
    """Of `held`, after "what each node holds of it"."""
    again: str = ""
    failure: Failure | None = None

    @property
    def held(self) -> tuple[Held, ...]:
        """Nothing stands beside a single one."""
        return self.finding.held if len(self.finding.held) > 1 else ()

    @property
    def missing(self) -> tuple[str, ...]:
        """What other sections have, and why this one does not."""
        return tuple(_missing(self))


def _missing(section: Section) -> Iterator[str]:
    finding, by = section.finding, section.finding.by
    if not section.picture:
        yield f"No picture: {_WITHOUT_RUN.get(by, 'no run of it was recorded')}."
    if not section.held:
        unknown = "what the nodes held then was not recorded"
        about = "it is about no single client" if finding.client is None else unknown
        yield f"No states side by side: {about}."
    if not section.scenario:
        yield f"No scenario: {_WITHOUT_SCENARIO.get(by, 'what is left of it is the command above')}."
    if section.failure is None or not section.failure.shrunk:
        yield f"Not shrunk: {_NOT_SHRUNK.get(by, 'there is no run')}."
    if not finding.link:
        yield "No upstream link: no listed bug of a release explains it."
    if by == "node":
        yield "No command for the model: the check judges what a server answers, and the model is none."


_WITHOUT_RUN: Mapping[str, str] = {
    "node": "the check recorded nothing",
    "model": "no run of the model shows it",
    "trace": "the run that it is about cannot be read here",
    "mutant": "no check failed, so there is no run to draw",
}
_WITHOUT_SCENARIO: Mapping[str, str] = {
    "node": "a check is a program; the command above runs it again",
    "trace": "the run is long, or not about one client; the commands above extract it",
    "model": "the run cannot be given times; the command above finds it again",
    "scenario": "it is a line of a scenario, which the command above plays",
    "validation": "a single row is judged; the command above judges it again",
}
_NOT_SHRUNK: Mapping[str, str] = {
    "node": "a check takes the same few steps each time",
    "trace": "a recording cannot be shortened",
    "validation": "a recording cannot be shortened; the rows shown are the fewest that are still rejected",
    "model": "the search is breadth-first, so there is no shorter run",
    "scenario": "it is played as it is written",
    "lockstep": "runs in real time are kept as they were",
    "machine": "runs in real time are kept as they were",
}


def _on_each_target(replay: str) -> str:
    """The command on model, nodes and a real server."""
    command = replay.partition(" --target ")[0]
    return "\n".join(f"{command} --target {target}" for target in ("model", "embedded", REAL))


def _again(finding: Finding, path: str, failure: Failure | None) -> str:
    """The commands that judge a finding once more, and its run on model, nodes and a real server. A requirement is
    about what one node answers: the model is not asked."""
    if failure is not None:
        return _on_each_target(failure.replay)
    if finding.by == "node" and REAL not in finding.again:
        return f"{finding.again}\ndistrocheck test node --target {REAL} --requirement {finding.about}"
    if finding.run is None or not path:
        return finding.again
    client = ("--client", finding.client) if finding.client else ()
    cut = command("export", path, "--run", finding.run, *client, "--to", "scenario", "--out", "run.scenario")
    return f"{finding.again}\n{cut}\n{_on_each_target('distrocheck replay run.scenario')}"


class Recordings:
    """The traces of a report, each run opened once and only when a finding asks for it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open = ExitStack()
        self._runs: dict[str | None, Windows | None] = {}

    def __enter__(self) -> Recordings:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def run(self, name: str | None) -> Windows | None:
        """None where nothing was recorded, or where it cannot be read: the page is about more than this run."""
        if name not in self._runs:
            self._runs[name] = self._opened(name)
        return self._runs[name]

    def _opened(self, name: str | None) -> Windows | None:
        if not self._path:
            return None
        from distro_traces.errors import TraceError  # noqa: PLC0415 - DuckDB is an extra
        from distro_traces.windows import Windows  # noqa: PLC0415

        try:
            return self._open.enter_context(Windows(Path(self._path), name))
        except (OSError, TraceError):
            return None

    def section(self, finding: Finding, failure: Failure | None) -> Section:
        """The client's story around the first bad event, and who holds what of it then."""
        drawn = _of_failing_run(finding, failure) if failure is not None else self._drawn(finding)
        section = replace(drawn, failure=failure, again=_again(finding, self._path, failure))
        return section if failure is None else replace(section, scenario=failure.scenario)

    def _scenario(self, run: Windows, client: str) -> str:
        """What was done to the client and the nodes, where the run is short; else the command writes it."""
        if run.total > ROWS_TO_REPLAY_MAX:
            return ""
        from distro_traces.exports import export  # noqa: PLC0415 - Parquet is an extra
        from distro_traces.reading import read_run  # noqa: PLC0415

        found = read_run(Path(self._path), run.run)
        text = export("scenario", found.header, [event for event in found.events if event.client in (None, client)])
        return text if text.count("\n") <= SCENARIO_LINES_MAX else ""

    def _drawn(self, finding: Finding) -> Section:
        if finding.by == "node" and finding.node and finding.evidence:
            checked = sequence_of_evidence(finding.evidence, finding.node, finding.message, finding.client)
            return Section(finding, Markup(svg(checked.window(len(checked.items) - ROWS_AROUND, ROWS_AROUND))))
        run = self.run(finding.run) if finding.run else None
        return Section(finding) if run is None else self._recorded(finding, run)

    def _recorded(self, finding: Finding, run: Windows) -> Section:
        """Around the first bad event: of its client, or of all where it is about none."""
        client = finding.client
        named = _REFERENCE.search(finding.since or "")
        bad = (named[1], int(named[3])) if named else None
        timed = _TIME.fullmatch(finding.since or "")
        place = run.place_of(*bad) if bad else run.place_at(int(timed[1])) if timed else None
        middle = run.total if place is None else place
        if client is None:
            events = run.at(max(0, middle - ROWS_AROUND), 2 * ROWS_AROUND)
        else:
            events = run.of_client(client, middle, ROWS_AROUND)
        when = THEN
        if place is not None and client is not None:
            if (last := _REFERENCE.search(finding.until or "")) and (finding.until or "").startswith(Kind.CHECKPOINT):
                place, when = run.place_of(last[1], int(last[3])) or place, f"at the {Kind.CHECKPOINT}"
            rows = {node: of.get(client) for node, of in run.held_at(place).items()}
            finding = replace(finding, held=_held(rows))
        if bad is not None and client is not None and finding.after is None:
            finding = replace(finding, after=_last_received(events, *bad))
        picture = Markup(svg(sequence_of_client(events, client, bad)))
        return Section(finding, picture, "" if client is None else self._scenario(run, client), when)

    def busy(self, report: Report) -> str:
        """Of the run of the first finding, or of the only one."""
        found = [each for each in report.violating if each.run]
        run = self.run(found[0].run if found else None)
        if run is None or (not found and len(run.runs) > 1):
            return ""
        when, counts = run.busy(BUSY_PARTS)
        of_run = (_REFERENCE.search(each.since or "") for each in found if each.run == run.run)
        marks = [int(named[2]) for named in of_run if named]
        return charts.busy(when, counts, marks, title=f"{run.total:,} rows of {run.run}")


def _held(rows: Mapping[str, Event | None]) -> tuple[Held, ...]:
    """`rows`: by node the last that says what it holds of the client."""
    owner = next((row for row in rows.values() if row is not None and row.owned), None)
    return tuple(
        Held(
            node,
            owned=row is not None and bool(row.owned),
            content="nothing" if row is None else _content(row.revision, row.digest),
            differs=owner is not None and differ(_revised(owner), _revised(row)),
        )
        for node, row in rows.items()
    )


def _revised(row: Event | None) -> tuple[int, str | None] | None:
    return None if row is None else (row.revision or 0, row.digest)


def _content(revision: int | None, digest: str | None) -> str:
    content = shortened(f"content {digest}")
    return content if revision is None else f"revision {revision}, {content}"


def _last_received(events: Sequence[Event], node: str, seq: int) -> str | None:
    """The last request about the client that a node received before one of its rows."""
    rows = [event for event in events if event.node == node and event.seq < seq]
    last = next((event for event in reversed(rows) if event.kind is Kind.REQUEST_RECEIVED), None)
    return None if last is None else f"{last.operation} from {last.peer} at {last.at_ms} ms ({last.message})"


def _of_failing_run(finding: Finding, failure: Failure) -> Section:
    """A small recording, all of its clients, up to what was found; of a long one the end, and its client alone.
    Else what was done, or a search took."""
    recorded = _of_recording(finding, failure) if failure.recording else None
    if recorded is None and failure.diagram is not None:
        drawn = failure.diagram
        return Section(finding, Markup(svg(drawn.window(len(drawn.items) - ROWS_AROUND, ROWS_AROUND))))
    return recorded or Section(finding)


def _of_recording(finding: Finding, failure: Failure) -> Section | None:
    try:
        from distro_traces.errors import TraceError  # noqa: PLC0415 - DuckDB is an extra
        from distro_traces.windows import Windows  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    try:
        with Windows(Path(failure.recording)) as run:
            events = _in_scenario_time(_until_it_failed(run.at(0, run.total), failure), failure)
            client = finding.client or _named_in(finding.message, events)
            finding = replace(finding, client=client)
            played = parse(failure.scenario).played  # members that are played hold nothing
            rows = {node: _last_state(events, node, client) for node in run.nodes if node not in played}
    except (OSError, TraceError):
        return None
    last = _answered_at_last(events, finding)
    drawn = sequence_of_client(events, None, last, before=ROWS_AROUND)
    if drawn.before and client is not None:
        drawn = sequence_of_client(events, client, last, before=ROWS_AROUND)
    whole = replace(drawn, items=(*drawn.items, Fault(finding.message, bad=True)))
    return Section(replace(finding, held=_held(rows) if client else ()), Markup(svg(whole)))


def _named_in(message: str, events: Sequence[Event]) -> str | None:
    """`c1` of "the nodes differ: c1: a shows …"."""
    clients = {event.client for event in events if event.client is not None}
    return next((word[:-1] for word in message.split() if word.endswith(":") and word[:-1] in clients), None)


def _in_scenario_time(events: Sequence[Event], failure: Failure) -> list[Event]:
    """With the times of the scenario, which begin when the nodes are loaded; the recording begins when they start."""
    first_ms = 0
    for step in parse(failure.scenario).steps:
        if not isinstance(step, Advance):
            break
        first_ms += step.ms
    begun = next((event.at_ms for event in events if event.kind in _FIRST_DONE), first_ms)
    shifted = [replace(event, at_ms=event.at_ms - begun + first_ms) for event in events]
    return [event for event in shifted if event.at_ms >= 0]


_FIRST_DONE = (Kind.CLIENT_CONNECTED, Kind.LINK_FAULT, Kind.NODE_STOPPED)


def _answered_at_last(events: Sequence[Event], finding: Finding) -> tuple[str, int] | None:
    """The request that the finding names, if it was answered in the last instant."""
    now = [event for event in events if event.at_ms == events[-1].at_ms]
    answers = {event.message for event in now if event.kind is Kind.REPLY_RECEIVED}
    asked = [event for event in events if event.kind is Kind.REQUEST_SENT and event.message in answers]
    about = [each for each in asked if each.client == finding.client]
    named = [each for each in about if f"{each.operation} {each.node}->{each.peer} " in finding.message]
    return (named[-1].node, named[-1].seq) if named else None


def _last_state(events: Sequence[Event], node: str, client: str | None) -> Event | None:
    last = [event for event in events if (event.node, event.client) == (node, client) and event.kind in STATE_KINDS]
    return last[-1] if last and last[-1].digest is not None else None


def _until_it_failed(events: list[Event], failure: Failure) -> list[Event]:
    """Without the end of the run: links that are cut, and clients whose disconnection the scenario does not name."""
    kept = list(events)
    while kept and (
        kept[-1].kind is Kind.LINK_FAULT
        or (kept[-1].kind is Kind.CLIENT_DISCONNECTED and f"disconnect {kept[-1].client}\n" not in failure.scenario)
    ):
        kept.pop()
    return kept
