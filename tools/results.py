"""What long jobs found, kept where it is committed: one JSON file per table in docs/results, one row by each name.

`tools/nightly.py` and `tools/matrix.py` write a row as soon as it is there and go on from what they find, so an
interrupted run, or another machine, takes up where the last one ended. The pages of the documentation are generated
from these files (`tools/generate.py`).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "docs" / "results"


def kept(table: str) -> dict[str, dict[str, Any]]:
    path = PLACE / f"{table}.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def keep(table: str, name: str, row: Mapping[str, Any]) -> None:
    """Replaces the row of that name; a line each, and written whole, so that a table is never half there."""
    PLACE.mkdir(parents=True, exist_ok=True)
    rows = {**kept(table), name: row}
    lines = ",\n".join(f"{json.dumps(each)}: {json.dumps(rows[each], sort_keys=True)}" for each in sorted(rows))
    part = PLACE / f"{table}.json.part"
    part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    part.replace(PLACE / f"{table}.json")


def commit() -> str:
    git = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
