"""How a mutant is put to the test at each level. One function a level, in one registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from distro_conformance.lockstep.hunt import HuntOptions, hunt
from distro_conformance.scenario.exploration import ENGINES, Explored, SearchOptions, explore_profile
from distro_impl import MUTANTS as NODE_MUTANTS
from distro_model.bounded.bounds import Bounds
from distro_model.mutants import MUTANTS as MODEL_MUTANTS

DEFAULT_ENGINE = next(iter(ENGINES))


@dataclass(frozen=True, slots=True)
class Kill:
    """One mutant at one level. `steps`: of the shortest run that shows it; `reason`: why it lives, if it does."""

    mutant: str
    level: str
    killed_by: tuple[str, ...]
    seconds: float
    steps: int | None
    reason: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.killed_by)


def kill_in_model(mutant_id: str, seconds_max: float) -> Kill:
    """Explore `strict` with the mutant within the mutant's own bounds; what `strict` alone breaks there is no kill."""
    mutant = MODEL_MUTANTS[mutant_id]
    found = explore_profile(
        "strict", mutant.bounds, mutant=mutant_id, seconds_max=seconds_max, search=SearchOptions(DEFAULT_ENGINE)
    )
    broken = _broken(found)
    spoiled = _broken_by_strict(mutant.bounds, seconds_max)
    killed_by = tuple(name for name in broken if name not in spoiled)
    steps = min((broken[name] for name in killed_by), default=None)
    reason = "" if killed_by else "no property breaks within its bounds"
    return Kill(mutant_id, "model", killed_by, found.seconds, steps, reason)


@cache
def _broken_by_strict(bounds: Bounds, seconds_max: float) -> frozenset[str]:
    return frozenset(_broken(explore_profile("strict", bounds, seconds_max=seconds_max)))


def _broken(found: Explored) -> dict[str, int]:
    return {
        result.name: len(result.counterexample.steps)
        for result in found.exploration.results
        if result.counterexample is not None
    }


def kill_on_node(mutant_id: str, seconds_max: float) -> Kill:
    """Drive three reference nodes that have the mutant, in lockstep with the model of `strict`."""
    began = time.monotonic()
    found = hunt(HuntOptions(mutant=mutant_id, seconds=seconds_max, shrink_seconds=0))
    seconds = time.monotonic() - began
    if found.failure is None:
        return Kill(mutant_id, "node", (), seconds, None, f"no divergence in {found.steps} steps")
    return Kill(mutant_id, "node", ("lockstep",), seconds, found.failure.steps_until_found)


@dataclass(frozen=True, slots=True)
class Level:
    mutants: Callable[[], tuple[str, ...]]
    kill: Callable[[str, float], Kill]
    seconds_max: float
    """For one mutant, unless the caller says otherwise."""


LEVELS: Mapping[str, Level] = {
    "model": Level(lambda: tuple(MODEL_MUTANTS), kill_in_model, 60.0),
    "node": Level(lambda: tuple(NODE_MUTANTS), kill_on_node, 60.0),
}
