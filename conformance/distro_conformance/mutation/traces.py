"""The level of traces: a mutant of the model is simulated, and the invariants on Spark judge what that leaves behind.

A mutant shows only in circumstances that provoke it. `SHOWN_BY` names them for each mutant that a simulation with a
healthy end can show at all; the others need what the timed model does not have (batches, silent connections), or do
harm that is over by the next checkpoint. `strict` is simulated in the same circumstances with the same seed, and what
is broken there does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

from distro_conformance.findings import Finding
from distro_conformance.mutation.kill import kill
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import faults_named
from distro_spark.java import require_java

if TYPE_CHECKING:
    from distro_spark.result import CheckResult, Violation


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What happens in each simulation of a mutant; the seed varies."""

    faults: str = "none"
    duration_s: float = 300
    clients: int = 5


_EVERYTHING = Circumstances("all", 900, 8)

SHOWN_BY: Mapping[str, Circumstances] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "B02",
                "B05-sender",
                "B11",
                "B17",
                "B31",
                "B33",
                "m-add-after-fail-to-all",
                "m-cleaner-drops-native",
                "m-unknown-delete-fails",
                "m-verify-to-one",
                "no-anti-entropy",
                "revision-beyond-int32",
            ),
            _EVERYTHING,
        ),
        "B07": Circumstances(duration_s=30, clients=2),  # copies that are sent on multiply: that is plenty
        "B10": Circumstances(duration_s=100),
        "B24": Circumstances("drop", 6000, 3),  # the client must leave within a second of the lost CHANGE's time-out
        "m-delete-retried-as-change": Circumstances("drop", 900),
        "m-merge-keeps-max-delay": Circumstances("drop", 1800, 4),
    }
)


Judged = Callable[[Sequence[Path]], "CheckResult"]
"""The check of the traces in some directories."""


def kill_in_traces(judged: Judged, mutant_id: str, seconds_max: float, at: Circumstances | None = None) -> Finding:
    """One simulation after the other, each with the next seed, until an invariant breaks or the time is over.

    A simulation that has begun is checked to its end.
    """
    began = time.monotonic()
    events = 0
    for seed in count():
        made, broken = _simulated(judged, mutant_id, at or SHOWN_BY[mutant_id], seed)
        events += made
        seconds = time.monotonic() - began
        if broken:
            return kill(mutant_id, "trace", broken, seconds, events)
        if seconds > seconds_max:
            break
    return kill(mutant_id, "trace", (), seconds, reason=f"no invariant breaks in {events} events")


def _simulated(judged: Judged, mutant_id: str, at: Circumstances, seed: int) -> tuple[int, tuple[str, ...]]:
    """How many events the mutant made, and what it breaks and `strict` does not. Both are checked at once."""
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


@contextmanager
def trace_bench() -> Iterator[Callable[..., Finding]]:
    """`kill_in_traces` with one Spark session for all mutants. Raises JavaMissingError."""
    require_java()
    # Spark is an extra, and heavy: no other level loads it.
    from distro_spark.check import check  # noqa: PLC0415
    from distro_spark.session import local_session  # noqa: PLC0415

    session = local_session(small=True)
    try:
        yield partial(kill_in_traces, partial(check, session))
    finally:
        session.stop()
