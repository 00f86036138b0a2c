"""Run the jobs that take longer than CI allows, one after the other: `make nightly`.

A job that has ended on this commit is skipped, so an interrupted run continues where it ended (`--again NAME` runs it
all the same). Each job has a budget; a job that exceeds it is stopped and counts as not judged. The rows are kept in
`distrocheck-out/nightly/results.json`, and the table is printed at the end. The last figures that matter to a user
stand in docs/explanation/how-the-kit-is-tested.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import results
from pages.markdown import table
from results import Row

_OVER = -1
_VERDICTS = {0: "conforms", 1: "violates", 3: "inconclusive", 4: "not reached", _OVER: "over its budget"}


@dataclass(frozen=True, slots=True)
class Job:
    """`words`: arguments of `distrocheck`, or a command that starts with `make` or a Python file of this repository."""

    name: str
    text: str
    words: tuple[str, ...]
    minutes: float

    @property
    def command(self) -> list[str]:
        if self.words[0] == "make":
            return list(self.words)
        if self.words[0].endswith(".py"):
            return [sys.executable, *self.words]
        return [results.DISTROCHECK, *self.words, "--json"]


def _gate(target: str, budget: str, minutes: float) -> Job:
    out = f"distrocheck-out/nightly/gate-{target.replace(':', '-')}"
    words = ("gate", "--budget", budget, "--target", target, "--out", out)
    return Job(f"gate {target}", f"the gate, budget {budget}, on {target}", words, minutes)


def _differential(release: str) -> Job:
    words = ("test", "differential", "--target", f"nacos:{release}")
    return Job(f"differential {release}", f"the same scripts on {release} and on a reference node", words, 30)


def _mutants(level: str, minutes: float, *more: str) -> Job:
    words = ("mutants", "run", "--level", level, *more)
    return Job(" ".join(("mutants", level, *more[1:])), f"every mutant is killed at the level {level}", words, minutes)


def _python(version: str) -> Job:
    words = ("make", "test", f"PYTHON=python{version}", f"VENV=.venv-{version}")
    return Job(f"python {version}", f"`make test` on Python {version}", words, 60)


_SOAK = ("bench/soak.py", "--json")


def _repeated(target: str, rounds: int, busy: int) -> Job:
    """Gates with fresh seeds; `busy` programs beside them want a processor each."""
    name = f"repeated {target}{' busy' if busy else ''}"
    words = (*_SOAK, "--target", target, "--rounds", str(rounds), "--minutes", "600", "--busy", str(busy))
    return Job(name, f"{rounds} gates on {target} with fresh seeds, {busy} busy programs beside", words, 240)


def _hour(kind: str, target: str) -> Job:
    words = {"machine": ("test", "node", "--machine"), "walks": ("test", "cluster")}[kind]
    return Job(f"{kind} {target}", f"an hour of random search on {target}", (*words, "--seconds", "3600"), 120)


JOBS: tuple[Job, ...] = (
    *(_python(version) for version in ("3.12", "3.13")),
    _mutants("model", 60),
    Job("tables", "each property after each fault, as docs/reference/faults.md says", ("make", "test-tables"), 240),
    _mutants("node", 120),
    *(_mutants("real", 180, "--target", f"nacos:{release}") for release in ("2.2.4", "2.3.2")),
    _mutants("trace", 60),
    Job("track record", "every bug of the list on the real releases", ("tools/track_record.py",), 120),
    Job(
        "alarms",
        "1,000 simulated runs of every profile with all faults: no unexplained violation",
        ("tools/alarms.py", "--json", "--seconds", "18000"),
        360,
    ),
    Job(
        "searches",
        "`strict` in all pairs of budgets, and in three whole clusters",
        ("tools/searches.py", "--json", "--seconds", "18000"),
        420,
    ),
    Job(
        "release searches",
        "every release with members that stay down, leave or are believed DOWN: no unexplained violation",
        ("tools/searches.py", "--json", "--releases", "--seconds", "7200"),
        180,
    ),
    Job("tours", "every transition of small clusters", ("test", "cluster", "--tours", "--seconds", "3600"), 90),
    Job("sdks", "the official SDKs on reference nodes", ("test", "sdks", "--jobs", "2"), 60),
    *(_differential(release) for release in ("2.0.4", "2.2.4", "2.3.2")),
    _gate("embedded", "nightly", 240),
    *(_gate(f"nacos:{release}", "ci", 60) for release in ("2.0.4", "2.1.1", "2.2.3", "2.2.4", "2.3.2")),
    _repeated("embedded", 20, 2),
    *(_repeated("nacos:2.2.4", 10, busy) for busy in (0, 2)),
    *(_repeated(f"nacos:{release}", 3, busy) for release in ("2.0.4", "2.3.2") for busy in (0, 2)),
    *(_hour(kind, f"nacos:{release}") for kind in ("machine", "walks") for release in ("2.2.4", "2.3.2")),
    Job("soak", "the gate for two hours: no memory, file or process is left behind", (*_SOAK, "--minutes", "120"), 150),
)


TABLE = results.NIGHTLY / "results.json"


def verdict(found: Row) -> str:
    return _VERDICTS.get(found["code"], f"exit code {found['code']}")


def run(job: Job) -> Row:
    print(f"{job.name}: {job.text}, at most {job.minutes:.0f} min", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        ran = subprocess.run(
            job.command, cwd=results.ROOT, check=False, capture_output=True, text=True, timeout=job.minutes * 60
        )
        code, text = ran.returncode, headline_of(ran.stdout) or headline_of(ran.stderr) or "no output"
    except subprocess.TimeoutExpired:
        code, text = _OVER, f"not done after {job.minutes:.0f} min"
    seconds = round(time.monotonic() - began, 1)
    return {"date": results.today(), "code": code, "seconds": seconds, "headline": text}


def headline_of(output: str) -> str:
    """The line that sums up a JSON document; the last line of any other output, empty if there is none."""
    try:
        document = json.loads(output)
    except ValueError:
        return (output.strip().splitlines() or [""])[-1].strip("= ")
    if "bench" in document:
        figures = document["figures"]
        return f"{figures['conform']} of {figures['rounds']} rounds conform; growing: {figures['grows'] or 'nothing'}"
    if "score" in document:
        alive = [each["id"] for each in document["mutants"] if not each["killed"]]
        killed = f"{document['score']:.0%} of {len(document['mutants'])} killed"
        return killed + (f"; alive: {', '.join(alive)}" if alive else "")
    return str(document.get("headline") or document.get("error") or f"{document.get('steps')} steps")


def report(found: Mapping[str, Row]) -> str:
    """A row for each job, also for those that never ran."""
    rows = (_cells(job, found.get(job.name)) for job in JOBS)
    return table("job | what | verdict | headline | time | date | commit", rows)


def _cells(job: Job, found: Row | None) -> tuple[str, ...]:
    if found is None:
        return job.name, job.text, "not run", "", "", "", ""
    headline = found["headline"].replace("|", "/")
    when = found["date"], found.get("source", "")
    return job.name, job.text, verdict(found), headline, f"{found['seconds']:.0f} s", *when


def main() -> int:
    names = [job.name for job in JOBS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=names, help="may be given several times")
    parser.add_argument("--again", action="append", default=[], choices=names)
    options = parser.parse_args()
    jobs = [job for job in JOBS if options.only is None or job.name in options.only]
    rows, _ = results.carried_out(
        TABLE,
        ((job.name, partial(run, job)) for job in jobs),
        results.commit(),
        lambda row: f"  {verdict(row)}: {row['headline']}",
        again=options.again,
    )
    print(report(results.kept(TABLE)))
    return int(any(row["code"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
