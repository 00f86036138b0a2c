"""ShiViz: a log with vector clocks, drawn as a space-time diagram. Its default expressions read it.

Two lines a row: `host {clock}` and the event, under a first line with the expression, which ShiViz takes for its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from distro_traces.event import Event
from distro_traces.exports.causal import causal_order, describe, vector_clocks
from distro_traces.header import Header

EXPRESSION = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"


def export(_: Header, events: Sequence[Event]) -> str:
    """The run as a ShiViz log."""
    ordered = causal_order(events)
    rows = [
        f"{event.node} {json.dumps(clock)}\n{event.seq} at {event.at_ms} ms: {describe(event)}\n"
        for event, clock in zip(ordered, vector_clocks(ordered), strict=True)
    ]
    return f"{EXPRESSION}\n\n" + "".join(rows)
