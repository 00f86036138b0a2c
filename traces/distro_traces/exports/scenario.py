"""A scenario: what was done to the cluster and its clients, to be done again on the model, a node or a real server.

A trace has digests of contents, so each digest becomes an instance of its own; the rules depend on nothing else but
time. A change that did not raise the owner's revision is written as a batch, the one request that some releases do not
count. All members are expected to agree at each checkpoint, and the last checkpoint is the end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import Event, Kind
from distro_traces.exports.causal import causal_order
from distro_traces.header import Header

AGREE_WITHIN_S = 15
"""Further verifies have their chance to repair it."""

_VERBS = {"cut": "cut", "healed": "heal", "held": "hold", "released": "release", "black": "blackhole"}
_ENDS = {"healed": "cut", "released": "held"}
_OF_CLIENT = {"silent": "silent", "answers": "answers"}
_OF_NODE = {"paused": "pause", "resumed": "resume"}
_TIMED = ("delay", "throttle")
_DECISIONS = ("deliver", "answer-late", "reply")
_WORD = re.compile(r"[A-Za-z][\w-]*")


def export(header: Header, events: Sequence[Event]) -> str:
    """The run as `distrocheck replay` takes it. Clients of the HTTP API, which live by their beats, are left out."""
    ordered = causal_order(events)
    checkpoints = [event.detail for event in ordered if event.kind is Kind.CHECKPOINT]
    is_last = [
        bool(checkpoints) and (event.kind, event.detail) == (Kind.CHECKPOINT, checkpoints[-1]) for event in ordered
    ]
    exported = ordered[: is_last.index(True) + 1] if checkpoints else ordered
    writer = _Writer(header, exported)
    lines = [line for event in exported for line in writer.lines(event)]
    if not checkpoints:
        lines.append(writer.agreement)
    return "\n".join([*writer.head(), *lines]) + "\n"


class _Writer:
    """Goes through a run in causal order."""

    def __init__(self, header: Header, events: Sequence[Event]) -> None:
        nodes = sorted({*header.nodes, *(event.node for event in events)})
        clients = dict.fromkeys(event.client for event in events if event.client is not None)
        self._header = header
        self._nodes = _named(nodes, [chr(ord("a") + at) for at in range(len(nodes))])
        grpc_clients = [client for client in clients if "#" not in client]
        self._clients = _named(grpc_clients, [f"c{at}" for at in range(1, len(grpc_clients) + 1)])
        self._contents: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._revisions: dict[str, int | None] = {}
        self._at: dict[str, str] = {}  # where the clients are connected
        self._started: set[str] = set()
        self._checkpoints: set[str | None] = set()
        self._broken: set[tuple[str, str, str]] = set()  # links by their ends, and how
        self._now_ms: int | None = None

    agreement = f"expect within {AGREE_WITHIN_S}s: all agree"

    def head(self) -> list[str]:
        lines = [f"# Run {self._header.run} of {self._header.target}, from its trace."]
        for names in (self._nodes, self._clients):
            lines += [f"# {short} is {name}" for name, short in names.items() if short != name]
        return [*lines, f"profile {self._header.profile}", " ".join(["nodes", *self._nodes.values()])]

    def lines(self, event: Event) -> Iterator[str]:
        """What was done with this row, after the time that has passed since the one before."""
        step = self._step(event)
        if step is None:
            return
        if self._now_ms is not None and event.at_ms > self._now_ms:
            yield f"advance {event.at_ms - self._now_ms}ms"
        self._now_ms = event.at_ms if self._now_ms is None else max(self._now_ms, event.at_ms)
        yield step

    def _step(self, event: Event) -> str | None:
        node = self._nodes[event.node]
        match event.kind:
            case Kind.CLIENT_CONNECTED | Kind.CLIENT_CHANGED | Kind.CLIENT_DISCONNECTED:
                return self._of_client(event, node)
            case Kind.LINK_FAULT:
                return self._fault(event, node)
            case Kind.MEMBERS_CHANGED if self._header.observed.lossless:  # logs show who is UP, not the lists
                listed = [self._nodes[each] for each in (event.detail or "").split(",") if each in self._nodes]
                return f"members {node}: {' '.join(listed)}"
            case Kind.NODE_STOPPED:
                self._at = {client: at for client, at in self._at.items() if at != event.node}
                return f"crash {node}"
            case Kind.NODE_STARTED:
                is_again = event.node in self._started
                self._started.add(event.node)
                return f"restart {node}" if is_again else None
            case Kind.CHECKPOINT if event.detail not in self._checkpoints:
                self._checkpoints.add(event.detail)
                return f"checkpoint\n{self.agreement}"
        return None

    def _of_client(self, event: Event, node: str) -> str | None:
        name = event.client or ""
        client = self._clients.get(name)
        if client is None:
            return None
        if event.kind is Kind.CLIENT_CONNECTED:
            self._at[name], self._revisions[name] = event.node, event.revision
            return f"connect {client} {node}"
        if event.kind is Kind.CLIENT_DISCONNECTED:
            return f"disconnect {client}" if self._at.pop(name, None) else None
        if event.digest in (None, NOTHING_PUBLISHED):
            return f"deregister {client} web"
        is_counted = event.revision != self._revisions.get(name) or not self._header.has_revisions
        self._revisions[name] = event.revision
        return self._publish(client, event.digest or "", is_batch=not is_counted)

    def _publish(self, client: str, content: str, *, is_batch: bool) -> str:
        known = self._contents[client]
        number = list(self._clients.values()).index(client) + 1
        address = f"10.0.{number}.{known.setdefault(content, len(known) + 1)}"
        return f"batch {client} web {address}:80, {address}:81" if is_batch else f"register {client} web {address}:80"

    def _fault(self, event: Event, node: str) -> str | None:
        word, *rest = (event.detail or "").split()
        if event.client is not None:
            client = self._clients.get(event.client)
            return f"{_OF_CLIENT[word]} {client}" if client and word in _OF_CLIENT else None
        if event.peer is None:
            return f"{_OF_NODE[word]} {node}" if word in _OF_NODE else None
        link = f"{node}->{self._nodes.get(event.peer, event.peer)}"
        if word in _ENDS:
            broken = (event.node, event.peer, _ENDS[word])
            if broken not in self._broken:
                return None  # healing everything also heals links that work
            self._broken.remove(broken)
            return f"{_VERBS[word]} {link}"
        if word in _VERBS:
            self._broken.add((event.node, event.peer, "held" if word == "held" else "cut"))
            return f"{_VERBS[word]} {link}"
        if word in _TIMED:
            return f"{word} {link} {rest[0]}ms"
        is_held = rest[:1] == ["held"]
        held = ["held"] if is_held and word not in _DECISIONS else []
        operation, *about = rest[is_held:] or ["any"]
        if any(each not in self._clients for each in about):
            return None  # about a client that is left out
        words = [] if operation == "any" else [operation, *(self._clients[each] for each in about)]
        return " ".join([word, *held, link, *words])


def _named(names: Sequence[str], short: Sequence[str]) -> dict[str, str]:
    """As they are called where a scenario can say so, else by short names."""
    return dict(zip(names, names if all(map(_WORD.fullmatch, names)) else short, strict=True))
