"""What a node tells whoever watches it: one event for each change of what it holds of a client.

Told in the moment of the change and in its order, so that a recorder can number the events. Nothing is built when
nobody watches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from distro_impl.clocks.clock import Clock
from distro_impl.naming.client import Client
from distro_impl.profiles import Profile, RevisionTakenOver


class NodeEventKind(StrEnum):
    CLIENT_CONNECTED = "client_connected"  # a naming client of our own exists now
    CLIENT_CHANGED = "client_changed"  # it registered or deregistered here, or its beats changed something
    CLIENT_DISCONNECTED = "client_disconnected"  # its connection ended and it was removed; ip:port: reason is lease
    REPLICA_APPLIED = "replica_applied"  # a message of a peer was applied; reason: CHANGE, ADD or SNAPSHOT
    REPLICA_REMOVED = "replica_removed"  # reason: DELETE, lease or connected


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """After it the node at `node` holds `sync_data` of `client`, or nothing when that is None.

    `revision` is None for a copy of which this release keeps no revision. `sync_data` is a ClientSyncData object
    (wire-protocol.md section 5.2).
    """

    node: str
    at_ms: int
    kind: NodeEventKind
    client: str
    native: bool
    revision: int | None = None
    sync_data: Mapping[str, Any] | None = None
    reason: str | None = None


Observer = Callable[[NodeEvent], None]


class Watch:
    """Tells the observer of one node, if there is one, until the node dies."""

    def __init__(self, node: str, clock: Clock, observer: Observer | None, profile: Profile) -> None:
        self._node, self._clock, self._observer = node, clock, observer
        self._keeps_copied_revision = profile.revision_taken_over is not RevisionTakenOver.NEVER

    def tell(self, kind: NodeEventKind, client: Client, reason: str | None = None) -> None:
        """Something happened to `client`, which holds its state of now."""
        if self._observer is None:
            return
        holds = kind not in (NodeEventKind.CLIENT_DISCONNECTED, NodeEventKind.REPLICA_REMOVED)
        has_revision = holds and (client.responsible or self._keeps_copied_revision)
        self._observer(
            NodeEvent(
                node=self._node,
                at_ms=self._clock.now_ms(),
                kind=kind,
                client=client.id,
                native=client.responsible,
                revision=client.revision if has_revision else None,
                sync_data=client.sync_data(with_revision=has_revision) if holds else None,
                reason=reason,
            )
        )

    def close(self) -> None:
        self._observer = None
