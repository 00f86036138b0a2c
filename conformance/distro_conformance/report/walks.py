"""What random walks and the requirements say of a target, as the report that the gate's page is made of."""

from __future__ import annotations

from pathlib import Path

from distro_conformance.findings import Finding, Judged, headline
from distro_conformance.report.document import Failure, Report, Stage
from distro_conformance.walks.hunt import FoundFailure, Hunt


def failure_of(about: str, found: FoundFailure, scenario: Path, pytest: Path, recording: str = "") -> Failure:
    return Failure(
        about,
        "The nodes left the model",
        found.scenario.render(),
        f"distrocheck replay {scenario}",
        f"python -m pytest {pytest}",
        recording,
        f"Found after {found.steps_until_found} steps; of the run that failed {found.steps} are left after shrinking",
    )


def report_of_hunt(hunt: Hunt, finding: Finding, failure: Failure | None) -> Report:
    options = hunt.options
    among = "one node among played members" if options.among_played else "nodes under random actions and faults"
    beside = "which must agree at the end of each run" if options.is_elsewhere and not options.among_played else ""
    summary = f"{hunt.steps} steps in {hunt.runs} runs"
    return Report(
        target=options.target,
        profile=options.profile,
        mutant=options.mutant,
        seed=options.seed,
        scope=f"{among}, {beside or 'beside the model'}",
        verdict=hunt.verdict,
        seconds=hunt.seconds,
        stages=(Stage(options.name, hunt.verdict, hunt.seconds, summary),),
        findings=(finding,),
        failures=(failure,) if failure else (),
        coverage=hunt.coverage,
    )


def report_of_requirements(judged: Judged, mutant: str | None) -> Report:
    return Report(
        target=judged.target,
        profile=judged.profile or "",
        mutant=mutant,
        scope="one node against the requirements, with played members and clients",
        verdict=judged.verdict,
        seconds=judged.seconds,
        stages=(Stage("node", judged.verdict, judged.seconds, headline(judged.findings), judged.figures),),
        findings=judged.findings,
    )
