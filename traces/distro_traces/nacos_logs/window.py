"""Facts of one action: a look-ahead of a few milliseconds in the log of one node.

A server logs one action in several records, often in different files: that a call starts, that it is cancelled because
the target is not up, that it ended with `false`; that a client was received, that it connected, what it publishes.
Read singly they report events that never happened: a request that was not sent, a client of this revision that
publishes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from distro_traces.nacos_logs.facts import Fact, What

WINDOW_MS = 200
NOT_SENT = "a call that was cancelled before it was sent: its target was not up"

_EFFECTS = frozenset({What.CONNECT, What.PUBLISH, What.WITHDRAW, What.NO_BATCH})
_ENDS_EFFECTS = frozenset({What.APPLY, What.REMOVE, What.DISCONNECT, What.RECEIVED})
_ARRIVALS = frozenset({What.RECEIVED, What.VERIFY})
_FOLLOWED_BY = {
    What.RECEIVED: (_ARRIVALS, What.APPLY),
    What.VERIFY: (_ARRIVALS, What.VERIFY_DIFFERS),
    What.REMOVE: (_ENDS_EFFECTS | {What.CONNECT}, What.DISCONNECT),
    What.EXPIRE: (_ENDS_EFFECTS, What.WITHDRAW),
}
"""The one fact that belongs to another, and those after which it does not."""


class Action(NamedTuple):
    """A fact with the facts that belong to it: for APPLY, its effects on the client; for RECEIVED, the APPLY that is
    the next action; for VERIFY, the differing revision; for EXPIRE, the WITHDRAW; for REMOVE, its DISCONNECT."""

    fact: Fact
    effects: tuple[Fact, ...] = ()


def actions(facts: Iterable[Fact], skipped: Counter[str]) -> Iterator[Action]:
    """The actions of one node in their order; cancelled calls are left out."""
    waiting: deque[Fact] = deque()
    alike: defaultdict[str, deque[Fact]] = defaultdict(deque)
    taken: set[int] = set()  # by identity: facts of the window that belong to an earlier one

    def first() -> Iterator[Action]:
        fact = waiting.popleft()
        ahead = alike[_subject(fact)]
        ahead.popleft()
        if not ahead:
            del alike[_subject(fact)]
        if id(fact) in taken:
            taken.remove(id(fact))
            return
        belonging = _belonging(fact, ahead, taken)
        if fact.what is not What.RECEIVED:
            taken.update(map(id, belonging))
        if fact.what in (What.CALL, What.LOAD) and belonging:
            skipped[NOT_SENT] += 1 + len(belonging)
        elif fact.what is not What.CALL_CANCELLED:
            yield Action(fact, belonging)

    for fact in facts:
        while waiting and waiting[0].at_ms < fact.at_ms - WINDOW_MS:
            yield from first()
        waiting.append(fact)
        alike[_subject(fact)].append(fact)
    while waiting:
        yield from first()


def _subject(fact: Fact) -> str:
    return fact.client or fact.details.get("target", "")


def _belonging(fact: Fact, ahead: Iterable[Fact], taken: set[int]) -> tuple[Fact, ...]:
    near = [other for other in ahead if id(other) not in taken and other.at_ms <= fact.at_ms + WINDOW_MS]
    if fact.what is What.APPLY:
        return tuple(_until(near, _ENDS_EFFECTS, _EFFECTS))
    if fact.what in _FOLLOWED_BY:
        end, wanted = _FOLLOWED_BY[fact.what]
        return tuple(_until(near, end, frozenset({wanted})))[:1]
    if fact.what is What.CALL:
        mine = [other for other in near if other.details.get("target") == fact["target"]]
        ends = tuple(_until(mine, frozenset({What.CALL}), frozenset({What.CALL_CANCELLED, What.CALL_ENDS})))
        return ends if any(end.what is What.CALL_CANCELLED for end in ends) else ()
    if fact.what is What.LOAD:
        return tuple(other for other in near if other.what is What.LOAD_FAILS and "cancelled" in other.details)[:1]
    return ()


def _until(facts: Iterable[Fact], end: frozenset[What], wanted: frozenset[What]) -> Iterator[Fact]:
    for fact in facts:
        if fact.what in end:
            return
        if fact.what in wanted:
            yield fact
