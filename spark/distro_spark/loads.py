"""The load of each life of a node, from its rows: from when on it may have been loaded, and certainly was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from distro_spark.history import NEVER, Row
from distro_traces.event import RESET_KINDS, Kind, Outcome


class Load(NamedTuple):
    seq: int = 0
    by_ms: int = 0


def loads_of(marks: Sequence[Row], profile: str) -> list[Load]:
    """For each life of a node, the one before its first start or stop included.

    An answer to a load completes it. In `strict`, a refusal does so too if only refusals were received.
    """
    found = [Load()]
    refused = True
    for row in marks:
        if row.kind in RESET_KINDS:
            found.append(Load())
            refused = profile == "strict"
        elif len(found) == 1 or row.operation != "SNAPSHOT":
            continue
        elif row.kind == Kind.REQUEST_SENT and found[-1] == Load():
            found[-1] = Load(NEVER, NEVER)
        elif row.kind == Kind.REPLY_RECEIVED:
            refused = refused and row.outcome == Outcome.FAIL
            seq, by_ms = found[-1]
            if row.outcome in (Outcome.SUCCESS, Outcome.FAIL):
                seq = min(seq, row.seq)
            if refused or row.outcome == Outcome.SUCCESS:
                by_ms = min(by_ms, row.at_ms)
            found[-1] = Load(seq, by_ms)
    return found
