"""Run a scenario on any driver, and report the time and the result of each line, also as findings.

In virtual time "within" advances the clock in small steps until the expectation holds, and runs are reproducible. In
real time "within" is a time window. Before anything is started the model performs the actions, so on every target an
action that is impossible at its place is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distro_conformance.drivers.cluster import CannotError
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.model import ModelCluster
from distro_conformance.drivers.registry import ClusterOptions, ResolvedCluster, resolve_cluster
from distro_conformance.event_loop import event_loop
from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.finding import command
from distro_conformance.language.beating import Repeat
from distro_conformance.language.expectations import Expect, ExpectAnswer, ExpectModel
from distro_conformance.language.holding import StepResult
from distro_conformance.language.running import Running, Step, unable
from distro_conformance.language.steps import Checkpoint, Query, Subscribe
from distro_conformance.language.text import Line, Scenario, ScenarioError, parse
from distro_conformance.node.player import RefusedError
from distro_conformance.verdict import Verdict, worst
from distro_model.actions import Action, BaseHttpRequest

START, END = "(the nodes start)", "(the end)"
UNJUDGED = StepResult(
    Verdict.INCONCLUSIVE, "nothing was expected, so nothing is judged; add an 'expect' line", text=END
)
"""The result of a scenario that has no expectation, unless the model judges the answers of all played members."""


@dataclass(frozen=True, slots=True)
class Replay:
    """`reproduced`: an expectation was violated, or the nodes differed from the model."""

    target: str
    profile: str
    mutant: str | None
    steps: tuple[StepResult, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(step.verdict for step in self.steps)

    @property
    def reproduced(self) -> bool:
        return self.verdict is Verdict.VIOLATES


OnStep = Callable[[StepResult], None]


def cluster_options(scenario: Scenario, options: ClusterOptions) -> ClusterOptions:
    """The options of the cluster: those of the user, and where the user gave none, those of the scenario."""
    return replace(
        options,
        scenario_profile=scenario.profile,
        mutant=options.mutant or scenario.mutant,
        serves_http=any(isinstance(step, BaseHttpRequest | Repeat) for step in scenario.steps),
        in_lockstep=any(isinstance(step, ExpectModel) for step in scenario.steps),
        lease_ms=scenario.lease_ms,
        played=bool(scenario.played),
        wire=scenario.wire,
    )


def replay(
    scenario: Scenario,
    *,
    target: str,
    options: ClusterOptions = ClusterOptions(),
    on_step: OnStep = lambda _: None,
    to_the_end: bool = False,
) -> Replay:
    """Run the scenario until an expectation is violated, or, with `to_the_end`, to its end. If neither the options nor
    the scenario name a profile, it is that of the target.

    Raises UsageError for an unknown target, ScenarioError for an action that is impossible at its place, TargetError if
    the target cannot be started or stops answering, and the look-up errors of profiles and mutants.
    """
    merged = cluster_options(scenario, options)
    resolved = resolve_cluster(target, merged)
    if not scenario.played and not scenario.releases:
        # Actions of played members are always possible; the model does not cover two releases at once.
        event_loop().run_until_complete(_make_sense(scenario, resolved.profile))
    steps = event_loop().run_until_complete(_run(scenario, resolved, on_step, to_the_end=to_the_end))
    return Replay(target, resolved.profile, merged.mutant, tuple(steps))


def assert_scenario(text: str, *, target: str, profile: str | None = None, mutant: str | None = None) -> None:
    """For pytest: run the scenario, and fail with the lines that do not hold."""
    result = replay(parse(text), target=target, options=ClusterOptions(profile=profile, mutant=mutant))
    broken = [step for step in result.steps if step.verdict is not Verdict.CONFORMS]
    assert not broken, "; ".join(
        f"line {step.line} '{step.text}' at {step.at_ms} ms: {step.outcome}" for step in broken
    )


async def _make_sense(scenario: Scenario, profile: str) -> None:
    """Raises ScenarioError."""
    model = ModelCluster(lease_ms=scenario.lease_ms)
    await model.start(scenario.nodes, profile, spare=scenario.spare)
    running = Running(model)
    for line in scenario.lines:
        if isinstance(line.step, Query | Subscribe | Checkpoint | ExpectModel | ExpectAnswer):
            continue
        if unable(model, line.step) is not None:
            return  # after this line the model does not know the state of the nodes
        if isinstance(line.step, Action):
            why_not = running.mistake(line.step, model.forbidden(line.step))
            if why_not is not None:
                raise ScenarioError(f"line {line.number}: '{line.text}' makes no sense here: {why_not}")
        await running.run(line.step)


async def _run(
    scenario: Scenario, resolved: ResolvedCluster, on_step: OnStep, *, to_the_end: bool
) -> Sequence[StepResult]:
    cluster = resolved.cluster
    steps: list[StepResult] = []

    def note(step: StepResult) -> None:
        steps.append(step)
        on_step(step)

    try:
        for release in scenario.releases:
            if cluster.one_release is not None:
                outcome = f"cannot be done: {cluster.one_release}"
                note(StepResult(Verdict.INCONCLUSIVE, outcome, text=str(release)))
                return steps
            cluster.set_release(release.node, release.release)
        try:
            await cluster.start(scenario.nodes, resolved.profile, spare=scenario.spare)
        except DivergedError as error:
            note(StepResult(Verdict.VIOLATES, f"differs from the model: {error.reason}", text=START))
            return steps
        for line in scenario.lines:
            if (why := unable(cluster, line.step)) is not None:
                outcome = f"cannot be done: {why}"
                note(StepResult(Verdict.INCONCLUSIVE, outcome, line=line.number, text=line.text))
                return steps
        watched = bool(scenario.played) or any(isinstance(step, ExpectModel) for step in scenario.steps)
        running = Running(cluster, watched=watched)
        for line, following in zip(scenario.lines, [*scenario.steps[1:], None], strict=True):
            at_ms = cluster.clock.now_ms()
            result = await _run_line(running, line, following)
            note(replace(result, line=line.number, text=line.text, at_ms=at_ms))
            is_violated = isinstance(line.step, Expect | ExpectAnswer) and result.verdict is Verdict.VIOLATES
            if result.is_lost or (is_violated and not to_the_end):
                break
        if not watched and not any(isinstance(step, Expect | ExpectAnswer) for step in scenario.steps):
            note(UNJUDGED)
    finally:
        await cluster.stop()
    return steps


async def _run_line(running: Running, line: Line, following: Step | None) -> StepResult:
    try:
        return await running.run(line.step, refusal_expected=isinstance(following, ExpectAnswer))
    except DivergedError as error:
        return StepResult(Verdict.VIOLATES, f"differs from the model: {error.reason}", is_lost=True)
    except RefusedError as error:
        return StepResult(Verdict.VIOLATES, f"refused: {error}", is_lost=True)
    except CannotError as error:
        return StepResult(Verdict.INCONCLUSIVE, f"cannot be done: {error}", is_lost=True)


def findings_of_replay(
    replay: Replay, file: Path, name: str | None = None, *, allow_disruption: bool = False
) -> tuple[Finding, ...]:
    """A finding for each expectation, and for each line whose result differs from the model. `name`: the name of the
    scenario, if it is not its path."""
    options = ("--target", replay.target, *(("--allow-disruption",) if allow_disruption else ()))
    again = command("replay", file, *options, profile=replay.profile, mutant=replay.mutant)
    judgements = {
        Verdict.CONFORMS: Judgement.CONFORMS,
        Verdict.VIOLATES: Judgement.VIOLATES,
        Verdict.INCONCLUSIVE: Judgement.NOT_JUDGED,
    }
    before = [None, *replay.steps]
    return tuple(
        Finding(
            about=f"{name or file}:{step.line}",
            by="scenario",
            judgement=judgements[step.verdict],
            text=step.text,
            message=step.outcome,
            expected=step.text if step.verdict is not Verdict.CONFORMS else "",
            since=f"{step.at_ms} ms",
            until=None if step.held_to_ms is None else f"{step.held_to_ms} ms",
            after=earlier.text if earlier else None,
            again=again,
        )
        for earlier, step in zip(before, replay.steps, strict=False)
        if step.verdict is not Verdict.CONFORMS or step.text.startswith("expect")
    )
