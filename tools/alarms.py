"""Simulated runs with all faults of every profile, checked: a job of `make nightly`. Nothing unexplained may be found.

`strict` must violate nothing, and a release only what its known defects explain. So each violation that is not known is
either a false alarm of an invariant or a known failure whose symptom is not listed. The model must also accept each row
of its own runs (`check --replay`). Runs are checked in batches; a finished batch is a row of
`distrocheck-out/nightly/alarms.json` and is not run again until the model or the invariants change. Exit codes: 1 for
a violation that is not known, 3 if batches are left, 0 otherwise.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path

import results
from results import Row

import distro_model
import distro_spark
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.profiles import PROFILES
from distro_model.simulation.faults import faults_named
from distro_spark.check import check
from distro_spark.local import Local
from distro_spark.result import CheckResult

Batch = tuple[str, int]
"""A profile and its first seed."""

RUNS = 1_000
"""Of each profile."""

BATCH_RUNS = 50
"""How many runs are checked together. A check takes about five seconds even for few rows, and reports at most a
thousand clients for each invariant."""

SEEDS = 100_000
"""Of each profile, from the first on."""

CLIENTS, LASTS_S = 6, 300
JOBS = 2
"""Runs that are simulated side by side."""


def batches(runs: int, profiles: Sequence[str], first_seed: int) -> Iterator[Batch]:
    """All profiles get the first batch before one gets the second. Seeds differ between profiles,
    as those of equal rules would have the same runs."""
    first_seeds = {profile: first_seed + place * SEEDS for place, profile in enumerate(PROFILES)}
    return ((profile, first_seeds[profile] + run) for run in range(0, runs, BATCH_RUNS) for profile in profiles)


def run_of(seed: int, *, directory: str, profile: str) -> None:
    simulate(
        SimulationOptions(
            out=Path(directory, str(seed)),
            clients=CLIENTS,
            duration_s=LASTS_S,
            seed=seed,
            faults=faults_named("all"),
            profile=profile,
        )
    )


def row_of(pool: Executor, profile: str, first_seed: int) -> Row:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        seeds = range(first_seed, first_seed + BATCH_RUNS)
        list(pool.map(partial(run_of, directory=directory, profile=profile), seeds))
        simulated_s = time.monotonic() - began
        found = check(Local(directory), replay=True)
    known = Counter(f"{each.invariant} {each.known}" for each in found.violations if each.known)
    news, not_reported = unknown_violations(found)
    return {
        "profile": profile,
        "seed": first_seed,
        "runs": found.runs,
        "events": found.events,
        "verdict": found.verdict,
        "news": news,
        "not_reported": not_reported,
        "known": dict(known),
        "reasons": list(found.reasons),
        "seconds": round(time.monotonic() - began, 1),
        "simulated_s": round(simulated_s, 1),
    }


def unknown_violations(found: CheckResult) -> tuple[list[str], int]:
    """The violations that are not known and the rows that the model rejects, and how many more there are."""
    news = [f"{each.run}: {each.invariant}: {each.message}" for each in found.violations if each.known is None]
    not_reported = max(0, sum(each.violations for each in found.invariants) - len(news))
    if found.replay is not None:
        news += [f"{each.run}: model: no transition is {each.event}" for each in found.replay.rejections]
        not_reported += found.replay.rejections_left_out
    return news, not_reported


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each profile")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--profile", action="append", choices=list(PROFILES), help="may be given several times")
    parser.add_argument("--seconds", type=float, help="begin no further batch after so long; the next run goes on")
    parser.add_argument("--table", type=Path, default=results.NIGHTLY / "alarms.json", help="of batches that are over")
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    source = results.digest_of(distro_model, distro_spark)
    with ProcessPoolExecutor(JOBS, multiprocessing.get_context("spawn")) as pool:
        wanted = batches(options.runs, options.profile or list(PROFILES), options.first_seed)
        work = ((f"{profile} from seed {seed}", partial(row_of, pool, profile, seed)) for profile, seed in wanted)
        rows, left = results.carried_out(options.table, work, source, text_of, seconds=options.seconds)
    return report(rows, left, as_json=options.json)


def text_of(row: Row) -> str:
    news = "".join(f"\n  {each}" for each in row["news"])
    return f"{row['profile']}: {row['runs']} runs from seed {row['seed']}, {row['events']} events in " + (
        f"{row['seconds']} s ({row['simulated_s']} s simulated), {len(row['news'])} news, "
        f"{row['not_reported']} not reported, {sum(row['known'].values())} known{news}"
    )


def report(rows: Sequence[Row], left: int, *, as_json: bool) -> int:
    runs: Counter[str] = Counter()
    for row in rows:
        runs[row["profile"]] += row["runs"]
    news = [each for row in rows for each in row["news"]]
    least = min(runs.values(), default=0)
    not_reported = sum(row["not_reported"] for row in rows)
    headline = f"at least {least} runs of each of {len(runs)} profiles: {len(news)} news, {not_reported} not reported; "
    headline += f"{left} batches left"
    document = {"headline": headline, "runs": dict(runs), "events": sum(row["events"] for row in rows), "news": news}
    print(json.dumps(document) if as_json else "\n".join([headline, *news]))
    return 1 if news else 3 if left or not_reported else 0


if __name__ == "__main__":
    sys.exit(main())
