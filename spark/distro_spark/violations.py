"""The one shape of a violation as it travels, so that a report is a union.

It answers what a person asks: which node, which client, since when (`first_*`), until where (`last_*`), after which
message, and in one sentence each what is wrong and what should have happened. `evidence` holds the same under names,
as the text of a JSON object.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from distro_spark.known import known_bug
from distro_spark.story import Row, Story, Told

SIGNATURE = "signature"
"""Evidence key: the class of a failure."""

REFERENCE = ("node", "seq", "at_ms", "kind", "message")
"""Enough of a row to find it: (run, node, seq) is its key."""


def _reference_columns(prefix: str) -> list[pa.Field]:
    return [pa.field(f"{prefix}_{name}", pa.int64() if name in ("seq", "at_ms") else pa.string()) for name in REFERENCE]


VIOLATION_COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("invariant", "run", "profile", "client", "node")),
        *_reference_columns("first"),
        *_reference_columns("last"),
        *(pa.field(name, pa.string()) for name in ("evidence", "message", "expected", "after", "known")),
        pa.field("count", pa.int64()),
    ]
)
"""`count`: 1, or more where a row stands for further ones of its client that are not listed."""


def violation_row(invariant: str, story: Story, told: Told, count: int = 1) -> dict[str, Any]:
    evidence = {name: str(value) for name, value in told.evidence.items() if value is not None}
    return {
        "invariant": invariant,
        "run": story.run,
        "profile": story.profile,
        "client": story.client,
        "node": told.node,
        **_reference("first", told.first),
        **_reference("last", told.last),
        "evidence": json.dumps(evidence),
        "message": told.message,
        "expected": told.expected,
        "after": told.after,
        "known": known_bug(invariant, story, told),
        "count": count,
    }


def _reference(prefix: str, row: Row) -> dict[str, Any]:
    return {f"{prefix}_{name}": getattr(row, name) for name in REFERENCE}
