"""The settings of a gate run, and the budgets of its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distro_conformance.findings.expected import Expectations
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.wire.transports import TransportKind
from distro_model.bounded.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Budget:
    """`explore`: the bounded clusters that are searched completely, each within `explore_seconds`. `on_spark`: what was
    recorded is checked on Spark too, which must find the same."""

    name: str
    explore: tuple[Bounds, ...]
    explore_seconds: float
    lockstep_seconds: float
    on_spark: bool = False


_TWO_NODES = Bounds(nodes=2, clients=1, changes=2, drops=1, swallows=1, crashes=1)
_THREE_NODES = Bounds(nodes=3, clients=1, changes=2, drops=1, swallows=0, crashes=1)
_MORE_CHANGES = Bounds(nodes=2, clients=1, changes=3, drops=2, swallows=1, crashes=1)
_TWO_CLIENTS = Bounds(nodes=2, clients=2, changes=2, drops=1, swallows=0, crashes=1)

BUDGETS: Mapping[str, Budget] = {
    budget.name: budget
    for budget in (
        Budget("quick", (_TWO_NODES,), explore_seconds=300, lockstep_seconds=14),
        Budget("ci", (_TWO_NODES, _THREE_NODES), explore_seconds=600, lockstep_seconds=90, on_spark=True),
        Budget(
            "nightly",
            (_TWO_NODES, _THREE_NODES, _MORE_CHANGES, _TWO_CLIENTS),
            explore_seconds=1_800,
            lockstep_seconds=1_800,
            on_spark=True,
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """`profile` None: the target's own. `requirements` None: all of them."""

    target: str = "embedded"
    profile: str | None = None
    budget: Budget
    seed: int
    database: Path | None = None
    out: Path
    requirements: Sequence[str] | None = None
    skip: Sequence[str] | None = None
    mutant: str | None = None
    expectations: Expectations = field(default_factory=Expectations)
    transport: TransportKind | None = None
    """The transport of the lockstep nodes; None: most runs in memory, some over gRPC."""
    stages: Sequence[str] | None = None
    """By name, see `gate.run`; None: all that judge a target of this kind."""
    credentials: Credentials = field(default=NO_CREDENTIALS, repr=False)
    jobs: int = 1
    """The number of processes of the lockstep."""

    @property
    def selects_requirements(self) -> bool:
        expected = self.expectations
        return bool(self.requirements or self.skip or expected.path or expected.write_to)
