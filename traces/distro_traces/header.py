"""The header of a trace: the run, target and profile of its rows, and what was observed.

It is the first line of an NDJSON file and a key in the metadata of a Parquet file, in the same JSON form. It is kept
apart from the rows because a check must know the profile, and what was not observed, before the first row. A trace of
version 1 has no `observed`, and is judged as if everything had been observed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from distro_traces.errors import NewerTraceError, NotATraceError
from distro_traces.event import SCHEMA_NAME, SCHEMA_VERSION
from distro_traces.observed import EVERYTHING, Observed, parse_observed

Clock = Literal["virtual", "wall"]


WITHOUT_REVISIONS = re.compile(r"^nacos-2\.(0\.|1\.[01]$)")
"""Profiles of the releases before 2.1.2: the field is always 0 (docs/protocol #releases-matrix)."""

UNKNOWN_RELEASE = "nacos-unknown"
"""The profile of logs that do not name their release: behaviour that differs between releases is not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a run was. `clock` says whether `at_ms` counts simulated or real milliseconds.

    A long run lies in several files, each with the same header but for its `segment`, from 1.
    """

    run: str
    profile: str  # nacos-2.2.4, strict, …
    target: str  # embedded, nacos:2.2.4, model, …
    clock: Clock
    nodes: tuple[str, ...]
    observed: Observed = EVERYTHING
    segment: int = 1
    began: str | None = None  # when `at_ms` was 0, where that is known: ISO 8601, with the offset of who recorded it

    @property
    def names_release(self) -> bool:
        return self.profile != UNKNOWN_RELEASE

    @property
    def has_revisions(self) -> bool:
        return not WITHOUT_REVISIONS.search(self.profile)

    def with_gaps(self) -> Header:
        """The same for a recording with missing rows."""
        return replace(self, observed=replace(self.observed, lossless=False))

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in _TEXTS},
            "nodes": list(self.nodes),
            "observed": self.observed.to_json(),
            "segment": self.segment,
            **({} if self.began is None else {"began": self.began}),
        }


_TEXTS = ("run", "profile", "target", "clock")
_FITS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_TEXTS[:3], lambda value: isinstance(value, str)),
    "clock": lambda value: value in get_args(Clock),
    "nodes": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "segment": lambda value: type(value) is int and value > 0,
    "began": lambda value: value is None or _is_time(value),
}


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def wall_clock(began: str | None, at_ms: int) -> str | None:
    """The time of day of a row, where its run says when it began: `2026-11-21 02:52:09.354+08:00`."""
    if began is None:
        return None
    return (datetime.fromisoformat(began) + timedelta(milliseconds=at_ms)).isoformat(" ", "milliseconds")


def parse_header(text: str | bytes, path: Path | str) -> Header:
    """Read the JSON form of a header found in `path`. Raises NotATraceError, NewerTraceError."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA_NAME:
        raise NotATraceError(
            f'{path}: not a distrocheck trace, its first line is not a header {{"schema":"{SCHEMA_NAME}",…}}; '
            "name a recording of distrocheck or a directory of them"
        )
    version = found.get("version")
    if not isinstance(version, int) or version < 1:
        raise NotATraceError(f"{path}: the header names no schema version; record the run again")
    if version > SCHEMA_VERSION:
        raise NewerTraceError(path, version, SCHEMA_VERSION)
    if version == 1:
        found = {**found, "observed": EVERYTHING.to_json()}
    found = {"segment": 1, "began": None, **found}
    missing = [field.name for field in fields(Header) if field.name not in found]
    if missing:
        raise NotATraceError(f"{path}: the header lacks {', '.join(missing)}; record the run again")
    try:
        observed = parse_observed(found["observed"])
    except ValueError as error:
        raise NotATraceError(f"{path}: the header is damaged, {error}; record the run again") from None
    for name, fits in _FITS.items():
        if not fits(found[name]):
            raise NotATraceError(f"{path}: the header is damaged, its {name} is {found[name]!r}; record the run again")
    texts = {name: found[name] for name in _TEXTS}
    texts["began"] = found["began"]
    return Header(**texts, nodes=tuple(found["nodes"]), observed=observed, segment=found["segment"])
