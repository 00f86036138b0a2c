"""INV-AIM: the end of a call to one member queues nothing for another.

Seen at the owner: a CHANGE that carries what its target has already confirmed needs a cause, which is a change of the
client, or a call to that very member that did not succeed. One without such a cause was meant for somebody else
(`m-add-after-fail-to-all`). Each cause is good for one CHANGE: where a call fails while the CHANGE of a change, or of
an earlier failure, is under way already, a second one follows, seen on a busy 2.2.4. What a recording of links shows as
answered may have come too late for who asked: there a CHANGE that comes as late as a retry of that very call would is
nobody's mistake either. What a client changes in the moment of a call may be read for that before it is queued. Of a
client of the HTTP API nothing is said once a member list has changed, since such a client is handed over.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import NO_REVISION
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    CHANGE,
    ENDED,
    SUCCESS,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    called,
    is_new_life,
    is_state,
    members,
    replicas,
)
from distro_spark.story import Finding, Story, Told
from distro_traces.header import WITHOUT_REVISIONS

TIMED_OUT_AND_REPEATED_MS = 3_000 + 3_000
"""Between a call that its sender gives up and the retry (docs/protocol #sync-retry)."""

MOMENT_MS = 50
"""Half a tick of the engine. That takes what is due, then one worker after the other reads the client and calls."""


@compiled
def unprovoked(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        if not facts.has_revisions[facts.run[rows.node[start]]]:
            continue
        peers = members(facts, rows.node[start])
        sent = np.full(len(peers), -1, np.int64)
        confirmed = np.full(len(peers), -1, np.int64)  # the row that sent what the peer has confirmed
        changed = np.ones(len(peers), np.bool_)
        failed = np.zeros(len(peers), np.int64)  # calls that did not succeed, of which nothing has come yet
        changed_ms = -MOMENT_MS
        hears_late = not facts.reports[rows.node[start]]
        for i in range(start, end):
            if is_new_life(past, start, i):
                confirmed[:] = -1
            if is_state(rows.kind[i]):
                changed[:] = True
                changed_ms = rows.at_ms[i]
            peer = called(rows, peers, i)
            if peer < 0:
                continue
            if rows.kind[i] == ENDED:
                if rows.outcome[i] != SUCCESS:
                    failed[peer] += 1
                elif sent[peer] >= 0 and rows.message[sent[peer]] == rows.message[i]:
                    confirmed[peer] = sent[peer]
            elif rows.operation[i] == CHANGE:
                before = confirmed[peer]
                is_stray = before >= 0 and not changed[peer] and not failed[peer] and same_content(rows, before, i)
                if is_stray and not (hears_late and rows.at_ms[i] - rows.at_ms[before] >= TIMED_OUT_AND_REPEATED_MS):
                    first[found], last[found] = before, i
                    found += 1
                    break
                if failed[peer] and not changed[peer]:
                    failed[peer] -= 1
                sent[peer], changed[peer] = i, rows.at_ms[i] - changed_ms < MOMENT_MS
    return found


@uncounted
def same_content(rows: Rows, one: int, other: int) -> bool:
    same = rows.revision[one] == rows.revision[other] and rows.digest[one] == rows.digest[other]
    return bool(same and rows.revision[one] != NO_REVISION and rows.digest[one] != 0)


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for before, again in found:
        assert before is not None, "the finder names it"
        if story.may_have_new_owner(again.at_ms):
            continue
        rows = [row for row in story.by_node[again.node] if before.seq < row.seq < again.seq]
        failures = [row for row in rows if row.kind == "reply_received" and row.outcome != "success"]
        cause = f"; what failed in between is {failures[-1]}, of {failures[-1].peer}" if failures else ""
        yield Told(
            node=again.node,
            first=failures[-1] if failures else before,
            last=again,
            after=failures[-1].message if failures else before.message,
            evidence={"peer": again.peer, "confirmed": before.message, "revision": again.revision},
            message=f"{again.node} sent {story.client} to {again.peer} in {again}, which had confirmed the same "
            f"content as {before.message}, and of which no call failed since{cause}",
            expected=f"{again.node} sends {story.client} to the member alone whose call failed",
        )


INVARIANT = Invariant(
    "INV-AIM",
    "A member that has confirmed the content is sent it again only when a call to it fails or the client changes.",
    ("run", "client", "node"),
    unprovoked,
    tell,
    needs=Needs(state=True, sent=("CHANGE", "VERIFY"), revision=True, lossless=True),
    not_on=WITHOUT_REVISIONS,
)
