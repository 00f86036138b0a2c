"""The gate again and again, each time with a fresh seed: how often a verdict is wrong. A job of `make nightly`.

A conforming server must conform every time, also where other programs want the cores: whatever else a run says is a
false alarm, or it is news. A run that stays open is neither, and does not count. Each run is kept in docs/results as
soon as it is there, with its seed, its commit and how much the machine had to do, and not made again; docs/repeats.md
is the table. Whoever mends a false alarm counts from there (`--anew`): the runs before were judged by another kit, and
are kept as that. Exit codes as everywhere: 1 a run violates, 3 runs are left, 0 neither.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import results
from busy import others
from pages.markdown import table
from results import Row

from distro_conformance.doctor import usable_cores

TABLE = "repeats"
WANTED: Mapping[str, int] = {
    "nacos:2.2.4": 20,
    **dict.fromkeys(("nacos:2.0.4", "nacos:2.1.1", "nacos:2.2.3", "nacos:2.3.2"), 6),
}
"""Runs of each target, half of them on a busy machine."""

CONFORMS, OPEN = 0, 3
_LOOK_S = 5.0
"""So often the kernel is asked how many programs want to run; it tells the average of a minute."""
BUSY_LOAD = 2.0
"""A machine is busy when so many other programs want each of its cores."""
_CALM_WITHIN_S = 180.0


def left(rows: Sequence[Row], wanted: Mapping[str, int]) -> list[tuple[str, bool]]:
    """What is still to be run: the target, and whether on a busy machine. One run of each target comes first."""
    found = []
    for target, runs in wanted.items():
        for busy, of_these in ((False, runs // 2), (True, runs - runs // 2)):
            done = [row for row in rows if row["target"] == target and row["code"] != OPEN]
            there = sum(is_busy(row) == busy for row in done)
            found += [(number, target, busy) for number in range(there, of_these)]
    return [(target, busy) for _, target, busy in sorted(found, key=lambda each: each[0])]


def counts(row: Row) -> bool:
    """Whether the kit that judged the run is the one of today, as far as false alarms go."""
    return not row.get("before_mending")


def begin_anew() -> None:
    """The kit has been mended: no run until now counts any more, and none is lost."""
    for name, row in results.kept(TABLE).items():
        results.keep(TABLE, name, {**row, "before_mending": True})


def is_busy(row: Row) -> bool:
    """Older runs do not say so themselves, and were made beside each other. A gate's own servers are no others."""
    return bool(row.get("busy", row["load_per_core"] >= BUSY_LOAD))


def once(target: str, budget: str) -> dict[str, Any]:
    """One gate, as somebody runs it."""
    began = time.monotonic()
    measured = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="repeats-") as out:
        command = [results.DISTROCHECK, "gate", "--target", target, "--budget", budget, "--out", out, "--json"]
        gate = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        printed = None
        while printed is None:
            try:
                printed = gate.communicate(timeout=_LOOK_S)[0]
            except subprocess.TimeoutExpired:
                measured.append(os.getloadavg()[0])
    document = json.loads(printed)
    return {
        "target": target,
        "seed": document.get("seed"),
        "code": gate.returncode,
        "headline": document.get("headline") or document.get("error"),
        "why": list(_why(document)),
        "seconds": round(time.monotonic() - began),
        "load_per_core": round(sum(measured) / len(measured) / usable_cores(), 1),
        "commit": results.commit(),
        "date": results.today(),
    }


def _why(document: Mapping[str, Any]) -> Iterator[str]:
    """Each stage that does not conform, and each requirement or invariant that is violated or stays open."""
    for stage in document.get("stages", ()):
        if stage["verdict"] != "conforms":
            yield f"{stage['name']} {stage['verdict']}: {stage['summary']}"
    for found in document.get("findings", ()):
        if found["verdict"] in ("violates", "not-judged"):
            yield f"{found['id']} {found['verdict']}: {found['message']}"


def is_calm(within_s: float, look: Callable[[], float] = lambda: os.getloadavg()[0], look_s: float = _LOOK_S) -> bool:
    """Whether the machine comes to rest in time: the run before may just have ended."""
    until = time.monotonic() + within_s
    while look() >= BUSY_LOAD * usable_cores():
        if time.monotonic() >= until:
            return False
        time.sleep(look_s)
    return True


def run(todo: Sequence[tuple[str, bool]], budget: str, seconds: float | None) -> Iterator[Row]:
    """Yields each run as it ends; begins none after `seconds`."""
    began = time.monotonic()
    for target, busy in todo:
        if seconds is not None and time.monotonic() - began > seconds:
            return
        is_beside_others = busy or not is_calm(_CALM_WITHIN_S)
        with others(math.ceil(BUSY_LOAD * usable_cores()) if busy else 0):
            row = {**once(target, budget), "busy": is_beside_others}
        results.keep(TABLE, f"{row['target']} {row['seed']}", row)
        yield row


def page() -> str:
    """Of each target how many runs conform at leisure and on a busy machine, and every run that does not; then the
    same of the runs before the kit was mended."""
    rows = list(results.kept(TABLE).values())
    told = [_HEAD, _table([row for row in rows if counts(row)])]
    if before := [row for row in rows if not counts(row)]:
        told += ["", _BEFORE, _table(before)]
    return "\n".join(told) + "\n"


def _table(rows: Sequence[Row]) -> str:
    cells = []
    for target in sorted({row["target"] for row in rows}):
        of_target = [row for row in rows if row["target"] == target]
        leisure, busy = (_conform([row for row in of_target if is_busy(row) == busy]) for busy in (False, True))
        cells.append([target, leisure, busy, results.dates(of_target)])
    lines = [table("target | at leisure | busy | when", cells)]
    told = [row for row in rows if row["code"] or row["why"]]
    for row in sorted(told, key=lambda row: (row["date"], row["target"])):
        why = "; ".join(row["why"]) or row["headline"]
        lines += ["", f"* {row['target']}, seed {row['seed']}, load {row['load_per_core']}, {row['commit']}: {why}"]
    return "\n".join(lines)


def _conform(rows: Sequence[Row]) -> str:
    conform, stay_open = (sum(row["code"] == code for row in rows) for code in (CONFORMS, OPEN))
    return f"{conform} of {len(rows)}" + (f", {stay_open} open" if stay_open else "")


_HEAD = """\
# Again and again

The gate on real servers, each time with a fresh seed (`python tools/repeats.py`): a server that conforms has to
conform every time. Busy is a machine on which at least two other programs want each core while the gate runs; at
leisure nothing runs beside it. Whatever a run found is written below the table; a SHOULD that is violated leaves it
conforming.
"""
_BEFORE = """\
## Before the kit was last mended

These runs do not count for the kit of today: some of them are how its false alarms were found.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=sorted(WANTED), help="may be given several times")
    parser.add_argument("--budget", default="quick")
    parser.add_argument("--seconds", type=float, help="begin no further run after so long; the next time goes on")
    parser.add_argument("--anew", action="store_true", help="the kit was mended: count from here, and run nothing")
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    wanted = {target: WANTED[target] for target in options.target or WANTED}
    if options.anew:
        begin_anew()
    rows: list[Row] = [row for row in results.kept(TABLE).values() if counts(row)]
    todo = [] if options.anew else left(rows, wanted)
    for row in run(todo, options.budget, options.seconds):
        print(f"{row['headline']} ({row['seconds']} s, load {row['load_per_core']})", file=sys.stderr, flush=True)
        rows.append(row)
    return told([row for row in rows if row["target"] in wanted], len(left(rows, wanted)), as_json=options.json)


def told(rows: Sequence[Row], runs_left: int, *, as_json: bool) -> int:
    wrong = [row for row in rows if row["code"] not in (CONFORMS, OPEN)]
    conform, stay_open = (sum(row["code"] == code for row in rows) for code in (CONFORMS, OPEN))
    headline = f"{conform} of {len(rows)} runs conform, {stay_open} stay open; {runs_left} left"
    print(json.dumps({"headline": headline, "wrong": [row["headline"] for row in wrong]}) if as_json else headline)
    return 1 if wrong else 3 if runs_left else 0


if __name__ == "__main__":
    sys.exit(main())
