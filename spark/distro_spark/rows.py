"""The rows of some clients as arrays: what an invariant looks through.

A chunk holds whole clients, each with its rows sorted by node and sequence number; `past` adds to every row what its
node held just before it. All functions that go through rows are compiled (numba), since they are called for every
event of a trace; they take these tuples of arrays and return positions in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import KINDS, NO_REVISION, OPERATIONS, OUTCOMES, OWNED, PUBLISHES_NOTHING
from distro_spark.story import END
from distro_traces.event import Kind, Outcome

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

STARTED, STOPPED = KINDS[Kind.NODE_STARTED], KINDS[Kind.NODE_STOPPED]
CONNECTED, CHANGED, DISCONNECTED = (
    KINDS[Kind.CLIENT_CONNECTED],
    KINDS[Kind.CLIENT_CHANGED],
    KINDS[Kind.CLIENT_DISCONNECTED],
)
APPLIED, REMOVED, OBSERVED = KINDS[Kind.REPLICA_APPLIED], KINDS[Kind.REPLICA_REMOVED], KINDS[Kind.OBSERVED]
FAULT = KINDS[Kind.LINK_FAULT]
SENT, RECEIVED = KINDS[Kind.REQUEST_SENT], KINDS[Kind.REQUEST_RECEIVED]
REPLIED, ENDED = KINDS[Kind.REPLY_SENT], KINDS[Kind.REPLY_RECEIVED]
CHANGE, DELETE, VERIFY = OPERATIONS["CHANGE"], OPERATIONS["DELETE"], OPERATIONS["VERIFY"]
SUCCESS, FAIL, UNREACHABLE = OUTCOMES[Outcome.SUCCESS], OUTCOMES[Outcome.FAIL], OUTCOMES[Outcome.UNREACHABLE]

CHUNK_ROWS = 1 << 18
"""A chunk is judged once it has so many rows and its last client is whole."""


class Rows(NamedTuple):
    """`node` and `peer` are positions in `Facts`, -1 for a peer that is not there."""

    key: Integers
    node: Integers
    seq: Integers
    at_ms: Integers
    kind: Integers
    operation: Integers
    outcome: Integers
    flags: Integers
    peer: Integers
    message: Integers
    revision: Integers
    digest: Integers


class Past(NamedTuple):
    """What the row's node held of the client just before the row.

    content (a hash, 0: nothing), revision, native (its own connection reported it since the node's last start or
    stop), reset (the position in `Facts` of the next start or stop of the node).
    """

    content: Integers
    revision: Integers
    native: Flags
    reset: Integers


class Facts(NamedTuple):
    """What is known of runs and nodes before any client is looked at. Nodes ascend by `node`, their hash.

    What there are many of for a node g (or a run r) lies between `x_from[g]` and `x_from[g + 1]`.

    nodes_of        the nodes of a run
    reset_*         starts and stops of a node; `loaded_seq` beside them: from which row on the node was loaded in the
                    life that begins there (0: not to be decided), and `surely_ms` from when on it was so for certain
    check_*         checkpoints of a node. Ordinals count those of the run in order of time; `gap_after` is the position
                    after the last one that follows without one missed
    fault_*         when the link from a node to `fault_peer` was cut or held (`fault_breaks`), or was so no more; where
                    that is the node itself: when it was paused. `fault_left`: the peer was no member any more,
                    `fault_back`: it was one again. By peer, and of each in order of time
    live, changes   by ordinal, how many of a run's nodes have that checkpoint, and how often that number changed so far
    has_revisions, sync_delay_ms    of a run
    decides         by invariant and node: what is needed to judge it was observed
    reports         by node: it says itself when it holds something no more
    """

    node: Integers
    run: Integers
    nodes_from: Integers
    nodes_of: Integers
    last_at_ms: Integers
    reset_from: Integers
    reset_seq: Integers
    reset_at_ms: Integers
    reset_kind: Integers
    loaded_seq: Integers
    surely_ms: Integers
    check_from: Integers
    check_seq: Integers
    check_at_ms: Integers
    check_ordinal: Integers
    gap_after: Integers
    fault_from: Integers
    fault_at_ms: Integers
    fault_peer: Integers
    fault_breaks: Flags
    fault_left: Flags
    fault_back: Flags
    live_from: Integers
    live: Integers
    changes: Integers
    has_revisions: Flags
    sync_delay_ms: Integers
    decides: npt.NDArray[np.bool_]
    reports: Flags


@compiled
def past_of(rows: Rows, facts: Facts) -> Past:
    size = len(rows.seq)
    past = Past(np.zeros(size, np.int64), np.empty(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.int64))
    content, revision, native, reset = 0, NO_REVISION, False, 0
    for i in range(size):
        node = rows.node[i]
        if i == 0 or node != rows.node[i - 1] or rows.key[i] != rows.key[i - 1]:
            content, revision, native, reset = 0, NO_REVISION, False, facts.reset_from[node]
        if reset < facts.reset_from[node + 1] and facts.reset_seq[reset] < rows.seq[i]:
            content, revision, native = 0, NO_REVISION, False
            reset = first_from(facts.reset_seq, reset, facts.reset_from[node + 1], rows.seq[i])
        past.content[i], past.revision[i], past.native[i], past.reset[i] = content, revision, native, reset
        kind = rows.kind[i]
        if not is_state(kind):
            continue
        content = content_after(rows, i)
        if content == 0:
            revision, native = NO_REVISION, False
        else:
            revision = rows.revision[i]
            native = native or kind in (CONNECTED, CHANGED)
    return past


@uncounted
def first_from(ascending: Integers, begin: int, end: int, least: int) -> int:
    """The position, from `begin` and before `end`, of the first number that is not below `least`; `end`: there is none.

    A search and no walk: in a long run each of many clients passes by all of many starts, checkpoints and faults.
    """
    if begin == end or ascending[begin] >= least:
        return begin
    return begin + int(np.searchsorted(ascending[begin:end], least))


@uncounted
def faults_of(facts: Facts, node: int, other: int) -> tuple[int, int]:
    """Where the faults from a node to another one begin and end, in order of time; to itself: its pauses."""
    begin, end = facts.fault_from[node], facts.fault_from[node + 1]
    return first_from(facts.fault_peer, begin, end, other), first_from(facts.fault_peer, begin, end, other + 1)


@uncounted
def is_state(kind: int) -> bool:
    return kind in (CONNECTED, CHANGED, DISCONNECTED, APPLIED, REMOVED, OBSERVED)


@uncounted
def content_after(rows: Rows, i: int) -> int:
    """What the node holds after a row about its state."""
    return 0 if rows.kind[i] in (DISCONNECTED, REMOVED) else int(rows.digest[i])


@compiled
def clients(rows: Rows) -> list[tuple[int, int]]:
    """Where the rows of each client begin and end."""
    found, start = [], 0
    for i in range(1, len(rows.seq) + 1):
        if i == len(rows.seq) or rows.key[i] != rows.key[start]:
            found.append((start, i))
            start = i
    return found


@compiled
def replicas(rows: Rows, decides: Flags) -> list[tuple[int, int]]:
    """Where the rows of each client on each node begin and end, of the nodes that can be judged."""
    found, start = [], 0
    for i in range(1, len(rows.seq) + 1):
        if i == len(rows.seq) or rows.node[i] != rows.node[start] or rows.key[i] != rows.key[start]:
            if decides[rows.node[start]]:
                found.append((start, i))
            start = i
    return found


@compiled
def views(rows: Rows, facts: Facts, start: int, end: int) -> Integers:
    """Each change of the view of one node, one a line: sequence number, time, what is shown, the row's kind.

    A client that publishes nothing is in no view, and neither is any after a start or a stop: 0.
    """
    found = np.empty((2 * (end - start), 4), np.int64)
    size, view = 0, 0
    if start == end:
        return found
    node = rows.node[start]
    reset, last_reset = facts.reset_from[node], facts.reset_from[node + 1]
    for i in range(start, end + 1):
        until = END if i == end else rows.seq[i]
        if reset < last_reset and facts.reset_seq[reset] < until:
            if view != 0:
                view = 0
                found[size, 0], found[size, 1] = facts.reset_seq[reset], facts.reset_at_ms[reset]
                found[size, 2], found[size, 3] = view, facts.reset_kind[reset]
                size += 1
            reset = first_from(facts.reset_seq, reset, last_reset, until)
        if i == end or not is_state(rows.kind[i]):
            continue
        after = 0 if rows.flags[i] & PUBLISHES_NOTHING else content_after(rows, i)
        if after != view:
            view = after
            found[size, 0], found[size, 1], found[size, 2], found[size, 3] = (
                rows.seq[i],
                rows.at_ms[i],
                view,
                rows.kind[i],
            )
            size += 1
    return found[:size]


@uncounted
def held_until_ms(rows: Rows, facts: Facts, past: Past, i: int, end: int) -> int:
    """Until when the node holds what it holds after row i: its next row about its state, its reset, or its last row."""
    for j in range(i + 1, end):
        if rows.node[j] != rows.node[i] or past.reset[j] != past.reset[i]:
            break
        if is_state(rows.kind[j]):
            return int(rows.at_ms[j])
    if past.reset[i] < facts.reset_from[rows.node[i] + 1]:
        return int(facts.reset_at_ms[past.reset[i]])
    return int(facts.last_at_ms[rows.node[i]])


@uncounted
def is_seen(rows: Rows, facts: Facts, i: int) -> bool:
    """Does row i prove that its node holds what the rows before it say? Of a node that reports nothing itself only
    a reading does: that a lease has ended is not told by any row."""
    return bool(facts.reports[rows.node[i]] or (rows.kind[i] == OBSERVED and rows.digest[i] != 0))


@uncounted
def seen_until_ms(rows: Rows, facts: Facts, past: Past, i: int, end: int) -> int:
    """Until when it is proved that the node holds what it holds after row i."""
    if facts.reports[rows.node[i]]:
        return held_until_ms(rows, facts, past, i, end)
    return int(rows.at_ms[i])


@uncounted
def is_claim(rows: Rows, i: int) -> bool:
    if is_state(rows.kind[i]):
        return bool(rows.flags[i] & OWNED)
    return rows.kind[i] == SENT and rows.operation[i] in (CHANGE, DELETE, VERIFY)


@uncounted
def renews(rows: Rows, i: int) -> bool:
    """A copy was applied, or a verify of it confirmed."""
    confirmed = rows.kind[i] == REPLIED and rows.operation[i] == VERIFY and rows.outcome[i] == SUCCESS
    return bool(confirmed or rows.kind[i] == APPLIED)


@uncounted
def request_of(rows: Rows, i: int, start: int) -> int:
    """The row with which the request that row i answers had arrived, or -1: it is not in the trace."""
    for j in range(i - 1, start - 1, -1):
        if rows.kind[j] == RECEIVED and rows.message[j] == rows.message[i]:
            return j
        if i - j > 10_000:
            break
    return -1


@compiled
def answers(rows: Rows, start: int, end: int, operations: tuple[int, ...], outcome: int) -> list[tuple[int, int]]:
    """Where a node received such a request, and where it answered it so."""
    found = []
    for i in range(start, end):
        if rows.kind[i] == REPLIED and rows.outcome[i] == outcome and rows.operation[i] in operations:
            request = request_of(rows, i, start)
            if request >= 0:
                found.append((request, i))
    return found


@uncounted
def latest(rows: Rows, start: int, end: int, kinds: tuple[int, ...]) -> int:
    """The row of such a kind that is the last by the clock, of whatever node; -1: none."""
    found = -1
    for i in range(start, end):
        if rows.kind[i] in kinds and (found < 0 or rows.at_ms[i] > rows.at_ms[found]):
            found = i
    return found


@compiled
def members(facts: Facts, node: int) -> Integers:
    """The nodes of its run, itself included, ascending."""
    run = facts.run[node]
    return facts.nodes_of[facts.nodes_from[run] : facts.nodes_from[run + 1]]


@uncounted
def called(rows: Rows, peers: Integers, i: int) -> int:
    """The position among `peers` of the member that the call of this row was made to; -1: no row of a caller."""
    if rows.peer[i] < 0 or rows.kind[i] not in (SENT, ENDED):
        return -1
    return int(np.searchsorted(peers, rows.peer[i]))


@uncounted
def is_new_life(past: Past, start: int, i: int) -> bool:
    """Was the node started or stopped since its row before this one? `start`: its first."""
    return bool(i > start and past.reset[i] != past.reset[i - 1])


def whole_clients(batches: Iterable[pa.RecordBatch], nodes: Integers) -> Iterator[Rows]:
    """Sorted batches of `encoding.numbered`, cut anew where a client ends; a row that comes twice comes once."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        key = batch.column("key").to_numpy()
        if size >= CHUNK_ROWS:
            # The last client of what waits is whole where another one begins.
            last = waiting[-1].column("key")[-1].as_py()
            others = np.flatnonzero(key != last)
            if len(others):
                cut = int(others[0])
                yield rows_of([*waiting, batch.slice(0, cut)], nodes)
                waiting, size = [], 0
                batch = batch.slice(cut)  # noqa: PLW2901 - the rest of it
        waiting.append(batch)
        size += batch.num_rows
    if waiting:
        yield rows_of(waiting, nodes)


def rows_of(batches: Iterable[pa.RecordBatch], nodes: Integers) -> Rows:
    table = pa.Table.from_batches(batches)
    column = {name: np.array(table[name].to_numpy()) for name in table.column_names}  # a copy: it can be written to
    key, node, seq = column["key"], column["node"], column["seq"]
    again = (key[1:] == key[:-1]) & (node[1:] == node[:-1]) & (seq[1:] == seq[:-1])
    if again.any():
        once = np.concatenate(([True], ~again))
        column = {name: values[once] for name, values in column.items()}
    what = column["what"]
    return Rows(
        column["key"],
        np.searchsorted(nodes, column["node"]),
        column["seq"],
        column["at_ms"],
        what & 255,
        what >> 8 & 255,
        what >> 16 & 255,
        what >> 24 & 255,
        _position(nodes, column["peer"]),
        column["message"],
        column["revision"],
        column["digest"],
    )


def _position(nodes: Integers, wanted: Integers) -> Integers:
    at = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return np.where(nodes[at] == wanted, at, -1)
