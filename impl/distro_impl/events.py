"""What a node reports to its observer: one event for each change of what it holds of a client.

Reported at the moment of the change and in its order, so that a recorder can number the events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class NodeEventKind(StrEnum):
    CLIENT_CONNECTED = "client_connected"  # a naming client of our own exists now
    CLIENT_CHANGED = "client_changed"  # it registered or deregistered here; its beats: reason is healthy, unhealthy
    # or expired
    CLIENT_DISCONNECTED = "client_disconnected"  # its connection ended and it was removed; ip:port: reason is lease
    REPLICA_APPLIED = "replica_applied"  # a message of a peer was applied; reason: CHANGE, ADD or SNAPSHOT
    REPLICA_REMOVED = "replica_removed"  # reason: DELETE, lease or connected


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """After it the node at `node` holds `sync_data` of `client`, or nothing when that is None.

    `revision` is None for a copy of which this release keeps no revision. `sync_data` is a ClientSyncData object
    (docs/protocol #distro-content).
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
