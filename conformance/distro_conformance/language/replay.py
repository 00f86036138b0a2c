"""Runs a scenario on any driver, and says for every line when it was done and how it went.

Where time is virtual "within" lets it pass in small steps until the expectation holds, and the same line comes out the
same; where it is real "within" is a window. Before anything is started the model goes through the actions: one that
makes no sense where it stands is refused, whatever the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from distro_conformance.drivers.cluster import CannotError, Cluster
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.model import ModelCluster
from distro_conformance.drivers.registry import Resolved, Wishes, resolve_cluster
from distro_conformance.event_loop import event_loop
from distro_conformance.language.expectations import Expect, ExpectModel, listed
from distro_conformance.language.observing import Checkpoint, Query, Subscribe
from distro_conformance.language.text import Line, Scenario, ScenarioError, Step, parse
from distro_conformance.node.player import RefusedError
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import Verdict, worst
from distro_conformance.waiting import eventually, never
from distro_model.actions import OverHttp
from distro_traces.ndjson import Recorder

STEP_MS = 100
START = "(the nodes start)"


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """One line. `outcome` is "done", "holds", or what was found instead."""

    line: int
    text: str
    at_ms: int
    outcome: str
    verdict: Verdict = Verdict.CONFORMS


@dataclass(frozen=True, slots=True)
class Replay:
    """`reproduced`: an expectation was violated, or the nodes left the model."""

    target: str
    profile: str
    mutant: str | None
    steps: tuple[ReplayedStep, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(step.verdict for step in self.steps)

    @property
    def reproduced(self) -> bool:
        return self.verdict is Verdict.VIOLATES


OnStep = Callable[[ReplayedStep], None]


def replay(
    scenario: Scenario,
    *,
    target: str,
    profile: str | None = None,
    mutant: str | None = None,
    recorder: Recorder | None = None,
    on_progress: OnProgress = lambda _: None,
    on_step: OnStep = lambda _: None,
    to_the_end: bool = False,
    allow_disruption: bool = False,
) -> Replay:
    """Run it, until an expectation is violated or `to_the_end`.

    What the caller names wins over the scenario's header; without either, the profile is the target's own.

    Raises UsageError for an unknown target, ScenarioError for an action that makes no sense where it stands,
    TargetError when the target cannot be started or stops answering, and the look-up errors of profiles and mutants.
    """
    wishes = Wishes(
        profile=profile,
        written_for=scenario.profile,
        mutant=mutant or scenario.mutant,
        over_http=any(isinstance(step, OverHttp) for step in scenario.steps),
        in_lockstep=any(isinstance(step, ExpectModel) for step in scenario.steps),
        lease_ms=scenario.lease_ms,
        allow_disruption=allow_disruption,
        played=bool(scenario.played),
        wire=scenario.wire,
        recorder=recorder,
        on_progress=on_progress,
    )
    resolved = resolve_cluster(target, wishes)
    if not scenario.played:  # what members that are played do makes always sense
        event_loop().run_until_complete(_make_sense(scenario, resolved.profile))
    steps = event_loop().run_until_complete(_run(scenario, resolved, on_step, to_the_end=to_the_end))
    return Replay(target, resolved.profile, wishes.mutant, tuple(steps))


def assert_scenario(text: str, *, target: str, profile: str | None = None, mutant: str | None = None) -> None:
    """For a plain pytest test: fails with the line at which the scenario does not hold."""
    result = replay(parse(text), target=target, profile=profile, mutant=mutant)
    broken = [step for step in result.steps if step.verdict is not Verdict.CONFORMS]
    assert not broken, "; ".join(
        f"line {step.line} '{step.text}' at {step.at_ms} ms: {step.outcome}" for step in broken
    )


async def _make_sense(scenario: Scenario, profile: str) -> None:
    """Raises ScenarioError."""
    model = ModelCluster(lease_ms=scenario.lease_ms)
    await model.start(scenario.nodes, profile, spare=scenario.spare)
    for line in scenario.lines:
        if isinstance(line.step, Query | Subscribe | Checkpoint | ExpectModel):
            continue
        if isinstance(line.step, Expect):
            await hold(model, line.step)
            continue
        if model.cannot(line.step) is not None:
            return  # from here on the model does not know what the nodes do
        why_not = model.forbidden(line.step)
        if why_not is not None:
            raise ScenarioError(f"line {line.number}: '{line.text}' makes no sense here: {why_not}")
        await model.perform(line.step)


async def _run(scenario: Scenario, resolved: Resolved, on_step: OnStep, *, to_the_end: bool) -> Sequence[ReplayedStep]:
    cluster = resolved.cluster
    steps: list[ReplayedStep] = []

    def note(step: ReplayedStep) -> None:
        steps.append(step)
        on_step(step)

    try:
        try:
            await cluster.start(scenario.nodes, resolved.profile, spare=scenario.spare)
        except DivergedError as error:
            note(ReplayedStep(0, START, 0, f"differs from the model: {error.reason}", Verdict.VIOLATES))
            return steps
        unable = [(line, why) for line in scenario.lines if (why := _cannot(cluster, line.step))]
        for line, why in unable[:1]:
            note(ReplayedStep(line.number, line.text, 0, f"cannot be done: {why}", Verdict.INCONCLUSIVE))
            return steps
        for line in scenario.lines:
            at_ms = cluster.clock.now_ms()
            verdict, outcome = await _run_line(cluster, line)
            note(ReplayedStep(line.number, line.text, at_ms, outcome, verdict))
            if verdict is not Verdict.CONFORMS and not isinstance(line.step, Expect):
                break
            if verdict is Verdict.VIOLATES and not to_the_end:
                break
    finally:
        await cluster.stop()
    return steps


def _cannot(cluster: Cluster, step: Step) -> str | None:
    if isinstance(step, ExpectModel):
        return cluster.incomparable
    return None if isinstance(step, Expect | Query | Subscribe | Checkpoint) else cluster.cannot(step)


async def _run_line(cluster: Cluster, line: Line) -> tuple[Verdict, str]:
    try:
        match line.step:
            case ExpectModel():
                return Verdict.CONFORMS, "holds"
            case Expect() as expect:
                return await hold(cluster, expect)
            case Query(service, node):
                seen = {listed(found) for found in await cluster.query(node, service)}
                return Verdict.CONFORMS, "shows " + " or ".join(sorted(seen))
            case Subscribe(client, service):
                await cluster.subscribe(client, service)
            case Checkpoint():
                await cluster.checkpoint()
            case action:
                await cluster.perform(action)
    except DivergedError as error:
        return Verdict.VIOLATES, f"differs from the model: {error.reason}"
    except RefusedError as error:
        return Verdict.VIOLATES, f"refused: {error}"
    except CannotError as error:
        return Verdict.INCONCLUSIVE, f"cannot be done: {error}"
    return Verdict.CONFORMS, "done"


async def hold(cluster: Cluster, expect: Expect) -> tuple[Verdict, str]:
    """Until the condition holds in every possible state; then, with `for`, until it no longer does."""
    reasons: Sequence[str | None] = ()

    async def holds() -> bool | None:
        nonlocal reasons
        reasons = await expect.condition.unmet(cluster)
        return None if any(reasons) else True

    async def fails() -> bool | None:
        return None if await holds() else True

    if await eventually(holds, cluster.clock, expect.within_ms, step_ms=STEP_MS) is not None and (
        not expect.for_ms or await never(fails, cluster.clock, expect.for_ms, step_ms=STEP_MS) is None
    ):
        return Verdict.CONFORMS, "holds"
    found = " or ".join(sorted({reason for reason in reasons if reason}))
    if all(reasons):
        return Verdict.VIOLATES, found
    return Verdict.INCONCLUSIVE, f"depends on the order of timers: {found}"
