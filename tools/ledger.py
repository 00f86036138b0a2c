"""The ledger of a search that goes on where it was interrupted: a line of NDJSON for each part that is over.

A line counts only while the sources that it was found with are as they were: `digest_of` names them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

Line = dict[str, Any]


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
