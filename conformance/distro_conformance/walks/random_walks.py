"""The search for a run in which nodes and model diverge: Hypothesis within a time budget, and the failure, shrunk.

A failure is kept twice: as a scenario that `distrocheck replay` runs, and as a plain pytest file that fails on its
own. Seed and commit reproduce a search on embedded nodes.
"""

from __future__ import annotations

import gc
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import get_args

from hypothesis.errors import Flaky

from distro_conformance.drivers.lockstep import DivergedError, LostError
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.text import build
from distro_conformance.verdict import KitError
from distro_conformance.walks import NODES
from distro_conformance.walks.driver import Check, Lockstep, RealTime, WalkDriver, expected_after
from distro_conformance.walks.machine import Machine
from distro_conformance.walks.result import FoundFailure, WalkOptions, WalkResult, beside_nodes
from distro_conformance.walks.saved_failures import save_scenario, still_failing
from distro_conformance.walks.shrink import OnNodes, Run, shrink
from distro_conformance.walks.side_by_side import SideBySide
from distro_conformance.walks.walk import draw
from distro_conformance.wire.transports import OVER_GRPC, Wire, wire_of
from distro_model.actions import Action, Advance, PeerAnswer, PeerRequest, Reorder, Shape
from distro_model.profiles import Profile
from distro_model.rules.watching import Taken, counting
from distro_traces.ndjson import Recorder
from distro_traces.observed import EVERYTHING, INFERRED

RUNS_PER_ROUND = 10
"""Hypothesis takes a number of runs, not seconds; the budget is checked between rounds."""


def kind_of(action: type) -> str:
    """`http register` of HttpRegister."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", action.__name__).lower()


ACTIONS = tuple(
    kind_of(each) for each in get_args(Action) if not issubclass(each, Shape | Reorder | PeerRequest | PeerAnswer)
)
"""The actions of walks of three nodes: all that the model has too, without those of played members."""


def random_walks(
    options: WalkOptions,
    on_progress: Callable[[str], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
    check: Check | None = None,
) -> WalkResult:
    """Search until the budget is used or a failure is found and shrunk; at least one round, however slow the machine.

    `is_over`: another process has found a failure. `check` is for runs in real time whose nodes differ. Errors other
    than a divergence are raised unchanged.
    """
    if options.among_played and options.in_real_time:
        return SideBySide(options, on_progress).run()
    began_s = time.monotonic()
    saved = None if options.in_real_time else _saved_failure(options, began_s)
    result = (
        WalkResult(options, saved.steps, 1, failure=saved)
        if saved
        else _Search(options, on_progress, is_over, check).run()
    )
    result.seconds = time.monotonic() - began_s
    return result


def _saved_failure(options: WalkOptions, began_s: float) -> FoundFailure | None:
    """The first of the kept failures that fails again."""
    if options.database is None:
        return None
    for scenario, message in still_failing(options.database, options.profile, options.mutant):
        steps = len(scenario.lines)
        return FoundFailure(scenario, message, steps, steps, time.monotonic() - began_s)
    return None


class _Search:
    """The rounds of runs, and their counts. Hypothesis only repeats a run that failed; its actions and its error are
    kept here."""

    def __init__(
        self,
        options: WalkOptions,
        on_progress: Callable[[str], None],
        is_over: Callable[[], bool],
        check: Check | None,
    ) -> None:
        self.result = WalkResult(options)
        self.began_s = time.monotonic()
        self.on_progress, self.is_over, self.check = on_progress, is_over, check
        self.wire, self.http = OVER_GRPC, False
        self.actions: Counter[str] = Counter()
        self.taken = Taken()
        self.first_failure: tuple[int, float] | None = None
        self.failing: tuple[list[Action], DivergedError] | None = None
        self.logs: Path | None = None
        self.broken: BaseException | None = None
        """An error other than a divergence that ended a run: Hypothesis repeats such a run, and reports only that the
        second run differed."""
        self.real_time = self._started() if options.in_real_time else None

    @property
    def options(self) -> WalkOptions:
        """Those of the result: a cluster in real time has its own profile."""
        return self.result.options

    def run(self) -> WalkResult:
        try:
            with _only_new_garbage():
                self._rounds()
        finally:
            self._end()
        options, result = self.options, self.result
        result.failure = failure = self._failure()
        if failure and options.database:
            save_scenario(options.database, failure.scenario, options.failure_name)
        actions = {} if options.among_played else {"actions": dict.fromkeys(ACTIONS, 0) | self.actions}
        result.coverage = {**actions, **({} if options.in_real_time else beside_nodes(self.taken))}
        return result

    def _started(self) -> RealTime:
        return RealTime(self.result, self._report, self.check)

    def _end(self) -> None:
        """Stop what runs, and remove the recordings that no finding refers to."""
        if self.real_time is None:
            return
        self.real_time.stop()
        recording = self.real_time.recording
        if recording is not None and not (self.failing or self.broken or self.result.checked):
            shutil.rmtree(recording.parent)

    def _rounds(self) -> None:
        """Search until a run fails or the budget is used."""
        options = self.options
        for number in count():
            seed = options.seed * 1_000 + number
            self.wire = wire_of(options.transport, number, seed)  # a failing run keeps its wire
            self.http = options.has_http(number)
            left = RUNS_PER_ROUND if options.runs_max is None else options.runs_max - self.result.runs
            members = {
                "start": staticmethod(self._start),
                "on_end": staticmethod(self._ended),
                "nodes": [each for each in options.nodes if each not in options.played],
                "played": options.played,
                "http": self.http,
                "beginnings": self._beginnings(),
            }
            try:
                draw(Machine, seed, max(1, min(RUNS_PER_ROUND, left)), options.steps_per_run, members)
            except (DivergedError, Flaky):  # Flaky: `start` returned None when Hypothesis repeated the run
                if self.failing is None:
                    raise self.broken or KitError("a run did not repeat itself; this is a defect of the kit") from None
            if self._is_enough() or time.monotonic() - self.began_s > options.seconds:
                break

    def _is_enough(self) -> bool:
        """Whether to stop: Hypothesis itself ends only after more runs than requested."""
        options = self.options
        is_late = options.in_real_time and time.monotonic() - self.began_s > options.seconds
        is_whole = options.runs_max is not None and self.result.runs >= options.runs_max
        return self.failing is not None or is_late or is_whole or self.is_over()

    def _beginnings(self) -> Sequence[Sequence[Action]]:
        options = self.options
        if not options.rare_starts or options.in_real_time or options.among_played:
            return ()
        from distro_conformance.walks.rare_starts import rare_starts  # noqa: PLC0415 - SciPy takes a second to load

        return rare_starts(options.profile, options.seed, http=self.http)

    # A run

    def _start(self) -> WalkDriver | None:
        if self._is_enough():
            return None
        options = self.options
        if self.real_time is not None:
            if self.real_time.is_spoilt:
                self.real_time.stop()
                self.real_time = self._started()
            self.real_time.start_recording(self._recorder() if self.real_time.is_recorded else None)
            return self.real_time
        return Lockstep(
            options.nodes,
            options.profile,
            options.mutant,
            self.wire,
            None if options.among_played else self._recorder(),
            self._watch,
            serves_http=self.http,
            among_played=options.among_played,
        )

    def _watch(self, profile: Profile) -> Profile:
        return counting(profile, self.taken)

    def _recorder(self) -> Recorder | None:
        options = self.options
        if options.record_into is None:
            return None
        name = f"lockstep-{options.seed}-{self.result.runs + 1:04d}"
        place = options.record_into
        if options.in_real_time:
            place /= f"walks-{options.seed}"
            if not self.result.runs:  # recordings of an earlier search with the same seed are removed
                shutil.rmtree(place, ignore_errors=True)
        return Recorder(
            place,
            name,
            profile=options.profile,
            target=options.target,
            clock="wall" if options.in_real_time else "virtual",
            nodes=NODES,
            observed=INFERRED if options.in_real_time else EVERYTHING,
        )

    def _ended(self, actions: list[Action], failure: BaseException | None) -> None:
        self._count(actions)
        self.result.runs_with_http += self.http
        self.result.runs_idle += all(isinstance(action, Advance) for action in actions)
        self.actions.update(kind_of(type(action)) for action in actions)
        if isinstance(failure, DivergedError):
            self.first_failure = self.first_failure or (self.result.steps, time.monotonic() - self.began_s)
            if self.failing is None and self.real_time is not None:
                self.logs = self.real_time.cluster.save_logs(self.options.failure_logs)
            self.failing = self.failing or (actions, failure)
        elif isinstance(failure, LostError):
            self.result.not_judged["runs_lost"] += 1
        elif failure is not None:
            self.broken = failure
        self._report("they diverge" if self.failing else "nodes and model agree")

    def _count(self, actions: Sequence[Action]) -> None:
        self.result.runs += 1
        self.result.steps += len(actions)
        self.result.steps_over[self.wire.kind.value] += len(actions)

    def _report(self, what: str) -> None:
        self.on_progress(f"{self.options.name}: {self.result.runs} runs, {self.result.steps} steps, {what}")

    # A failure

    def _failure(self) -> FoundFailure | None:
        if self.failing is None or self.first_failure is None:
            return None
        options, (actions, error) = self.options, self.failing
        if self.real_time is not None:
            comment = f"Found on {options.target}, seed {options.seed}: {error}"
            scenario = build([*actions, expected_after(actions, options.profile)], nodes=NODES, comment=comment)
            recording, smallest = self.real_time.recording, (scenario, str(error), len(actions))
            return FoundFailure(
                *smallest, *self.first_failure, recording=recording, target=options.target, logs=self.logs
            )
        run, error, wire = self._smallest(Run(options.nodes, tuple(actions)), error)
        scenario = build(
            [*run.actions, ExpectModel()],
            nodes=run.nodes,
            profile=options.profile,
            mutant=options.mutant,
            wire=wire,
            comment="\n".join((f"Found by the {options.name}, seed {options.seed}: {error}", *error.history)),
            played=run.nodes[1:] if options.among_played else (),
        )
        return FoundFailure(scenario, str(error), len(run.actions), *self.first_failure, error)

    def _smallest(self, run: Run, error: DivergedError) -> tuple[Run, DivergedError, Wire]:
        options = self.options
        on_nodes = OnNodes(
            options.profile, options.mutant, self.wire, self._tried, self.http, among_played=options.among_played
        )
        small = shrink(run, on_nodes, seconds=options.shrink_seconds) if options.shrink_seconds else None
        if small is not None and on_nodes.error is not None:
            run, error = small, on_nodes.error
        return run, error, on_nodes.wire

    def _tried(self, run: Run) -> None:
        self._count(run.actions)
        self._report("making the failing run smaller")


@contextmanager
def _only_new_garbage() -> Iterator[None]:
    """Freeze existing objects: they outlive the search, and collecting them again costs more than the garbage of a
    run. What the caller has frozen stays so."""
    thaws = not gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if thaws:
            gc.unfreeze()
