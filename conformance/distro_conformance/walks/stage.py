"""The cluster that a walk runs on, with a synchronous interface for Hypothesis: the event loop is here.

There are two kinds of run, one class each: nodes beside the model, and any cluster in real time, whose nodes must agree
at the end.
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
    ListMembers,
)
from distro_traces.ndjson import Recorder

AGREE_WITHIN_MS = REPAIRED_WITHIN_MS

WAIT_MAX_MS = 5_000
"""In real time a wait takes its full time; a verify period is the longest wait that a run needs repeatedly."""


class Stage:
    """The interface for the rules of a machine. This base class does nothing, and every action is possible.

    `must_agree`: the nodes must agree at the end, whatever the release.
    """

    must_agree = False

    @property
    def is_at_rest(self) -> bool:
        """No repair is pending; the wait for it may be in `checkpoint`."""
        return True

    @property
    def is_loaded(self) -> bool:
        return True

    def forbidden(self, action: Action) -> str | None:  # noqa: ARG002
        """Why the action is not possible now, or None."""
        return None

    def suited(self, action: Action) -> Action | None:
        """The action in the form that this stage does; None when it cannot do it."""
        return action

    def perform(self, action: Action) -> None:
        """Raises DivergedError, and all errors of the nodes."""

    def checkpoint(self) -> None: ...

    def close(self) -> None:
        """End a run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OnCluster(Stage):
    """Raises DivergedError, KitError and errors of the nodes; the look-up errors of profiles and mutants at once."""

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
    """A run of embedded nodes beside the model: of several nodes, or of the first among played members. `recorder`
    records a run of several nodes, and is closed with it."""

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
        among_played: bool = False,
    ) -> None:
        self.cluster: LockstepCluster | PeersCluster
        if among_played:
            self.cluster = PeersCluster(mutant=mutant, wire=wire, watch=watch, serves_http=serves_http)
        else:
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
        """None for a fault that is already pending: many pending faults would outlast every calm period."""
        return None if self.cluster.unsuited(action) else action

    def checkpoint(self) -> None:
        super().checkpoint()
        self._needs_checkpoint = False

    def close(self) -> None:
        """Also end the recording of a run in which nodes and model diverge, so that it can be judged."""
        if self._needs_checkpoint and isinstance(self.cluster, LockstepCluster):
            with contextlib.suppress(KitError, WorkFailedError):  # a broken node may stay broken
                event_loop().run_until_complete(self.cluster.rest())
        super().close()


class RealTime(_OnCluster):
    """Any cluster in real time: its nodes are not followed step by step, they must agree at the end.

    It is started once for all runs; each run has its own clients, and its faults are healed at its end. Actions that
    the driver cannot do are left out of the run. `is_known`: whether listed defects are the only reason why the nodes
    differ about these clients; its second argument has the clients in no comparison. `on_open`: called when it is not
    known whether the nodes came to agree in time, since the machine took too much of it. Raises UsageError,
    TargetError.
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
        """Whether its servers communicate over links of the kit, so that their messages can be recorded."""
        return bool(self.cluster.links)

    def record_anew(self, recorder: Recorder) -> None:
        """Begin a run with its own recording."""
        event_loop().run_until_complete(self.cluster.record_anew(recorder, self.profile))

    def suited(self, action: Action) -> Action | None:
        return in_real_time(super().suited(action))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The clients of this run that are in no comparison so far."""
        return left_out_after(self._done, Timings.of(self.profile).lease_ms)

    def perform(self, action: Action) -> None:
        self._done.append(action)
        super().perform(action)

    def checkpoint(self) -> None:
        """Raises DivergedError when the nodes do not agree in time, and neither a listed defect nor the machine can be
        the reason."""
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
        self.cluster.record_no_more()  # the recording is complete and can be checked; servers and links go on
        if not event_loop().run_until_complete(asyncio.to_thread(self._is_known, clients, agree.but)):
            raise error

    def close(self) -> None:
        """The clients of the run leave, which is not recorded."""
        self._done.clear()
        self.cluster.record_no_more()
        event_loop().run_until_complete(self.cluster.forget_clients())


def expected_after(actions: Iterable[Action], profile: str) -> Expect:
    """Expect that all nodes agree, about all clients except those left out by `comparable.py`."""
    return Expect(AllAgree(left_out_after(actions, Timings.of(profile).lease_ms)), AGREE_WITHIN_MS)


def in_real_time(action: Action | None) -> Action | None:
    """The same action, without a long wait; None if it ends by a server's own clock: the state until then is not
    known."""
    if isinstance(action, FallSilent | AnswerAgain | ListMembers):
        return None
    return Advance(min(action.ms, WAIT_MAX_MS)) if isinstance(action, Advance) else action
