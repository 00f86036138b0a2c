"""The state of one node: its clients, its pending tasks, its view of the members, the progress of its first load.

All values are immutable and all collections are sorted tuples, so that equal states are equal, hashable values; the
explorer counts states by them. Nodes are small (a handful of clients), so a sorted tuple is faster here than any
persistent map. The rules are in `rules/`, none is in this file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import fields
from enum import StrEnum
from operator import attrgetter
from typing import Any

from distro_model.events import HttpReceived, InstanceRequest, Output
from distro_model.local_events import LocalEvent
from distro_model.messages import Content
from distro_model.value import value
from distro_model.work import Apply, Read


@value(frozen=True, slots=True)
class Client:
    """A client as one node holds it. Native: its connection ends here; otherwise a synced copy."""

    name: str
    native: bool
    revision: int
    content: Content
    renewed_ms: int  # start of the running lease; means nothing for a native client
    beats: tuple[tuple[str, int], ...] = ()
    """Ip:port clients only: pairs (service, time of the last beat in ms)."""
    watched: bool = True
    """The owner checks the beats of this object; false only for a client that was created twice (B30)."""
    turn_ms: int = 0
    """The offset of this client's beat checks within each period of checks, counted from the node's start."""
    accepted: bool = False
    """The ip:port client requested its content from this node, and no peer has sent another content since; only where a
    profile remembers that."""


class Action(StrEnum):
    """The action of a delay task."""

    CHANGE = "CHANGE"
    DELETE = "DELETE"


@value(frozen=True, slots=True)
class Task:
    """The one pending delay task of (client, target). Source: docs/protocol #sync-merge."""

    client: str
    target: str
    action: Action
    since_ms: int  # `lastProcessTime`: where the delay starts to run
    delay_ms: int

    def __str__(self) -> str:
        return f"{self.action} of {self.client} to {self.target}, due at {self.due_ms} ms"

    @property
    def due_ms(self) -> int:
        return self.since_ms + self.delay_ms


class MemberState(StrEnum):
    UP = "UP"
    SUSPICIOUS = "SUSPICIOUS"
    DOWN = "DOWN"


@value(frozen=True, slots=True)
class Member:
    """Another member as this node sees it; `failures` counts failed reports to it in a row."""

    name: str
    state: MemberState = MemberState.UP
    failures: int = 0


@value(frozen=True, slots=True)
class Detection:
    """A client that was probed, and how far its answer was processed (docs/protocol #ejector-check)."""

    client: str
    recorded: bool = False  # it is among those that answered
    counted: bool = False  # the check no longer waits for it


@value(frozen=True, slots=True)
class Local:
    """The work inside a node between a request and the tasks. Empty, unless a bounded cluster requires it."""

    events: tuple[LocalEvent, ...] = ()
    """Published, not handled yet: in order within each queue, queue by queue."""
    requests: tuple[InstanceRequest, ...] = ()
    """Requests that have looked up their client, ascending."""
    setups: tuple[tuple[str, bool], ...] = ()
    """(client, whether its transport is open) of connections that are checked and not inserted, ascending."""
    index: tuple[tuple[str, str], ...] = ()
    """(service, client), ascending: the entries that queries and pushes use."""
    pushed: tuple[tuple[str, str, str], ...] = ()
    """(service, client, instance), ascending: the last push to a local subscriber of all services."""

    @property
    def is_busy(self) -> bool:
        return bool(self.events or self.requests or self.setups)


IDLE = Local()


Addresses = tuple[tuple[str, str], ...]


@value(frozen=True, slots=True)
class NodeState:
    """One running node. A node that is down has no state: everything is in memory."""

    name: str
    others: tuple[str, ...]  # the other members, ascending
    started_ms: int  # the phase of every timer of this node
    loaded: bool  # `finish_initial`: the first load is complete, verify is allowed
    asking: str | None  # the peer whose snapshot is awaited
    load_at_ms: int | None  # when the load starts again after every peer failed
    clients: tuple[Client, ...]
    tasks: tuple[Task, ...]
    members: tuple[Member, ...]
    to_ask: tuple[str, ...] = ()  # the members to ask for one after that, ascending
    missed: bool = False
    """In this round of the load a member that is not DOWN could not be asked, or an answer was lost: it may have a
    snapshot."""
    gone: tuple[tuple[str, int], ...] = ()
    """Tombstones: (client, since_ms), ascending. They are not shown to callers."""
    detections: tuple[Detection, ...] = ()  # of the connection check under way
    checked_ms: int = 0
    """When that began; else when the last check ended that had probed a client: the next ones are in phase with it."""
    metadata: tuple[tuple[str, str], ...] = ()  # address, its metadata; the same on every node
    expiring: tuple[str, ...] = ()  # addresses in `metadata` without a publisher, as this node believes
    sent: tuple[tuple[str, int], ...] = ()  # peer, time of the last request; only where sending counts as activity
    local: Local = IDLE
    addresses: Addresses = ()
    """(node, where it listens), ascending, of nodes that do not listen at their name."""
    applies: tuple[Apply, ...] = ()
    """CHANGEs that are being applied in steps, ascending; only where a profile does not apply them at once (B05)."""
    reads: tuple[Read, ...] = ()
    """CHANGEs of which only the content was read so far; only where a profile does not read at once (B05)."""
    under_way: tuple[tuple[str, str], ...] = ()
    """(client, target), ascending, of syncs whose end a worker waits for; only where a profile has workers wait."""
    unacknowledged: tuple[tuple[str, str], ...] = ()
    """(client, peer), ascending: ip:port clients whose last change is sent from here until the peer acknowledges it."""
    superseded: tuple[tuple[str, int], ...] = ()
    """(client, revision), ascending: what a later change of the ip:port client has replaced, here or elsewhere."""
    unannounced: tuple[str, ...] = ()  # changed ip:port clients whose event is not handled yet
    entered: tuple[HttpReceived, ...] = ()  # requests that have looked up their client and not created it yet

    def client(self, name: str) -> Client | None:
        at = bisect_left(self.clients, name, key=_name)
        return self.clients[at] if at < len(self.clients) and self.clients[at].name == name else None

    def task(self, client: str, target: str) -> Task | None:
        for task in self.tasks:
            if task.client == client and task.target == target:
                return task
        return None

    def member(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(f"{self.name} has no member {name}")

    def address_of(self, name: str) -> str:
        for node, address in self.addresses:
            if node == name:
                return address
        return name

    def is_unacknowledged(self, client: str, peer: str) -> bool:
        """The peer has not acknowledged the last change of the ip:port client, which this node sends to it."""
        return (client, peer) in self.unacknowledged

    def superseded_of(self, client: str) -> tuple[int, ...]:
        return tuple(revision for name, revision in self.superseded if name == client)

    def is_gone(self, name: str) -> bool:
        return any(gone == name for gone, _ in self.gone)

    def detection(self, client: str) -> Detection | None:
        for detection in self.detections:
            if detection.client == client:
                return detection
        return None

    def changed(self, **changes: Any) -> NodeState:
        """Like `dataclasses.replace`, and much faster: every step calls this."""
        values = list(_values(self))
        for name, after in changes.items():
            values[_POSITIONS[name]] = after
        return NodeState(*values)

    def with_detection(self, detection: Detection) -> NodeState:
        return self.changed(detections=tuple(detection if d.client == detection.client else d for d in self.detections))

    def with_client(self, client: Client) -> NodeState:
        return self.changed(clients=_put_client(self.clients, client))

    def without_client(self, name: str) -> NodeState:
        return self.changed(clients=tuple(client for client in self.clients if client.name != name))

    def with_gone(self, name: str, at_ms: int) -> NodeState:
        """Remember that this client was deleted now."""
        others = [each for each in self.gone if each[0] != name]
        return self.changed(gone=tuple(sorted([*others, (name, at_ms)])))

    def with_task(self, task: Task) -> NodeState:
        return self.changed(tasks=_put_task(self.tasks, task))

    def with_unacknowledged(self, pending: Iterable[tuple[str, str]]) -> NodeState:
        """The superseded revisions of a client are kept while it is held, until its tombstone is removed, and until all
        peers have acknowledged its removal."""
        kept = tuple(sorted(set(pending)))
        known = {client for client, _ in (*kept, *self.gone)} | {client.name for client in self.clients}
        superseded = tuple(each for each in self.superseded if each[0] in known)
        return self.changed(unacknowledged=kept, superseded=superseded)

    def superseding(self, client: str, replaced: Iterable[int], revision: int | None = None) -> NodeState:
        """The node holds this revision of the client, or removes it; it has replaced those."""
        known = {*self.superseded, *((client, each) for each in replaced)} - {(client, revision)}
        return self.changed(superseded=tuple(sorted(known)))

    def without_task(self, task: Task) -> NodeState:
        return self.changed(tasks=tuple(other for other in self.tasks if other is not task))

    def with_member(self, member: Member) -> NodeState:
        if member in self.members:
            return self
        return self.changed(members=tuple(member if m.name == member.name else m for m in self.members))


@value(frozen=True, slots=True)
class Step:
    """The result of one step: the next state, and the node's messages, in order."""

    node: NodeState
    outputs: tuple[Output, ...] = ()


def fresh_node(name: str, others: Sequence[str], at_ms: int, addresses: Addresses = ()) -> NodeState:
    """A node that has just started: empty, all members believed UP, nothing loaded. Alone, it has nothing to load."""
    peers = tuple(sorted(others))
    return NodeState(
        name=name,
        others=peers,
        started_ms=at_ms,
        loaded=not peers,  # standalone: "initialised" at once (docs/protocol #sync-announce)
        asking=None,
        load_at_ms=None,
        clients=(),
        tasks=(),
        members=tuple(Member(peer) for peer in peers),
        addresses=addresses,
    )


def address_book(nodes: Sequence[str]) -> Addresses:
    """The addresses of the nodes of a cluster: that of the second is a part of the third's, that of the fourth of the
    fifth's, and so on."""
    return tuple(
        (name, f"{'1' if position % 2 == 0 else ''}10.0.0.{(position + 1) // 2}:8848")
        for position, name in enumerate(nodes)
    )


def _put_client(clients: tuple[Client, ...], client: Client) -> tuple[Client, ...]:
    at = bisect_left(clients, client.name, key=_name)
    is_there = at < len(clients) and clients[at].name == client.name
    return (*clients[:at], client, *clients[at + is_there :])


def _put_task(tasks: tuple[Task, ...], task: Task) -> tuple[Task, ...]:
    key = _key(task)
    at = bisect_left(tasks, key, key=_key)
    is_there = at < len(tasks) and _key(tasks[at]) == key
    return (*tasks[:at], task, *tasks[at + is_there :])


_FIELDS = tuple(each.name for each in fields(NodeState))
_POSITIONS = {name: position for position, name in enumerate(_FIELDS)}
_values = attrgetter(*_FIELDS)
_name = attrgetter("name")
_key = attrgetter("client", "target")
