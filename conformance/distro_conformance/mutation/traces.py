"""The level of traces: a mutant runs in a simulation or on nodes, and the invariants over traces judge the recording.

A mutant shows only in circumstances that provoke it. For most there is a scenario (`scenarios/provoking`), which the
simulation runs with the model's mutant, and reference nodes with the node's mutant. The others show by chance in the
random simulations of `SHOWN_BY`. `strict` runs in the same circumstances, with the same seed, and a violation there
does not count.

The first difference between the two runs of a scenario is the first wrong event of the mutant. The finding reports
whether the first violation points there: whether that event lies between its first and its last one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, zip_longest
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from distro_conformance.findings import Finding, Judgement
from distro_conformance.language.recording import record
from distro_conformance.language.text import Scenario
from distro_conformance.mutation.kill import kill
from distro_conformance.node_mutants import MUTANTS as NODE_MUTANTS
from distro_conformance.scenarios import provoking
from distro_conformance.simulation.played import play
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.mutants import MUTANTS as MODEL_MUTANTS
from distro_model.profiles import STRICT
from distro_model.simulation.faults import faults_named
from distro_traces.event import STATE_KINDS, Event
from distro_traces.ndjson import TraceFile
from distro_traces.reading import read_run

if TYPE_CHECKING:
    from distro_spark.result import CheckResult, Violation


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The settings of each simulation of a mutant; the seed varies."""

    faults: str = "none"
    duration_s: float = 300
    clients: int = 5


SHOWN_BY: Mapping[str, Circumstances] = {
    **dict.fromkeys(("m-unknown-delete-fails", "revision-beyond-int32"), Circumstances("all", 900, 8)),
    "m-merge-keeps-max-delay": Circumstances("drop", 1800, 4),
}

PROVOKED = provoking()

SHOWN: tuple[str, ...] = tuple(sorted({*PROVOKED, *SHOWN_BY}))
"""The mutants that traces can show."""

Judged = Callable[[Sequence[Path]], "CheckResult"]
"""The check of the traces in some directories."""


def kill_in_traces(judged: Judged, mutant_id: str, seconds_max: float) -> Finding:
    if mutant_id in PROVOKED:
        return kill_by_scenario(judged, mutant_id)
    return kill_by_chance(judged, mutant_id, seconds_max, SHOWN_BY[mutant_id])


# By a scenario


def kill_by_scenario(judged: Judged, mutant_id: str) -> Finding:
    """In the simulation, on nodes, or both, where the mutant exists."""
    began = time.monotonic()
    with TemporaryDirectory() as directory:
        record_scenario(mutant_id, Path(directory))
        found = kill_seen(mutant_id, Path(directory), judged([Path(directory)]).violations)
    return replace(found, seconds=time.monotonic() - began)


def record_scenario(mutant_id: str, directory: Path) -> None:
    """Record its scenario below `directory`: each source with the mutant and without."""
    for source in _sources(mutant_id):
        for mutant in (None, mutant_id):
            run = _run(mutant_id, source, with_it=mutant is not None)
            _record(replace(PROVOKED[mutant_id], mutant=mutant), source, directory / run, run)


def _sources(mutant_id: str) -> list[str]:
    kinds = {"simulation": MODEL_MUTANTS, "nodes": NODE_MUTANTS}
    return [source for source, mutants in kinds.items() if mutant_id in mutants]


def _run(mutant_id: str, source: str, *, with_it: bool) -> str:
    return f"{mutant_id}-{source}-{'with' if with_it else 'without'}"


def _record(scenario: Scenario, source: str, directory: Path, run: str) -> None:
    if source == "simulation":
        play(scenario, directory, run=run, profile=STRICT.name)
    else:
        record(scenario, target="embedded", profile=STRICT.name, directory=directory, run=run)


def kill_seen(mutant_id: str, directory: Path, violations: Sequence[Violation]) -> Finding:
    """The result of the check of those recordings for the mutant."""
    broken: dict[str, list[str]] = {}
    pointed: dict[str, bool] = {}
    events = 0
    for source in _sources(mutant_id):
        names = [_run(mutant_id, source, with_it=with_it) for with_it in (False, True)]
        without, with_it = (read_run(directory / name) for name in names)
        events += len(with_it.events)
        excused = {each.invariant for each in violations if each.run == names[0]}
        news = [each for each in violations if each.run == names[1] and each.invariant not in excused]
        if news:
            broken[source] = sorted({each.invariant for each in news})
            pointed[source] = localises(news, first_wrong(without, with_it))
    killed_by = sorted({name for each in broken.values() for name in each})
    found = kill(mutant_id, "trace", killed_by, 0.0, events, f"no invariant breaks in {events} events")
    return replace(found, details={**found.details, "by_source": broken, "points_at_the_first": pointed})


def first_wrong(without: TraceFile, with_it: TraceFile) -> list[Event]:
    """The first rows in which a run differs from another run in the same circumstances: in the states of nodes, and in
    all events. The time of a row is ignored. If a row is missing, the result has the row of `without`."""
    found = []
    for is_judged in (lambda event: event.kind in STATE_KINDS, lambda _: True):
        parted = [
            event
            for node in without.header.nodes
            if (event := _parted(*(_rows(each, node, is_judged) for each in (without, with_it)))) is not None
        ]
        found += [min(parted, key=lambda event: event.at_ms)] if parted else []
    return found


def _rows(trace: TraceFile, node: str, is_judged: Callable[[Event], bool]) -> list[Event]:
    return [event for event in trace.events if event.node == node and is_judged(event)]


def _parted(without: Sequence[Event], with_it: Sequence[Event]) -> Event | None:
    for one, other in zip_longest(without, with_it):
        if one is None or other is None or _what(one) != _what(other):
            both = [each for each in (one, other) if each is not None]
            return min(both, key=lambda event: event.at_ms)
    return None


_what = attrgetter("kind", "peer", "operation", "client", "owned", "revision", "digest", "outcome")
"""The fields of an event that are compared, without its time."""


def localises(violations: Sequence[Violation], wrong: Sequence[Event]) -> bool:
    """Whether the first violation is about one of the events, and begins no later."""
    first = min(violations, key=lambda each: (each.last_event.at_ms, each.first_event.at_ms))
    return any(
        first.first_event.at_ms <= event.at_ms <= first.last_event.at_ms
        and (not first.client or event.client in (first.client, None))
        for event in wrong
    )


# By chance


def kill_by_chance(judged: Judged, mutant_id: str, seconds_max: float, at: Circumstances) -> Finding:
    """One simulation after the other, each with the next seed, until an invariant breaks or the time is over.

    A simulation that has started is checked to its end.
    """
    began = time.monotonic()
    events = 0
    for seed in count():
        made, broken = _simulated(judged, mutant_id, at, seed)
        events += made
        seconds = time.monotonic() - began
        if broken:
            return kill(mutant_id, "trace", broken, seconds, events)
        if seconds > seconds_max:
            break
    why = f"no invariant breaks in {events} events, the runs of the time given"
    return replace(kill(mutant_id, "trace", (), seconds), judgement=Judgement.NOT_JUDGED, message=why)


def _simulated(judged: Judged, mutant_id: str, at: Circumstances, seed: int) -> tuple[int, tuple[str, ...]]:
    """The number of events of the mutant's run, and the invariants that it breaks and `strict` does not. Both runs are
    checked at once."""
    with TemporaryDirectory() as directory:
        place = {mutant: Path(directory, mutant or "strict") for mutant in (mutant_id, None)}
        made = {
            mutant: simulate(
                SimulationOptions(
                    out=out,
                    clients=at.clients,
                    duration_s=at.duration_s,
                    seed=seed,
                    faults=faults_named(at.faults),
                    mutant=mutant,
                )
            )
            for mutant, out in place.items()
        }
        result = judged(list(place.values()))
    return made[mutant_id].events, broken_by(mutant_id, result.violations)


def broken_by(mutant_id: str, violations: Iterable[Violation]) -> tuple[str, ...]:
    """The invariants that runs of the mutant break, without those that a run of `strict` breaks too."""
    own = f"-{mutant_id}-"  # in the names of its runs; those of `strict` have none, and are listed first
    broken: dict[bool, set[str]] = {True: set(), False: set()}
    for violation in violations:
        broken[own in violation.run].add(violation.invariant)
    return tuple(sorted(broken[True] - broken[False]))


def checked(paths: Sequence[Path]) -> CheckResult:
    """The check. Polars is an extra: no other level loads it."""
    from distro_spark.check import check  # noqa: PLC0415
    from distro_spark.local import Local  # noqa: PLC0415

    return check(Local(paths))


@contextmanager
def judge_in_traces() -> Iterator[Callable[[str, float], Finding]]:
    """`kill_in_traces` with a check."""
    yield partial(kill_in_traces, checked)
