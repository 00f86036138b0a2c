"""What the page shows beyond the report's own values: the first sentence, a section for each finding, how long it took.

The page begins with what failed, where, since when and after which message. Each finding follows with its details
(`sections`), then earlier runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from distro_conformance.diagrams import charts
from distro_conformance.findings import Finding, Judgement
from distro_conformance.report.document import WORST_FIRST, Chart, Failure, InvariantRow, Report
from distro_conformance.report.history import Covered, Earlier, covered_by, earlier_reports
from distro_conformance.report.recorded import Drawn
from distro_conformance.report.sections import Recordings, Section

FINDINGS_DRAWN_MAX = 20
SLOWEST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Page:
    report: Report
    sections: tuple[Section, ...]
    charts: tuple[Chart, ...]
    slowest: tuple[Mapping[str, object], ...]
    earlier: tuple[Earlier, ...]
    covered: tuple[Covered, ...]
    drawn: tuple[Drawn, ...] = ()

    @property
    def by_area(self) -> Mapping[str, Sequence[Finding]]:
        """The requirements by area, the second word of their ids; the worst of each first."""
        areas: dict[str, list[Finding]] = {}
        for finding in self.report.requirements:
            areas.setdefault(area_of(finding), []).append(finding)
        return {area: sorted(rows, key=lambda row: WORST_FIRST.index(row.judgement)) for area, rows in areas.items()}

    @property
    def judgements(self) -> tuple[str, ...]:
        return tuple(judgement.value for judgement in Judgement)

    @property
    def score(self) -> Earlier | None:
        """The last kill matrix that was written into this directory."""
        return next((each for each in reversed(self.earlier) if each.score is not None), None)


def page_of(report: Report, directory: Path, drawn_runs: Sequence[Drawn] = ()) -> Page:
    """`directory` is where the report goes, and where its traces are; `drawn_runs`: what is shown as lanes."""
    earlier = earlier_reports(directory)
    changes = [change for change in report.changes if change.get("ms") is not None]
    slowest = sorted(changes, key=_ms, reverse=True)[:SLOWEST_SHOWN]
    failed = {failure.about for failure in report.failures}
    found = [*report.violating, *(each for each in report.not_judged if each.about in failed)]
    with Recordings(report.traces) as recordings:
        left = list(report.failures)
        drawn = [recordings.section(finding, _failure_of(finding, left)) for finding in found[:FINDINGS_DRAWN_MAX]]
        busy = recordings.busy(report)
    sections = (*drawn, *(Section(finding, again=finding.again) for finding in found[FINDINGS_DRAWN_MAX:]))
    times = charts.histogram([_ms(change) for change in changes], title="How long a change took")
    pictures = (
        *report.charts,
        Chart(
            "When the nodes were busy",
            busy,
            "The darker, the more rows were recorded. A red line marks a finding.",
        ),
        Chart("How long changes took to reach every node", times, _of_how_many(len(changes), report)),
        Chart("Violations in the reports of this folder", _trend(earlier, report)),
    )
    return Page(
        report,
        tuple(sections),
        tuple(chart for chart in pictures if chart.svg),
        tuple(slowest),
        earlier,
        covered_by(report, earlier),
        tuple(drawn_runs),
    )


def area_of(finding: Finding) -> str:
    parts = finding.about.split("-")
    return parts[1] if len(parts) > 1 else parts[0]


def tally(rows: Sequence[Finding | InvariantRow]) -> str:
    """`1 violates, 16 conform`, the worst first."""
    number = Counter(row.judgement for row in rows)
    return ", ".join(f"{number[each]} {_verb(each, number[each])}" for each in WORST_FIRST if number[each])


def _verb(judgement: Judgement, number: int) -> str:
    text = judgement.value.replace("-", " ")
    return text if number == 1 else text.removesuffix("s")


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
    """Ids of clients and addresses are long: their second mention is replaced."""
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


def _of_how_many(shown: int, report: Report) -> str:
    every = report.convergence.get("changes", shown)
    if every <= shown:
        return ""
    return f"The slowest {shown} of {every:,}; half of all took at most {report.convergence['median_ms']} ms."


def _trend(earlier: tuple[Earlier, ...], report: Report) -> str:
    counts = {each.date: float(each.violations) for each in earlier if each.violations is not None}
    if not counts:
        return ""
    counts[f"{report.origin['date']} (this one)"] = float(sum(finding.times for finding in report.violating))
    if not any(counts.values()):
        return ""
    return charts.bars(counts, title="Violations", bad=[name for name, count in counts.items() if count])


def _ms(change: Mapping[str, object]) -> int:
    value = change["ms"]
    return value if isinstance(value, int) else 0
