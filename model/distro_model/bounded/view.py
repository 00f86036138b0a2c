"""Rows in readable form: one row as a situation, the lines of its text, and the changes of a transition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from distro_model.bounded.bounds import Bounds
from distro_model.cluster.values import Call, Life, Link, Phase
from distro_model.messages import text_of
from distro_model.node import MemberState, NodeState
from distro_model.search.system import Row


@dataclass(frozen=True)
class Situation:
    """One row, by name."""

    nodes: Mapping[str, NodeState | None]
    links: Mapping[tuple[str, str], Link]
    lives: Mapping[str, Life]

    def lines(self) -> Iterable[str]:
        for name, node in self.nodes.items():
            yield f"{name}: down" if node is None else f"{name}: {'loaded' if node.loaded else 'not loaded'}"
            if node is not None:
                yield from (f"{name}: {line}" for line in node_lines(node))
        for (source, target), link in self.links.items():
            if link.half_open:
                yield f"{source}->{target}: half-open"
            yield from (f"{source}->{target}: {call_line(call)}" for call in link.calls)


def situation_of(row: Row, bounds: Bounds) -> Situation:
    """Read a row of `bounded_cluster(bounds, …)`."""
    names, size = bounds.node_names, bounds.nodes
    pairs = [(source, target) for source in names for target in names if source != target]
    nodes, links, lives = row[:size], row[size : size + len(pairs)], row[size + len(pairs) :]
    return Situation(
        {name: _a(NodeState, node) for name, node in zip(names, nodes, strict=True) if node is not None}
        | {name: None for name, node in zip(names, nodes, strict=True) if node is None},
        {pair: _a(Link, link) for pair, link in zip(pairs, links, strict=True)},
        {client: _a(Life, life) for client, life in zip(bounds.client_names, lives, strict=False)},
    )


Column = TypeVar("Column")


def _a(kind: type[Column], value: object) -> Column:
    assert isinstance(value, kind)  # the order of the columns is that of `bounded_cluster`
    return value


def difference(before: Situation, after: Situation) -> Iterable[str]:
    """The lines that a transition removes (-) and adds (+), node by node and link by link."""
    old, new = list(before.lines()), list(after.lines())
    yield from (f"- {line}" for line in old if line not in new)
    yield from (f"+ {line}" for line in new if line not in old)


def call_line(call: Call) -> str:
    return f"{call.request}" + ("" if call.phase is Phase.SENT else f" ({call.phase})")


def node_lines(node: NodeState) -> Iterable[str]:
    for client in node.clients:
        kind = "native" if client.native else "synced"
        beats = "".join(f", beat of {service} at {at_ms} ms" for service, at_ms in client.beats)
        unwatched = "" if client.watched else ", not watched"
        yield f"{client.name} {kind}, revision {client.revision}, {text_of(client.content)}{beats}{unwatched}"
    for name in node.unannounced:
        yield f"the change of {name} is not handled yet"
    for request in node.entered:
        yield f"a request of {request.client} waits inside"
    for name, peer in node.unacknowledged:
        yield f"{peer} has not acknowledged {name}"
    for name, revision in node.superseded:
        yield f"revision {revision} of {name} is superseded"
    for member in node.members:
        if member.state is not MemberState.UP:
            yield f"{member.name} is {member.state}"
    for address, value in node.metadata:
        yield f"{value} set for {address}{', marked as gone' if address in node.expiring else ''}"
    for asked in node.detections:
        known = " and ".join(word for word, so in (("recorded", asked.recorded), ("counted", asked.counted)) if so)
        yield f"{asked.client} was probed, {known or 'no answer yet'}"
    for task in node.tasks:
        yield f"{task.action} task of {task.client} for {task.target}"
    local = node.local
    yield from (f"a request of {request.client} has found its client" for request in local.requests)
    yield from (f"set-up of {client}, transport {'open' if up else 'closed'}" for client, up in local.setups)
    yield from (f"waiting: {event}" for event in local.events)
    yield from (f"index: {client} under {service}" for service, client in local.index)
    yield from (f"last push: {service} of {client}, {instance}" for service, client, instance in local.pushed)
    for apply in node.applies:
        yield f"applying {apply.client} revision {apply.revision}, {apply.done} steps done"
    for name, target in node.under_way:
        yield f"a worker waits for the end of the sync of {name} to {target}"
    for read in node.reads:
        yield f"has read {read.client} for {read.target}: {text_of(read.content)}"
