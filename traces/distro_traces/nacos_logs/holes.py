"""Missing rotated files of a log, whose records are unknown.

Servers rotate their logs, and often a file was deleted, forgotten or cannot be read. Two signs show it: a number is
missing in the file names (`.1`, `.3`), or, where names have no consecutive numbers, the pause between two files is
longer than any pause between two records within them. In both cases nothing is concluded from missing records in that
time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from distro_traces.nacos_logs.records import Part

_PAUSE_MS = 10_000
"""A shorter pause between two files is no hole."""
_MANY = 50
_NUMBER = re.compile(
    r"(?:[._-](?P<date>\d{4}-?\d\d-?\d\d)[._T-]?)?(?:\.?(?P<number>\d{1,3}))?(?:\.log|\.txt)?(?:\.gz)?$"
)


@dataclass(frozen=True, slots=True)
class Hole:
    """Between two files of a log of one node; times since 1970. `is_sure`: a number is missing, or the records of both
    are many; else no more follows than that the time between them is not covered."""

    log: str
    from_ms: int
    until_ms: int
    text: str
    is_sure: bool


def holes(parts: Iterable[Part]) -> list[Hole]:
    """The holes between the files of one node, in order of time."""
    by_log: defaultdict[str, list[Part]] = defaultdict(list)
    for part in parts:
        by_log[part.log].append(part)
    found = [hole for log, files in by_log.items() for hole in _between(log, files)]
    return sorted(found, key=lambda hole: (hole.from_ms, hole.log))


def _between(log: str, parts: list[Part]) -> Iterator[Hole]:
    longest_ms = max(part.longest_pause_ms for part in parts)
    numbers = {rotation(_name(part)) for part in parts}
    last: Part | None = None
    for one, other in pairwise(sorted(parts, key=lambda part: part.first_ms)):
        last = one if last is None or one.last_ms > last.last_ms else last
        if other.first_ms <= last.last_ms:
            continue
        pause_ms, where = other.first_ms - last.last_ms, f"between {_name(last)} and {_name(other)}"
        missing = _missing(rotation(_name(last)), rotation(_name(other)), numbers)
        if missing:
            files = "the rotated file" if len(missing) == 1 else "the rotated files"
            text = f"{log}: {files} {', '.join(missing)} {where} {'is' if len(missing) == 1 else 'are'} missing"
        elif missing is None and pause_ms > max(_PAUSE_MS, longest_ms):
            text = f"{log}: no record for {pause_ms // 1000} s {where}, longer than ever within them"
        else:
            continue
        is_sure = bool(missing) or min(last.amount, other.amount) >= _MANY
        yield Hole(log, last.last_ms, other.first_ms, text, is_sure)


def _name(part: Part) -> str:
    return PurePosixPath(part.source).name or part.path.name


def rotation(name: str) -> tuple[str, int | None]:
    """Date and number of a rotated file, as far as its name has them."""
    found = _NUMBER.search(name)
    if found is None:
        return "", None
    return found["date"] or "", int(found["number"]) if found["number"] else None


def _missing(
    one: tuple[str, int | None], other: tuple[str, int | None], there: set[tuple[str, int | None]]
) -> list[str] | None:
    """The numbers missing between two files that follow each other in time; None: their names do not show it."""
    if one[0] != other[0] or one[1] is None or other[1] is None:
        return None
    first, last = sorted((one[1], other[1]))
    return [f".{number}" for number in range(first + 1, last) if (one[0], number) not in there]
