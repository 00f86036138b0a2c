"""B03, B17, B31: copies that end too soon, and connections that do not end."""

from __future__ import annotations

import re

from distro_spark.history import LEASE, LEASE_MS, Finding, Row
from distro_spark.symptoms.queries import CLOCK_SLACK_MS, confirms, life_at
from distro_spark.symptoms.symptom import Clauses, symptom
from distro_traces.event import Kind

_ROUND_MS = 6_500
"""Of verification and the sync that follows a failure."""

_CHECK_MS = 5_000
"""The cleaner of copies goes round so often."""

_SHORT_LEASE_MS = 30_000
_TOLERANCE_MS = 1_000
"""A lease begins while a request is handled, and the row of that comes later."""


def _end(found: Finding) -> Row:
    """The row with which the copy ended; INV-CONV names it as that since which the node differs."""
    return found.last if found.last.kind == Kind.REPLICA_REMOVED else found.first


def _end_of_lease(found: Finding) -> Row | None:
    end = _end(found)
    return end if (end.kind, end.detail) == (Kind.REPLICA_REMOVED, LEASE) and not end.is_native else None


def _applied(found: Finding, end: Row) -> list[Row]:
    """How the copy was applied in its life, and it came with the first of them."""
    life = life_at(found.history, end.node, end.seq - 1).until(end.seq - 1)
    return [row for row in life if row.kind == Kind.REPLICA_APPLIED]


def _lasted_ms(found: Finding, end: Row) -> int:
    """From when a verify renewed the copy for the last time, or it was created, until it ended."""
    applied = _applied(found, end)
    since = applied[0].seq if applied else end.seq
    rows = (row for row in found.history.by_node[end.node] if since < row.seq < end.seq)
    confirmed = [row for row in rows if confirms(row, "VERIFY")]
    return end.at_ms - max((row.at_ms for row in (*applied[:1], *confirmed)), default=end.at_ms)


@symptom("B17", "INV-LIVE")
def not_renewed(found: Finding) -> Clauses:
    """Only a verify renews a lease: the copy of a client that changes before each one expires."""
    end = _end_of_lease(found)
    lease_ms = _SHORT_LEASE_MS if re.fullmatch(r"nacos-2\.0\.[012]", found.history.profile) else LEASE_MS
    yield "a copy ended with its lease", end is not None
    if end is None:
        return
    yield (
        "a lease had passed since a verify renewed it, or it was created",
        _lasted_ms(found, end) >= lease_ms - _TOLERANCE_MS,
    )
    yield (
        "a CHANGE or a snapshot was applied to it less than a lease ago",
        any(end.at_ms - row.at_ms < lease_ms for row in _applied(found, end)[1:]),
    )


@symptom("B17", "INV-CONV")
def not_renewed_at_checkpoint(found: Finding) -> Clauses:
    """Only a verify renews a lease: the copy of a client that changes before each one ends, until the next round."""
    yield from not_renewed.look(found)
    yield (
        "that was less than a round of verification before the checkpoint",
        found.last.at_ms - _end(found).at_ms <= _ROUND_MS,
    )


@symptom("B31", "INV-LIVE")
def half_a_minute(found: Finding) -> Clauses:
    """The lease is 30 s: a short outage removes the copies of clients that are connected."""
    end = _end_of_lease(found)
    yield "a copy ended with its lease", end is not None
    if end is not None:
        yield (
            "30 s, and at most one check more, had passed since a verify renewed it, or it was created",
            _SHORT_LEASE_MS - _TOLERANCE_MS <= _lasted_ms(found, end) <= _SHORT_LEASE_MS + _CHECK_MS + CLOCK_SLACK_MS,
        )


@symptom("B03", "INV-SILENT")
def kept_in_silence(found: Finding) -> Clauses:
    """No connection is probed: one that died silently is kept."""
    rows = (row for row in found.history.by_node[found.first.node] if row.seq > found.first.seq)
    ends = (Kind.CLIENT_DISCONNECTED, Kind.LINK_FAULT, Kind.CLIENT_CONNECTED)
    ended = next((row.kind for row in rows if row.kind in ends), None)
    yield "the node keeps that connection for as long as it is silent", ended != Kind.CLIENT_DISCONNECTED
