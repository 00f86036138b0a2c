"""Partial observation of a run: the rows that are recorded, and the header that declares which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from distro_traces.event import STATE_KINDS, Event, Kind
from distro_traces.observed import EVERYTHING, OPERATIONS, VALUES, Observed

SENDING = (Kind.REQUEST_SENT, Kind.REPLY_RECEIVED)
RECEIVING = (Kind.REQUEST_RECEIVED, Kind.REPLY_SENT)

WITHOUT: dict[str, Observed] = {
    "state": replace(EVERYTHING, reported=()),
    "state of a": replace(EVERYTHING, reported=("b", "c")),
    "state of b": replace(EVERYTHING, reported=("a", "c")),
    "sent": replace(EVERYTHING, sent=()),
    "sent by b": replace(EVERYTHING, sent=("a->*", "c->*")),
    "received": replace(EVERYTHING, received=()),
    "received by b": replace(EVERYTHING, received=("*->a", "*->c")),
    **{value: replace(EVERYTHING, values=tuple(v for v in VALUES if v != value)) for value in VALUES},
    **{each: replace(EVERYTHING, operations=tuple(o for o in OPERATIONS if o != each)) for each in OPERATIONS},
}
"""By what was not observed."""


def as_observed(event: Event, observed: Observed) -> Event | None:
    """The recorded row of an event; None: it is not recorded."""
    if event.kind in STATE_KINDS:
        hidden = {name: None for name in VALUES if name not in observed.values}
        return replace(event, **hidden) if observed.state_of(event.node) else None  # type: ignore[arg-type]
    operation = "CHANGE" if event.operation == "ADD" else event.operation
    is_hidden = (
        (operation is not None and operation not in observed.operations)
        or (event.kind in SENDING and not observed.sending(event.node, event.peer or ""))
        or (event.kind in RECEIVING and not observed.receiving(event.peer or "", event.node))
    )
    return None if is_hidden else event


def numbered(events: Iterable[Event]) -> list[Event]:
    """Renumber the rows without gaps."""
    numbers: dict[str, int] = {}
    rows = []
    for event in events:
        numbers[event.node] = numbers.get(event.node, 0) + 1
        rows.append(replace(event, seq=numbers[event.node]))
    return rows
