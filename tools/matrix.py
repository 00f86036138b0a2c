"""The kill matrix of one level, mutant by mutant: docs/results, and `docs/matrix-node.md`, `docs/matrix-real.md` of it.

A mutant that was judged on this commit is not judged again, so an interrupted run is gone on with; `--kept` takes what
other commits found too. Each is judged by a `distrocheck` of its own, `--jobs` at a time. The page says of each when
and on which commit it was made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import results
from pages.markdown import table
from results import Row

from distro_conformance.mutation.matrix import mutants_of

RELEASES = {"node": ("",), "real": ("nacos:2.2.4", "nacos:2.3.2")}
"""Of each level the targets that its page has a table for."""
_HOW = {
    "node": "One reference node with the mutant, held against the requirements; where none fails, three in lockstep.",
    "real": (
        "A real server into which rules of Byteman are read (`conformance/distro_conformance/targets/byteman`), held\n"
        "against the requirements; those that start a server of their own only where no other one fails. Rules that\n"
        "never fired leave the question open. A row names all that failed: on a machine that is too busy these are\n"
        "also requirements that were only late."
    ),
}


def judge(level: str, target: str, mutant: str, commit: str) -> Row:
    """What `distrocheck mutants run` says of one mutant. Raises RuntimeError when there is no answer."""
    of_target = ("--target", target) if target else ()
    _, document = results.asked("mutants", "run", "--level", level, "--mutant", mutant, *of_target)
    if "error" in document:
        raise RuntimeError(f"{mutant}: {document['error']}")
    (found,) = document["mutants"]
    names = ("killed", "killed_by", "seconds", "steps", "fired", "reason")
    return {**{name: found[name] for name in names}, "date": results.today(), "commit": commit}


def table_of(level: str, target: str) -> str:
    """The name of its results."""
    return f"matrix-{level}{'-' if target else ''}{target.removeprefix('nacos:')}"


def pages() -> Iterator[tuple[str, str]]:
    """Name and text, from what is kept."""
    for level, targets in RELEASES.items():
        tables = {each: results.kept(table_of(level, each)) for each in targets}
        yield f"matrix-{level}.md", page(level, tables, mutants_of(level))


def page(level: str, tables: Mapping[str, Mapping[str, Row]], mutants: Sequence[str]) -> str:
    """Per target its table, a row for each mutant; what was not judged says so."""
    lines = [f"# Kill matrix: {level}", "", *_HOW[level].splitlines()]
    lines += [f"Written by `python tools/matrix.py --level {level}`."]
    for target, rows in tables.items():
        judged = [rows[name] for name in mutants if name in rows]
        lines += ["", f"## {target}"] if target else []
        lines += ["", headline(judged, len(mutants)), ""]
        cells = (_cells(name, rows.get(name)) for name in mutants)
        lines += [table("mutant | killed by | seconds | rules fired | date | commit", cells)]
    return "\n".join(lines) + "\n"


def headline(judged: Sequence[Row], of: int) -> str:
    if not judged:
        return f"Not run; {of} mutants."
    seconds, killed = [row["seconds"] for row in judged], sum(row["killed"] for row in judged)
    times = f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s"
    return f"{len(judged)} of {of} judged, {killed} killed; {times}, beside whatever else the machine did."


def _cells(name: str, row: Row | None) -> tuple[str, ...]:
    if row is None:
        return name, "not run", "", "", "", ""
    by = ", ".join(row["killed_by"]) if row["killed"] else f"**{row['reason']}**".replace("|", "/")
    steps = f" in {row['steps']} steps" if row["steps"] is not None else ""
    fired = "" if row["fired"] is None else str(row["fired"])
    return name, by + steps, f"{row['seconds']:.1f}", fired, row["date"], row["commit"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--level", choices=sorted(RELEASES), required=True)
    parser.add_argument("--target", help="one of those that the page has a table for; default: the first")
    parser.add_argument("--mutant", action="append", help="only this one; may be given several times")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kept", action="store_true", help="take what other commits found, too")
    options = parser.parse_args()
    level, target = options.level, options.target or RELEASES[options.level][0]
    if target not in RELEASES[level]:
        parser.error(f"--target is one of {', '.join(RELEASES[level])}")
    commit, kept_in = results.commit(), table_of(level, target)
    rows, failures = results.kept(kept_in), 0
    chosen = [name for name in mutants_of(level) if name in (options.mutant or mutants_of(level))]
    due = [name for name in chosen if name not in rows or not (options.kept or rows[name]["commit"] == commit)]
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, ended in [(name, pool.submit(judge, level, target, name, commit)) for name in due]:
            try:
                row = ended.result()
            except RuntimeError as error:
                failures += 1
                print(error, file=sys.stderr, flush=True)
                continue
            results.keep(kept_in, name, row)
            print(f"{name}: {', '.join(row['killed_by']) or row['reason']}", file=sys.stderr, flush=True)
    for file, text in pages():
        (results.ROOT / "docs" / file).write_text(text, encoding="utf-8")
    rows = results.kept(kept_in)
    judged = [{"id": name, **rows[name]} for name in chosen if name in rows]
    killed = sum(row["killed"] for row in judged)
    print(json.dumps({"score": killed / len(chosen), "mutants": judged}))
    return int(killed < len(chosen) or failures > 0)


if __name__ == "__main__":
    sys.exit(main())
