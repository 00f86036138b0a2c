"""What a search is asked for, and what comes of it: values that go to other processes and back, and into reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from distro_conformance.commands import command
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.findings.finding import Finding
from distro_conformance.language.text import Scenario
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.verdict import Verdict
from distro_conformance.walks.among_machine import NODE, PEERS
from distro_conformance.walks.client_rules import NODES
from distro_conformance.wire.transports import Carrier, steps_over

STEPS_PER_RUN = 100
SHRINK_SECONDS = 20.0


HTTP_EVERY, HTTP_ROUND = 2, 1
"""Of so many rounds, from 0, which one walks with clients of the HTTP API where nothing else is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntOptions:
    """What is driven, how long, and where recordings of the runs go (None: nowhere)."""

    target: str = "embedded"
    """Embedded nodes are compared with the model after each step; any other cluster has to agree in the end."""
    profile: str = "strict"
    mutant: str | None = None
    credentials: Credentials = field(default=NO_CREDENTIALS, repr=False)
    """Of a target that somebody else runs or describes."""
    seconds: float = 20.0
    seed: int = 0
    runs_max: int | None = None
    steps_per_run: int = STEPS_PER_RUN
    shrink_seconds: float = SHRINK_SECONDS
    record_into: Path | None = None
    rare_starts: bool = True
    """Every third run goes on from a state to which random runs seldom come."""
    database: Path | None = None
    """Where failures are kept; they are replayed first."""
    transport: Carrier | None = None
    """None: most rounds of runs in memory, some over gRPC."""
    among_played: bool = False
    """One node, and members that are played, instead of nodes only."""
    http: bool | None = None
    """Clients of the HTTP API, beside those that connect; None: in some rounds of runs. On embedded nodes only:
    one real node among played members always has some."""

    @property
    def is_elsewhere(self) -> bool:
        return self.target != "embedded"

    @property
    def nodes(self) -> tuple[str, ...]:
        return (NODE, *PEERS) if self.among_played else NODES

    def has_http(self, round_number: int) -> bool:
        """The runs of that round, from 0, have clients of the HTTP API."""
        if self.is_elsewhere:
            return False
        return round_number % HTTP_EVERY == HTTP_ROUND if self.http is None else self.http

    @property
    def name(self) -> str:
        return "machine" if self.among_played else "lockstep"


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """The smallest failing run that was reached, and what the first one cost."""

    scenario: Scenario
    message: str
    steps: int
    steps_until_found: int
    seconds_until_found: float
    error: DivergedError | None = None
    is_flaky: bool = False
    """In real time: it did not fail each time it was done again. It counts all the same."""
    recording: Path | None = None
    """Of the run on a cluster in its own time, which cannot be had again."""
    target: str = "embedded"

    def replayed_by(self, scenario: Path) -> str:
        """The command that plays it again where it failed."""
        where = () if self.target == "embedded" else ("--target", self.target)
        return command("replay", scenario, *where)


@dataclass(slots=True)
class Hunt:
    """The result, counted as the search goes. `steps` counts actions done on the nodes, in shrinking too; `runs` the
    runs they were done in."""

    options: HuntOptions
    steps: int = 0
    runs: int = 0
    steps_over: dict[str, int] = field(default_factory=lambda: steps_over({}))
    seconds: float = 0.0
    failure: FoundFailure | None = None
    runs_with_http: int = 0
    runs_idle: int = 0
    """In which nothing but time passed: nothing was asked of the nodes, so they are no reason to say anything."""
    runs_lost: int = 0
    """That ended where the model could not follow the nodes any more."""
    clients_lost: int = 0
    """Of the runs side by side: looked at no more, since they may be in more states than the model keeps, or a server
    may have given them up, or it is not known how a question about them ended."""
    clients_left_out: int = 0
    """Of the runs in real time: in no comparison, since their node crashed before all others can have known of their
    last change or end, or a fault lost that."""
    runs_open: int = 0
    """In real time: whether the nodes came to agree in time cannot be told, since the machine took too much of it."""
    node_late: int = 0
    """Of the runs side by side: so often the node reported itself, or asked for a snapshot, late by no more than the
    machine took."""
    views_in_parts: int = 0
    """Of the runs side by side: so often a client was shown as it is between two states, while it was being changed."""
    coverage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often each kind of action was done on the nodes, and each rule applied and each answer of a guard given by
    the model beside them; what never was is there with 0."""
    runs_known: int = 0
    """Of the runs in real time: the nodes did not come to agree, and listed defects alone are why."""
    checked: list[Finding] = field(default_factory=list)
    """What the invariants say of these, and of the run that ended the search."""

    @property
    def not_judged(self) -> Mapping[str, int]:
        """What is counted and neither passes nor fails, by the names above."""
        names = ("runs_lost", "runs_open", "clients_lost", "clients_left_out", "node_late", "views_in_parts")
        return {name: getattr(self, name) for name in names}

    @property
    def verdict(self) -> Verdict:
        if self.failure is not None:
            return Verdict.VIOLATES
        return Verdict.CONFORMS if self.runs > self.runs_idle + self.runs_open else Verdict.INCONCLUSIVE
