"""A scenario run by the simulation, in one order of events that a fixed seed draws.

Messages take a few milliseconds. Expectations are not evaluated: the result is the trace. A step that a guard forbids
is skipped, since with a mutant the state may differ from the one that the scenario was written for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

from distro_conformance.language.beating import expand_beats
from distro_conformance.language.running import Step
from distro_conformance.language.steps import Checkpoint
from distro_conformance.language.text import Scenario
from distro_conformance.simulation.journal import SimulationJournal
from distro_model.actions import Action, Advance
from distro_model.clock.cluster import prologue
from distro_model.mutants import with_mutant
from distro_model.profiles import profile_named
from distro_model.simulation.cluster import SimulatedCluster
from distro_model.simulation.scheduler import Scheduler
from distro_traces.header import Header
from distro_traces.run_writer import RunWriter


def play(scenario: Scenario, out: Path, *, run: str, profile: str) -> int:
    """Write the trace of one run below `out`, and return how many rows it has.

    The trace names `profile`, also if the scenario names a mutant. Raises the look-up errors of profiles and mutants,
    and the TraceError family when writing fails.
    """
    mutant = scenario.mutant
    rules = with_mutant(profile_named(profile), mutant)
    rules = rules if scenario.lease_ms is None else replace(rules, lease_ms=scenario.lease_ms)
    target = "model" if mutant is None else f"model+{mutant}"
    writer = RunWriter(
        out, Header(run=run, profile=profile, target=target, clock="virtual", nodes=tuple(scenario.nodes))
    )
    journal = SimulationJournal(writer.add, scenario.nodes, rules)
    journal.run_started(profile)
    scheduler = Scheduler(Random(0))
    cluster = SimulatedCluster(scenario.nodes, rules, scheduler, journal)
    _perform((*prologue(scenario.nodes, rules), *scenario.steps), cluster, scheduler)
    writer.close()
    return writer.rows


def _perform(steps: Iterable[Step | Action], cluster: SimulatedCluster, scheduler: Scheduler) -> None:
    for step in expand_beats(steps):
        match step:
            case Advance(ms):
                scheduler.run_until(scheduler.now_ms + ms)
            case Checkpoint():
                cluster.checkpoint()
            case _ if isinstance(step, Action):
                cluster.perform(step)
