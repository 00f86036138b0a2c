"""What random walks and the requirements say of a target, as the report that the gate's page is made of."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from distro_conformance.diagrams.transitions import sequence_of_actions
from distro_conformance.findings.finding import Finding, Judged, headline
from distro_conformance.language.recording import record
from distro_conformance.language.text import Scenario
from distro_conformance.release import STRICT
from distro_conformance.report.document import Failure, Report, Stage
from distro_conformance.verdict import KitError
from distro_conformance.walks.result import FoundFailure, WalkResult
from distro_model.actions import Action
from distro_traces import ndjson


def failure_of(result: WalkResult, found: FoundFailure, scenario: Path, pytest: Path) -> Failure:
    """With a picture: of the run once more, recorded beside the scenario; on a cluster in its own time, of the
    recording that was made then; where there is none, of what was done."""
    options = result.options
    is_recorded = not (options.in_real_time or options.tours)
    actions = [step for step in found.scenario.steps if isinstance(step, Action)]
    shrunk = (
        f"Found after {found.steps_until_found} steps; of the run that failed {found.steps} are left after shrinking"
    )
    return Failure(
        options.name.upper(),
        "The nodes left the model",
        found.scenario.render(),
        found.replayed_by(scenario),
        shlex.join(["python", "-m", "pytest", str(pytest)]),
        recorded(found.scenario, scenario) if is_recorded else str(found.recording or ""),
        "" if options.in_real_time else shrunk,
        sequence_of_actions(found.scenario.nodes, actions),
    )


def recorded(scenario: Scenario, saved: Path) -> str:
    """The failing run once more, recorded for its picture; the path of the recording."""
    path = saved.with_suffix(ndjson.SUFFIX)
    path.unlink(missing_ok=True)
    with suppress(KitError):  # what broke may break again: then the picture is of what was done
        record(scenario, target="embedded", profile=scenario.profile or STRICT, directory=path.parent, run=path.stem)
    return str(path) if path.exists() else ""


def report_of_walks(result: WalkResult, finding: Finding, failure: Failure | None) -> Report:
    options = result.options
    among = "one node among played members" if options.among_played else "nodes under random actions and faults"
    beside = "which must agree at the end of each run" if options.in_real_time and not options.among_played else ""
    checked = "the recordings of runs whose nodes differ" if result.checked else "no check of traces"
    summary = f"{result.steps} steps in {result.runs} runs"
    return Report(
        target=options.target,
        profile=options.profile,
        mutant=options.mutant,
        seed=options.seed,
        scope=f"{among}, {beside or 'beside the model'}; no requirements, no search of the model, {checked}",
        verdict=result.verdict,
        seconds=result.seconds,
        stages=(Stage(options.name, result.verdict, result.seconds, summary),),
        findings=(finding, *result.checked),
        failures=(failure,) if failure else (),
        coverage=result.coverage,
    )


def report_of_requirements(judged: Judged, mutant: str | None) -> Report:
    return Report(
        target=judged.target,
        profile=judged.profile or "",
        mutant=mutant,
        scope="one node against the requirements, with played members and clients; no walks, no search of the model",
        verdict=judged.verdict,
        seconds=judged.seconds,
        stages=(Stage("node", judged.verdict, judged.seconds, headline(judged.findings), judged.figures),),
        findings=judged.findings,
    )
