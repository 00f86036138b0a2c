"""Known failures: what a release is known to violate, so that a check of that release tells news from history.

An entry excuses one *symptom* in one span of releases: a look at the rows of the violation's client that says whether
the bug is seen to have been at work, by what was stamped, sent, answered and when. "This release
fails this invariant" excuses nothing. What is excused is never dropped: it is listed with its number in the catalogue,
counted apart, and does not make the verdict `violates`. In `strict` nothing is known; every violation there counts.

| bug | what has to be seen |
|---|---|
| B10 | the copy has the stamp that it was created with, and by then its owner had published the content later |
| B24 | a CHANGE to that node failed before the queued DELETE was due; the owner sends DELETEs, and none to that node |
| B02 | the node acknowledged the content that it does not have, and confirmed its copy in a verify |
| B17 | no verify had renewed the copy that expired, but a CHANGE had less than a lease ago |
| B31 | the copy was removed half a minute after its renewal, and one check |
| B33 | the node answered another one's load before it was loaded |
| B03 | whoever played the client says that it fell silent |
| B01 | before it, somebody's message was applied to the client on the node that holds its connection |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from distro_spark.story import GONE, OWN_CONNECTION, RESETS, Row, Story, Told
from distro_traces.event import STATE_KINDS, Kind, Outcome

WITHOUT_REVISIONS = re.compile(r"^nacos-2\.(0\.|1\.[01]$)")
"""Profiles of the releases before 2.1.2: the field is always 0 (docs/protocol #releases-matrix)."""

Symptom = Callable[[Story, Told], bool]

_CLOCK_SLACK_MS = 400
"""Real servers' ticks and threads run late, and rows are stamped on their way."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """`bug` is the number in the catalogue, `source` where it was reported and repaired; both ends are included."""

    bug: str
    since: str | None
    until: str
    invariant: str
    symptom: Symptom
    text: str
    source: str

    def is_of(self, profile: str) -> bool:
        """Whether the profile is that of a release in the span; `strict` is none."""
        release = _release(profile)
        if release is None:
            return False
        return (self.since is None or _version(self.since) <= release) and release <= _version(self.until)


def _creation_stamp(story: Story, told: Told) -> bool:
    """B10. The first revision that the node's copy had in this life of it is the only one, and the content is that of
    a later one: it came with a message that carries a later revision, or its owner had published it by then."""
    stamp, offence = int(str(told.evidence["revision"])), told.last
    if offence.kind not in STATE_KINDS:
        return False
    lives = list(_lives(story, offence.node, offence.seq))
    if {row.revision for row in lives[-1] if row.revision is not None} != {stamp}:
        return False
    sent = [row for row in story.rows if row.kind == Kind.REQUEST_SENT]
    carried = [row.revision for row in sent if row.message is not None and row.message == offence.message]
    if any(revision is not None and revision <= stamp for revision in carried):
        return False
    return any(
        row.digest == told.evidence["actual"]
        and row.revision is not None
        and row.revision > stamp
        and row.at_ms <= offence.at_ms
        for row in story.rows
        if row.owned or row.kind == Kind.REQUEST_SENT
    )


def _swallowed_delete(story: Story, told: Told) -> bool:
    """B24. The DELETE is due one sync delay and a tick of the engine after the client left; that the owner sends any
    is seen of whatever client and peer in the run."""
    due_ms = (2100 if re.match(r"nacos-2\.[01]\.", story.profile) else 1100) + _CLOCK_SLACK_MS
    owner = str(told.evidence["owner"])
    rows = story.by_node.get(owner, [])
    left = [row for row in rows if row.kind == Kind.CLIENT_DISCONNECTED]
    if not left or owner not in story.deleters or told.evidence.get("expected", "nothing") != "nothing":
        return False
    since = [row for row in rows if row.peer == told.node and row.seq > left[-1].seq]
    failed = any(
        row.kind == Kind.REPLY_RECEIVED
        and row.operation in ("ADD", "CHANGE")
        and row.outcome != Outcome.SUCCESS
        and row.at_ms - left[-1].at_ms <= due_ms
        for row in since
    )
    return failed and not any(row.kind == Kind.REQUEST_SENT and row.operation == "DELETE" for row in since)


def _not_renewed_by_sync(_: Story, told: Told) -> bool:
    """B17. What the invariant's own signature says."""
    return told.evidence["signature"] == "sync does not renew"


def _half_a_minute(story: Story, told: Told) -> bool:
    """B31. The copy was removed when 30 s and up to one check of 5 s had passed since a verify renewed it, or since it
    was created: in these releases a CHANGE renews nothing."""
    (*_, life) = _lives(story, told.node, told.last.seq - 1)
    created = [row.at_ms for row in life if row.kind == Kind.REPLICA_APPLIED]
    confirmed = [
        row.at_ms
        for row in story.by_node[told.node]
        if row.seq < told.last.seq
        and row.kind == Kind.REPLY_SENT
        and (row.operation, row.outcome) == ("VERIFY", Outcome.SUCCESS)
    ]
    lasted_ms = told.last.at_ms - max((*created[:1], *confirmed), default=told.first.at_ms)
    return told.evidence["signature"] == "short lease" and 30_000 <= lasted_ms <= 35_000 + _CLOCK_SLACK_MS


def _gave_a_snapshot(_: Story, told: Told) -> bool:
    """B33. It is the node's answer to another one's load; that it verifies before it is loaded is no known failure."""
    return told.last.kind == Kind.REPLY_SENT and told.last.operation == "SNAPSHOT"


def _confirmed_unread(_: Story, told: Told) -> bool:
    """B02. Something is missing or old although what carried it was acknowledged, and a verify confirmed the copy."""
    seen = told.evidence
    return (
        seen["expected"] != "nothing"
        and seen["last_operation"] in ("ADD", "CHANGE")
        and seen["last_outcome"] == Outcome.SUCCESS
        and seen["last_verify"] == Outcome.SUCCESS
    )


def _native_overwritten(story: Story, told: Told) -> bool:
    """B01. A node holds the client's connection, and between two starts applied to it what was sent for a copy."""
    for node in story.by_node:
        for life in _lives(story, node, None):
            connected = False
            for row in life:
                connected = connected or row.kind in OWN_CONNECTION
                if connected and row.kind == Kind.REPLICA_APPLIED and row.at_ms <= told.last.at_ms:
                    return True
    return False


def _lives(story: Story, node: str, until: int | None) -> Iterator[list[Row]]:
    """The rows about what a node holds, anew from each row on with which it holds nothing of before."""
    states = [row for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]
    rows = sorted([*states, *story.resets.get(node, ())], key=lambda row: row.seq)
    life: list[Row] = []
    for row in rows:
        if until is not None and row.seq > until:
            break
        if row.kind in (*RESETS, *GONE) or row.digest is None:
            yield life
            life = []
        life.append(row)
    yield life


def _fell_silent(_: Story, told: Told) -> bool:
    """B03. What the invariant itself goes by: no connection is ever asked for a sign of life."""
    return told.first.kind == Kind.LINK_FAULT


_LAST_READ = "3.0.3"
"""The last release that was looked at."""

KNOWN: tuple[KnownFailure, ...] = (
    KnownFailure(
        "B10",
        "2.1.2",
        "2.2.4",
        "INV-REV",
        _creation_stamp,
        "A replica takes over the content of a later sync, but keeps the revision that it was created with.",
        "alibaba/nacos #10056, #10693; repaired in 2.3.0 by #10553; docs/protocol #defect-d1",
    ),
    KnownFailure(
        "B24",
        None,
        _LAST_READ,
        "INV-CONV",
        _swallowed_delete,
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; the copy stays.",
        "alibaba/nacos #10809; seen on running 2.2.4 and 2.3.2; docs/protocol #defect-d2",
    ),
    KnownFailure(
        "B24",
        None,
        _LAST_READ,
        "INV-DELETE",
        _swallowed_delete,
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; none is sent.",
        "alibaba/nacos #10809; seen on running 2.2.4 and 2.3.2; docs/protocol #defect-d2",
    ),
    KnownFailure(
        "B31",
        None,
        "2.0.2",
        "INV-LIVE",
        _half_a_minute,
        "The lease is 30 s: a short outage removes the copies of clients that are connected.",
        "B31; read in the code of the releases",
    ),
    KnownFailure(
        "B33",
        None,
        _LAST_READ,
        "INV-INIT",
        _gave_a_snapshot,
        "A node that is not loaded itself gives a snapshot.",
        "B33; docs/protocol #defect-d14",
    ),
    KnownFailure(
        "B17",
        None,
        _LAST_READ,
        "INV-LIVE",
        _not_renewed_by_sync,
        "Only a verify renews a lease: the copy of a client that changes before each one expires.",
        "B17; read in the code of every release",
    ),
    KnownFailure(
        "B03",
        "2.2.0",
        "2.2.4",
        "INV-SILENT",
        _fell_silent,
        "No connection is asked for a sign of life: one that died in silence is kept.",
        "alibaba/nacos #10909; repaired in 2.3.0 by #10509; docs/protocol #ejector-check",
    ),
    KnownFailure(
        "B02",
        None,
        "2.1.1",
        "INV-CONV",
        _confirmed_unread,
        "A verify tests existence only, so a copy that missed what it acknowledged is confirmed for ever.",
        "alibaba/nacos #9210, #9214; repaired in 2.1.2 by #9239",
    ),
    KnownFailure(
        "B01",
        None,
        _LAST_READ,
        "INV-REV",
        _native_overwritten,
        "A late snapshot or CHANGE is applied to a client that is connected here; its next change reuses a revision.",
        "alibaba/nacos #15857; docs/protocol #receive-native",
    ),
    KnownFailure(
        "B01",
        None,
        _LAST_READ,
        "INV-NATIVE",
        _native_overwritten,
        "A late snapshot or CHANGE is applied to a client that is connected here.",
        "alibaba/nacos #15857; docs/protocol #receive-native",
    ),
)


def known_bug(invariant: str, story: Story, told: Told) -> str | None:
    """The number of the known failure whose symptom a violation has, or None."""
    found = [
        failure.bug
        for failure in KNOWN
        if failure.invariant == invariant and failure.is_of(story.profile) and failure.symptom(story, told)
    ]
    return min(found, default=None)


def _release(profile: str) -> tuple[int, ...] | None:
    name, _, version = profile.partition("-")
    return _version(version) if name == "nacos" and version else None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
