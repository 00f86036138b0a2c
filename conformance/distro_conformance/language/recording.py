"""Runs a scenario to its end and records it. A failed expectation does not end the run: the result is the trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.language.holding import StepResult
from distro_conformance.language.replay import OnStep, Replay, replay
from distro_conformance.language.text import Scenario
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.target import OnProgress
from distro_traces.ndjson import Recorder
from distro_traces.observed import EVERYTHING, INFERRED, Observed


def record(
    scenario: Scenario,
    *,
    target: str,
    profile: str,
    directory: Path,
    run: str,
    credentials: Credentials = NO_CREDENTIALS,
    on_progress: OnProgress = lambda _: None,
    on_step: OnStep = lambda _: None,
) -> Replay:
    """The nodes behave like `profile`, which the trace `directory`/`run`.ndjson names. A target that could not be
    started has no trace.

    Raises the errors of `replay`, TraceError when there is a recording of that name.
    """
    virtual = target == "embedded"
    steps: list[StepResult] = []

    def note(step: StepResult) -> None:
        steps.append(step)
        on_step(step)

    recorder = Recorder(
        directory,
        run,
        profile=profile,
        target=target,
        clock="virtual" if virtual else "wall",
        nodes=tuple(sorted((*scenario.nodes, *scenario.spare))),
        observed=_observed(scenario, virtual=virtual),
    )
    with recorder:
        try:
            options = ClusterOptions(
                profile=profile, credentials=credentials, recorder=recorder, on_progress=on_progress
            )
            return replay(scenario, target=target, options=options, on_step=note, to_the_end=True)
        finally:
            if not steps:
                recorder.path.unlink()


def _observed(scenario: Scenario, *, virtual: bool) -> Observed:
    """Played members hold nothing."""
    if not virtual:
        return INFERRED
    if not scenario.played:
        return EVERYTHING
    return replace(EVERYTHING, reported=scenario.nodes[:1], limits=(f"{' '.join(scenario.played)} are played",))
