"""A node among played members, for whoever is synchronous, as Hypothesis is."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from distro_conformance.drivers.loop import event_loop
from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_model.actions import Action


class Among:
    """One run. Raises DivergedError, KitError, and the look-up errors of profiles and mutants at once."""

    def __init__(self, nodes: Sequence[str], profile: str, mutant: str | None = None, wire: Wire = IN_MEMORY) -> None:
        self.cluster = PeersCluster(mutant=mutant, wire=wire)
        try:
            event_loop().run_until_complete(self.cluster.start(nodes, profile))
        except BaseException:
            self.close()
            raise

    @property
    def is_at_rest(self) -> bool:
        return True

    is_loaded = is_at_rest

    def forbidden(self, action: Action) -> str | None:
        return self.cluster.forbidden(action)

    def suited(self, action: Action) -> Action | None:
        return None if self.cluster.forbidden(action) else action

    def perform(self, action: Action) -> None:
        event_loop().run_until_complete(self.cluster.perform(action))

    def checkpoint(self) -> None:
        """There is no recording, and every step was looked at."""

    def close(self) -> None:
        event_loop().run_until_complete(self.cluster.stop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
