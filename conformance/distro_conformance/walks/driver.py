"""The drivers of walks: a cluster with a synchronous interface for Hypothesis, which runs the event loop.

There is a class for each of two kinds of run: nodes in lockstep with the model, and any cluster in real time, whose
nodes must agree at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from distro_conformance.drivers.cluster import Cluster
from distro_conformance.drivers.lockstep import DivergedError, LockstepCluster, Watch
from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.drivers.registry import ClusterOptions, resolve_cluster
from distro_conformance.drivers.wired import WiredCluster
from distro_conformance.event_loop import event_loop
from distro_conformance.findings.expected import DESCRIBED
from distro_conformance.findings.finding import SHOULD, Finding, Judgement, command
from distro_conformance.language.expectations import AllAgree, Expect
from distro_conformance.language.holding import hold
from distro_conformance.release import Timings
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import KitError, UsageError, Verdict
from distro_conformance.walks.comparable import REPAIRED_WITHIN_MS, left_out_after
from distro_conformance.walks.result import WalkResult
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

Check = Callable[[Path], Iterable[Finding]]
"""Checks the invariants over the recordings in a directory."""

CONVERGENCE = "INV-CONV"
"""The invariant that is violated if the nodes differ at the end of a run."""

AGREE_WITHIN_MS = REPAIRED_WITHIN_MS

WAIT_MAX_MS = 5_000
"""The longest wait in real time, where waiting takes real time. A verify period is the longest that runs often need."""


class WalkDriver:
    """Performs the actions of a walk for the rules of a machine. In this base class every action is possible and does
    nothing.

    `must_agree`: the nodes must agree at the end, whatever the release.
    """

    must_agree = False

    @property
    def is_at_rest(self) -> bool:
        """Whether no repair is pending. A driver may return True and wait for repairs in `checkpoint`."""
        return True

    @property
    def is_loaded(self) -> bool:
        return True

    def can(self, action: Action) -> bool:  # noqa: ARG002
        """Whether such actions are ever possible."""
        return True

    def forbidden(self, action: Action) -> str | None:  # noqa: ARG002
        """Why the action is not possible now, or None."""
        return None

    def adapted(self, action: Action) -> Action | None:
        """The action in the form that this driver can perform; None if it cannot."""
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


class _ClusterDriver(WalkDriver):
    """Raises DivergedError, KitError and errors of the nodes; the look-up errors of profiles and mutants at once."""

    def __init__(self, cluster: Cluster, nodes: Sequence[str], profile: str) -> None:
        self._cluster = cluster
        try:
            event_loop().run_until_complete(cluster.start(nodes, profile))
        except BaseException:
            self.stop()
            raise

    @property
    def is_at_rest(self) -> bool:
        return self._cluster.is_at_rest

    @property
    def is_loaded(self) -> bool:
        return self._cluster.is_loaded

    def can(self, action: Action) -> bool:
        return self._cluster.cannot(action) is None

    def forbidden(self, action: Action) -> str | None:
        return self._cluster.forbidden(action)

    def adapted(self, action: Action) -> Action | None:
        return None if self._cluster.excluded_from_walk(action) else action

    def perform(self, action: Action) -> None:
        event_loop().run_until_complete(self._cluster.perform(action))

    def checkpoint(self) -> None:
        event_loop().run_until_complete(self._cluster.checkpoint())

    def close(self) -> None:
        self.stop()

    def stop(self) -> None:
        event_loop().run_until_complete(self._cluster.stop())


class Lockstep(_ClusterDriver):
    """A run of embedded nodes in lockstep with the model: of several nodes, or of one among played members. `recorder`
    records a run of several nodes, and is closed with the run."""

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

    def checkpoint(self) -> None:
        """If an armed fault is left there is no checkpoint, since the model cannot disarm a fault."""
        if not self.cluster.is_faulty:
            super().checkpoint()
            self._needs_checkpoint = False

    def close(self) -> None:
        """Also end the recording of a run in which nodes and model diverge, so that it can be judged."""
        if self._needs_checkpoint and isinstance(self.cluster, LockstepCluster):
            with contextlib.suppress(KitError, WorkFailedError):  # a broken node may stay broken
                event_loop().run_until_complete(self.cluster.rest())
        super().close()


class RealTime(_ClusterDriver):
    """Any cluster in real time: its nodes are not followed step by step, they must agree at the end.

    It is started once for all runs, until its nodes keep data of a run; each run has its own clients, and its faults
    are healed at its end. Actions that the driver cannot do are left out of the run. `result` has the options, with the
    profile of the cluster, and the counts. `check`: a run whose nodes differ fails only if its recording shows more
    than the listed defects of the release; without `check` any such run fails. Raises UsageError, TargetError.
    """

    must_agree = True
    recording: Path | None = None
    """The recording of the current run. The recordings of a search are in one directory and are checked together, since
    a single run may not have enough rows."""
    is_spoilt = False
    """The nodes still hold data of the run before."""

    def __init__(self, result: WalkResult, on_progress: OnProgress, check: Check | None) -> None:
        options = result.options
        resolved = resolve_cluster(
            options.target, ClusterOptions(credentials=options.credentials, on_progress=on_progress)
        )
        if not isinstance(resolved.cluster, WiredCluster):
            raise UsageError(
                f"there are no nodes to walk on in '{options.target}'; 'explore' and 'simulate' are for the model"
            )
        self.cluster, self.profile = resolved.cluster, resolved.profile
        self.cluster.only_own = True
        result.options = replace(options, profile=resolved.profile)
        self._result, self._on_progress, self._check = result, on_progress, check
        self._done: list[Action] = []
        super().__init__(self.cluster, options.nodes, resolved.profile)

    def start_recording(self, recorder: Recorder | None) -> None:
        """Begin a run with its own recording. Only servers that communicate over links of the kit can be recorded."""
        if recorder is not None:
            self.recording = recorder.path
            event_loop().run_until_complete(self.cluster.start_recording(recorder, self.profile))

    @property
    def is_recorded(self) -> bool:
        """Whether its servers communicate over links of the kit, so that their messages can be recorded."""
        return bool(self.cluster.links)

    def can(self, action: Action) -> bool:
        return super().can(action) and in_real_time(action) is not None

    def adapted(self, action: Action) -> Action | None:
        return in_real_time(super().adapted(action))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The clients of this run that no comparison included so far."""
        return left_out_after(self._done, Timings.of(self.profile).lease_ms)

    def perform(self, action: Action) -> None:
        self._done.append(action)
        super().perform(action)

    def checkpoint(self) -> None:
        """Heal all faults and wait until the nodes agree. Raises DivergedError if they do not agree in time, and
        neither a listed defect nor a delay of the machine can be the reason."""
        self.cluster.clear_faults()
        agree = AllAgree(self.left_out)
        rest = event_loop().run_until_complete(hold(self.cluster, Expect(agree, AGREE_WITHIN_MS)))
        found = rest.outcome
        super().checkpoint()
        if rest.verdict is Verdict.CONFORMS:
            return
        if rest.verdict is Verdict.INCONCLUSIVE:
            self._result.not_judged["runs_open"] += 1
            self.is_spoilt = True
            return
        held = event_loop().run_until_complete(self.cluster.observe())
        clients = {found.partition(":")[0], *(client for each in held for client, _ in agree.differences(each))}
        error = DivergedError(Advance(AGREE_WITHIN_MS), self.cluster.clock.now_ms(), f"the nodes differ: {found}")
        self.cluster.stop_recording()  # the recording is complete and can be checked; servers and links continue to run
        if not event_loop().run_until_complete(asyncio.to_thread(self._is_known, clients, agree.but)):
            raise error

    def _is_known(self, clients: Collection[str], left_out: Collection[str]) -> bool:
        """Whether the recording shows that known defects are the only reason why the nodes differ about these
        clients. Violations of clients left out of the comparison are ignored."""
        if self._check is None or self.recording is None:
            return False
        self._on_progress("checking why the nodes of a run differ")
        found = [each for each in findings_about(self.recording, self._check) if each.client not in left_out]
        self._result.checked += found
        self.is_spoilt = is_explained(found, clients, self._result.options.target)
        self._result.runs_known += self.is_spoilt
        return self.is_spoilt

    def close(self) -> None:
        """Disconnect the clients of the run; this is not recorded."""
        self._result.not_judged["clients_left_out"] += len(self.left_out)
        self._done.clear()
        self.cluster.stop_recording()
        event_loop().run_until_complete(self.cluster.forget_clients())


def is_explained(found: Collection[Finding], clients: Collection[str], target: str) -> bool:
    """Whether known defects of the release explain why nodes differ about each of these clients, and nothing else was
    found. The release of a described server excuses no failure."""
    listed = {each.client for each in found if (each.about, each.judgement) == (CONVERGENCE, Judgement.KNOWN)}
    is_described = target.partition(":")[0] in DESCRIBED
    return listed.issuperset(clients) and not any(each.violates for each in found) and not is_described


def findings_about(recording: Path, check: Check) -> Iterator[Finding]:
    """The violations of this run. The recording of a run that cannot be checked is kept."""
    try:
        for finding in check(recording.parent):
            is_of_run = finding.run == recording.stem and finding.judgement in (Judgement.KNOWN, Judgement.VIOLATES)
            if is_of_run or (finding.run is None and finding.violates):  # a violation that is only counted
                yield finding
    except Exception as error:  # noqa: BLE001 - whatever fails here, the nodes differ
        why = f"the recording could not be checked: {error}"
        again = command("check", recording.parent)
        yield Finding(
            about=CONVERGENCE, by="trace", judgement=Judgement.NOT_JUDGED, level=SHOULD, message=why, again=again
        )


def expected_after(actions: Iterable[Action], profile: str) -> Expect:
    """Expect that all nodes agree, about all clients except those left out by `comparable.py`."""
    return Expect(AllAgree(left_out_after(actions, Timings.of(profile).lease_ms)), AGREE_WITHIN_MS)


def in_real_time(action: Action | None) -> Action | None:
    """The same action with at most WAIT_MAX_MS of waiting; None if a server's own clock ends the action, since the
    state until then is unknown."""
    if isinstance(action, FallSilent | AnswerAgain | ListMembers):
        return None
    return Advance(min(action.ms, WAIT_MAX_MS)) if isinstance(action, Advance) else action
