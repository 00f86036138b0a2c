"""The reports of a folder, one line each: how it went before, what was covered by all of them together.

A line that is cut or foreign is passed over: it costs a mark, never the report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    covered: frozenset[str] = frozenset()


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
    line = {
        "date": report.origin["date"],
        "verdict": report.verdict.value,
        "headline": report.headline,
        "violations": sum(finding.times for finding in report.news),
        "score": score,
        "page": page.name,
        "covered": met,
    }
    with (page.parent / HISTORY).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def earlier_reports(directory: Path) -> tuple[Earlier, ...]:
    """The last ones, oldest first."""
    path = directory / HISTORY
    if not path.is_file():
        return ()
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-HISTORY_SHOWN:]:
        try:
            found.append(_earlier(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def _earlier(values: Any) -> Earlier:
    return Earlier(
        values["date"],
        values["verdict"],
        values["headline"],
        values.get("violations"),
        values.get("score"),
        values.get("page", ""),
        frozenset(values.get("covered", ())),
    )


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
