"""The ledger of a search that goes on where it was interrupted: a line of NDJSON for each part that is over.

A line counts only while the sources that it was found with are as they were: `digest_of` names them.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

Line = dict[str, Any]
Name = TypeVar("Name")


def digest_of(*packages: ModuleType) -> str:
    """Of every file of them: after a change of any, nothing that was found before counts."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(Path(package.__file__ or "").parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def lines_of(ledger: Path, key: str, digest: str) -> Iterator[Line]:
    """Those that have this digest under `key`. A last line that was cut off is left out, so it is found again."""
    for text in ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else ():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if line[key] == digest:
            yield line


def gone_on(
    ledger: Path,
    known: Mapping[Name, Line],
    work: Iterable[tuple[Name, Callable[[], Line]]],
    seconds: float | None,
    said: Callable[[Line], str],
) -> tuple[list[Line], int]:
    """The line of each piece of work, known or found now and written at once; and how many are left: none is begun
    after `seconds`."""
    began, lines, left = time.monotonic(), list[Line](), 0
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with ledger.open("a", encoding="utf-8") as file:
        for name, find in work:
            line = known.get(name)
            if line is None:
                if seconds is not None and time.monotonic() - began > seconds:
                    left += 1
                    continue
                line = find()
                file.write(json.dumps(line) + "\n")
                file.flush()
                print(said(line), file=sys.stderr)
            lines.append(line)
    return lines, left
