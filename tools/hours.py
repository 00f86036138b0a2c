"""Hours of random search on real servers, each part with a fresh seed: a job of `make nightly`.

One node among played members beside the model (`test node --machine`), and clusters of three under drawn faults, which
have to agree in the end (`test cluster`). Each part is kept in docs/results as soon as it is over, so that the hours
add up over machines and commits; docs/hours.md is the table. A part that found something stays undecided until somebody
has read it and said what it is (`--decide`). Exit codes as everywhere: 1 something is undecided, 3 minutes are left, 0
neither.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import results
from pages.markdown import table
from results import Row

TABLE, COVERAGE = "hours", "coverage"
Search = tuple[str, str]
"""What is searched, and on which target."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "machine": ("test", "node", "--machine", "--seconds", "150"),
    "walks": ("test", "cluster", "--seconds", "300"),
}
"""A part: as long as the runs of the machine, all of which are done side by side, take; some walks on one cluster."""

TARGETS = ("nacos:2.2.4", "nacos:2.3.2")
SEARCHES: tuple[Search, ...] = tuple((kind, target) for kind in WORDS for target in TARGETS)
WANTED_S = 3_600
REFUSED_MAX = 3
"""A search that could not begin so often, one time after the other, is left out."""
KEPT_BELOW = Path("distrocheck-out/nightly/hours")
"""The scenarios, tests and recordings of what was found."""


def searched_s(rows: Sequence[Row], search: Search) -> float:
    return float(sum(row["seconds"] for row in rows if (row["kind"], row["target"]) == search))


def due(rows: Sequence[Row], searches: Sequence[Search], running: Sequence[Search] = ()) -> Search | None:
    """The one that was searched for the shortest time, of those that nobody searches now; None when all have theirs."""
    left = [each for each in searches if each not in running and searched_s(rows, each) < WANTED_S]
    return min(left, key=lambda each: searched_s(rows, each), default=None)


def once(search: Search) -> dict[str, Any]:
    """One part, as somebody runs it."""
    kind, target = search
    out = KEPT_BELOW / f"{kind}-{target.replace(':', '-')}"
    code, document = results.asked(*WORDS[kind], "--target", target, "--out", str(out))
    failure = document.get("failure") or {}
    return {
        "kind": kind,
        "target": target,
        "seed": document.get("seed"),
        "code": code,
        "seconds": document.get("seconds", 0),
        "steps": document.get("steps", 0),
        "runs": document.get("runs", 0),
        "found": failure.get("message") or document.get("error", ""),
        "known": sorted({each["known"] for each in document.get("findings", ()) if each.get("known")}),
        "decided": "",
        "coverage": document.get("coverage", {}),
        "commit": results.commit(),
        "date": results.today(),
    }


def run(rows: Sequence[Row], searches: Sequence[Search], jobs: int, seconds: float | None) -> Iterator[Row]:
    """Yields each part as it ends; begins none after `seconds`."""
    began, done, refused = time.monotonic(), list(rows), Counter[Search]()
    running: dict[Future[dict[str, Any]], Search] = {}
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            is_late = seconds is not None and time.monotonic() - began > seconds
            while not is_late and len(running) < jobs and (search := due(done, searches, tuple(running.values()))):
                running[pool.submit(once, search)] = search
            if not running:
                return
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                search, row = running.pop(ended), ended.result()
                yield row
                if not row["seconds"]:  # nothing was searched: a port was taken, or there is no Maven
                    refused[search] += 1
                    searches = [each for each in searches if refused[each] < REFUSED_MAX]
                    continue
                refused[search] = 0
                keep_coverage(row["kind"], row.pop("coverage"))
                results.keep(TABLE, key_of(row), row)
                done.append(row)


def keep_coverage(kind: str, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Added to what all parts of that kind met before; what is gone from the model goes."""
    before = results.kept(COVERAGE)
    for of, met in counts.items():
        name = f"{kind}: {of}"
        results.keep(COVERAGE, name, {each: count + before.get(name, {}).get(each, 0) for each, count in met.items()})


def key_of(row: Row) -> str:
    return f"{row['kind']} {row['target']} {row['seed']}"


def page() -> str:
    """The table, and every part that did not conform with what it turned out to be."""
    rows = list(results.kept(TABLE).values())
    told = []
    for kind, target in sorted({(row["kind"], row["target"]) for row in rows}):
        these = [row for row in rows if (row["kind"], row["target"]) == (kind, target)]
        minutes, found = searched_s(these, (kind, target)) / 60, sum(bool(row["code"]) for row in these)
        totals = [str(sum(row[name] for row in these)) for name in ("runs", "steps")]
        told.append((kind, target, f"{minutes:.0f}", str(len(these)), *totals, str(found), results.dates(these)))
    lines = [_HEAD, table("search | target | minutes | parts | runs | steps | not conforming | when", told)]
    known = Counter((row["target"], bug) for row in rows for bug in row.get("known", ()))
    for (target, bug), parts in sorted(known.items()):
        lines += ["", f"* {target}: {bug}, which is listed, in {parts} part{'s' * (parts > 1)}"]
    for row in sorted((row for row in rows if row["code"]), key=lambda row: (row["date"], key_of(row))):
        decided = row["decided"] or "**not decided yet**"
        lines += ["", f"* {key_of(row)}, {row['commit']}: {_one_line(row['found'])}", "", f"    {decided}"]
    lines += ["", "## What all parts met together", ""] if results.kept(COVERAGE) else []
    for name, counts in results.kept(COVERAGE).items():
        never = ", ".join(each for each, count in counts.items() if not count)
        lines.append(
            f"* {name}: {sum(map(bool, counts.values()))} of {len(counts)}; {f'never: {never}' if never else 'all'}"
        )
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    """As a quotation of code: a message may hold what Markdown reads as its own."""
    whole = " ".join(text.split()).replace("`", "'")
    return f"`{whole}`"


_HEAD = """\
# Hours of search

Random searches on real servers, each part with a fresh seed (`python tools/hours.py`): one node among played
members beside the model (`machine`), and three servers under drawn faults, which must agree in the end
(`walks`). Each part that found something is told of below the table, with what it turned out to be.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=sorted(WORDS), help="may be given several times")
    parser.add_argument("--target", action="append", choices=TARGETS, help="may be given several times")
    parser.add_argument("--jobs", type=int, default=1, help="side by side: most of the time they wait")
    parser.add_argument("--seconds", type=float, help="begin no further part after so long; the next time goes on")
    parser.add_argument("--decide", nargs=2, metavar=("PART", "WHAT"), help="say what a part of the table has found")
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    options = parser.parse_args(arguments)
    if options.decide:
        part, what = options.decide
        if part not in results.kept(TABLE):
            parser.error(f"there is no part '{part}' in the table")
        results.keep(TABLE, part, {**results.kept(TABLE)[part], "decided": what})
    chosen = [
        (kind, target)
        for kind, target in SEARCHES
        if kind in (options.kind or WORDS) and target in (options.target or TARGETS)
    ]
    rows: list[Row] = list(results.kept(TABLE).values())
    for row in () if options.decide else run(rows, chosen, options.jobs, options.seconds):
        said = row["found"] or "conforms"
        print(f"{key_of(row)}: {row['steps']} steps, {row['seconds']} s: {said}", file=sys.stderr, flush=True)
        rows.append(row)
    return told(list(results.kept(TABLE).values()), chosen, as_json=options.json)


def is_open(row: Row) -> bool:
    """Nobody has read it, or whoever did says why it stays open."""
    return not row["decided"] or row["decided"].startswith("open: ")


def told(rows: Sequence[Row], searches: Sequence[Search], *, as_json: bool) -> int:
    these = [row for row in rows if (row["kind"], row["target"]) in searches]
    undecided = [key_of(row) for row in these if row["code"] and is_open(row)]
    left_s = sum(max(0.0, WANTED_S - searched_s(these, each)) for each in searches)
    done_s = sum(row["seconds"] for row in these)
    headline = f"{done_s / 60:.0f} min searched, {len(undecided)} findings undecided; {left_s / 60:.0f} min left"
    print(json.dumps({"headline": headline, "undecided": undecided}) if as_json else headline)
    return 1 if undecided else 3 if left_s else 0


if __name__ == "__main__":
    sys.exit(main())
