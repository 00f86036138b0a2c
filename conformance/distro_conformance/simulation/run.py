"""A simulation: run after run, each from its own seed, each a file that `check` takes for a recording.

A run begins when its nodes are up and loaded, and consists of phases (`distro_model.simulation.phases`), each with a
checkpoint at its end. A run ends with the first one after 15 minutes, or after enough events: that bounds what is in
memory however long the simulation lasts, and gives Spark many histories of one length instead of one without end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from random import Random

from distro_conformance.simulation.journal import SimulationJournal
from distro_conformance.verdict import UsageError
from distro_model.mutants import with_mutant
from distro_model.profiles import Profile, profile_named
from distro_model.simulation.faults import SimulatedFault
from distro_model.simulation.phases import Run
from distro_traces.header import Header
from distro_traces.run_writer import RunWriter

RUN_MS = 900_000
RUN_EVENTS = 200_000
"""A run that has lasted so long, or has so many events, ends with its next checkpoint."""

NODES_MAX, CLIENTS_MAX, DURATION_MAX_S = 26, 100_000, 1_000_000_000
"""Each node has a letter; so many clients take a minute before the first event; 30 years are for ever."""

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
        if not 0 <= self.clients <= CLIENTS_MAX:
            raise UsageError(f"a simulation cannot have {self.clients} clients; {CLIENTS_MAX:,} are the most at a time")
        if not 0 < self.duration_s <= DURATION_MAX_S:
            most = f"{DURATION_MAX_S:,} s at most"
            raise UsageError(f"a simulation lasts longer than 0 s, and {most}, not {self.duration_s:g} s")
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
    rules = with_mutant(profile_named(options.profile), options.mutant)
    _require_empty(options.out)
    made = Simulated(0, 0, 0.0, 0, 0.0)
    while made.simulated_s < options.duration_s:
        made = _with_one_more(made, options, rules, on_progress)
    return replace(made, seconds=time.perf_counter() - began)


def _with_one_more(made: Simulated, options: SimulationOptions, rules: Profile, on_progress: OnProgress) -> Simulated:
    number = made.runs + 1
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: options.nodes])
    writer = RunWriter(options.out, _header(options, names, number))
    journal = SimulationJournal(writer.add, names, rules)
    journal.run_started(options.profile)

    def report() -> None:
        lived_s = made.simulated_s + run.lived_ms / 1000
        on_progress(f"{lived_s:.0f} of {options.duration_s:g} s, {made.events + writer.rows} events")

    run = Run(names, options.clients, options.faults, rules, Random(f"{options.seed}/{number}"), journal, report)
    left_ms = ceil((options.duration_s - made.simulated_s) * 1000)
    run.live(min(RUN_MS, left_ms), lambda: writer.rows >= RUN_EVENTS)
    writer.close()
    return Simulated(
        number,
        made.events + writer.rows,
        made.simulated_s + run.lived_ms / 1000,
        made.checkpoints + run.checkpoints,
        made.seconds,
    )


def _header(options: SimulationOptions, names: tuple[str, ...], number: int) -> Header:
    target = "model" if options.mutant is None else f"model+{options.mutant}"
    mutant = "" if options.mutant is None else f"{options.mutant}-"
    name = f"simulate-{options.profile}-{options.seed}-{mutant}{number:06d}"
    return Header(run=name, profile=options.profile, target=target, clock="virtual", nodes=names)


def _require_empty(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not empty, and recordings are never overwritten; choose another --out")
