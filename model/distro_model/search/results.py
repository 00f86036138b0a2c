"""The report of a search, the same from every engine: its progress, its counts, its findings, and their runs.

This module reads no clock: the caller of a search passes `watch`, which gets the progress regularly, and may stop the
search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from distro_model.search.system import Finding, Row, Transition


class Stopped(StrEnum):
    """The reason why a search ended before it had seen all states."""

    MAX_STATES = "max-states"
    MEMORY = "memory"
    ASKED = "asked to stop"


@dataclass(frozen=True, slots=True)
class Progress:
    level: int
    distinct_states: int
    transitions: int
    frontier: int
    """States found, but not expanded yet."""
    memory_bytes: int = 0
    """The memory of the engine's own tables."""
    found: frozenset[str] = frozenset()
    """The ids of the properties that have a finding."""


Watch = Callable[[Progress], bool]
"""Called with the progress at least once a level and about once a second; True: stop now."""


def never_stop(_: Progress) -> bool:
    return False


def until_found(*property_ids: str) -> Watch:
    """Stops a search that looks for violations of these alone: more states would add none."""
    return lambda progress: progress.found.issuperset(property_ids)


@dataclass(frozen=True, slots=True)
class Limits:
    max_states: int | None = None
    max_memory_bytes: int | None = None
    """The search stops before its tables would take more than this."""


@dataclass(frozen=True, slots=True)
class Run:
    """A shortest run from the initial row to a finding. `rows` has one more element than `transitions`.

    `loop_from` is the index in `rows` where the cycle of a lasso begins (the last row equals that row), else None.
    """

    finding: Finding
    rows: tuple[Row, ...]
    transitions: tuple[Transition, ...]
    loop_from: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    stopped: Stopped | None
    distinct_states: int
    transitions: int
    levels: tuple[int, ...]
    """New states at each depth; the first is the initial row."""
    taken: Mapping[str, int]
    """Chain name -> how many transitions it made."""
    refused: Mapping[str, tuple[int, ...]]
    """Chain name -> for each of its look-ups, how often it had no alternative."""
    runs: Mapping[str, Run]
    """Property id -> the shortest run to its first finding; no key: nothing was found."""
    function_calls: int
    """How often a look-up function was really called."""
    collision_probability: float = 0.0
    """The probability that two different rows were taken for one anywhere in this search; 0 where rows are compared
    exactly."""

    @property
    def complete(self) -> bool:
        return self.stopped is None
