"""What long jobs found, kept where it is committed: one JSON file per table in docs/results, one row by each name.

A job writes a row as soon as it is there and goes on from what it finds, so an interrupted run, or another machine,
takes up where the last one ended. The pages of the documentation are generated from these files (`tools/generate.py`).
What is found, `distrocheck` says, asked as somebody would ask it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "results"
DISTROCHECK = str(Path(sys.executable).with_name("distrocheck"))
Row = Mapping[str, Any]


def asked(*words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document of `distrocheck` with these words; where it prints none, one with its last line."""
    command = [DISTROCHECK, *words, "--json"]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    try:
        return ran.returncode, dict(json.loads(ran.stdout))
    except ValueError:
        return ran.returncode, {"error": (ran.stderr.strip().splitlines() or ["nothing was said"])[-1]}


def kept(table: str) -> dict[str, dict[str, Any]]:
    path = PLACE / f"{table}.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def keep(table: str, name: str, row: Row) -> None:
    """Replaces the row of that name; a line each, and written whole, so that a table is never half there."""
    PLACE.mkdir(parents=True, exist_ok=True)
    rows = {**kept(table), name: row}
    lines = ",\n".join(f"{json.dumps(each)}: {json.dumps(rows[each], sort_keys=True)}" for each in sorted(rows))
    part = PLACE / f"{table}.json.part"
    part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    part.replace(PLACE / f"{table}.json")


def dates(rows: Iterable[Row]) -> str:
    """From when to when they were found."""
    found = sorted(row["date"] for row in rows)
    return f"{found[0]} to {found[-1]}"


def commit() -> str:
    git = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
