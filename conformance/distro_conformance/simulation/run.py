"""A simulation: run after run, each from its own seed, each a file that `check` takes for a recording.

A run begins when its nodes are up and loaded, and consists of seasons. In a season clients act and faults strike; then
everything is healed, the clients keep still for as long as the protocol may need, and a checkpoint says that from here
on all nodes are held to agree. A run ends with a checkpoint once it has lasted 15 minutes or has enough events: that
bounds what is in memory however long the simulation lasts, and gives Spark many histories of one length instead of one
without end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from distro_conformance.simulation.agenda import Agenda
from distro_conformance.simulation.clients import Clients
from distro_conformance.simulation.cluster import SimulatedCluster
from distro_conformance.simulation.faults import SimulatedFault, Situation
from distro_conformance.simulation.journal import SimulationJournal
from distro_conformance.verdict import UsageError
from distro_model.actions import Restart
from distro_model.mutants import with_mutant
from distro_model.profiles import Profile, profile_named
from distro_traces.header import Header
from distro_traces.run_writer import RunWriter

RUN_MS = 900_000
RUN_EVENTS = 200_000
"""A run that has lasted so long, or has so many events, ends with its next checkpoint."""

SEASON_MS = (20_000, 60_000)
BETWEEN_FAULTS_MS = (500, 10_000)
STARTS_WITHIN_MS = 2000
LOADED_WITHIN_MS = 1000
PROGRESS_MS = 5000
NODES_MAX = 26

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """`mutant` changes the nodes; the trace says `profile`, since that is what they are held to.

    `duration_s` counts simulated seconds over all runs, from when their nodes have loaded; the last run goes on until
    its checkpoint.
    """

    out: Path
    nodes: int = 3
    clients: int = 10
    duration_s: float = 3600
    seed: int = 0
    faults: tuple[SimulatedFault, ...] = ()
    profile: str = "strict"
    mutant: str | None = None

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if not 1 <= self.nodes <= NODES_MAX:
            raise UsageError(f"a simulation has 1 to {NODES_MAX} nodes, not {self.nodes}")
        if self.clients < 0:
            raise UsageError(f"a simulation cannot have {self.clients} clients")
        if not 0 < self.duration_s < float("inf"):
            raise UsageError(f"a simulation lasts longer than 0 s, not {self.duration_s:g} s")
        if self.faults and self.nodes < 2:
            raise UsageError("faults need 2 nodes at least; use --faults none with one")


@dataclass(frozen=True, slots=True)
class Simulated:
    """What was made; `seconds` of wall clock."""

    runs: int
    events: int
    simulated_s: float
    checkpoints: int
    seconds: float


def simulate(options: SimulationOptions, on_progress: OnProgress = lambda _: None) -> Simulated:
    """Write the traces into `options.out`, which must be empty or not there yet.

    Raises UsageError, the look-up errors of profiles and mutants, and the TraceError family when writing fails.
    """
    began = time.perf_counter()
    rules = profile_named(options.profile)
    rules = rules if options.mutant is None else with_mutant(rules, options.mutant)
    _require_empty(options.out)
    duration_ms = max(1, round(options.duration_s * 1000))
    runs = lived_ms = events = checkpoints = 0
    while lived_ms < duration_ms:
        runs += 1

        def told(ms: int, rows: int, lived_ms: int = lived_ms, events: int = events) -> None:
            on_progress(f"{(lived_ms + ms) / 1000:.0f} of {options.duration_s:g} s, {events + rows} events")

        run = _Run(options, rules, runs, told)
        run.live(min(RUN_MS, duration_ms - lived_ms))
        lived_ms += run.lived_ms
        events += run.writer.rows
        checkpoints += run.checkpoints
    return Simulated(runs, events, lived_ms / 1000, checkpoints, time.perf_counter() - began)


class _Run:
    """One run, from the start of its nodes to the file."""

    def __init__(
        self, options: SimulationOptions, rules: Profile, number: int, told: Callable[[int, int], None]
    ) -> None:
        self.options = options
        self.random = Random(f"{options.seed}/{number}")
        self.agenda = Agenda(self.random)
        self.names = tuple("abcdefghijklmnopqrstuvwxyz"[: options.nodes])
        target = "model" if options.mutant is None else f"model+{options.mutant}"
        mutant = "" if options.mutant is None else f"{options.mutant}-"
        name = f"simulate-{options.profile}-{options.seed}-{mutant}{number:06d}"
        header = Header(run=name, profile=options.profile, target=target, clock="virtual", nodes=self.names)
        self.writer = RunWriter(options.out, header)
        self.rules = rules
        journal = SimulationJournal(self.writer.add, self.names, rules)
        journal.run_started(options.profile)
        self.cluster = SimulatedCluster(self.names, rules, self.agenda, journal)
        self.clients = Clients(options.clients, self.cluster, self.agenda, self.random)
        self.checkpoints = 0
        self._told = told
        self._begins_ms = STARTS_WITHIN_MS + rules.load_retry_ms + LOADED_WITHIN_MS

    @property
    def lived_ms(self) -> int:
        return self.agenda.now_ms - self._begins_ms

    def live(self, for_ms: int) -> None:
        """Until a checkpoint after so long, or with so many events; then the run is written."""
        self._start()
        while self.lived_ms < for_ms and self.writer.rows < RUN_EVENTS:
            season_ms = min(self.random.randrange(*SEASON_MS), for_ms - self.lived_ms)
            calm_ms = self._begin_season(self.agenda.now_ms + season_ms)
            self._let_pass(season_ms)
            self.cluster.heal()
            self._let_pass(calm_ms)
            self.cluster.checkpoint()
            self.checkpoints += 1
        self.writer.close()

    def _start(self) -> None:
        """All nodes, and nobody else yet: one that starts first finds nobody to load from, and tries again later.

        A load that meets a client who just left brings it back until its lease ends, in `strict` too; so the calm after
        a season would have to last as long as after a crash.
        """
        for node in self.names:
            self.agenda.at(self.random.randrange(STARTS_WITHIN_MS), self.cluster.perform, Restart(node))
        self.agenda.run_until(self._begins_ms)

    def _begin_season(self, end_ms: int) -> int:
        """Plan what clients and faults will do, and say how long the calm must last that follows."""
        self.clients.act_until(end_ms)
        kinds = [fault for fault in self.options.faults if self.random.random() < 0.5]
        at_ms = self.agenda.now_ms
        while kinds and (at_ms := at_ms + self.random.randrange(*BETWEEN_FAULTS_MS)) < end_ms:
            self.agenda.at(at_ms, self._strike, self.random.choice(kinds))
        lease = any(fault.outlived_by_lease for fault in kinds)
        return calm_ms(self.rules, self.options.nodes, outlasting_leases=lease)

    def _strike(self, fault: SimulatedFault) -> None:
        situation = Situation(self.names, self.cluster.clients)
        for after_ms, action in list(fault.plan(self.random, situation)):
            if after_ms:
                self.agenda.at(self.agenda.now_ms + after_ms, self.cluster.perform, action)
            else:
                self.cluster.perform(action)

    def _let_pass(self, ms: int) -> None:
        end_ms = self.agenda.now_ms + ms
        while self.agenda.now_ms < end_ms:
            self.agenda.run_until(min(end_ms, self.agenda.now_ms + PROGRESS_MS))
            self._told(self.lived_ms, self.writer.rows)


def calm_ms(profile: Profile, nodes: int, *, outlasting_leases: bool) -> int:
    """How long a healed cluster needs at most until its nodes agree.

    A request lost just now must time out; then the target must be UP again, which a report says that goes round; then
    comes the retry, or a verify and its sync. After a crash the load may have to be repeated first, and what it brought
    of clients that nobody owns any more stays for a lease from then on.
    """
    reported_ms = profile.report_first_ms + profile.report_interval_ms * nodes
    retried_ms = profile.call_timeout_ms + reported_ms + profile.retry_delay_ms + profile.sync_delay_ms
    mended_ms = retried_ms + 2 * profile.verify_interval_ms + 1000
    if not outlasting_leases:
        return mended_ms
    loaded_ms = profile.load_timeout_ms * (nodes - 1) + profile.load_retry_ms
    return mended_ms + loaded_ms + profile.lease_ms + profile.lease_check_ms


def _require_empty(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not empty, and recordings are never overwritten; choose another --out")
