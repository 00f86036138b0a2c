"""The report as values. Rendering is elsewhere, so that every format says the same.

Every row answers the question the kit exists for: which node, from when, after which message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from distro_conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline. `figures` are numbers worth reading, names with their units."""

    name: str
    verdict: Verdict
    seconds: float
    summary: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequirementRow:
    """`verdict` None: the requirement does not apply to this target's release. `known`: the bug it is known to have."""

    id: str
    level: str
    verdict: Verdict | None
    text: str
    message: str = ""
    known: str | None = None


@dataclass(frozen=True, slots=True)
class InvariantRow:
    """One invariant, judged in the model (`by` "model") or on what was recorded ("trace")."""

    name: str
    by: str
    verdict: Verdict
    violations: int
    message: str
    known: int = 0


@dataclass(frozen=True, slots=True)
class ViolationRow:
    """Which node diverged, from when, after which message."""

    invariant: str
    run: str
    client: str
    node: str
    first_event: str
    last_event: str
    message: str
    known: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing run, made small: the scenario in full, and where it was saved."""

    title: str
    scenario: str
    replay: str
    pytest: str


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run of the gate."""

    target: str
    profile: str
    budget: str
    seed: int
    verdict: Verdict
    seconds: float
    stages: tuple[Stage, ...]
    requirements: tuple[RequirementRow, ...]
    invariants: tuple[InvariantRow, ...]
    violations: tuple[ViolationRow, ...] = ()
    violations_left_out: int = 0
    failures: tuple[Failure, ...] = ()
    convergence: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()
    """The real cluster's changes with the time until every other node had them."""
    traces: str = ""

    @property
    def news(self) -> tuple[ViolationRow, ...]:
        return tuple(row for row in self.violations if row.known is None)

    @property
    def known(self) -> Counter[tuple[str, str]]:
        """How many of those listed are instances of a known bug, by invariant and bug."""
        return Counter((row.invariant, row.known) for row in self.violations if row.known is not None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
