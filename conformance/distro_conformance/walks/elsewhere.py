"""A random walk on any driver, in its own time: the nodes are not followed step by step, they must agree in the end.

The cluster is started once and lives through all runs; each run has clients of its own, and its faults are healed at
its end. What the driver cannot do is left out of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.loop import event_loop
from distro_conformance.drivers.registry import Wishes, resolve_cluster
from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.language.expectations import AllAgree, Expect
from distro_conformance.language.replay import hold
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import UsageError, Verdict
from distro_model.actions import Action, Advance

AGREE_WITHIN_MS = 15_000
"""Three verify periods: no repair in any release takes longer."""

WAIT_MAX_MS = 5_000
"""In real time a wait costs what it says; a verify period is the longest that a run needs again and again."""


class Elsewhere:
    """To the machine of the walks this is what a lockstep run is. Raises UsageError, TargetError."""

    def __init__(self, target: str, profile: str | None, nodes: Sequence[str], on_progress: OnProgress) -> None:
        resolved = resolve_cluster(target, Wishes(profile=profile, on_progress=on_progress))
        if not isinstance(resolved.cluster, WiredCluster):
            raise UsageError(f"there are no nodes to walk on in '{target}'; 'explore' and 'simulate' are for the model")
        self.cluster, self.profile = resolved.cluster, resolved.profile
        self.cluster.only_own = True
        try:
            event_loop().run_until_complete(self.cluster.start(nodes, resolved.profile))
        except BaseException:
            self.stop()
            raise

    @property
    def is_at_rest(self) -> bool:
        """The wait for it is in `checkpoint`."""
        return True

    is_loaded = is_at_rest

    def forbidden(self, action: Action) -> str | None:
        return self.cluster.cannot(action)

    def suited(self, action: Action) -> Action | None:
        if isinstance(action, Advance):
            return Advance(min(action.ms, WAIT_MAX_MS))
        return None if self.cluster.cannot(action) else action

    def perform(self, action: Action) -> None:
        event_loop().run_until_complete(self.cluster.perform(action))

    def checkpoint(self) -> None:
        """Raises DivergedError when the nodes do not agree in time."""
        within = Expect(AllAgree(), AGREE_WITHIN_MS)
        verdict, found = event_loop().run_until_complete(hold(self.cluster, within))
        if verdict is not Verdict.CONFORMS:
            raise DivergedError(Advance(AGREE_WITHIN_MS), self.cluster.clock.now_ms(), f"the nodes differ: {found}")

    def close(self) -> None:
        """Of a run: its clients leave."""
        event_loop().run_until_complete(self.cluster.forget_clients())

    def stop(self) -> None:
        event_loop().run_until_complete(self.cluster.stop())
