"""The kill matrix of one level, mutant by mutant: docs/results, and `docs/matrix-node.md`, `docs/matrix-real.md` of it.

A mutant that was judged on this commit is not judged again, so an interrupted run is gone on with; `--kept` takes what
other commits found too. Each is judged by a `distrocheck` of its own, `--jobs` at a time. The page says of each when
and on which commit it was made.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import results

from distro_conformance.mutation.matrix import mutants_of

RELEASES = {"node": ("",), "real": ("nacos:2.2.4", "nacos:2.3.2")}
"""Of each level the targets that its page has a table for."""
_HOW = {
    "node": "One reference node with the mutant, held against the requirements; where none fails, three in lockstep.",
    "real": (
        "A real server into which rules of Byteman are read (`conformance/distro_conformance/targets/rules`), held\n"
        "against the requirements; those that start a server of their own only where no other one fails. Rules that\n"
        "never fired leave the question open. A row names all that failed: on a machine that is too busy these are\n"
        "also requirements that were only late."
    ),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What `distrocheck mutants run` said of one mutant."""

    id: str
    killed: bool
    killed_by: Sequence[str]
    seconds: float
    steps: int | None
    fired: int | None
    reason: str
    date: str
    commit: str


def judge(level: str, target: str, mutant: str, commit: str) -> Row:
    """Raises RuntimeError when there is no answer."""
    words = [
        "mutants",
        "run",
        "--level",
        level,
        "--mutant",
        mutant,
        "--json",
        *(("--target", target) if target else ()),
    ]
    command = [str(Path(sys.executable).with_name("distrocheck")), *words]
    ran = subprocess.run(command, cwd=results.ROOT, check=False, capture_output=True, text=True)
    try:
        (found,) = json.loads(ran.stdout)["mutants"]
    except (ValueError, KeyError):
        raise RuntimeError(f"{mutant}: {(ran.stdout or ran.stderr).strip()[-300:]}") from None
    names = ("killed", "killed_by", "seconds", "steps", "fired", "reason")
    return Row(mutant, date=results.today(), commit=commit, **{name: found[name] for name in names})


def table(level: str, target: str) -> str:
    """The name of its results."""
    return f"matrix-{level}{'-' if target else ''}{target.removeprefix('nacos:')}"


def kept(level: str, target: str) -> dict[str, Row]:
    return {name: Row(name, **row) for name, row in results.kept(table(level, target)).items()}


def keep(level: str, target: str, row: Row) -> None:
    results.keep(table(level, target), row.id, {name: value for name, value in asdict(row).items() if name != "id"})


def pages() -> Iterator[tuple[str, str]]:
    """Name and text, from what is kept."""
    for level, targets in RELEASES.items():
        yield f"matrix-{level}.md", page(level, {each: kept(level, each) for each in targets}, mutants_of(level))


def page(level: str, tables: Mapping[str, Mapping[str, Row]], mutants: Sequence[str]) -> str:
    """Per target its table, a row for each mutant; what was not judged says so."""
    lines = [f"# Kill matrix: {level}", "", *_HOW[level].splitlines()]
    lines += [f"Written by `python tools/matrix.py --level {level}`."]
    for target, rows in tables.items():
        judged = [rows[name] for name in mutants if name in rows]
        lines += ["", f"## {target}"] if target else []
        lines += ["", headline(judged, len(mutants)), ""]
        lines += ["| mutant | killed by | seconds | rules fired | date | commit |", "|---|---|---|---|---|---|"]
        lines += [f"| {' | '.join(_cells(name, rows.get(name)))} |" for name in mutants]
    return "\n".join(lines) + "\n"


def headline(judged: Sequence[Row], of: int) -> str:
    if not judged:
        return f"Not run; {of} mutants."
    seconds, killed = [row.seconds for row in judged], sum(row.killed for row in judged)
    times = f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s"
    return f"{len(judged)} of {of} judged, {killed} killed; {times}, beside whatever else the machine did."


def _cells(name: str, row: Row | None) -> tuple[str, ...]:
    if row is None:
        return name, "not run", "", "", "", ""
    by = ", ".join(row.killed_by) if row.killed else f"**{row.reason}**".replace("|", "/")
    steps = f" in {row.steps} steps" if row.steps is not None else ""
    fired = "" if row.fired is None else str(row.fired)
    return name, by + steps, f"{row.seconds:.1f}", fired, row.date, row.commit


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
    commit = results.commit()
    rows, failures = kept(level, target), 0
    chosen = [name for name in mutants_of(level) if name in (options.mutant or mutants_of(level))]
    due = [name for name in chosen if name not in rows or not (options.kept or rows[name].commit == commit)]
    with ThreadPoolExecutor(options.jobs) as pool:
        for ended in [pool.submit(judge, level, target, name, commit) for name in due]:
            try:
                row = ended.result()
            except RuntimeError as error:
                failures += 1
                print(error, file=sys.stderr, flush=True)
                continue
            keep(level, target, row)
            print(f"{row.id}: {', '.join(row.killed_by) or row.reason}", file=sys.stderr, flush=True)
    for file, text in pages():
        (results.ROOT / "docs" / file).write_text(text, encoding="utf-8")
    rows = kept(level, target)
    judged = [rows[name] for name in chosen if name in rows]
    killed = sum(row.killed for row in judged)
    print(json.dumps({"score": killed / len(chosen), "mutants": [asdict(row) for row in judged]}))
    return int(killed < len(chosen) or failures > 0)


if __name__ == "__main__":
    sys.exit(main())
