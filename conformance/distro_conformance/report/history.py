"""The reports of a folder, one line each: how it went before, what was covered by all of them together.

A line that is cut or foreign is passed over: it costs a mark, never the report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distro_conformance.plain import plain
from distro_conformance.report.document import Report

HISTORY = "history.ndjson"
HISTORY_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Earlier:
    """A report that was written into the same directory before. `score`: of a kill matrix."""

    date: str
    verdict: str
    headline: str
    violations: int | None = None
    score: float | None = None
    page: str = ""
    covered: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Covered:
    """Of the transitions or the guards of the model: how many there are, and which nothing has met so far."""

    name: str
    every: int
    here: int
    merged: int
    missing: tuple[str, ...]
    reports: int


def remember(report: Report, page: Path, score: float | None = None) -> None:
    """Add this report to those of its directory, so that the next one can show how it went before."""
    met = [f"{name}/{key}" for name, counts in report.coverage.items() for key, count in counts.items() if count]
    violations = sum(finding.times for finding in report.violating)
    line = Earlier(report.origin["date"], report.verdict, report.headline, violations, score, page.name, tuple(met))
    with (page.parent / HISTORY).open("a", encoding="utf-8") as file:
        file.write(json.dumps(plain(line)) + "\n")


def earlier_reports(directory: Path) -> tuple[Earlier, ...]:
    """The last ones, oldest first."""
    path = directory / HISTORY
    if not path.is_file():
        return ()
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-HISTORY_SHOWN:]:
        try:
            found.append(Earlier(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return tuple(found)


def covered_by(report: Report, earlier: Sequence[Earlier]) -> tuple[Covered, ...]:
    """What this report and those before it have met, of what this one could meet."""
    before = frozenset[str]().union(*(each.covered for each in earlier))
    reports = sum(bool(each.covered) for each in earlier)
    return tuple(
        Covered(
            name,
            every=len(counts),
            here=sum(bool(count) for count in counts.values()),
            merged=sum(bool(count) or f"{name}/{key}" in before for key, count in counts.items()),
            missing=tuple(key for key, count in counts.items() if not count and f"{name}/{key}" not in before),
            reports=reports + 1,
        )
        for name, counts in report.coverage.items()
    )
