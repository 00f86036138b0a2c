"""Runs a scenario on the model or on embedded nodes, and says for every line when it was done and how it went.

Two executors, one protocol: do an action, hold an expectation against what is there. "within" lets time pass in small
steps until the expectation holds; time is virtual on both, so the same line comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from distro_conformance.language.text import Expect, ExpectModel, Line, Scenario, ScenarioError, parse
from distro_conformance.verdict import UsageError, Verdict, worst
from distro_conformance.walks.lockstep import DivergedError, Lockstep
from distro_model.actions import Action, Advance
from distro_model.clock import observe, start
from distro_model.clockwork import prologue
from distro_model.mutants import with_mutant
from distro_model.possible import Observation, PossibleStates
from distro_model.profiles import profile_named

WITHIN_STEP_MS = 100
DEFAULT_PROFILE = "strict"


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


class Executor(Protocol):
    """Something that a scenario runs on."""

    def now_ms(self) -> int: ...
    def forbidden(self, action: Action) -> str | None: ...
    def perform(self, action: Action) -> None: ...
    def possible(self) -> tuple[Observation, ...]: ...
    def close(self) -> None: ...


class ModelExecutor:
    """The model alone. Where timers of a node tie, several states are possible at once."""

    def __init__(self, scenario: Scenario, profile: str, mutant: str | None) -> None:
        chosen = profile_named(profile)
        chosen = with_mutant(chosen, mutant) if mutant else chosen
        self._states = PossibleStates.of(start(scenario.nodes, chosen))
        self._now_ms = 0
        for action in prologue(scenario.nodes, chosen):
            self.perform(action)
        self._now_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def forbidden(self, action: Action) -> str | None:
        return self._states.guard(action)

    def perform(self, action: Action) -> None:
        self._states = self._states.after(action)
        self._now_ms += action.ms if isinstance(action, Advance) else 0

    def possible(self) -> tuple[Observation, ...]:
        return tuple(observe(state) for state in self._states.states)

    def close(self) -> None:
        pass


class EmbeddedExecutor:
    """Reference nodes; with `expect model agrees` in the scenario the model watches every step."""

    def __init__(self, scenario: Scenario, profile: str, mutant: str | None) -> None:
        watched = any(isinstance(step, ExpectModel) for step in scenario.steps)
        self._lockstep = Lockstep(scenario.nodes, profile, mutant, compare=watched)
        self.now_ms = self._lockstep.now_ms
        self.forbidden = self._lockstep.forbidden
        self.perform = self._lockstep.perform
        self.close = self._lockstep.close

    def possible(self) -> tuple[Observation, ...]:
        return (self._lockstep.observe(),)


EXECUTORS: Mapping[str, Callable[[Scenario, str, str | None], Executor]] = {
    "model": ModelExecutor,
    "embedded": EmbeddedExecutor,
}


def replay(scenario: Scenario, *, target: str, profile: str | None = None, mutant: str | None = None) -> Replay:
    """Run it. What the caller names wins over the scenario's header; without either, the profile is `strict`.

    Raises UsageError for an unknown target, ScenarioError for an action that makes no sense where it stands, and the
    look-up errors of profiles and mutants.
    """
    if target not in EXECUTORS:
        raise UsageError(f"a scenario cannot be replayed on '{target}'; targets are {', '.join(EXECUTORS)}")
    profile = profile or scenario.profile or DEFAULT_PROFILE
    mutant = mutant or scenario.mutant
    try:
        executor = EXECUTORS[target](scenario, profile, mutant)
    except DivergedError as error:
        begun = ReplayedStep(0, "(the nodes start)", 0, f"differs from the model: {error.reason}", Verdict.VIOLATES)
        return Replay(target, profile, mutant, (begun,))
    steps: list[ReplayedStep] = []
    try:
        for line in scenario.lines:
            at_ms = executor.now_ms()
            verdict, outcome = _run_line(executor, line)
            steps.append(ReplayedStep(line.number, line.text, at_ms, outcome, verdict))
            if verdict is Verdict.VIOLATES:
                break
    finally:
        executor.close()
    return Replay(target, profile, mutant, tuple(steps))


def assert_scenario(text: str, *, target: str, profile: str | None = None, mutant: str | None = None) -> None:
    """For a plain pytest test: fails with the line at which the scenario does not hold."""
    result = replay(parse(text), target=target, profile=profile, mutant=mutant)
    broken = [step for step in result.steps if step.verdict is not Verdict.CONFORMS]
    assert not broken, "; ".join(
        f"line {step.line} '{step.text}' at {step.at_ms} ms: {step.outcome}" for step in broken
    )


def _run_line(executor: Executor, line: Line) -> tuple[Verdict, str]:
    match line.step:
        case ExpectModel():
            return Verdict.CONFORMS, "holds"
        case Expect() as expect:
            return _hold(executor, expect)
    why_not = executor.forbidden(line.step)
    if why_not:
        raise ScenarioError(f"line {line.number}: '{line.text}' makes no sense here: {why_not}")
    try:
        executor.perform(line.step)
    except DivergedError as error:
        return Verdict.VIOLATES, f"differs from the model: {error.reason}"
    return Verdict.CONFORMS, "done"


def _hold(executor: Executor, expect: Expect) -> tuple[Verdict, str]:
    """Wait within the window until the expectation holds in every possible state."""
    end_ms = executor.now_ms() + expect.within_ms
    while True:
        found = [unmet(expect, observation) for observation in executor.possible()]
        if not any(found):
            return Verdict.CONFORMS, "holds"
        if executor.now_ms() >= end_ms:
            break
        executor.perform(Advance(min(WITHIN_STEP_MS, end_ms - executor.now_ms())))
    reasons = sorted({reason for reason in found if reason})
    if all(found):
        return Verdict.VIOLATES, " or ".join(reasons)
    return Verdict.INCONCLUSIVE, "depends on the order of timers: " + " or ".join(reasons)


def unmet(expect: Expect, observation: Observation) -> str | None:
    """Why the expectation does not hold there, or None."""
    if expect.node is None or expect.client is None:
        return disagreement(observation)
    held = observation[expect.node]
    if held is None:
        return f"{expect.node} is down"
    view = held.get(expect.client)
    if not expect.present:
        return None if view is None else f"{expect.node} has {expect.client} with {_published(view.content)}"
    if view is None:
        return f"{expect.node} does not have {expect.client}"
    if expect.service and (expect.service, expect.instance) not in view.content:
        return f"{expect.node} has {expect.client} with {_published(view.content)}"
    return None


def disagreement(observation: Observation) -> str | None:
    """Which nodes show different views of a client's services; a client that publishes nothing is in no view."""
    up = {node: held for node, held in observation.items() if held is not None}
    for client in sorted({client for held in up.values() for client in held}):
        shown = {node: held[client].content if client in held else () for node, held in up.items()}
        if len(set(shown.values())) > 1:
            return f"{client}: " + ", ".join(f"{node} shows {_published(shown[node])}" for node in sorted(shown))
    return None


def _published(content: tuple[tuple[str, str], ...]) -> str:
    return " and ".join(f"{service} {instance}" for service, instance in content) or "nothing"
