"""The differences that are listed: for each release that was compared, a file with a row for every one of them, and
`deviations.toml` with why they stay. A difference without a row fails a run, and so does a row that a release no longer
shows: then either the node has changed, or the scripts no longer observe it.

A row has both sides of a difference, the answer of the real server and that of the reference node, so that no other
difference passes under its name. A value that two runs of a real server do not share is the word VARIES there; a row
with nothing else on the real side need not show. `test differential --accept ID` writes the files; they are reviewed
before they are committed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from distro_conformance.plain import plain
from distro_interop.differential.compare import Difference

_DIRECTORY = Path(__file__).resolve().parent / "listed"
_REASONS = tomllib.loads(_DIRECTORY.with_name("deviations.toml").read_text("utf-8"))
DEVIATIONS: Mapping[str, str] = {name: " ".join(why.split()) for name, why in _REASONS.items()}
"""Why the differences of one kind stay, by the name under which rows are listed."""
VARIES = "{varies}"


@dataclass(frozen=True, slots=True)
class Listed:
    """One row: a difference, and the deviation that is the reason for it."""

    deviation: str
    difference: Difference

    def explains(self, found: Difference) -> bool:
        """Whether it has the same values; `found` is of the same script, step and field."""
        return _same(self.difference.real, found.real) and _same(self.difference.ours, found.ours)


Listing = Mapping[tuple[str, str, str], Listed]
"""By script, step and field."""


def releases() -> tuple[str, ...]:
    """Those that were compared."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.ndjson")))


def listing(profile: str) -> Listing:
    """The rows of the release that a profile stands for; a release that was never compared has nothing listed."""
    return _read(_path(profile))


@cache
def _read(path: Path) -> Listing:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    listed = [Listed(row.pop("deviation"), Difference(**row)) for row in rows]
    return {each.difference.key: each for each in listed}


def accept(profile: str, deviation: str, found: Iterable[Difference], gone: Iterable[Difference]) -> None:
    """List the found differences under that deviation, and remove those that are gone."""
    path = _path(profile)
    kept = dict(_read(path))
    for each in gone:
        kept.pop(each.key, None)
    for each in found:
        before = kept.get(each.key)
        kept[each.key] = Listed(before.deviation if before else deviation, each)
    path.parent.mkdir(exist_ok=True)
    rows = sorted(kept.values(), key=lambda each: (each.deviation, each.difference.key))
    lines = (json.dumps({"deviation": each.deviation, **plain(each.difference)}, ensure_ascii=False) for each in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _read.cache_clear()


def _path(profile: str) -> Path:
    return _DIRECTORY / f"{profile.removeprefix('nacos-')}.ndjson"


def _same(listed: Any, found: Any) -> bool:
    """VARIES equals any value; 1, 1.0 and true are three things."""
    if listed == VARIES:
        return True
    if isinstance(listed, dict) and isinstance(found, dict):
        return listed.keys() == found.keys() and all(_same(listed[key], found[key]) for key in listed)
    if isinstance(listed, list) and isinstance(found, list):
        return len(listed) == len(found) and all(map(_same, listed, found))
    return type(listed) is type(found) and bool(listed == found)
