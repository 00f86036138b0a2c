"""The kill matrix as a page: which property kills which mutant, as a heat map, and the survivors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from distro_conformance.diagrams.charts import matrix as heat_map
from distro_conformance.findings import Finding, Judged
from distro_conformance.release import STRICT
from distro_conformance.report import Chart, Report, Stage

_JUDGE = {
    "model": "a search of the model",
    "node": "requirements and lockstep",
    "trace": "the invariants over traces",
    "real": "requirements",
}


def report_of(judged: Judged) -> Report:
    """The report of one level, whose name is the target of the findings."""
    killed = sum(not finding.violates for finding in judged.findings)
    summary = f"{killed} of {len(judged.findings)} killed"
    return Report(
        target=f"the kit, at the level {judged.target}",
        profile=STRICT,
        scope=f"each mutant tested by {_JUDGE[judged.target]}",
        verdict=judged.verdict,
        seconds=judged.seconds,
        stages=(Stage("mutants", judged.verdict, judged.seconds, summary),),
        findings=tuple(replace(finding, by="mutant") for finding in judged.findings),
        charts=(
            Chart(
                "Kills by mutant and check",
                _heat_map({finding.about: finding for finding in judged.findings}, summary),
                "A row is a mutant, a column a check that notices it; the stronger the colour, the shorter the run.",
            ),
        ),
    )


def _heat_map(rows: Mapping[str, Finding], summary: str) -> str:
    killers = {mutant: _names(finding.observed.get("killed_by")) for mutant, finding in rows.items()}
    columns = [name for name, _ in Counter(name for names in killers.values() for name in names).most_common()]
    steps = {mutant: _count(finding.details.get("steps")) for mutant, finding in rows.items()}
    longest = max(steps.values(), default=0)

    def shade(mutant: str, killer: str) -> float | None:
        return 1 - steps[mutant] / (longest + 1) if killer in killers[mutant] else None

    return heat_map(list(rows), columns, shade, title=f"{summary}, by {len(columns)} checks")


def _names(value: object) -> Sequence[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
