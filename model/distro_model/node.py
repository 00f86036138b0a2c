"""What one node knows: its clients, its pending tasks, its view of the members, how far its first load got.

All values are immutable and all collections are sorted tuples, so that equal knowledge is an equal, hashable value;
the explorer counts states by it. Nodes are small (a handful of clients), so a scan of a tuple is faster here than any
persistent map. Nothing in this file decides anything: the decisions are in `rules/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from distro_model.events import HttpReceived, Output
from distro_model.messages import Content


@dataclass(frozen=True, slots=True)
class Client:
    """A client as one node holds it. Native: its connection ends here; otherwise a synced copy."""

    name: str
    native: bool
    revision: int
    content: Content
    renewed_ms: int  # start of the running lease; means nothing for a native client
    beats: tuple[tuple[str, int], ...] = ()
    """Of an ip:port client: pairs (service, time of the last beat in ms)."""
    watched: bool = True
    """The owner checks the beats of this object; false only for a client that was created twice (B30)."""


class Action(StrEnum):
    """What a delay task will send."""

    CHANGE = "CHANGE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Task:
    """The one pending delay task of (client, target). Source: wire-protocol.md 6.2."""

    client: str
    target: str
    action: Action
    since_ms: int  # `lastProcessTime`: where the delay starts to run
    delay_ms: int

    @property
    def due_ms(self) -> int:
        return self.since_ms + self.delay_ms


class MemberState(StrEnum):
    UP = "UP"
    SUSPICIOUS = "SUSPICIOUS"
    DOWN = "DOWN"


@dataclass(frozen=True, slots=True)
class Member:
    """Another member as this node sees it; `failures` counts failed reports to it in a row."""

    name: str
    state: MemberState = MemberState.UP
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Superseded:
    """A revision of an ip:port client that was replaced here, and that `peer` may still hold: it has not heard yet."""

    client: str
    peer: str
    revision: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """One running node. A node that is down has no state at all: everything is in memory."""

    name: str
    others: tuple[str, ...]  # the other members, ascending
    started_ms: int  # the phase of every timer of this node
    loaded: bool  # `finish_initial`: the first load is complete, verify is allowed
    asking: str | None  # the peer whose snapshot is awaited
    load_at_ms: int | None  # when the load starts again after every peer failed
    clients: tuple[Client, ...]
    tasks: tuple[Task, ...]
    members: tuple[Member, ...]
    superseded: tuple[Superseded, ...] = ()
    unannounced: tuple[str, ...] = ()  # changed ip:port clients whose event is not handled yet
    entered: tuple[HttpReceived, ...] = ()  # requests that have looked for their client and not created it yet

    def client(self, name: str) -> Client | None:
        for client in self.clients:
            if client.name == name:
                return client
        return None

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

    def with_client(self, client: Client) -> NodeState:
        return replace(self, clients=_put_client(self.clients, client))

    def without_client(self, name: str) -> NodeState:
        return replace(self, clients=tuple(client for client in self.clients if client.name != name))

    def with_task(self, task: Task) -> NodeState:
        return replace(self, tasks=_put_task(self.tasks, task))

    def without_task(self, task: Task) -> NodeState:
        return replace(self, tasks=tuple(other for other in self.tasks if other is not task))

    def with_member(self, member: Member) -> NodeState:
        if member in self.members:
            return self
        return replace(self, members=tuple(member if m.name == member.name else m for m in self.members))


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step: the next state, and what the node says, in order."""

    node: NodeState
    outputs: tuple[Output, ...] = ()


def fresh_node(name: str, others: Sequence[str], at_ms: int) -> NodeState:
    """A node that has just started: empty, everybody believed UP, nothing loaded. Alone, it has nothing to load."""
    peers = tuple(sorted(others))
    return NodeState(
        name=name,
        others=peers,
        started_ms=at_ms,
        loaded=not peers,  # standalone: "initialised" at once (wire-protocol.md 6.1)
        asking=None,
        load_at_ms=None,
        clients=(),
        tasks=(),
        members=tuple(Member(peer) for peer in peers),
    )


def _put_client(clients: tuple[Client, ...], client: Client) -> tuple[Client, ...]:
    others = [other for other in clients if other.name != client.name]
    return tuple(sorted([*others, client], key=lambda each: each.name))


def _put_task(tasks: tuple[Task, ...], task: Task) -> tuple[Task, ...]:
    others = [other for other in tasks if (other.client, other.target) != (task.client, task.target)]
    return tuple(sorted([*others, task], key=lambda each: (each.client, each.target)))
