"""What a walk is done on, for whoever is synchronous, as Hypothesis is: the event loop lives here.

Three kinds of run, one class each: nodes beside the model, one node among played members, and any cluster in its own
time, which has to agree in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Self

from distro_conformance.drivers.cluster import Cluster
from distro_conformance.drivers.lockstep import DivergedError, LockstepCluster, Watch
from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.drivers.registry import Wishes, resolve_cluster
from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.event_loop import event_loop
from distro_conformance.language.expectations import AllAgree, Expect
from distro_conformance.language.holding import hold
from distro_conformance.node.timings import Timings
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import KitError, UsageError, Verdict
from distro_conformance.walks.comparable import REPAIRED_WITHIN_MS, left_out_after
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_impl import WorkFailedError
from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    FallSilent,
    Fault,
    ListMembers,
)
from distro_traces.ndjson import Recorder

AGREE_WITHIN_MS = REPAIRED_WITHIN_MS

WAIT_MAX_MS = 5_000
"""In real time a wait costs what it says; a verify period is the longest that a run needs again and again."""


class Stage:
    """What the rules of a machine know of it. This one is paper: nothing happens there, and everything makes sense.

    `must_agree`: whatever the release, its nodes have to in the end.
    """

    must_agree = False

    @property
    def is_at_rest(self) -> bool:
        """Nothing is left to repair; the wait for it may be in `checkpoint`."""
        return True

    @property
    def is_loaded(self) -> bool:
        return True

    def forbidden(self, action: Action) -> str | None:  # noqa: ARG002
        """Why the action makes no sense now, or None."""
        return None

    def suited(self, action: Action) -> Action | None:
        """The action as it is done here; None when it cannot be done."""
        return action

    def perform(self, action: Action) -> None:
        """Raises DivergedError, and whatever the nodes raise."""

    def checkpoint(self) -> None: ...

    def close(self) -> None:
        """A run is over."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OnCluster(Stage):
    """Raises DivergedError, KitError and what the nodes raise; the look-up errors of profiles and mutants at once."""

    def __init__(self, cluster: Cluster, nodes: Sequence[str], profile: str) -> None:
        self._driven = cluster
        try:
            event_loop().run_until_complete(cluster.start(nodes, profile))
        except BaseException:
            self.stop()
            raise

    def forbidden(self, action: Action) -> str | None:
        return self._driven.cannot(action)

    def suited(self, action: Action) -> Action | None:
        return None if self.forbidden(action) else action

    def perform(self, action: Action) -> None:
        event_loop().run_until_complete(self._driven.perform(action))

    def checkpoint(self) -> None:
        event_loop().run_until_complete(self._driven.checkpoint())

    def close(self) -> None:
        self.stop()

    def stop(self) -> None:
        event_loop().run_until_complete(self._driven.stop())


class Lockstep(_OnCluster):
    """A run of embedded nodes beside the model. `recorder` makes it a recorded run, and is closed with it."""

    def __init__(
        self,
        nodes: Sequence[str],
        profile: str,
        mutant: str | None = None,
        wire: Wire = IN_MEMORY,
        recorder: Recorder | None = None,
        watch: Watch = lambda profile: profile,
        *,
        serves_http: bool = False,
    ) -> None:
        self.cluster = LockstepCluster(mutant, recorder, wire, watch, serves_http=serves_http)
        self._needs_checkpoint = recorder is not None
        super().__init__(self.cluster, nodes, profile)

    @property
    def is_at_rest(self) -> bool:
        return self.cluster.is_at_rest

    @property
    def is_loaded(self) -> bool:
        return self.cluster.is_loaded

    def forbidden(self, action: Action) -> str | None:
        return self.cluster.forbidden(action)

    def suited(self, action: Action) -> Action | None:
        """None for a fault that waits already: enough of them outlast every calm."""
        is_armed = isinstance(action, Fault) and self.cluster.is_armed(action)
        return None if is_armed or self.cluster.cannot(action) else action

    def checkpoint(self) -> None:
        super().checkpoint()
        self._needs_checkpoint = False

    def close(self) -> None:
        """The recording of a run in which nodes and model part is ended too, so that it can be judged."""
        if self._needs_checkpoint:
            with contextlib.suppress(KitError, WorkFailedError):  # what is broken may stay so
                event_loop().run_until_complete(self.cluster.rest())
        super().close()


class SingleNode(_OnCluster):
    """A run of one embedded node among played members. There is no recording, and every step is looked at."""

    def __init__(
        self,
        nodes: Sequence[str],
        profile: str,
        mutant: str | None = None,
        wire: Wire = IN_MEMORY,
        watch: Watch = lambda profile: profile,
        *,
        serves_http: bool = False,
    ) -> None:
        self.cluster = PeersCluster(mutant=mutant, wire=wire, watch=watch, serves_http=serves_http)
        super().__init__(self.cluster, nodes, profile)

    def forbidden(self, action: Action) -> str | None:
        return self.cluster.forbidden(action)


class RealTime(_OnCluster):
    """Any cluster in its own time: its nodes are not followed step by step, they must agree in the end.

    It is started once and lives through all runs; each run has clients of its own, and its faults are healed at its
    end. What the driver cannot do is left out of the run. `is_known`: whether listed defects alone are why the nodes
    differ about these clients; the others are those that are in no comparison. `on_open`: whether they came to agree in
    time cannot be told, since the machine took too much of it. Raises UsageError, TargetError.
    """

    must_agree = True

    def __init__(
        self,
        target: str,
        profile: str | None,
        nodes: Sequence[str],
        on_progress: OnProgress,
        is_known: Callable[[Collection[str], Collection[str]], bool] = lambda _clients, _left_out: False,
        on_open: Callable[[], None] = lambda: None,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        wishes = Wishes(profile=profile, credentials=credentials, on_progress=on_progress)
        resolved = resolve_cluster(target, wishes)
        if not isinstance(resolved.cluster, WiredCluster):
            raise UsageError(f"there are no nodes to walk on in '{target}'; 'explore' and 'simulate' are for the model")
        self.cluster, self.profile = resolved.cluster, resolved.profile
        self.cluster.only_own = True
        self._is_known, self._on_open = is_known, on_open
        self._done: list[Action] = []
        super().__init__(self.cluster, nodes, resolved.profile)

    @property
    def is_recorded(self) -> bool:
        """Whether its servers talk over links of ours, so that what they say can be recorded."""
        return bool(self.cluster.links)

    def record_anew(self, recorder: Recorder) -> None:
        """A run begins that has a recording of its own."""
        event_loop().run_until_complete(self.cluster.record_anew(recorder, self.profile))

    def suited(self, action: Action) -> Action | None:
        """Not what comes to its end when a server's own clock says so: nobody knows what holds until then."""
        if isinstance(action, FallSilent | AnswerAgain | ListMembers):
            return None
        return in_real_time(super().suited(action))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The clients of this run so far that are in no comparison."""
        return left_out_after(self._done, Timings.of(self.profile).lease_ms)

    def perform(self, action: Action) -> None:
        self._done.append(action)
        super().perform(action)

    def checkpoint(self) -> None:
        """Raises DivergedError when the nodes do not agree in time, and neither a listed defect nor the machine may be
        why."""
        agree = AllAgree(self.left_out)
        rest = event_loop().run_until_complete(hold(self.cluster, Expect(agree, AGREE_WITHIN_MS)))
        found = rest.outcome
        super().checkpoint()
        if rest.verdict is Verdict.CONFORMS:
            return
        if rest.verdict is Verdict.INCONCLUSIVE:
            self._on_open()
            return
        held = event_loop().run_until_complete(self.cluster.observe())
        clients = {found.partition(":")[0], *(client for each in held for client, _ in agree.differing_in(each))}
        error = DivergedError(Advance(AGREE_WITHIN_MS), self.cluster.clock.now_ms(), f"the nodes differ: {found}")
        self.cluster.record_no_more()  # it is whole, and can be looked at; servers and links live on meanwhile
        if not event_loop().run_until_complete(asyncio.to_thread(self._is_known, clients, agree.but)):
            raise error

    def close(self) -> None:
        """Its clients leave, which is in no recording."""
        self._done.clear()
        self.cluster.record_no_more()
        event_loop().run_until_complete(self.cluster.forget_clients())


def expected_after(actions: Iterable[Action], profile: str) -> Expect:
    """That all agree, about all clients but those of which not every node can know enough (`comparable.py`)."""
    return Expect(AllAgree(left_out_after(actions, Timings.of(profile).lease_ms)), AGREE_WITHIN_MS)


def in_real_time(action: Action | None) -> Action | None:
    """The same, without a long wait."""
    return Advance(min(action.ms, WAIT_MAX_MS)) if isinstance(action, Advance) else action
