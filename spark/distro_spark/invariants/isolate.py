"""INV-ISOLATE: trouble with one member delays nothing that is meant for another.

A change or an end of a client is queued for every member at once. Once it has been sent to one of them, the others
follow within the sync delay and some margin, whatever has become of the call to the first. Not judged: a member about
which there is an excuse (`pace.is_excused`), or whose own last call failed, since its retry has a time of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distro_spark.compiling import compiled
from distro_spark.encoding import HASHED
from distro_spark.invariants.pace import MARGIN_MS, is_excused
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    CHANGE,
    CHANGED,
    DELETE,
    DISCONNECTED,
    ENDED,
    SUCCESS,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    called,
    is_new_life,
    members,
    replicas,
)
from distro_spark.story import Finding, Story, Told


@compiled
def held_up(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        node = rows.node[start]
        peers = members(facts, node)
        waits = np.zeros(len(peers), np.bool_)  # has the peer to be sent what has happened?
        failed = np.zeros(len(peers), np.bool_)
        lead = -1  # the row that sent it to the first of them
        within_ms = facts.sync_delay_ms[facts.run[node]] + MARGIN_MS
        for i in range(start, end):
            if rows.flags[i] & HASHED:
                break
            if is_new_life(past, start, i):
                waits[:] = False
                failed[:] = False
            if rows.kind[i] in (CHANGED, DISCONNECTED):
                waits[:] = ~failed
                lead = -1
            peer = called(rows, peers, i)
            if peer < 0 or rows.operation[i] not in (CHANGE, DELETE):
                continue
            if rows.kind[i] == ENDED:
                failed[peer] = rows.outcome[i] != SUCCESS
                waits[peer] = waits[peer] and not failed[peer]
                continue
            is_late = waits[peer] and lead >= 0 and rows.at_ms[i] - rows.at_ms[lead] > within_ms
            if is_late and not is_excused(facts, node, rows.peer[i], rows.at_ms[lead], rows.at_ms[i]):
                first[found], last[found] = lead, i
                found += 1
                break
            waits[peer] = False
            lead = i if lead < 0 else lead
    return found


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for lead, late in found:
        assert lead is not None, "the finder names it"
        between = [row for row in story.by_node[late.node] if lead.seq < row.seq < late.seq]
        ended = [row for row in between if row.kind == "reply_received" and row.message == lead.message]
        late_ms = late.at_ms - lead.at_ms
        how = f"which ended with {ended[0].outcome} at {ended[0].at_ms} ms" if ended else "which had not ended by then"
        yield Told(
            node=late.node,
            first=lead,
            last=late,
            after=lead.message,
            evidence={"peer": late.peer, "first_peer": lead.peer, "late_ms": late_ms},
            message=f"{late.node} sent {story.client} to {late.peer} in {late} only, {late_ms} ms after the "
            f"call to {lead.peer} in {lead}, {how}; nothing was wrong with {late.peer}",
            expected=f"{late.node} sends {story.client} to {late.peer} when it sends it to {lead.peer}",
        )


INVARIANT = Invariant(
    "INV-ISOLATE",
    "Trouble with one member delays nothing that is meant for another.",
    ("run", "client", "node"),
    held_up,
    tell,
    needs=Needs(state=True, sent=("CHANGE", "DELETE"), lossless=True),
)
