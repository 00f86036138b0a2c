"""`strict` in every pair of budgets and in three whole clusters; with `--releases` every release under several faults.

Both are jobs of `make nightly`. In a release a violation is broken only where the table of defects does not explain it:
no defect of the release is listed for the property, or it is violated also with all of them repaired. Each search that
is over is a row of `distrocheck-out/nightly/searches.json`, and is not searched again until the model changes.
A search that reached its limit, or in which a property was not decided, is named at the end. Exit codes as everywhere:
1 something is broken, 3 something was not decided, 0 neither.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import results
from pairs import Job, pairs
from results import Row

import distro_model
from distro_model.bounded.bounds import Bounds
from distro_model.defects import breaking, repaired
from distro_model.explorer import explore
from distro_model.profile import Profile
from distro_model.profiles import PROFILES, STRICT
from distro_model.properties import PROPERTIES

FAULTS = {"crashes": 1, "drops": 1, "swallows": 1}
WHOLE = {
    "2 nodes, 1 client, 3 changes": Bounds(nodes=2, clients=1, changes=3, **FAULTS),
    "3 nodes, 1 client, 2 changes": Bounds(nodes=3, clients=1, changes=2, **FAULTS, max_states=500_000_000),
    "2 nodes, 2 clients, 2 changes": Bounds(nodes=2, clients=2, changes=2, **FAULTS, max_states=500_000_000),
}
"""Each with one crash, one lost and one swallowed request."""
_THREE = Bounds(nodes=3, changes=1, drops=0, swallows=0, in_flight=1)
_ONE_IS_DOWN = replace(_THREE, crashes=1, stays_down=1, swallows=1)
FAULTY = {
    "a lost and a swallowed request": Bounds(changes=1, drops=1, swallows=1),
    "a node stays down, no change": replace(_ONE_IS_DOWN, changes=0),
    "a member leaves": replace(_THREE, leaves=1),
    "a member is believed DOWN": replace(_THREE, flips=1),
    "a node stays down": _ONE_IS_DOWN,
}
"""Of each release: what survivors, queued tasks and changed member lists lead to. The smallest first."""
GIB = 1 << 30


def of_strict(pair_states: int) -> Iterator[tuple[Job, Profile]]:
    yield from ((job, STRICT) for job in pairs(max_states=pair_states))
    yield from ((Job(name, bounds), STRICT) for name, bounds in WHOLE.items())


def of_releases() -> Iterator[tuple[Job, Profile]]:
    for name, bounds in FAULTY.items():
        for release, profile in PROFILES.items():
            if profile is not STRICT:
                yield Job(f"{release}: {name}", bounds), profile


def row_of(job: Job, profile: Profile, max_memory_bytes: int) -> Row:
    began = time.monotonic()
    row = {"name": job.name, "bounds": str(job.bounds), "contradiction": job.contradiction}
    if job.bounds is None:
        return row
    explored = explore(job.bounds, profile, max_memory_bytes=max_memory_bytes)
    asked = [each for each in explored.results if each.applies]
    violated = [each for each in asked if each.holds is False]
    listed = [each.name for each in violated if breaking(each.name, profile.name, job.bounds)]
    found = [each for each in violated if each.name not in listed]
    if listed:
        of_listed = [PROPERTIES[name] for name in listed]
        found += explore(job.bounds, repaired(profile), of_listed, max_memory_bytes=max_memory_bytes).results
    broken = [each for each in found if each.holds is False]
    return {
        **row,
        "states": explored.distinct_states,
        "transitions": explored.transitions,
        "stopped": explored.search.stopped,
        "holds": explored.holds,
        "listed": listed,
        "broken": [each.name for each in broken],
        "shown": [str(each.counterexample or "never reached") for each in broken],
        "undecided": [each.name for each in (*asked, *found) if each.holds is None],
        "seconds": round(time.monotonic() - began, 1),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", action="store_true", help="search the releases, not `strict`")
    parser.add_argument("--pair-states", type=int, default=1_000_000, help="the limit of each pair")
    parser.add_argument("--max-memory-gib", type=float, default=12.0, help="the limit of each search")
    parser.add_argument("--only", default="", help="searches whose name has this in it")
    parser.add_argument("--seconds", type=float, help="begin no further search after so long; the next run goes on")
    parser.add_argument(
        "--table", type=Path, default=results.NIGHTLY / "searches.json", help="of searches that are over"
    )
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    max_memory_bytes = int(options.max_memory_gib * GIB)
    work = (
        (
            f"{job.name}: {job.bounds}, at most {job.bounds and job.bounds.max_states} states",
            partial(row_of, job, profile, max_memory_bytes),
        )
        for job, profile in (of_releases() if options.releases else of_strict(options.pair_states))
        if options.only in job.name
    )
    source = results.digest_of(distro_model)
    rows, left = results.carried_out(options.table, work, source, text_of, seconds=options.seconds)
    return report(rows, left, as_json=options.json)


def text_of(row: Row) -> str:
    if row["contradiction"]:
        return f"{row['name']}: not searched, {row['contradiction']}"
    end = f"stopped: {row['stopped']}" if row["stopped"] else "whole"
    known = f"; known: {', '.join(row['listed'])}" if row.get("listed") else ""
    broken = f"; BROKEN {', '.join(row['broken'])} ({row['bounds']})" if row["broken"] else ""
    return f"{row['name']}: {row['states']:,} states in {row['seconds']} s, {end}{known}{broken}"


def report(rows: list[Row], left: int, *, as_json: bool) -> int:
    searched = [row for row in rows if not row["contradiction"]]
    broken = [row for row in searched if row["broken"]]
    open_ends = [row for row in searched if row["holds"] is None or row["undecided"]]
    whole = len(searched) - len([row for row in searched if row["stopped"]])
    headline = (
        f"{len(searched)} searches, {whole} whole; {len(broken)} broken, {len(open_ends)} not decided, {left} left"
    )
    named = [f"broken: {text_of(row)}" for row in broken]
    named += [f"not decided: {text_of(row)}; {', '.join(row['undecided'])}" for row in open_ends]
    print(json.dumps({"headline": headline, "named": named}) if as_json else "\n".join([headline, *named]))
    return 1 if broken else 3 if open_ends or left else 0


if __name__ == "__main__":
    sys.exit(main())
