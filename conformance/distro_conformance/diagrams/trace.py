"""A recorded run as a sequence diagram: the events of one client around the first wrong event.

A run has thousands of rows about other clients; a reader needs those of one client, the faults, and the starts and
stops of nodes, from a little before the first bad event to a little after it. Rows are in causal order. A VERIFY that
succeeded shows no change and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from distro_conformance.diagrams.sequence import Delivery, Fault, Item, Message, Note, Sequence
from distro_traces.event import STATE_KINDS, Event, Kind, Outcome
from distro_traces.exports.causal import causal_order, describe

BEFORE, AFTER = 14, 8
"""The number of items around the bad event."""
FAULTS_BEFORE = 3
"""The number of faults and node events, the last ones, before the first event of the client."""
DIGEST_LETTERS, NAME_LETTERS = 8, 14

_ENVIRONMENT = frozenset({Kind.LINK_FAULT, Kind.NODE_STARTED, Kind.NODE_STOPPED, Kind.CHECKPOINT})
_OF_CLIENT = frozenset({Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.CLIENT_DISCONNECTED})
"""The actions of a client at its node."""
Reference = tuple[str, int]
"""Node and sequence number: they name a row of a run."""


def sequence_of_client(
    events: Iterable[Event],
    client: str | None,
    bad: Reference | None = None,
    *,
    before: int = BEFORE,
) -> Sequence:
    """`client` None: all clients. `bad` None: the last items, at most `before`."""
    rows = causal_order(event for event in events if event.client == client or _is_for_all(event, client))
    ends: dict[str | None, Event] = {event.message: event for event in rows if event.kind is Kind.REPLY_RECEIVED}
    arrived = {event.message for event in rows if event.kind is Kind.REQUEST_RECEIVED}
    items: list[Item] = []
    at_bad: int | None = None
    for event in rows:
        item = _item(event, client, ends, arrived, is_bad=(event.node, event.seq) == bad)
        if item is not None:
            items.append(item)
            at_bad = len(items) - 1 if item.bad else at_bad
    clients = dict.fromkeys(item.source for item in items if isinstance(item, Message) and item.at_client)
    lifelines = sorted({event.node for event in rows})
    middle = len(items) if at_bad is None else at_bad
    own = next((at for at, item in enumerate(items) if not isinstance(item, Fault)), 0)
    first = max(0, middle - before, min(own, middle) - FAULTS_BEFORE)
    whole = Sequence((*clients, *lifelines), tuple(items), f"What happened to {client or 'the clients'}")
    return whole.window(first, middle + AFTER - first)


def _is_for_all(event: Event, client: str | None) -> bool:
    return event.kind in _ENVIRONMENT or (client is None and event.client is not None)


def _item(
    event: Event,
    client: str | None,
    ends: Mapping[str | None, Event],
    arrived: Iterable[str | None],
    *,
    is_bad: bool,
) -> Item | None:
    node = event.node
    if event.kind is Kind.REQUEST_SENT and event.peer not in (None, node):
        end = ends.get(event.message)
        outcome = end.outcome if end else None
        if event.operation == "VERIFY" and outcome is Outcome.SUCCESS and not is_bad:
            return None
        revision = "" if event.revision is None else f" revision {event.revision}"
        reply = f"answer: {outcome}" if outcome else "no answer"
        about = "" if client is not None or event.client is None else f" {event.client}"
        text = f"{event.operation}{about}{revision}, {event.at_ms} ms"
        return Message(node, event.peer, text, _delivery(event, outcome, arrived), reply, is_bad)
    if event.kind in _ENVIRONMENT:
        return Fault(_environment(event), is_bad)
    if event.kind in _OF_CLIENT and event.client is not None:
        text = f"{_state(event, event.client)}, {event.at_ms} ms"
        return Message(_short(event.client), node, text.removeprefix("client "), bad=is_bad, at_client=True)
    if event.kind in STATE_KINDS or is_bad:
        return Note(node, _state(event, client), is_bad)
    return None


def _environment(event: Event) -> str:
    what = event.kind.value.replace("_", " ")
    if event.kind is Kind.LINK_FAULT:
        ends = f"link {event.node} to {event.peer}" if event.peer else event.node
        return f"{ends}: {event.detail or what}"
    detail = f" {event.detail}" if event.kind is Kind.CHECKPOINT else f" ({event.detail})"
    return f"{event.node}: {what}{detail if event.detail else ''}"


def _short(client: str) -> str:
    """A short form of the id: ids of connections are long and differ at their end."""
    return client if len(client) <= NAME_LETTERS else f"…{client.rpartition('_')[2]}"


def _state(event: Event, client: str | None) -> str:
    text = describe(event).replace(f" {client}", "", 1)
    return text if event.digest is None else text.replace(event.digest, event.digest[:DIGEST_LETTERS])


def _delivery(event: Event, outcome: Outcome | None, arrived: Iterable[str | None]) -> Delivery:
    if outcome is Outcome.SUCCESS:
        return Delivery.ARRIVED if event.message in arrived else Delivery.SWALLOWED
    return Delivery.FAILED if event.message in arrived else Delivery.LOST
