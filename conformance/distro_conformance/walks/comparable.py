"""The clients that the nodes of a run in real time may differ about at the end, because their last state was lost.

A node that crashes loses the changes that it has not replicated. The other nodes keep the replicated ones and return
them when the node restarts. So of the clients of a crashed node, only those are left out of the comparison whose last
change, or end, may not have been replicated before the crash. The result reports their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from distro_model.actions import (
    Action,
    Advance,
    BaseLinkAction,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Fault,
    Heal,
    Hold,
    Pause,
    Refuse,
    Register,
    RegisterBatch,
    Release,
    Resume,
    Swallow,
)

REPLICATED_WITHIN_MS = 5_000
"""Without a fault: the longest sync delay of any release is two seconds."""
REPAIRED_WITHIN_MS = 15_000
"""Three verify periods: by then every repair of every release has been tried."""
AGES_ALIKE = 3
"""Copies without an owner expire with their leases, on each node at another time. Within this part of a lease after
the crash no copy expires."""


@dataclass
class _Client:
    node: str
    ended: bool = False
    free_ms: int = 0
    """The time since its last change in which no fault kept its node from sending the change to every member."""
    was_disturbed: bool = False
    """A fault has affected its node since then."""

    @property
    def is_replicated(self) -> bool:
        return self.free_ms >= (REPAIRED_WITHIN_MS if self.was_disturbed else REPLICATED_WITHIN_MS)


@dataclass
class _Run:
    lease_ms: int
    clients: dict[str, _Client] = field(default_factory=dict)
    broken: set[tuple[str, str, str]] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    faulty: set[str] = field(default_factory=set)
    """Nodes with a request that a fault may affect."""
    orphans: dict[str, int] = field(default_factory=dict)
    """Clients whose copies have lost their owner, and since when."""
    left_out: set[str] = field(default_factory=set)

    def changed(self, name: str, node: str, *, ended: bool = False) -> None:
        self.clients[name] = _Client(node, ended, was_disturbed=self._is_disturbed(node) or node in self.faulty)

    def _is_disturbed(self, node: str) -> bool:
        return node in self.paused or any(source == node for _, source, _ in self.broken)

    def disturbed(self, node: str) -> None:
        for client in self.clients.values():
            client.was_disturbed |= client.node == node

    def advanced(self, ms: int) -> None:
        for client in self.clients.values():
            client.free_ms += 0 if self._is_disturbed(client.node) else ms
        self.orphans = {name: so_far_ms + ms for name, so_far_ms in self.orphans.items()}
        self.left_out |= {name for name, ms in self.orphans.items() if ms > self.lease_ms // AGES_ALIKE}

    def crashed(self, node: str) -> None:
        for name in [name for name, each in self.clients.items() if each.node == node]:
            client = self.clients.pop(name)
            if not client.is_replicated:
                self.left_out.add(name)
            elif not client.ended:
                self.orphans[name] = 0

    def swallowed(self, client: str | None) -> None:
        """The DELETE of that client, or of any, is acknowledged and lost: the copy stays until its lease ends."""
        settled = {name for name, each in self.clients.items() if each.ended and each.free_ms >= REPAIRED_WITHIN_MS}
        self.left_out |= (self.clients.keys() if client is None else {client}) - settled


def left_out_after(actions: Iterable[Action], lease_ms: int) -> tuple[str, ...]:
    """The clients whose last state, after these actions, may be missing on some node."""
    run = _Run(lease_ms)
    for action in actions:
        match action:
            case Connect(client, node):
                run.changed(client, node)
            case Register(client) | RegisterBatch(client) | Deregister(client) if client in run.clients:
                run.changed(client, run.clients[client].node)
            case Disconnect(client) if client in run.clients:
                run.changed(client, run.clients[client].node, ended=True)
            case Cut(source, target) | Refuse(source, target) | Hold(source, target):
                run.broken.add(("held" if isinstance(action, Hold) else "cut", source, target))
                run.disturbed(source)
            case Heal(source, target):
                run.broken.discard(("cut", source, target))
            case Release(source, target):
                run.broken.discard(("held", source, target))
            case Pause(node):
                run.paused.add(node)
                run.disturbed(node)
            case Resume(node):
                run.paused.discard(node)
            case Advance(ms):
                run.advanced(ms)
            case Crash(node):
                run.paused.discard(node)
                run.crashed(node)
            case BaseLinkAction(source, _):
                run.disturbed(source)
                if isinstance(action, Fault):
                    run.faulty.add(source)
                if isinstance(action, Swallow) and action.operation in (None, "DELETE"):
                    run.swallowed(action.client)
    return tuple(sorted(run.left_out))
