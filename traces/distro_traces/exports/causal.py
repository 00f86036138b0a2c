"""Causal order: what came before what, from sequence numbers and message ids; clocks only choose among the rest.

Rows of a node are in the order of `seq`. A request is received after it was sent, a reply after the request was
received and after the reply was sent. Of one instant, a node stops before others observe that their calls to it end.
Rows that cannot be ordered so (a trace that was edited) follow by their clocks.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from distro_traces.event import Event, Kind

CAUSES = {
    Kind.REQUEST_RECEIVED: (Kind.REQUEST_SENT,),
    Kind.REPLY_RECEIVED: (Kind.REPLY_SENT, Kind.REQUEST_RECEIVED),
}
"""By the kind of a row: which rows of the same message come before it, the nearest one first."""


def causal_order(events: Iterable[Event]) -> list[Event]:
    """The events in an order that contradicts no cause. Memory: the events themselves."""
    events = sorted(events, key=lambda event: (event.node, event.seq))
    after: defaultdict[int, list[int]] = defaultdict(list)
    causes = [0] * len(events)
    for effect, cause in _edges(events):
        after[cause].append(effect)
        causes[effect] += 1

    def key(index: int) -> tuple[int, bool, str, int]:
        event = events[index]
        return event.at_ms, event.kind is not Kind.NODE_STOPPED, event.node, event.seq

    ready = [(key(index), index) for index, count in enumerate(causes) if count == 0]
    heapq.heapify(ready)
    ordered: list[Event] = []
    waiting = {index for index, count in enumerate(causes) if count}
    while ready or waiting:
        if not ready:  # a circle of causes: no execution is like that; the earliest goes first
            index = min(waiting, key=key)
            waiting.discard(index)
            heapq.heappush(ready, (key(index), index))
        _, index = heapq.heappop(ready)
        ordered.append(events[index])
        for effect in after[index]:
            causes[effect] -= 1
            if causes[effect] == 0 and effect in waiting:
                waiting.discard(effect)
                heapq.heappush(ready, (key(effect), effect))
    return ordered


def vector_clocks(ordered: Sequence[Event]) -> list[dict[str, int]]:
    """By event of a causal order: how many rows of each node it can know of, its own included."""
    now: defaultdict[str, dict[str, int]] = defaultdict(dict)
    of_message: dict[tuple[str, Kind], dict[str, int]] = {}
    clocks = []
    for event in ordered:
        clock = now[event.node]
        for kind in CAUSES.get(event.kind, ()) if event.message else ():
            for node, count in of_message.get((event.message or "", kind), {}).items():
                clock[node] = max(clock.get(node, 0), count)
        clock[event.node] = clock.get(event.node, 0) + 1
        if event.message is not None:
            of_message.setdefault((event.message, event.kind), dict(clock))
        clocks.append(dict(clock))
    return clocks


def describe(event: Event) -> str:
    """An event in one line, for people."""
    is_inbound = event.kind in (Kind.REQUEST_RECEIVED, Kind.REPLY_RECEIVED)
    peer = f" {'from' if is_inbound else 'to'} {event.peer}" if event.peer else ""
    parts = [
        event.kind.value.replace("_", " "),
        event.operation,
        event.client,
        None if event.revision is None else f"revision {event.revision}",
        event.digest,
        event.outcome,
        f"({event.detail})" if event.detail else None,
    ]
    return " ".join(str(part) for part in parts if part) + peer


def _edges(events: Sequence[Event]) -> Iterable[tuple[int, int]]:
    """Pairs of positions: effect, cause. `events` are sorted by node and sequence number."""
    first: dict[tuple[str, Kind], int] = {}
    for index, event in enumerate(events):
        if index and events[index - 1].node == event.node:
            yield index, index - 1
        if event.message is not None:
            first.setdefault((event.message, event.kind), index)
    for index, event in enumerate(events):
        for kind in CAUSES.get(event.kind, ()) if event.message else ():
            cause = first.get((event.message or "", kind))
            if cause is not None and events[cause].node != event.node:
                yield index, cause
                break
