"""Exhaustive search of the model for the command line and the gate: budgets, scenarios, and what is no news.

The search itself is the model's. Here a counterexample becomes a scenario that the nodes can replay, and what a release
is known to break is told from what nobody knew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from distro_conformance.known_failures import known_break
from distro_conformance.language.expectations import AllAgree, Expect, ExpectModel, HasNot
from distro_conformance.language.text import Scenario, Step, build
from distro_conformance.verdict import Verdict, worst
from distro_model.bounded.bounds import Bounds
from distro_model.clockwork import NoTimesError
from distro_model.explorer import Counterexample, Engine, Exploration, Result, explore
from distro_model.mutants import with_mutant
from distro_model.profiles import Profile, profile_named
from distro_model.properties import PROPERTIES, property_named
from distro_model.search.automatic import search_automatically
from distro_model.search.readable import search_readably
from distro_model.search.results import Limits, Progress, Search, Watch
from distro_model.search.system import System
from distro_model.timing import TimedRun, as_timed


def _compiled(system: System, limits: Limits, watch: Watch) -> Search:
    from distro_model.search.engine import search  # noqa: PLC0415 - numba is loaded when it is asked for

    return search(system, limits, watch)


def _exact(system: System, limits: Limits, watch: Watch) -> Search:
    from distro_model.search.engine import search  # noqa: PLC0415

    return search(system, limits, watch, exact=True)


ENGINES: Mapping[str, Engine] = {
    "local": search_automatically,
    "compiled": _compiled,
    "exact": _exact,
    "readable": search_readably,
}
"""By the name that `--engine` takes. All count the same; `exact` compares states instead of their fingerprints."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search. None of these changes what is found, except that symmetry counts orbits instead of states."""

    engine: Engine = search_automatically
    properties: tuple[str, ...] = ()  # none: all
    symmetric: bool = False
    max_memory_bytes: int | None = None


RECOVERY_MS = 15_000
"""What a scenario grants a cluster to agree: three verify periods, as no repair in any release takes longer."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One property. `known`: the bug behind a violation that this release is known for; a violation all the same."""

    result: Result
    verdict: Verdict
    message: str
    known: str | None = None


@dataclass(frozen=True, slots=True)
class Explored:
    """One bounded search. `scenarios` by property; a violation that cannot be given times has the reason instead."""

    profile: str
    mutant: str | None
    bounds: Bounds
    exploration: Exploration
    seconds: float
    judged: tuple[Judged, ...]
    scenarios: dict[str, Scenario | str]

    @property
    def verdict(self) -> Verdict:
        return worst(judged.verdict for judged in self.judged)


def explore_profile(
    profile: str,
    bounds: Bounds,
    *,
    mutant: str | None = None,
    seconds_max: float | None = None,
    search: SearchOptions = SearchOptions(),
    on_progress: Callable[[Progress, float], None] = lambda *_: None,
) -> Explored:
    """Search every reachable state within the bounds.

    `on_progress` is told how far the search is and after how many seconds. Raises the look-up errors of profiles,
    mutants and properties, and NoSymmetryError.
    """
    began = time.monotonic()
    chosen = profile_named(profile)
    chosen = with_mutant(chosen, mutant) if mutant else chosen

    def watch(progress: Progress) -> bool:
        seconds = time.monotonic() - began
        on_progress(progress, seconds)
        return seconds_max is not None and seconds > seconds_max

    found = explore(
        bounds,
        chosen,
        [property_named(name) for name in search.properties or PROPERTIES],
        watch,
        search.engine,
        max_memory_bytes=search.max_memory_bytes,
        symmetric=search.symmetric,
    )
    broken = [result.counterexample for result in found.results if result.counterexample]
    scenarios = {each.property_id: counterexample_scenario(each, chosen, profile, mutant) for each in broken}
    judged = tuple(_judge(result, profile, mutant) for result in found.results if result.applies)
    return Explored(profile, mutant, bounds, found, time.monotonic() - began, judged, scenarios)


def counterexample_scenario(
    counterexample: Counterexample, explored: Profile, profile: str, mutant: str | None
) -> Scenario | str:
    """The counterexample as a text that the nodes can replay, or the reason why it has no times."""
    try:
        run = as_timed(counterexample, explored)
    except NoTimesError as reason:
        return str(reason)
    steps: list[Step] = [*run.actions, *_expectation(counterexample, run)]
    comment = f"{counterexample.property_id}, {len(counterexample.steps)} transitions: {counterexample.found}"
    return build(steps, nodes=run.nodes, profile=profile, mutant=mutant, comment=comment)


def _expectation(counterexample: Counterexample, run: TimedRun) -> list[Step]:
    """What ought to hold at the end, where a scenario can say it; else that the nodes do what the model did."""
    if counterexample.property_id in ("INV-CONV", "EVENTUALLY-CONV"):
        return [Expect(AllAgree(), RECOVERY_MS)]
    if counterexample.property_id == "INV-DELETE":
        return [
            Expect(HasNot(node, client), RECOVERY_MS)
            for client, views in run.expectation.views.items()
            for node, view in views.items()
            if view is not None
        ]
    return [ExpectModel()]


def _judge(result: Result, profile: str, mutant: str | None) -> Judged:
    entry = None if mutant else known_break(result.name, profile)
    if result.holds is None:
        return Judged(result, Verdict.INCONCLUSIVE, f"not decided: {result.undecided}")
    if result.holds:
        return Judged(result, Verdict.CONFORMS, "reached" if result.witness else "holds in every reachable state")
    if result.counterexample is None:
        return Judged(result, Verdict.VIOLATES, "never reached: the model proves nothing about it")
    message = f"after {len(result.counterexample.steps)} transitions: {result.counterexample.found}"
    if entry is None:
        return Judged(result, Verdict.VIOLATES, message)
    return Judged(result, Verdict.VIOLATES, f"{message}. Known, {entry.bug}: {entry.reason}", entry.bug)


def against_the_list(judged: Judged, profile: str) -> Judged:
    """For the gate: a break that is listed for the release is no news, and one that is listed and does not show is."""
    if judged.known is not None:
        return replace(judged, verdict=Verdict.CONFORMS)
    entry = known_break(judged.result.name, profile)
    if entry is None or judged.verdict is not Verdict.CONFORMS:
        return judged
    message = f"{entry.bug} is listed as breaking it in {profile}, and it holds: remove the entry"
    return replace(judged, verdict=Verdict.VIOLATES, message=message)
