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

if TYPE_CHECKING:
    from distro_traces.windows import Windows

FINDINGS_DRAWN_MAX = 20
SLOWEST_SHOWN = 5
ROWS_AROUND = 60
BUSY_PARTS = 120
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


@dataclass(frozen=True, slots=True)
class FailedRun:
    failure: Failure
    picture: Markup


@dataclass(frozen=True, slots=True)
class Page:
    report: Report
    sections: tuple[Section, ...]
    failed_runs: tuple[FailedRun, ...]
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
    with Recordings(report.traces) as recordings:
        drawn = [recordings.section(finding) for finding in report.news[:FINDINGS_DRAWN_MAX]]
        busy = recordings.busy(report)
    sections = (*drawn, *(Section(finding) for finding in report.news[FINDINGS_DRAWN_MAX:]))
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
        tuple(FailedRun(failure, _run(failure.recording, _left_with(report))) for failure in report.failures),
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


def on_each_target(replay: str) -> str:
    """The command on model, nodes and a real server."""
    command = replay.partition(" --target ")[0]
    return "\n".join(f"{command} --target {target}" for target in ("model", "embedded", "nacos:2.2.4"))


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

    def section(self, finding: Finding) -> Section:
        """The client's story around the first bad event, and who holds what of it then."""
        if finding.by == "node" and finding.node and finding.evidence:
            checked = sequence_of_evidence(finding.evidence, finding.node, finding.message)
            return Section(finding, Markup(svg(checked.window(len(checked.items) - ROWS_AROUND, ROWS_AROUND))))
        run = self.run(finding.run) if finding.run and finding.client else None
        if run is None or finding.client is None:
            return Section(finding)
        named = _REFERENCE.search(finding.since or "")
        bad = (named[1], int(named[3])) if named else None
        place = run.place_of(*bad) if bad else None
        events = run.of_client(finding.client, run.total if place is None else place, ROWS_AROUND)
        held = () if place is None else _held(run, finding.client, place)
        return Section(finding, Markup(svg(sequence_of_client(events, finding.client, bad))), held)

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


def _held(run: Windows, client: str, place: int) -> tuple[Held, ...]:
    rows = {node: clients.get(client) for node, clients in run.held_at(place).items()}
    owner = next((row for row in rows.values() if row is not None and row.owned), None)
    return tuple(
        Held(
            node,
            owned=row is not None and bool(row.owned),
            content="nothing" if row is None else _content(row.revision, row.digest),
            differs=owner is not None and (row is None or row.digest != owner.digest),
        )
        for node, row in rows.items()
    )


def _content(revision: int | None, digest: str | None) -> str:
    return f"content {digest}" if revision is None else f"revision {revision}, content {digest}"


def _left_with(report: Report) -> str:
    """In what the nodes differ from the model at the end of a failing run."""
    return next((finding.message for finding in report.news if finding.by in ("lockstep", "machine")), "")


def _run(path: str, bad: str) -> Markup:
    """The end of a small recording, all of its clients, up to what was found; what follows is its end."""
    if not path:
        return Markup()
    from distro_traces.errors import TraceError  # noqa: PLC0415 - Parquet is an extra
    from distro_traces.reading import read_run  # noqa: PLC0415

    try:
        run = sequence_of_client(read_run(Path(path)).events, None)
        items = list(run.items)
        while bad and items and isinstance(items[-1], Fault):
            items.pop()
        return Markup(svg(replace(run, items=(*items, Fault(bad, bad=True)) if bad else run.items)))
    except (OSError, TraceError):
        return Markup()
