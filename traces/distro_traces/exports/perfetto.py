"""Perfetto: a time line for each node and client, with arrows between the two ends of a call.

The output has the JSON trace event format, which ui.perfetto.dev and chrome://tracing open. A node is a process, and a
client a thread. A call is a slice with a flow to its target. The content of a client on a node is a slice until the
content changes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from distro_traces.event import RESET_KINDS, STATE_KINDS, Event, Kind
from distro_traces.exports.causal import describe
from distro_traces.header import Header

_CALLS = "calls"
_NODE = "node"


def export(header: Header, events: Sequence[Event]) -> str:
    """The run as a JSON object of trace events."""
    events = sorted(events, key=lambda event: (event.node, event.seq))
    processes = {node: number for number, node in enumerate(sorted({event.node for event in events}), start=1)}
    threads: dict[tuple[str, str], int] = {}
    rows: list[dict[str, Any]] = [_named("process_name", number, 0, node) for node, number in processes.items()]

    def place(event: Event, thread: str) -> dict[str, Any]:
        key = (event.node, thread)
        if key not in threads:
            threads[key] = len(threads) + 1
            rows.append(_named("thread_name", processes[event.node], threads[key], thread))
        return {"pid": processes[event.node], "tid": threads[key], "ts": event.at_ms * 1000}

    last_ms = max((event.at_ms for event in events), default=0)
    ends = {(event.node, event.message): event.at_ms for event in events if event.kind in _ENDS}
    for event, until_ms in zip(events, _held_until(events, last_ms), strict=True):
        arguments = {"args": {**event.to_json()}, "name": describe(event), "cat": event.kind.value}
        if event.kind in _BEGINS:
            end_ms = ends.get((event.node, event.message), event.at_ms)
            at = place(event, _CALLS)
            rows.append({"ph": "X", "dur": _span_us(event.at_ms, end_ms), **arguments, **at})
            flow = "s" if event.kind is Kind.REQUEST_SENT else "f"
            rows.append({"ph": flow, "bp": "e", "id": event.message, "name": "call", "cat": "call", **at})
        elif event.kind in STATE_KINDS and event.digest is not None:
            at = place(event, event.client or _NODE)
            rows.append({"ph": "X", "dur": _span_us(event.at_ms, until_ms), **arguments, **at})
        else:
            rows.append({"ph": "i", "s": "t", **arguments, **place(event, event.client or _NODE)})
    metadata = {"run": header.run, "profile": header.profile, "target": header.target}
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ms", "otherData": metadata})


_BEGINS = frozenset({Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED})
_ENDS = frozenset({Kind.REPLY_SENT, Kind.REPLY_RECEIVED})


def _span_us(begin_ms: int, end_ms: int) -> int:
    return max(end_ms - begin_ms, 0) * 1000 + 1


def _held_until(events: Sequence[Event], last_ms: int) -> list[int]:
    """By event: the time until which the node held the content of that row."""
    until = [last_ms] * len(events)
    holding: dict[tuple[str, str | None], int] = {}
    for index, event in enumerate(events):
        if event.kind in STATE_KINDS:
            before = holding.pop((event.node, event.client), None)
            if before is not None:
                until[before] = event.at_ms
            holding[event.node, event.client] = index
        elif event.kind in RESET_KINDS:
            for key in [key for key in holding if key[0] == event.node]:
                until[holding.pop(key)] = event.at_ms
    return until


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
