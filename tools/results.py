"""Results of long jobs: one JSON file per table, one row for each name.

A job writes each row as soon as it has it and skips rows that it already has, so an interrupted run continues where it
ended. `make nightly` keeps its rows below `distrocheck-out/nightly`, which is not committed; the track record is a page
of the documentation, so its rows are committed beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NIGHTLY = ROOT / "distrocheck-out" / "nightly" / "results.json"
TRACK_RECORD = ROOT / "docs" / "reference" / "track-record.json"
DISTROCHECK = str(Path(sys.executable).with_name("distrocheck"))
Row = Mapping[str, Any]


def asked(*words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON document of `distrocheck`; a document with its last line where it printed none."""
    command = [DISTROCHECK, *words, "--json"]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    try:
        return ran.returncode, dict(json.loads(ran.stdout))
    except ValueError:
        return ran.returncode, {"error": (ran.stderr.strip().splitlines() or ["no output"])[-1]}


def kept(table: Path) -> dict[str, dict[str, Any]]:
    return dict(json.loads(table.read_text("utf-8"))) if table.exists() else {}


def keep(table: Path, name: str, row: Row) -> None:
    """Replace the row of that name. The file is replaced as a whole, so a reader never sees half of it."""
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = {**kept(table), name: row}
    lines = ",\n".join(f"{json.dumps(each)}: {json.dumps(rows[each], sort_keys=True)}" for each in sorted(rows))
    part = table.with_suffix(".part")
    part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    part.replace(table)


def commit() -> str:
    git = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
