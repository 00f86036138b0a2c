"""What several symptoms look at in the rows of a client: the lives of a copy, the calls that a node was handling.

A client may have as many violations as rows, each of which is held against every symptom. So what does not depend on
the violation is made once of each story (`remembered`), and what is asked about a moment is looked up there.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from operator import attrgetter
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from distro_spark.history import END, GONE, OWN_CONNECTION, RESETS, ClientHistory, Row, succeeded
from distro_traces.event import STATE_KINDS, Kind

CHANGES = ("ADD", "CHANGE")

CLOCK_SLACK_MS = 400
"""Real servers' ticks and threads run late, and rows are stamped on their way."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SEQ = attrgetter("seq")
_AT_MS = attrgetter("at_ms")


def remembered(look: Callable[Concatenate[ClientHistory, _P], _R]) -> Callable[Concatenate[ClientHistory, _P], _R]:
    """Made at the first question, and given again to each later one about the same. Nobody may change it."""

    @wraps(look)
    def asked(story: ClientHistory, /, *arguments: _P.args, **named: _P.kwargs) -> _R:
        about = (look, *arguments, *named.items())
        if about not in story.memory:
            story.memory[about] = look(story, *arguments, **named)
        found: _R = story.memory[about]
        return found

    return asked


# Rows by what they are about


@remembered
def _by_digest(story: ClientHistory) -> Mapping[object, Sequence[Row]]:
    found: defaultdict[object, list[Row]] = defaultdict(list)
    for row in story.rows:
        found[row.digest].append(row)
    return found


def having(story: ClientHistory, content: object) -> Sequence[Row]:
    """The rows with that content, in the order of the story."""
    return _by_digest(story).get(content, ())


@remembered
def states_of(story: ClientHistory, node: str) -> Sequence[Row]:
    """What the node held of the client, one after the other."""
    return [row for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]


def due_after_ms(story: ClientHistory) -> tuple[int, int]:
    """So long after a change its sync is sent, and after a sync that failed the next, with a tick of the engine each
    (docs/protocol #sync-merge, #sync-retry)."""
    is_slow = re.match(r"nacos-2\.[01]\.", story.profile)
    return (2100, 5100) if is_slow else (1100, 3100)


@remembered
def own_of(story: ClientHistory, node: str) -> Sequence[Row]:
    """What the client's own connection to that node was and did."""
    return [row for row in story.by_node.get(node, []) if row.kind in OWN_CONNECTION]


def lacked(story: ClientHistory, node: str, peer: str, from_ms: int, until_ms: int) -> bool:
    """Whether the node's list of members lacked the peer at some time between these."""
    lists = lists_of(story, node)
    first = bisect_left(lists, from_ms, key=_AT_MS)
    then = lists[max(first - 1, 0) : bisect_right(lists, until_ms, key=_AT_MS)]
    return any(peer not in str(row.detail).split(",") for row in then)


@remembered
def lists_of(story: ClientHistory, node: str) -> Sequence[Row]:
    """The node's lists of members, one after the other."""
    marks = (row for rows in (story.resets.get(node, ()), story.faults.get(node, ())) for row in rows)
    lists = (row for row in marks if row.kind in (Kind.NODE_STARTED, Kind.MEMBERS_CHANGED) and row.detail)
    return sorted(lists, key=_SEQ)


def count_before(rows: Sequence[Row], seq: int) -> int:
    """How many of these rows of one node come before that one."""
    return bisect_left(rows, seq, key=_SEQ)


@remembered
def sent_messages(story: ClientHistory) -> Mapping[str, Row]:
    """The first row in which each message leaves."""
    sent = [row for row in story.rows if row.kind == Kind.REQUEST_SENT and row.message is not None]
    return {str(row.message): row for row in reversed(sent)}


# Lives


class Life(NamedTuple):
    """`rows`: from one with which the node holds nothing of before until the next. `stamped`: those with a revision;
    `since`: for each of these the place of the first one that has had it ever since."""

    rows: Sequence[Row]
    stamped: Sequence[Row]
    since: Sequence[int]

    def until(self, seq: int) -> Sequence[Row]:
        return self.rows[: count_before(self.rows, seq + 1)]

    def stamp_at(self, seq: int) -> tuple[int | None, Row | None]:
        """The revision at that row, and the row that brought it; None for that when it was there from the beginning."""
        count = count_before(self.stamped, seq + 1)
        if not count:
            return None, None
        first = self.since[count - 1]
        return self.stamped[count - 1].revision, self.stamped[first] if first else None


@remembered
def lives(story: ClientHistory, node: str) -> Sequence[Life]:
    """The rows about what a node holds, anew from each row on with which it holds nothing of before."""
    rows = sorted([*states_of(story, node), *story.resets.get(node, ())], key=lambda row: row.seq)
    begins = [place for place, row in enumerate(rows) if row.kind in (*RESETS, *GONE) or row.digest is None]
    return [_life(rows[begin:end]) for begin, end in pairwise((0, *begins, len(rows)))]


def _life(rows: Sequence[Row]) -> Life:
    stamped, since = [row for row in rows if row.revision is not None], list[int]()
    for place, row in enumerate(stamped):
        is_same = place and stamped[place - 1].revision == row.revision
        since.append(since[-1] if is_same else place)
    return Life(rows, stamped, since)


def life_at(story: ClientHistory, node: str, seq: int) -> Life:
    """The one that the node was in at that row; an empty one where it had none yet."""
    found = lives(story, node)
    later = bisect_right(found, seq, lo=1, key=lambda life: life.rows[0].seq)
    return found[later - 1]


# Calls


@remembered
def handled_requests(story: ClientHistory, node: str) -> Sequence[tuple[Row, int, int]]:
    """The requests about the client that arrived at a node, with when (`seq`), and when they were answered, or the node
    stopped or started."""
    rows = story.by_node.get(node, [])
    answered = {row.message: row.seq for row in rows if row.kind == Kind.REPLY_SENT}
    resets = [row.seq for row in story.resets.get(node, ())]
    return [
        (row, row.seq, min((seq for seq in (answered.get(row.message, END), *resets) if seq > row.seq), default=END))
        for row in rows
        if row.kind == Kind.REQUEST_RECEIVED
    ]


@remembered
def came_with_a_load(story: ClientHistory, came: Row) -> bool:
    """Whether a snapshot brought it. Where the row does not say with which message (embedded nodes), the node was given
    one at that instant, and was not told this content since."""
    loads = [row for row in story.loads.get(came.node, ()) if succeeded(row) and row.seq < came.seq]
    if came.message is not None:
        return any(row.message == came.message for row in loads)
    return (
        bool(loads)
        and loads[-1].at_ms == came.at_ms
        and not any(
            row.digest == came.digest and loads[-1].seq < row.seq < came.seq for row in _told_of(story, came.node)
        )
    )


@remembered
def _told_of(story: ClientHistory, node: str) -> Sequence[Row]:
    """The changes of the client that a node was told."""
    return [row for row in story.by_node[node] if row.kind == Kind.REQUEST_RECEIVED and row.operation in CHANGES]


def counts_not_all(own: Sequence[Row]) -> bool:
    """Among these rows of owners one published something and left its revision as it was."""
    return any((one.node, one.revision) == (two.node, two.revision) for one, two in pairwise(own))
