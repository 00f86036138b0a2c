"""The test of a mutant at each level: one function a level, in one registry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache

from distro_conformance.exploration.explored import stop_after
from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.finding import command
from distro_conformance.mutation.kill import kill
from distro_conformance.mutation.traces import SHOWN, judge_in_traces
from distro_conformance.node.run import run_node_conformance, run_requirements
from distro_conformance.node_mutants import MUTANTS as NODE_MUTANTS
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.mutants import real_mutants
from distro_conformance.targets.nacos import NacosTarget
from distro_conformance.verdict import UsageError
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions, WalkResult
from distro_model.bounded.bounds import Bounds
from distro_model.explorer import Exploration, explore
from distro_model.mutants import MUTANTS as MODEL_MUTANTS
from distro_model.mutants import with_mutant
from distro_model.profiles import STRICT

REAL = "nacos:2.2.4"
"""The release whose classes and methods the rule files name."""

ENOUGH_STEPS = 10_000
"""The mutants that only lockstep notices need up to 6,186 steps."""

Judge = Callable[[str, float], Finding]
"""Tests the mutant with that id, for about that many seconds."""


def kill_in_model(mutant_id: str, seconds_max: float) -> Finding:
    """Explore `strict` with the mutant within the mutant's own bounds; properties that `strict` breaks do not count."""
    bounds = MODEL_MUTANTS[mutant_id].bounds
    began = time.monotonic()
    found = explore(bounds, with_mutant(STRICT, mutant_id), watch=stop_after(seconds_max))
    broken = _broken(found)
    seconds = time.monotonic() - began
    spoiled = _broken_by_strict(bounds, seconds_max)
    killed_by = () if spoiled is None else tuple(name for name in broken if name not in spoiled)
    if spoiled is None or not (killed_by or found.complete):
        why = f"{'strict alone' if spoiled is None else 'the mutant'} was not searched to its end in the time given"
        return replace(kill(mutant_id, "model", (), seconds), judgement=Judgement.NOT_JUDGED, message=why)
    steps = min((broken[name] for name in killed_by), default=None)
    reason = "" if killed_by else "no property breaks within its bounds"
    return kill(mutant_id, "model", killed_by, seconds, steps, reason)


@cache
def _broken_by_strict(bounds: Bounds, seconds_max: float) -> frozenset[str] | None:
    """None when the search stopped before it was complete."""
    found = explore(bounds, STRICT, watch=stop_after(seconds_max))
    return frozenset(_broken(found)) if found.complete else None


def _broken(found: Exploration) -> dict[str, int]:
    """Property -> length of its shortest counterexample."""
    counterexamples = (result.counterexample for result in found.results)
    return {each.property_id: len(each.steps) for each in counterexamples if each is not None}


def kill_on_node(mutant_id: str, seconds_max: float) -> Finding:
    """Check one reference node with the mutant against the requirements; only if none of them fails, drive three nodes
    in lockstep with `strict`, for `seconds_max`."""
    began = time.monotonic()
    report = run_node_conformance(EmbeddedTarget("strict", mutant_id))
    if failed := report.those(Judgement.VIOLATES):
        return _kill_by(mutant_id, "node", failed, time.monotonic() - began)
    found = random_walks(WalkOptions(mutant=mutant_id, seconds=seconds_max, shrink_seconds=0))
    return kill_in_lockstep(mutant_id, found, time.monotonic() - began)


def kill_in_lockstep(mutant_id: str, found: WalkResult, seconds: float) -> Finding:
    """A mutant lives only after `ENOUGH_STEPS`: a busy machine makes fewer in the same time, and decides nothing."""
    if found.failure is not None:
        return kill(mutant_id, "node", ("lockstep",), seconds, found.failure.steps_until_found)
    alive = kill(
        mutant_id, "node", (), seconds, None, f"no requirement fails, and no divergence in {found.steps} steps"
    )
    if found.steps >= ENOUGH_STEPS:
        return alive
    why = f"no requirement fails, and lockstep made {found.steps} of {ENOUGH_STEPS} steps in the time given"
    return replace(alive, judgement=Judgement.NOT_JUDGED, message=why)


def kill_on_real_server(mutant_id: str, seconds_max: float, spec: str = REAL) -> Finding:  # noqa: ARG001
    """Check a real server with the mutant's rules against the requirements: known failures of the release are no kill.
    Only if none of them fails, the requirements that start their own server are checked.

    The result is inconclusive if the rules never fired or requirements were not judged. The time of a requirement is
    its own, so `seconds_max` limits nothing.
    Raises UsageError for other targets.
    """
    began = time.monotonic()
    kind, _, release = spec.partition(":")
    if kind != NacosTarget.kind:
        raise UsageError(f"the target {spec} reads no rules; a real server does, {REAL} for instance")
    target = NacosTarget(release, None, mutant_id)
    failed: tuple[Finding, ...] = ()
    open_questions: list[str] = []
    for own_node in (False, True):
        ids = [each.id for each in all_requirements() if each.own_node is own_node]
        if not failed:
            findings = asyncio.run(run_requirements(target.fresh() if own_node else target, ids))
            failed = tuple(finding for finding in findings if finding.violates)
            open_questions += [each.about for each in findings if each.judgement is Judgement.NOT_JUDGED]
    fired, seconds = target.fired, time.monotonic() - began
    found = _kill_by(
        mutant_id, "real", failed, seconds, f"no requirement fails, and its rules fired {fired.times} times"
    )
    if why := target.unaltered():
        found = replace(found, judgement=Judgement.NOT_JUDGED, message=why)
    elif open_questions and not failed:
        why = f"no requirement fails, and these were not judged: {', '.join(open_questions)}"
        found = replace(found, judgement=Judgement.NOT_JUDGED, message=why)
    again = command("mutants run", "--level", "real", "--target", spec, mutant=mutant_id)
    return replace(found, details={"fired": fired.times}, again=again)


def _kill_by(mutant_id: str, level: str, failed: Sequence[Finding], seconds: float, reason: str = "") -> Finding:
    """A kill by requirements; a SHOULD that fails has noticed the mutant too."""
    names, messages = [each.about for each in failed], [f"{each.about}: {each.message}" for each in failed]
    return kill(mutant_id, level, names, seconds, reason=reason, evidence=messages)


@dataclass(frozen=True, slots=True)
class Level:
    mutants: Callable[[], tuple[str, ...]]
    judge: Callable[[], AbstractContextManager[Judge]]
    """The context manager provides the needs of the level."""
    seconds_max: float
    """The default time for one mutant."""


LEVELS: Mapping[str, Level] = {
    "model": Level(lambda: tuple(MODEL_MUTANTS), lambda: nullcontext(kill_in_model), 60.0),
    "node": Level(lambda: tuple(NODE_MUTANTS), lambda: nullcontext(kill_on_node), 60.0),
    "real": Level(lambda: tuple(real_mutants()), lambda: nullcontext(kill_on_real_server), 200.0),
    "trace": Level(lambda: SHOWN, judge_in_traces, 20.0),
}
