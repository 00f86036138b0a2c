"""Simulated runs with all faults of every profile, checked: a job of `make nightly`. Nothing unexplained may be found.

`strict` must violate nothing, and a release what it is known for alone; so each violation that is not known is either a
false alarm of an invariant or a known failure whose symptom nobody has written down. Runs come in batches, each checked
in one go; a batch that is over is one line in `distrocheck-out/nightly/alarms.ndjson` and is not run again until model
or invariants change. Exit codes as everywhere: 1 something is news, 3 batches are left, 0 neither.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ledger import Line, digest_of, lines_of
from pyspark.sql import SparkSession

import distro_model
import distro_spark
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.profiles import PROFILES
from distro_model.simulation.faults import faults_named
from distro_spark.check import check
from distro_spark.session import local_session

LEDGER = Path("distrocheck-out/nightly/alarms.ndjson")
RUNS = 1_000
"""Of each profile."""

BATCH_RUNS = 50
"""So many are in files at a time."""

CLIENTS, LASTS_S = 6, 300


def batches(runs: int, profiles: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Each a profile and its first seed; all profiles get the first batch before one gets the second."""
    return ((profile, seed) for seed in range(0, runs, BATCH_RUNS) for profile in profiles)


def line_of(session: SparkSession, source: str, profile: str, first_seed: int) -> Line:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(first_seed, first_seed + BATCH_RUNS):
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
        found = check(session, directory)
    known = Counter(f"{each.invariant} {each.known}" for each in found.violations if each.known)
    return {
        "source": source,
        "profile": profile,
        "seed": first_seed,
        "runs": found.runs,
        "events": found.events,
        "verdict": found.verdict,
        "news": [f"{each.run}: {each.invariant}: {each.message}" for each in found.violations if each.known is None],
        "known": dict(known),
        "reasons": list(found.reasons),
        "seconds": round(time.monotonic() - began, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each profile")
    parser.add_argument("--profile", action="append", choices=list(PROFILES), help="may be given several times")
    parser.add_argument("--seconds", type=float, help="begin no further batch after so long; the next run goes on")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    source, began = digest_of(distro_model, distro_spark), time.monotonic()
    known = {(line["profile"], line["seed"]): line for line in lines_of(options.ledger, "source", source)}
    lines, left = [], 0
    options.ledger.parent.mkdir(parents=True, exist_ok=True)
    session = local_session("local[2]")
    try:
        with options.ledger.open("a", encoding="utf-8") as ledger:
            for profile, seed in batches(options.runs, options.profile or list(PROFILES)):
                line = known.get((profile, seed))
                if line is None:
                    if options.seconds is not None and time.monotonic() - began > options.seconds:
                        left += 1
                        continue
                    line = line_of(session, source, profile, seed)
                    ledger.write(json.dumps(line) + "\n")
                    ledger.flush()
                    print(said(line), file=sys.stderr)
                lines.append(line)
    finally:
        session.stop()
    return told(lines, left, as_json=options.json)


def said(line: Line) -> str:
    news = "".join(f"\n  {each}" for each in line["news"])
    return f"{line['profile']}: {line['runs']} runs from seed {line['seed']}, {line['events']} events in " + (
        f"{line['seconds']} s, {len(line['news'])} news, {sum(line['known'].values())} known{news}"
    )


def told(lines: Sequence[Line], left: int, *, as_json: bool) -> int:
    runs: Counter[str] = Counter()
    for line in lines:
        runs[line["profile"]] += line["runs"]
    news = [each for line in lines for each in line["news"]]
    least = min(runs.values(), default=0)
    headline = f"at least {least} runs of each of {len(runs)} profiles: {len(news)} news; {left} batches left"
    document = {"headline": headline, "runs": dict(runs), "events": sum(line["events"] for line in lines), "news": news}
    print(json.dumps(document) if as_json else "\n".join([headline, *news]))
    return 1 if news else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
