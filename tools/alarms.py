"""Simulated runs with all faults of every profile, checked: a job of `make nightly`. Nothing unexplained may be found.

`strict` must violate nothing, and a release only what its known defects explain. So each violation that is not known is
either a false alarm of an invariant or a known failure whose symptom is not listed. The model must also accept each row
of its own runs (`check --replay`). Runs are checked in batches; a finished batch is one line in
`distrocheck-out/nightly/alarms.ndjson` and is not run again until the model or the invariants change. Exit codes: 1 for
a violation that is not known, 3 if batches are left, 0 otherwise.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from ledger import Line, digest_of, gone_on, lines_of

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

LEDGER = Path("distrocheck-out/nightly/alarms.ndjson")
RUNS = 1_000
"""Of each profile."""

BATCH_RUNS = 50
"""How many runs are checked together. A check takes about five seconds even for few rows, and reports at most a
thousand clients for each invariant."""

SEEDS = 100_000
"""Of each profile, from the first on."""

CLIENTS, LASTS_S = 6, 300
JOBS = 2
"""Batches that are simulated and checked side by side."""


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


def line_of(source: str, profile: str, first_seed: int) -> Line:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(first_seed, first_seed + BATCH_RUNS):
            run_of(seed, directory=directory, profile=profile)
        simulated_s = time.monotonic() - began
        found = check(Local(directory), replay=True)
    known = Counter(f"{each.invariant} {each.known}" for each in found.violations if each.known)
    news, not_reported = news_of(found)
    return {
        "source": source,
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


def side_by_side(
    pool: ProcessPoolExecutor, wanted: Iterable[Batch], known: Collection[Batch], source: str
) -> Iterator[tuple[Batch, Callable[[], Line]]]:
    """Each batch with its line, which is waited for; those that are not known are begun `JOBS` ahead."""
    begun = deque[tuple[Batch, Callable[[], Line]]]()
    for batch in wanted:
        find = partial(line_of, source, *batch) if batch in known else pool.submit(line_of, source, *batch).result
        begun.append((batch, find))
        if len(begun) > JOBS:
            yield begun.popleft()
    yield from begun


def news_of(found: CheckResult) -> tuple[list[str], int]:
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
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    source = digest_of(distro_model, distro_spark)
    known = {(line["profile"], line["seed"]): line for line in lines_of(options.ledger, "source", source)}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(JOBS, context) as pool:
        wanted = batches(options.runs, options.profile or list(PROFILES), options.first_seed)
        work = side_by_side(pool, wanted, known, source)
        lines, left = gone_on(options.ledger, known, work, options.seconds, said)
    return report(lines, left, as_json=options.json)


def said(line: Line) -> str:
    news = "".join(f"\n  {each}" for each in line["news"])
    return f"{line['profile']}: {line['runs']} runs from seed {line['seed']}, {line['events']} events in " + (
        f"{line['seconds']} s ({line['simulated_s']} s simulated), {len(line['news'])} news, "
        f"{line['not_reported']} not reported, {sum(line['known'].values())} known{news}"
    )


def report(lines: Sequence[Line], left: int, *, as_json: bool) -> int:
    runs: Counter[str] = Counter()
    for line in lines:
        runs[line["profile"]] += line["runs"]
    news = [each for line in lines for each in line["news"]]
    least = min(runs.values(), default=0)
    not_reported = sum(line["not_reported"] for line in lines)
    headline = f"at least {least} runs of each of {len(runs)} profiles: {len(news)} news, {not_reported} not reported; "
    headline += f"{left} batches left"
    document = {"headline": headline, "runs": dict(runs), "events": sum(line["events"] for line in lines), "news": news}
    print(json.dumps(document) if as_json else "\n".join([headline, *news]))
    return 1 if news else 3 if left or not_reported else 0


if __name__ == "__main__":
    sys.exit(main())
