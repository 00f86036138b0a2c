"""The drivers of walks: a cluster with a synchronous interface for Hypothesis. The event loop is here.

There are two kinds of run, one class each: nodes beside the model, and any cluster in real time, whose nodes must agree
at the end.
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
"""The invariant that a run violates whose nodes differ at the end."""

AGREE_WITHIN_MS = REPAIRED_WITHIN_MS

WAIT_MAX_MS = 5_000
"""In real time a wait takes its full time; a verify period is the longest wait that a run needs repeatedly."""


class WalkDriver:
    """Performs the actions of a walk, for the rules of a machine. This base class does nothing, and every action is
    possible.

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

    def can(self, action: Action) -> bool:  # noqa: ARG002
        """Whether such actions are ever possible."""
        return True

    def forbidden(self, action: Action) -> str | None:  # noqa: ARG002
        """Why the action is not possible now, or None."""
        return None

    def adapted(self, action: Action) -> Action | None:
        """The action in the form in which it is done here; None when it cannot be."""
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

    def checkpoint(self) -> None:
        """The model cannot disarm a fault: where one is left, the recording ends without it."""
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
    """Of the current run. The runs of a search share a directory, and are checked together: one alone may show too
    little."""
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
        """Begin a run with its own recording: only of servers that communicate over links of the kit."""
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
        """The clients of this run that are in no comparison so far."""
        return left_out_after(self._done, Timings.of(self.profile).lease_ms)

    def perform(self, action: Action) -> None:
        self._done.append(action)
        super().perform(action)

    def checkpoint(self) -> None:
        """Repairs the faults that are left. Raises DivergedError when the nodes do not agree in time, and neither a
        listed defect nor the machine can be the reason."""
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
        self.cluster.stop_recording()  # the recording is complete and can be checked; servers and links go on
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
        """The clients of the run leave, which is not recorded."""
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
    """The violations of this run. A run that cannot be checked is kept."""
    try:
        for finding in check(recording.parent):
            is_of_run = finding.run == recording.stem and finding.judgement in (Judgement.KNOWN, Judgement.VIOLATES)
            if is_of_run or (finding.run is None and finding.violates):  # counted, and not listed
                yield finding
    except Exception as error:  # noqa: BLE001 - Spark, its Java, a disk: the nodes differ all the same
        why = f"the recording could not be checked: {error}"
        again = command("check", recording.parent)
        yield Finding(
            about=CONVERGENCE, by="trace", judgement=Judgement.NOT_JUDGED, level=SHOULD, message=why, again=again
        )


def expected_after(actions: Iterable[Action], profile: str) -> Expect:
    """Expect that all nodes agree, about all clients except those left out by `comparable.py`."""
    return Expect(AllAgree(left_out_after(actions, Timings.of(profile).lease_ms)), AGREE_WITHIN_MS)


def in_real_time(action: Action | None) -> Action | None:
    """The same action, without a long wait; None if it ends by a server's own clock: the state until then is not
    known."""
    if isinstance(action, FallSilent | AnswerAgain | ListMembers):
        return None
    return Advance(min(action.ms, WAIT_MAX_MS)) if isinstance(action, Advance) else action
