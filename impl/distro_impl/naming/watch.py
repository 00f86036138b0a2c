"""Reports every change of what a node holds of a client to its observer (events.py).

Reported at the moment of the change and in its order. Without an observer nothing is built.
"""

from __future__ import annotations

from distro_impl.core import Core
from distro_impl.events import NodeEvent, NodeEventKind, Observer
from distro_impl.naming.client import Client
from distro_impl.profiles import RevisionTakenOver


class Watch:
    """Reports to the observer of one node, if there is one, until the node stops."""

    def __init__(self, core: Core, observer: Observer | None) -> None:
        self._node, self._clock, self._observer = core.config.address, core.clock, observer
        self.changes = 0
        """The number of events, with or without an observer."""
        self._keeps_copied_revision = core.profile.revision_taken_over is not RevisionTakenOver.NEVER

    def notify(self, kind: NodeEventKind, client: Client, reason: str | None = None) -> None:
        """Something happened to `client`, which holds its state of now."""
        self.changes += 1
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
