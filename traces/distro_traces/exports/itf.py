"""ITF, the format of counterexamples of Apalache and Quint: a state for each row, what every node holds then.

Source: the informal trace format, ADR 015 of Apalache.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from distro_traces.event import RESET_KINDS, STATE_KINDS, Event
from distro_traces.exports.causal import causal_order, describe
from distro_traces.header import Header

VARIABLES = ("at_ms", "event", "node", "seq", "holds")


def export(header: Header, events: Sequence[Event]) -> str:
    """The run as an ITF document: after each row, `holds` maps node to client to revision and digest."""
    holds: dict[str, dict[str, dict[str, Any]]] = {node: {} for node in header.nodes}
    states = []
    for number, event in enumerate(causal_order(events)):
        held = holds.setdefault(event.node, {})
        if event.kind in RESET_KINDS:
            held.clear()
        elif event.kind in STATE_KINDS and event.client is not None:
            held.pop(event.client, None)
            if event.digest is not None:
                held[event.client] = {"revision": _number(event.revision), "digest": event.digest}
        states.append(
            {
                "#meta": {"index": number},
                "at_ms": _number(event.at_ms),
                "event": describe(event),
                "node": event.node,
                "seq": _number(event.seq),
                "holds": _map({node: _map(clients) for node, clients in holds.items()}),
            }
        )
    meta = {"format": "ITF", "source": f"run {header.run}", "description": f"{header.target}, {header.profile}"}
    return json.dumps({"#meta": meta, "vars": list(VARIABLES), "states": states})


def _number(value: int | None) -> dict[str, str]:
    """Unknown revisions are -2^63: a variable has one type."""
    return {"#bigint": str(-(2**63) if value is None else value)}


def _map(entries: dict[str, Any]) -> dict[str, Any]:
    return {"#map": [[key, entries[key]] for key in sorted(entries)]}
