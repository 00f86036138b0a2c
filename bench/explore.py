"""The speed of the explorer, beside two independent checkers that search the same bounded cluster in the same run.

    python bench/explore.py --json [--quick] [--large]

`bench/stateright` is the same cluster in Rust (built by cargo on first use, two threads), `bench/spin` in Promela
(two nodes and one client only; built by spin and gcc). Distinct states and transitions must be identical, or the
bench ends with exit code 1. A checker that cannot be built here is reported as absent, with the reason. A search that
is cut at a depth runs on one thread: with two, stateright reaches some states on longer paths, and counts fewer.
`--large` adds one search of more than a hundred million states, by this engine alone.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.profiles import STRICT
from distro_model.search.engine import CHUNK, search
from distro_model.search.results import Limits, Progress, Stopped

HERE = Path(__file__).parent
THREADS = 2


@dataclass(frozen=True, slots=True)
class Work:
    """One search: of everything within the bounds, or of the states that at most `depth` transitions lead to."""

    bounds: Bounds
    depth: int | None = None

    @property
    def threads(self) -> int:
        return THREADS if self.depth is None else 1


CONFIGURATIONS: Mapping[str, Work] = {
    "2 nodes 1 client 3 changes 2 drops 1 swallow": Work(Bounds(changes=3, drops=2)),
    "2 nodes 1 client 3 changes 1 crash 1 drop 1 swallow": Work(Bounds(changes=3, crashes=1)),
    "3 nodes 1 client 1 change 1 crash 1 drop": Work(Bounds(nodes=3, changes=1, crashes=1, swallows=0)),
    "2 nodes 2 clients 1 change 1 drop": Work(Bounds(clients=2, changes=1, swallows=0)),
    "2 nodes 2 clients 2 services 4 changes 1 crash 1 drop 1 swallow, 8 deep": Work(
        Bounds(clients=2, services=2, changes=4, crashes=1), depth=8
    ),
}
LONG_CONFIGURATIONS: Mapping[str, Work] = {
    "2 nodes 2 clients 2 changes 1 drop": Work(Bounds(clients=2, changes=2, swallows=0)),
    "3 nodes 1 client 2 changes 1 crash 1 drop": Work(Bounds(nodes=3, changes=2, crashes=1, swallows=0)),
}
LARGE = Bounds(clients=2, changes=3, crashes=1, drops=1, swallows=1, max_states=200_000_000)


@dataclass(frozen=True, slots=True)
class Count:
    """One search by one checker."""

    distinct_states: int
    transitions: int
    seconds: float

    @property
    def states_per_s(self) -> float:
        return self.distinct_states / self.seconds

    def figures(self) -> dict[str, float]:
        return {
            "distinct_states": self.distinct_states,
            "transitions": self.transitions,
            "seconds": round(self.seconds, 3),
            "states_per_s": round(self.states_per_s),
        }


Checker = Callable[[Work], Count | None]
"""None: this checker does not support the configuration."""


class AbsentError(Exception):
    """The checker cannot be built here; the message says why."""


def own_engine(work: Work) -> Count:
    """The engine, properties included, tables filled from nothing; compiled kernels come from the cache."""

    def is_deep_enough(progress: Progress) -> bool:
        """Asked after each chunk; the levels above this depth are one each."""
        return progress.level == work.depth

    began = time.perf_counter()
    limits = Limits(work.bounds.max_states)
    found = search(bounded_cluster(work.bounds, STRICT), limits, is_deep_enough, threads=work.threads)
    seconds = time.perf_counter() - began
    assert found.stopped is (None if work.depth is None else Stopped.ASKED), found.stopped
    assert work.depth is None or max(found.levels[:-1]) <= CHUNK, "a level was cut in its middle"
    return Count(found.distinct_states, found.transitions, seconds)


def memory() -> dict[str, float]:
    return {"max_rss_gib": round(getrusage(RUSAGE_SELF).ru_maxrss / 2**20, 2)}


def stateright() -> Checker:
    """Build the Rust program. Raises AbsentError."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise AbsentError("there is no cargo on this machine")
    manifest = HERE / "stateright" / "Cargo.toml"
    built = subprocess.run(
        [cargo, "build", "--release", "--locked", "--manifest-path", manifest],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        raise AbsentError(built.stderr.strip().splitlines()[-1])
    program = HERE / "stateright" / "target" / "release" / "distro-stateright"

    def count(work: Work) -> Count:
        bounds, levels = work.bounds, 0 if work.depth is None else work.depth + 1  # it counts the initial state
        numbers = (bounds.nodes, bounds.clients, bounds.services, bounds.changes, bounds.crashes, bounds.drops)
        rest = (bounds.swallows, bounds.in_flight, levels, work.threads)
        arguments = [str(number) for number in (*numbers, *rest)]
        said = json.loads(subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout)
        return Count(said["distinct_states"], said["transitions"], said["seconds"])

    return count


def spin() -> Checker:
    """Promela by spin and gcc, one core. Raises AbsentError."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise AbsentError(f"there is no {tool} on this machine")

    def count(work: Work) -> Count | None:
        bounds = work.bounds
        written_for = (bounds.nodes, bounds.clients, bounds.services, bounds.crashes, bounds.in_flight)
        if written_for != (2, 1, 1, 0, 2) or work.depth is not None:
            return None
        sizes = [f"-DCHANGES={bounds.changes}", f"-DDROPS={bounds.drops}", f"-DSWALLOWS={bounds.swallows}"]
        with tempfile.TemporaryDirectory() as folder:

            def run(*command: str) -> str:
                return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout

            # -o1 to -o3 off: Spin would leave out what is only written, and merge statements
            run("spin", "-o1", "-o2", "-o3", *sizes, "-a", str(HERE / "spin" / "distro.pml"))
            run("gcc", "-O2", "-DNOREDUCE", "-DSAFETY", "-o", "pan", "pan.c")
            began = time.perf_counter()
            said = run("./pan", "-E", "-c0", "-m1000000")
            seconds = time.perf_counter() - began
        states, transitions = (
            int(re.search(rf"(\d+) {word}", said)[1])  # type: ignore[index]
            for word in ("states, stored", "transitions")
        )
        return Count(states, transitions - 1, seconds)  # the first is the start of the process

    return count


def compare(configurations: Mapping[str, Work], checkers: Mapping[str, Checker]) -> tuple[dict[str, object], bool]:
    """All checkers on all configurations, one after the other; False when two counts differ."""
    figures: dict[str, object] = {}
    same = True
    for name, work in configurations.items():
        counts = {which: count for which, checker in checkers.items() if (count := checker(work)) is not None}
        same = same and len({(count.distinct_states, count.transitions) for count in counts.values()}) == 1
        figures[name] = {which: count.figures() for which, count in counts.items()}
        print(f"{name}: {figures[name]}", file=sys.stderr)
    return figures, same


def ratios(figures: Mapping[str, object]) -> dict[str, float]:
    """States per second of this engine divided by those of another checker, by configuration."""
    return {
        f"{name}: ours / {which}": round(counts["ours"]["states_per_s"] / count["states_per_s"], 2)
        for name, counts in figures.items()
        if isinstance(counts, dict) and "ours" in counts
        for which, count in counts.items()
        if which != "ours"
    }


def say(figures: Mapping[str, object], as_json: bool) -> None:
    document = {"bench": "explore", "figures": {"threads": THREADS, **figures}, "ratios": ratios(figures)}
    print(json.dumps(document, indent=2) if as_json else document)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="only what ends within a minute")
    parser.add_argument("--large", action="store_true", help="also more than a hundred million states")
    options = parser.parse_args()
    own_engine(Work(Bounds(clients=2, changes=1, swallows=0)))  # load the kernels: this many states need every one
    checkers: dict[str, Checker] = {"ours": own_engine}
    absent = {}
    for name, build in (("stateright", stateright), ("spin", spin)):
        try:
            checkers[name] = build()
        except AbsentError as reason:
            absent[name] = str(reason)
    configurations = CONFIGURATIONS if options.quick else {**CONFIGURATIONS, **LONG_CONFIGURATIONS}
    figures, same = compare(configurations, checkers)
    if options.large:
        figures["large"] = {"ours": own_engine(Work(LARGE)).figures(), **memory()}
    say({"identical_counts": same, "absent": absent, **figures}, options.json)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
