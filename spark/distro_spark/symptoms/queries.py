"""What several symptoms look at in the rows of a client: the lives of a copy, the calls that a node was handling.

A client may have as many violations as rows, each of which is held against every symptom. So what does not depend on
the violation is made once of each history (`cached_per_history`), and what is asked about a moment is looked up there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from operator import attrgetter
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from distro_spark.cluster import retry_delay_ms, sync_delay_ms
from distro_spark.history import NEVER, OWN_CONNECTION, ClientHistory, Finding, Row, succeeded
from distro_spark.symptoms.symptom import Clauses
from distro_traces.event import GONE_KINDS, RESET_KINDS, STATE_KINDS, Kind, Outcome

CHANGES = ("ADD", "CHANGE")

TICK_MS = 100
CLOCK_SLACK_MS = 400
"""Real servers' ticks and threads run late, and rows are stamped on their way."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SEQ = attrgetter("seq")


def cached_per_history(
    look: Callable[Concatenate[ClientHistory, _P], _R],
) -> Callable[Concatenate[ClientHistory, _P], _R]:
    """Computed once for each history and set of arguments. The result is shared, so it must not be changed."""

    @wraps(look)
    def asked(history: ClientHistory, /, *arguments: _P.args, **named: _P.kwargs) -> _R:
        about = (look, *arguments, *named.items())
        if about not in history.cache:
            history.cache[about] = look(history, *arguments, **named)
        found: _R = history.cache[about]
        return found

    return asked


# Rows by what they are about


@cached_per_history
def _by_digest(history: ClientHistory) -> Mapping[object, Sequence[Row]]:
    found: defaultdict[object, list[Row]] = defaultdict(list)
    for row in history.rows:
        found[row.digest].append(row)
    return found


def having(history: ClientHistory, content: object) -> Sequence[Row]:
    """The rows with that content, in the order of the history."""
    return _by_digest(history).get(content, ())


def of_its_client(found: Finding) -> Clauses:
    """A defect that leaves a copy as it was, or brings one back, explains no content of which only that node has ever
    known."""
    known_by = (*OWN_CONNECTION, Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED)
    by_then = (row for row in having(found.history, found.actual) if row.at_ms <= found.last.at_ms)
    others = (row for row in by_then if row.node != found.node or row.kind in known_by)
    yield (
        "what the node holds was published by its client, sent to or by a node, or held by another node",
        found.actual in (None, "nothing") or any(others),
    )


@cached_per_history
def states_of(history: ClientHistory, node: str) -> Sequence[Row]:
    """What the node held of the client, one after the other."""
    return [row for row in history.by_node.get(node, []) if row.kind in STATE_KINDS]


def state_before(history: ClientHistory, node: str, seq: int) -> Row | None:
    """The last row before that one which says what the node holds."""
    states = states_of(history, node)
    count = count_before(states, seq)
    return states[count - 1] if count else None


@cached_per_history
def changes_of(history: ClientHistory, node: str) -> Sequence[Row]:
    """The same without readings of a probe that show what the node held already."""
    changes, held = list[Row](), None
    for row in sorted([*states_of(history, node), *history.node(node).resets], key=_SEQ):
        content = row.digest if holds_something(row) else None
        if row.kind in STATE_KINDS and (row.kind != Kind.OBSERVED or content != held):
            changes.append(row)
        held = content
    return changes


def change_before(history: ClientHistory, node: str, seq: int) -> Row | None:
    """The last row before that one with which the node came to hold what it holds."""
    changes = changes_of(history, node)
    count = count_before(changes, seq)
    return changes[count - 1] if count else None


def holds_something(state: Row | None) -> bool:
    return state is not None and state.kind not in GONE_KINDS and state.digest is not None


@cached_per_history
def own_of(history: ClientHistory, node: str) -> Sequence[Row]:
    """What the client's own connection to that node was and did."""
    return [row for row in history.by_node.get(node, []) if row.kind in OWN_CONNECTION]


@cached_per_history
def sent_messages(history: ClientHistory) -> Mapping[str, Row]:
    """The first row in which each message leaves."""
    sent = [row for row in history.rows if row.kind == Kind.REQUEST_SENT and row.message is not None]
    return {str(row.message): row for row in reversed(sent)}


def count_before(rows: Sequence[Row], seq: int) -> int:
    """How many of these rows of one node come before that one."""
    return bisect_left(rows, seq, key=_SEQ)


# Times


def due_after_ms(history: ClientHistory) -> tuple[int, int]:
    """So long after a change its sync is sent, and after a sync that failed the next, with a tick of the engine each
    (docs/protocol #sync-merge, #sync-retry)."""
    return sync_delay_ms(history.profile) + TICK_MS, retry_delay_ms(history.profile) + TICK_MS


# Reachability


def reaches_a_member(history: ClientHistory, node: str, at_ms: int) -> bool:
    """Whether a member in the node's list runs, and no fault keeps the node's requests from it."""
    source = history.node(node)
    running = [peer for peer in source.listed(at_ms) if peer != node and history.node(peer).is_up(at_ms)]
    return not all(source.is_cut_off(peer, at_ms) for peer in running)


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


@cached_per_history
def _lives(history: ClientHistory, node: str) -> Sequence[Life]:
    """The rows about what a node holds, divided into lives: one begins with each row that ends what it held before."""
    rows = sorted([*states_of(history, node), *history.node(node).resets], key=_SEQ)
    begins = [place for place, row in enumerate(rows) if row.kind in (*RESET_KINDS, *GONE_KINDS) or row.digest is None]
    return [_life(rows[begin:end]) for begin, end in pairwise((0, *begins, len(rows)))]


def _life(rows: Sequence[Row]) -> Life:
    stamped, since = [row for row in rows if row.revision is not None], list[int]()
    for place, row in enumerate(stamped):
        is_same = place and stamped[place - 1].revision == row.revision
        since.append(since[-1] if is_same else place)
    return Life(rows, stamped, since)


def life_at(history: ClientHistory, node: str, seq: int) -> Life:
    """The one that the node was in at that row; an empty one where it had none yet."""
    found = _lives(history, node)
    later = bisect_right(found, seq, lo=1, key=lambda life: life.rows[0].seq)
    return found[later - 1]


# Calls


class Handled(NamedTuple):
    """A request about the client that arrived at a node: from `begin` until `end` (`seq`), when it was answered or the
    node stopped or started, it may have been at work."""

    request: Row
    begin: int
    end: int

    def overlaps(self, other: Handled) -> bool:
        return self.begin < other.end and other.begin < self.end


@cached_per_history
def handled_requests(history: ClientHistory, node: str) -> Sequence[Handled]:
    rows = history.by_node.get(node, [])
    answered = {row.message: row.seq for row in rows if row.kind == Kind.REPLY_SENT}
    resets = [row.seq for row in history.node(node).resets]
    return [
        Handled(
            row,
            row.seq,
            min((seq for seq in (answered.get(row.message, NEVER), *resets) if seq > row.seq), default=NEVER),
        )
        for row in rows
        if row.kind == Kind.REQUEST_RECEIVED
    ]


@cached_per_history
def load_of(history: ClientHistory, came: Row) -> Row | None:
    """The answer with the snapshot that brought it; None: it came otherwise. Where the row does not say with which
    message (embedded nodes), the node was given one at that instant, and was sent no CHANGE with this content since."""
    loads = [row for row in history.node(came.node).loads if succeeded(row) and row.seq < came.seq]
    if came.message is not None:
        return next((row for row in loads if row.message == came.message), None)
    if not loads or loads[-1].at_ms != came.at_ms:
        return None
    since = (row for row in having(history, came.digest) if row.node == came.node and row.operation in CHANGES)
    was_sent = any(row.kind == Kind.REQUEST_RECEIVED and loads[-1].seq < row.seq < came.seq for row in since)
    return None if was_sent else loads[-1]


def brought_by_change(history: ClientHistory, came: Row) -> bool:
    """Whether a CHANGE with this content was being handled when the node came to hold it."""
    return any(
        each.request.operation in CHANGES
        and each.request.digest == came.digest
        and each.request.message == (came.message or each.request.message)
        and each.begin < came.seq < each.end
        for each in handled_requests(history, came.node)
    )


# Messages


def confirms(row: Row, operation: str) -> bool:
    """It is the answer SUCCESS to such a request."""
    return (row.kind, row.operation, row.outcome) == (Kind.REPLY_SENT, operation, Outcome.SUCCESS)


def held_by_sender(history: ClientHistory, row: Row) -> Row | None:
    """What the sender of this row's message held of the client when it sent it."""
    sent = sent_messages(history).get(row.message or "")
    return None if sent is None else state_before(history, sent.node, sent.seq)


def carried_revisions(history: ClientHistory, about: Row) -> set[int]:
    """The revisions that the message of this row is said to carry, where it leaves or where it arrives."""
    return _carried_by_message(history).get(about.message or "", set())


@cached_per_history
def _carried_by_message(history: ClientHistory) -> Mapping[str, set[int]]:
    carried: defaultdict[str, set[int]] = defaultdict(set)
    for row in history.rows:
        is_request = row.kind in (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED)
        if is_request and row.message is not None and row.revision is not None:
            carried[row.message].add(row.revision)
    return carried
