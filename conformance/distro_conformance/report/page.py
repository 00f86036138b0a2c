"""What the page shows beyond the report's own values: the first sentence, a picture of each finding, how long it took.

The page is for whoever opens it next: what failed, where, since when and after which message stands above everything,
then each finding with the run drawn around its first bad event and with what the nodes held then. All of it is derived
from the report, the traces beside it and the reports before it; a finding without a recorded run has no picture, and
nothing is drawn that was not recorded. A trace of a million rows is read through windows, so the page stays small.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
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
from distro_conformance.findings import Finding, Judgement
from distro_conformance.report.document import WORST_FIRST, Chart, Failure, InvariantRow, Report
from distro_conformance.report.history import Covered, Earlier, covered_by, earlier_reports
from distro_traces.event import STATE_KINDS, Event, Kind

if TYPE_CHECKING:
    from distro_traces.windows import Windows

FINDINGS_DRAWN_MAX = 20
REAL = "nacos:2.2.4"
"""A real server to try what was found."""
SLOWEST_SHOWN = 5
ROWS_AROUND = 60
BUSY_PARTS = 120
ROWS_TO_REPLAY_MAX = 5_000
SCENARIO_LINES_MAX = 60
_REFERENCE = re.compile(r" of (\S+) at (-?\d+) ms \(seq (\d+)\)")


@dataclass(frozen=True, slots=True)
class Held:
    """What a node holds of the finding's client when it is first wrong; `differs` from what its owner holds."""

    node: str
    owned: bool
    content: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Section:
    """One finding; `picture` is empty where neither a run was recorded nor a check noted what it did."""

    finding: Finding
    picture: str = ""
    held: tuple[Held, ...] = ()
    scenario: str = ""
    again: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Page:
    report: Report
    sections: tuple[Section, ...]
    charts: tuple[Chart, ...]
    slowest: tuple[Mapping[str, object], ...]
    earlier: tuple[Earlier, ...]
    covered: tuple[Covered, ...]

    @property
    def by_area(self) -> Mapping[str, Sequence[Finding]]:
        """The requirements by area, the second word of their ids."""
        areas: dict[str, list[Finding]] = {}
        for finding in self.report.requirements:
            areas.setdefault(area_of(finding), []).append(finding)
        return areas

    @property
    def judgements(self) -> tuple[str, ...]:
        return tuple(judgement.value for judgement in Judgement)

    @property
    def score(self) -> Earlier | None:
        """The last kill matrix that was written into this directory."""
        return next((each for each in reversed(self.earlier) if each.score is not None), None)


def page_of(report: Report, directory: Path) -> Page:
    """`directory` is where the report goes, and where its traces are."""
    earlier = earlier_reports(directory)
    changes = [change for change in report.changes if change.get("ms") is not None]
    slowest = sorted(changes, key=_ms, reverse=True)[:SLOWEST_SHOWN]
    failed = {failure.about for failure in report.failures}
    found = [*report.news, *(each for each in report.not_judged if each.about in failed)]
    with Recordings(report.traces) as recordings:
        left = list(report.failures)
        drawn = [recordings.section(finding, _failure_of(finding, left)) for finding in found[:FINDINGS_DRAWN_MAX]]
        busy = recordings.busy(report)
    sections = (*drawn, *(Section(finding, again=finding.again) for finding in found[FINDINGS_DRAWN_MAX:]))
    times = charts.histogram([_ms(change) for change in changes], unit="ms", title="How long a change took")
    pictures = (
        *report.charts,
        Chart(
            "When the nodes were busy",
            busy,
            "The stronger, the more rows of the trace. Red: where something was found.",
        ),
        Chart("How long each change took to be everywhere", times, _of_how_many(len(changes), report)),
        Chart("Violations in the reports of this folder", _trend(earlier, report)),
    )
    return Page(
        report,
        tuple(sections),
        tuple(chart for chart in pictures if chart.svg),
        tuple(slowest),
        earlier,
        covered_by(report, earlier),
    )


def area_of(finding: Finding) -> str:
    parts = finding.about.split("-")
    return parts[1] if len(parts) > 1 else parts[0]


def tally(rows: Sequence[Finding | InvariantRow]) -> str:
    """`1 violates, 16 conforms`, the worst first."""
    number = Counter(row.judgement for row in rows)
    return ", ".join(f"{number[each]} {each.value.replace('-', ' ')}" for each in WORST_FIRST if number[each])


def sentence(finding: Finding) -> str:
    """The one sentence that a colleague needs."""
    where = [f"node {finding.node}"] if finding.node else []
    where += [f"client {finding.client}"] if finding.client else []
    where += [f"since {finding.since}"] if finding.since else []
    where += [f"after {_after(finding, finding.after)}"] if finding.after else []
    is_new = finding.expected and finding.expected not in finding.message
    what = f"{_once(finding, finding.message or finding.text).rstrip('.')}."
    what += f" Expected: {_once(finding, finding.expected).rstrip('.')}." if is_new else ""
    return f"{finding.about}: {', '.join(where)}: {what}" if where else f"{finding.about}: {what}"


def _after(finding: Finding, after: str) -> str:
    """What a check of one node noted last begins with its time."""
    at, timed, what = after.partition(" ms: ")
    return _once(finding, f"“{what}” at {at} ms" if timed else after)


def _once(finding: Finding, text: str) -> str:
    """Ids of clients and addresses are long: the second time they are not said again."""
    if finding.client and "_" in finding.client:
        text = text.replace(finding.client, "it")
    if finding.node and ":" in finding.node:
        text = text.replace(finding.node, "the node")
    return text


def _failure_of(finding: Finding, left: list[Failure]) -> Failure | None:
    """The failing run behind a finding; each belongs to one."""
    found = next((failure for failure in left if failure.about == finding.about), None)
    if found is not None:
        left.remove(found)
    return found


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
    client = f" --client {finding.client}" if finding.client else ""
    cut = f"distrocheck export {path} --run {finding.run}{client} --to scenario --out run.scenario"
    return f"{finding.again}\n{cut}\n{_on_each_target('distrocheck replay run.scenario')}"


def _of_how_many(shown: int, report: Report) -> str:
    every = report.convergence.get("changes", shown)
    if every <= shown:
        return ""
    return f"The slowest {shown} of {every:,}; half of all took at most {report.convergence['median_ms']} ms."


def _trend(earlier: tuple[Earlier, ...], report: Report) -> str:
    counts = {each.date: float(each.violations) for each in earlier if each.violations is not None}
    if not counts:
        return ""
    counts[f"{report.origin['date']} (this one)"] = float(sum(finding.times for finding in report.news))
    if not any(counts.values()):
        return ""
    return charts.bars(counts, title="Violations", bad=[name for name, count in counts.items() if count])


def _ms(change: Mapping[str, object]) -> int:
    value = change["ms"]
    return value if isinstance(value, int) else 0


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
        section = replace(self._drawn(finding, failure), failure=failure, again=_again(finding, self._path, failure))
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

    def _drawn(self, finding: Finding, failure: Failure | None) -> Section:
        if failure is not None:
            return _of_failing_run(finding, failure)
        if finding.by == "node" and finding.node and finding.evidence:
            checked = sequence_of_evidence(finding.evidence, finding.node, finding.message)
            return Section(finding, Markup(svg(checked.window(len(checked.items) - ROWS_AROUND, ROWS_AROUND))))
        client = finding.client
        run = self.run(finding.run) if finding.run and client else None
        if run is None or client is None:
            return Section(finding)
        named = _REFERENCE.search(finding.since or "")
        bad = (named[1], int(named[3])) if named else None
        place = run.place_of(*bad) if bad else None
        events = run.of_client(client, run.total if place is None else place, ROWS_AROUND)
        held = () if place is None else _held({node: of.get(client) for node, of in run.held_at(place).items()})
        if bad is not None and finding.after is None:
            finding = replace(finding, after=_last_received(events, *bad))
        picture = Markup(svg(sequence_of_client(events, client, bad)))
        return Section(finding, picture, held, self._scenario(run, client))

    def busy(self, report: Report) -> str:
        """Of the run of the first finding, or of the only one."""
        found = [each for each in report.news if each.run]
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
            differs=owner is not None and (row is None or (row.revision, row.digest) != (owner.revision, owner.digest)),
        )
        for node, row in rows.items()
    )


def _content(revision: int | None, digest: str | None) -> str:
    return f"content {digest}" if revision is None else f"revision {revision}, content {digest}"


def _last_received(events: Sequence[Event], node: str, seq: int) -> str | None:
    """What a node was told about the client last before one of its rows."""
    rows = [event for event in events if event.node == node and event.seq < seq]
    last = next((event for event in reversed(rows) if event.kind is Kind.REQUEST_RECEIVED), None)
    return None if last is None else f"{last.operation} from {last.peer} at {last.at_ms} ms ({last.message})"


def _of_failing_run(finding: Finding, failure: Failure) -> Section:
    """The end of a small recording, all of its clients, up to what was found."""
    if not failure.recording:
        return Section(finding)
    from distro_traces.errors import TraceError  # noqa: PLC0415 - DuckDB is an extra
    from distro_traces.windows import Windows  # noqa: PLC0415

    try:
        with Windows(Path(failure.recording)) as run:
            events = _until_it_failed(run.at(0, run.total), failure)
            rows = {node: _last_state(events, node, finding.client) for node in run.nodes}
    except (OSError, TraceError):
        return Section(finding)
    drawn = sequence_of_client(events, None)
    return Section(
        finding, Markup(svg(replace(drawn, items=(*drawn.items, Fault(finding.message, bad=True))))), _held(rows)
    )


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
