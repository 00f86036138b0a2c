"""Results of long work: one JSON file per table, one row for each name.

A program writes each row as soon as it has it and skips rows that it already has, so an interrupted run continues where
it ended. `make nightly` and its searches keep their rows below `distrocheck-out/nightly`, which is not committed; the
track record is a page of the documentation, so its rows are committed beside it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NIGHTLY = ROOT / "distrocheck-out" / "nightly"
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


def carried_out(
    table: Path,
    work: Iterable[tuple[str, Callable[[], Row]]],
    source: str,
    text_of: Callable[[Row], str],
    *,
    seconds: float | None = None,
    again: Collection[str] = (),
) -> tuple[list[Row], int]:
    """The row of each piece of work, and how many pieces are left: none is begun after `seconds`.

    A kept row counts while its source, a commit or a digest, is the same, unless its work is to be done `again`.
    """
    began, rows, left = time.monotonic(), list[Row](), 0
    known = {name: row for name, row in kept(table).items() if row.get("source") == source and name not in again}
    for name, find in work:
        row: Row | None = known.get(name)
        if row is None:
            if seconds is not None and time.monotonic() - began > seconds:
                left += 1
                continue
            row = {**find(), "source": source}
            keep(table, name, row)
            print(text_of(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows, left


def digest_of(*packages: ModuleType) -> str:
    """Of every file of them: after a change of any, nothing that was found before counts."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(Path(package.__file__ or "").parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def commit() -> str:
    git = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
