"""Mermaid: a sequence diagram, for a page or an issue. Calls are arrows, what a node then holds is a note."""

from __future__ import annotations

from collections.abc import Sequence

from distro_traces.event import Event, Kind
from distro_traces.exports.causal import causal_order, describe
from distro_traces.header import Header

_ARROWS = {Kind.REQUEST_SENT: "-)", Kind.REPLY_SENT: "--)"}
_ARRIVALS = frozenset({Kind.REQUEST_RECEIVED, Kind.REPLY_RECEIVED})
_LOST = "-x"
_CODES = {"#": "#35;", ";": "#59;"}


def export(header: Header, events: Sequence[Event]) -> str:
    """The run as a Mermaid sequence diagram."""
    nodes = sorted({event.node for event in events} | set(header.nodes))
    names = {node: f"N{number}" for number, node in enumerate(nodes)}
    received = {(event.message, event.kind) for event in events}
    unsent = {  # replies whose sending was not recorded
        event
        for event in events
        if event.kind is Kind.REPLY_RECEIVED and (event.message, Kind.REPLY_SENT) not in received
    }
    lines = ["sequenceDiagram", *(f"    participant {names[node]} as {_text(node)}" for node in nodes)]
    for event in causal_order(events):
        own = names[event.node]
        arrow = _ARROWS.get(event.kind)
        if arrow is not None and event.peer in names:
            arrival = Kind.REQUEST_RECEIVED if event.kind is Kind.REQUEST_SENT else Kind.REPLY_RECEIVED
            is_lost = header.observed.lossless and (event.message, arrival) not in received
            lines.append(f"    {own}{_LOST if is_lost else arrow}{names[event.peer]}: {_call(event)}")
        elif event.kind not in _ARRIVALS or event in unsent:
            lines.append(f"    Note over {own}: {_text(describe(event))}")
    return "\n".join(lines) + "\n"


def _call(event: Event) -> str:
    parts = (event.operation, event.client, event.revision, event.outcome)
    return _text(" ".join(str(part) for part in parts if part is not None)) or event.kind.value


def _text(text: str) -> str:
    """Without what Mermaid takes for its own."""
    return " ".join("".join(_CODES.get(sign, sign) for sign in text).replace("%%", "% %").split())
