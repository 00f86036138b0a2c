"""B03, B17, B31: copies that end too soon, and connections that do not end."""

from __future__ import annotations

import re

from distro_model.defects import Symptom
from distro_spark.history import LEASE, LEASE_MS, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import CLOCK_SLACK_MS, clause, clause_about, confirms, life_at
from distro_traces.event import Kind

_ROUND_MS = 6_500
"""Of verification and the sync that follows a failure."""

_CHECK_MS = 5_000
"""The cleaner of copies goes round so often."""

_SHORT_LEASE_MS = 30_000
_TOLERANCE_MS = 1_000


def _lease_ms(history: ClientHistory) -> int:
    return _SHORT_LEASE_MS if re.fullmatch(r"nacos-2\.0\.[012]", history.profile) else LEASE_MS


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


@clause("a copy ended with its lease")
def a_copy_ended(found: Finding) -> bool:
    return _end_of_lease(found) is not None


@clause_about(_end_of_lease, "a lease had passed since a verify renewed it, or it was created")
def its_lease_was_over(found: Finding, end: Row) -> bool:
    return _lasted_ms(found, end) >= _lease_ms(found.history) - _TOLERANCE_MS


@clause_about(_end_of_lease, "a CHANGE or a snapshot was applied to it less than a lease ago")
def was_applied_since(found: Finding, end: Row) -> bool:
    return any(end.at_ms - row.at_ms < _lease_ms(found.history) for row in _applied(found, end)[1:])


@clause("that was less than a round of verification before the checkpoint")
def is_between_two_rounds(found: Finding) -> bool:
    return found.last.at_ms - _end(found).at_ms <= _ROUND_MS


@clause_about(
    _end_of_lease, "30 s, and at most one check more, had passed since a verify renewed it, or it was created"
)
def lasted_half_a_minute(found: Finding, end: Row) -> bool:
    return _SHORT_LEASE_MS <= _lasted_ms(found, end) <= _SHORT_LEASE_MS + _CHECK_MS + CLOCK_SLACK_MS


@clause("the node keeps that connection for as long as it is silent")
def keeps_it_for_good(found: Finding) -> bool:
    silent = found.first
    rows = (row for row in found.history.by_node[silent.node] if row.seq > silent.seq)
    ends = (Kind.CLIENT_DISCONNECTED, Kind.LINK_FAULT, Kind.CLIENT_CONNECTED)
    ended = next((row for row in rows if row.kind in ends), None)
    return ended is None or ended.kind != Kind.CLIENT_DISCONNECTED


NOT_RENEWED = Symptom(
    bug="B17",
    about=("INV-LIVE",),
    sentence="Only a verify renews a lease: the copy of a client that changes before each one expires.",
    clauses=(a_copy_ended, its_lease_was_over, was_applied_since),
)
NOT_RENEWED_AT_CHECKPOINT = Symptom(
    bug="B17",
    about=("INV-CONV",),
    sentence="Only a verify renews a lease: the copy of a client that changes before each one ends, until the next "
    "round.",
    clauses=(a_copy_ended, its_lease_was_over, was_applied_since, is_between_two_rounds),
)
HALF_A_MINUTE = Symptom(
    bug="B31",
    about=("INV-LIVE",),
    sentence="The lease is 30 s: a short outage removes the copies of clients that are connected.",
    clauses=(a_copy_ended, lasted_half_a_minute),
)
KEPT_IN_SILENCE = Symptom(
    bug="B03",
    about=("INV-SILENT",),
    sentence="No connection is probed: one that died silently is kept.",
    clauses=(keeps_it_for_good,),
)
SYMPTOMS = (NOT_RENEWED, NOT_RENEWED_AT_CHECKPOINT, HALF_A_MINUTE, KEPT_IN_SILENCE)
