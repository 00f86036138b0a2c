"""Lockstep for whoever is synchronous, as Hypothesis is: the nodes are not, and the event loop lives here."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from distro_conformance.drivers.lockstep import LockstepCluster
from distro_conformance.drivers.loop import event_loop
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_model.actions import Action, Fault
from distro_traces.ndjson import Recorder


class Lockstep:
    """A run of embedded nodes beside the model. `recorder` makes it a recorded run, and is closed with it.

    Raises DivergedError, KitError and what the nodes raise; the look-up errors of profiles and mutants at once.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        profile: str,
        mutant: str | None = None,
        recorder: Recorder | None = None,
        wire: Wire = IN_MEMORY,
    ) -> None:
        self.cluster = LockstepCluster(mutant, recorder, wire)
        try:
            event_loop().run_until_complete(self.cluster.start(nodes, profile))
        except BaseException:
            self.close()
            raise

    @property
    def is_at_rest(self) -> bool:
        return self.cluster.is_at_rest

    @property
    def is_loaded(self) -> bool:
        return self.cluster.is_loaded

    def forbidden(self, action: Action) -> str | None:
        return self.cluster.forbidden(action)

    def suited(self, action: Action) -> Action | None:
        """The action as it is done here; None for a fault that waits already: enough of them outlast every calm."""
        return None if isinstance(action, Fault) and self.cluster.is_armed(action) else action

    def perform(self, action: Action) -> None:
        event_loop().run_until_complete(self.cluster.perform(action))

    def checkpoint(self) -> None:
        event_loop().run_until_complete(self.cluster.checkpoint())

    def close(self) -> None:
        event_loop().run_until_complete(self.cluster.stop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
