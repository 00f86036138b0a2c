"""What is longer than CI allows, one job after the other, resumable: `make nightly`.

A job that has ended on this commit is not run again (`--again NAME` does so all the same). Each job has a budget; one
that runs over it is ended and counts as not judged. What it came to is kept in docs/results, of which docs/nightly.md
is the table: both are committed, whatever was found.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import results
from pages.markdown import table
from results import Row

TABLE = "nightly"
PAGE = results.ROOT / "docs" / "nightly.md"
_OVER = -1
_VERDICTS = {0: "conforms", 1: "violates", 3: "inconclusive", 4: "not reached", _OVER: "over its budget"}


@dataclass(frozen=True, slots=True)
class Job:
    """`words`: of `distrocheck`, or a Python program of this repository."""

    name: str
    text: str
    words: tuple[str, ...]
    minutes: float

    @property
    def command(self) -> list[str]:
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


def _mutants(level: str, minutes: float) -> Job:
    words = ("mutants", "run", "--level", level)
    return Job(f"mutants {level}", f"every mutant is noticed at the level {level}", words, minutes)


def _python(version: str) -> Job:
    return Job(f"python {version}", f"`make test` on Python {version}", ("tools/pythons.py", "--json", version), 60)


_SOAK = ("bench/soak.py", "--json")
_BUSY = (*_SOAK, "--rounds", "20", "--busy", "2")

JOBS: tuple[Job, ...] = (
    *(_python(version) for version in ("3.12", "3.13")),
    _mutants("model", 60),
    Job("mutants node", "every mutant is noticed at the level node", ("tools/matrix.py", "--level", "node"), 120),
    Job(
        "mutants real",
        "every rule file is noticed on a real 2.2.4",
        ("tools/matrix.py", "--level", "real", "--jobs", "2"),
        180,
    ),
    _mutants("trace", 60),
    Job("track record", "every bug of the list on the real releases", ("tools/track_record.py", "--keep"), 120),
    Job(
        "alarms",
        "1,000 simulated runs of every profile with all faults: nothing unexplained",
        ("tools/alarms.py", "--json", "--seconds", "18000"),
        360,
    ),
    Job(
        "recordings",
        "100 recordings of real clusters under drawn faults (2.0.4, 2.2.4, 2.3.2): nothing unexplained",
        ("tools/recordings.py", "--json", "--keep"),
        180,
    ),
    Job(
        "searches",
        "`strict` in all pairs of budgets, and in three clusters whole",
        ("tools/searches.py", "--json", "--seconds", "18000"),
        420,
    ),
    Job("tours", "every transition of small clusters", ("test", "cluster", "--tours", "--seconds", "3600"), 90),
    Job("sdks", "the official SDKs on reference nodes", ("test", "sdks", "--jobs", "2"), 60),
    *(_differential(release) for release in ("2.0.4", "2.2.4", "2.3.2")),
    _gate("embedded", "nightly", 240),
    *(_gate(f"nacos:{release}", "ci", 60) for release in ("2.0.4", "2.1.1", "2.2.3", "2.2.4", "2.3.2")),
    Job("busy", "the gate, 20 fresh seeds beside two busy processes", _BUSY, 240),
    Job("repeats", "20 gates on 2.2.4, 6 on each other, half of them busy", ("tools/repeats.py", "--json"), 360),
    Job(
        "hours",
        "an hour each of machine and walks on 2.2.4 and 2.3.2",
        ("tools/hours.py", "--json", "--jobs", "2"),
        240,
    ),
    Job("soak", "the gate for two hours, and what it leaves behind", (*_SOAK, "--minutes", "120"), 150),
)


def verdict(found: Row) -> str:
    return _VERDICTS.get(found["code"], f"exit code {found['code']}")


def run(job: Job, commit: str) -> Row:
    began = time.monotonic()
    try:
        ran = subprocess.run(
            job.command, cwd=results.ROOT, check=False, capture_output=True, text=True, timeout=job.minutes * 60
        )
        code, text = ran.returncode, headline_of(ran.stdout) or (ran.stderr.strip().splitlines() or ["nothing"])[-1]
    except subprocess.TimeoutExpired:
        code, text = _OVER, f"not done after {job.minutes:.0f} min"
    seconds = round(time.monotonic() - began, 1)
    return {"commit": commit, "date": results.today(), "code": code, "seconds": seconds, "headline": text}


def headline_of(output: str) -> str:
    """The one line of a document that says most; empty where there is no document."""
    try:
        document = json.loads(output)
    except ValueError:
        return ""
    if "bench" in document:
        figures = document["figures"]
        return f"{figures['conform']} of {figures['rounds']} rounds conform; growing: {figures['grows'] or 'nothing'}"
    if "score" in document:
        lives = [each["id"] for each in document["mutants"] if not each["killed"]]
        return f"{document['score']:.0%} of {len(document['mutants'])} killed" + (
            f"; live: {', '.join(lives)}" if lives else ""
        )
    return str(document.get("headline") or document.get("error") or f"{document.get('steps')} steps")


def page() -> str:
    """The last table: a row for each job, those that never ran too."""
    found = results.kept(TABLE)
    rows = (_cells(job, found.get(job.name)) for job in JOBS)
    return _HEAD + table("job | what | verdict | it says | time | date | commit", rows) + "\n"


def _cells(job: Job, found: Row | None) -> tuple[str, ...]:
    if found is None:
        return job.name, job.text, "not run", "", "", "", ""
    told = found["headline"].replace("|", "/")
    return job.name, job.text, verdict(found), told, f"{found['seconds']:.0f} s", found["date"], found["commit"]


_HEAD = """\
# Nightly

What is longer than CI allows. `make nightly` runs it, goes on where it was interrupted, and writes this table:
each row with the date and the commit of its last run.

"""


def keep(job: str, found: Row) -> None:
    results.keep(TABLE, job, found)
    PAGE.write_text(page(), encoding="utf-8")


def due(jobs: Sequence[Job], found: Mapping[str, Row], commit: str, again: Sequence[str]) -> list[Job]:
    """Those that have not ended on this commit, and those that are wanted again."""
    return [job for job in jobs if job.name in again or found.get(job.name, {}).get("commit") != commit]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--only", action="append", choices=[job.name for job in JOBS], help="may be given several times"
    )
    parser.add_argument("--again", action="append", default=[], choices=[job.name for job in JOBS])
    options = parser.parse_args()
    commit, found = results.commit(), results.kept(TABLE)
    jobs = [job for job in JOBS if options.only is None or job.name in options.only]
    for job in due(jobs, found, commit, options.again):
        print(f"{job.name}: {job.text}, at most {job.minutes:.0f} min", flush=True)
        ended = found[job.name] = dict(run(job, commit))
        keep(job.name, ended)
        print(f"  {verdict(ended)}: {ended['headline']}", flush=True)
    return int(any(found[job.name]["code"] for job in jobs if job.name in found))


if __name__ == "__main__":
    sys.exit(main())
