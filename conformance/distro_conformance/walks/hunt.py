"""The search for a run in which nodes and model part: Hypothesis within a time budget, and what it found, made small.

A failure is kept twice: as a scenario that `distrocheck replay` runs, and as a plain pytest file that fails on its
own. Seed and commit reproduce a search on embedded nodes.
"""

from __future__ import annotations

import gc
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import get_args

from hypothesis.errors import Flaky

from distro_conformance.commands import command
from distro_conformance.drivers.lockstep import DivergedError, LostError
from distro_conformance.findings.finding import Finding, Judgement
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.regression import pytest_file
from distro_conformance.language.text import Scenario, Step, build
from distro_conformance.verdict import KitError, Verdict
from distro_conformance.walks.among_machine import NODE, PEERS, AmongMachine
from distro_conformance.walks.client_rules import NODES
from distro_conformance.walks.http_among_machine import HttpAmongMachine
from distro_conformance.walks.http_machine import HttpMachine
from distro_conformance.walks.kept import broken_again, keep
from distro_conformance.walks.machine import LockstepMachine
from distro_conformance.walks.shrink import OnNodes, Run, shrink
from distro_conformance.walks.side_by_side import SideBySide
from distro_conformance.walks.stage import Among, Elsewhere, Lockstep, Stage, expected_after
from distro_conformance.walks.walk import Walk, draw
from distro_conformance.wire.transports import OVER_GRPC, Carrier, Wire, steps_over, wire_of
from distro_model.actions import Action, Advance, Answers, Reorder, Says, Shape
from distro_model.profiles import Profile
from distro_model.rules.watching import Taken, counting
from distro_traces.ndjson import SUFFIX, Recorder
from distro_traces.observed import EVERYTHING, INFERRED

RUNS_PER_ROUND = 10
"""Hypothesis knows numbers of runs, not seconds; the budget is looked at between rounds."""

HTTP_EVERY, HTTP_ROUND = 2, 1
"""Of so many rounds, from 0, which one walks with clients of the HTTP API where nothing else is asked for."""

MACHINES: Mapping[tuple[bool, bool], type[Walk]] = {
    (False, False): LockstepMachine,
    (False, True): HttpMachine,
    (True, False): AmongMachine,
    (True, True): HttpAmongMachine,
}
"""(one node among played members, with clients of the HTTP API) -> what walks there."""

Check = Callable[[Path], Iterable[Finding]]
"""What the invariants say of the recording of a run."""

CONVERGENCE = "INV-CONV"
"""The invariant that a run violates whose nodes hold different things in the end."""

STEPS_PER_RUN = 100
SHRINK_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntOptions:
    """What is driven, how long, and where recordings of the runs go (None: nowhere)."""

    target: str = "embedded"
    """Embedded nodes are compared with the model after each step; any other cluster has to agree in the end."""
    profile: str = "strict"
    mutant: str | None = None
    seconds: float = 20.0
    seed: int = 0
    runs_max: int | None = None
    steps_per_run: int = STEPS_PER_RUN
    shrink_seconds: float = SHRINK_SECONDS
    record_into: Path | None = None
    rare_starts: bool = True
    """Every third run goes on from a state to which random runs seldom come."""
    database: Path | None = None
    """Where failures are kept; they are replayed first."""
    transport: Carrier | None = None
    """None: most rounds of runs in memory, some over gRPC."""
    among_played: bool = False
    """One node, and members that are played, instead of nodes only."""
    http: bool | None = None
    """Clients of the HTTP API, beside those that connect; None: in some rounds of runs. On embedded nodes only:
    one real node among played members always has some."""

    @property
    def is_elsewhere(self) -> bool:
        return self.target != "embedded"

    @property
    def nodes(self) -> tuple[str, ...]:
        return (NODE, *PEERS) if self.among_played else NODES

    def has_http(self, round_number: int) -> bool:
        """The runs of that round, from 0, have clients of the HTTP API."""
        if self.is_elsewhere:
            return False
        return round_number % HTTP_EVERY == HTTP_ROUND if self.http is None else self.http

    @property
    def name(self) -> str:
        return "machine" if self.among_played else "lockstep"


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """The smallest failing run that was reached, and what the first one cost."""

    scenario: Scenario
    message: str
    steps: int
    steps_until_found: int
    seconds_until_found: float
    error: DivergedError | None = None
    is_flaky: bool = False
    """In real time: it did not fail each time it was done again."""
    recording: Path | None = None
    target: str = "embedded"

    def replayed_by(self, scenario: Path) -> str:
        """The command that plays it again where it failed."""
        where = () if self.target == "embedded" else ("--target", self.target)
        return command("replay", scenario, *where)

    """Of the run on a cluster in its own time, which cannot be had again."""


@dataclass(slots=True)
class Hunt:
    """The result, counted as the search goes. `steps` counts actions done on the nodes, in shrinking too; `runs` the
    runs they were done in."""

    options: HuntOptions
    steps: int = 0
    runs: int = 0
    steps_over: dict[str, int] = field(default_factory=lambda: steps_over({}))
    seconds: float = 0.0
    failure: FoundFailure | None = None
    runs_with_http: int = 0
    runs_idle: int = 0
    """In which nothing but time passed: nothing was asked of the nodes, so they are no reason to say anything."""
    runs_lost: int = 0
    """That ended where the model could not follow the nodes any more."""
    clients_lost: int = 0
    """Of the runs side by side: a client that may be in more states than the model keeps is looked at no more."""
    coverage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often each kind of action was done on the nodes, and each rule applied and each answer of a guard given by
    the model beside them; what never was is there with 0."""
    checked: list[Finding] = field(default_factory=list)
    """What the invariants say of the recordings of runs whose nodes did not come to agree: of those that ended the
    search, and of those that show nothing but listed defects."""

    @property
    def verdict(self) -> Verdict:
        if self.failure is not None:
            return Verdict.INCONCLUSIVE if self.failure.is_flaky else Verdict.VIOLATES
        return Verdict.CONFORMS if self.runs > self.runs_idle else Verdict.INCONCLUSIVE


@dataclass
class _Tally:
    """What the runs did, as the machine reports it run by run."""

    hunt: Hunt
    began_s: float
    on_progress: Callable[[str], None]
    is_over: Callable[[], bool]
    check: Check | None = None
    wire: Wire = OVER_GRPC
    http: bool = False
    actions: Counter[str] = field(default_factory=Counter)
    taken: Taken = field(default_factory=Taken)
    first_failure: tuple[int, float] | None = None
    failing: tuple[list[Action], DivergedError] | None = None
    recording: Path | None = None
    """Of the run on a cluster in its own time; that of one that passed is of no use."""
    broken: BaseException | None = None
    """What ended a run and is no divergence: Hypothesis repeats such a run, and tells only that it went otherwise."""

    def watch(self, profile: Profile) -> Profile:
        return counting(profile, self.taken)

    def ended(self, actions: list[Action], failure: BaseException | None) -> None:
        self._count(actions)
        self.hunt.runs_with_http += self.http
        self.hunt.runs_idle += all(isinstance(action, Advance) for action in actions)
        self.actions.update(kind_of(type(action)) for action in actions)
        if isinstance(failure, DivergedError):
            self.first_failure = self.first_failure or (self.hunt.steps, time.monotonic() - self.began_s)
            self.failing = self.failing or (actions, failure)
        elif isinstance(failure, LostError):
            self.hunt.runs_lost += 1
        elif failure is not None:
            self.broken = failure
        if self.recording is not None and self.failing is None:
            self.recording.unlink()
        self._tell("they part" if self.failing else "nodes and model agree")

    def is_known(self, error: DivergedError) -> bool:
        """Whether the recording of a run says that listed defects alone are why its nodes differ. Then it is kept."""
        if self.check is None or self.recording is None:
            return False
        self._tell(f"checking the recording, {error}")
        wrong = (Judgement.KNOWN, Judgement.VIOLATES)
        found = [finding for finding in self.check(self.recording) if finding.judgement in wrong]
        self.hunt.checked += found
        is_news = any(finding.violates for finding in found)
        if is_news or not any(finding.about == CONVERGENCE for finding in found):
            return False
        self.recording = None
        return True

    def tried(self, run: Run) -> None:
        """A smaller run, on the nodes."""
        self._count(run.actions)
        self._tell("making the failing run smaller")

    def _count(self, actions: Sequence[Action]) -> None:
        self.hunt.runs += 1
        self.hunt.steps += len(actions)
        self.hunt.steps_over[self.wire.carrier.value] += len(actions)

    def _tell(self, what: str) -> None:
        hunt = self.hunt
        self.on_progress(f"{hunt.options.name}: {hunt.runs} runs, {hunt.steps} steps, {what}")

    def is_enough(self) -> bool:
        """Hypothesis comes to its end by itself, and then by more runs than it was asked for."""
        options = self.hunt.options
        is_late = options.is_elsewhere and time.monotonic() - self.began_s > options.seconds
        is_whole = options.runs_max is not None and self.hunt.runs >= options.runs_max
        return self.failing is not None or is_late or is_whole or self.is_over()


def hunt(
    options: HuntOptions,
    on_progress: Callable[[str], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
    check: Check | None = None,
) -> Hunt:
    """Search until the budget is used or a failure is found and shrunk; at least one round, however slow the machine.

    `is_over`: somebody else has found one. `check`: in real time a run whose nodes differ fails only if its recording
    shows more than the listed defects of the release; without it any such run does. What is no divergence is raised as
    it is.
    """
    began_s = time.monotonic()
    if options.among_played and options.is_elsewhere:
        return _in_real_time(options, began_s, on_progress)
    if kept := None if options.is_elsewhere else _kept(options, began_s):
        seconds = time.monotonic() - began_s
        return Hunt(options, kept.steps, 1, seconds=seconds, failure=kept)
    result = Hunt(options)
    tally = _Tally(result, began_s, on_progress, is_over, check)
    elsewhere = None
    if options.is_elsewhere:
        elsewhere = Elsewhere(options.target, None, NODES, on_progress, tally.is_known)
        result.options = options = replace(options, profile=elsewhere.profile)

    def start() -> Stage | None:
        if tally.is_enough():
            return None
        if options.among_played:
            return Among(
                options.nodes, options.profile, options.mutant, tally.wire, tally.watch, serves_http=tally.http
            )
        recorder = _recorder(options, result.runs) if elsewhere is None or elsewhere.is_recorded else None
        if elsewhere is not None:
            if recorder is not None:
                elsewhere.record_anew(recorder)
                tally.recording = recorder.path
            return elsewhere
        return Lockstep(
            NODES, options.profile, options.mutant, tally.wire, recorder, tally.watch, serves_http=tally.http
        )

    try:
        with _only_new_garbage():
            _rounds(tally, start)
    finally:
        if elsewhere is not None:
            elsewhere.stop()
    result.failure = failure = _failure(options, tally)
    if failure and options.database:
        keep(options.database, failure.scenario, f"{options.name}-{options.mutant or options.profile}-{options.seed}")
    result.seconds = time.monotonic() - began_s
    actions = {} if options.among_played else {"actions": dict.fromkeys(ACTIONS, 0) | tally.actions}
    beside = {} if options.is_elsewhere else of_walks(tally.taken)
    result.coverage = {**actions, **beside}
    return result


def lost_runs(result: Hunt) -> str:
    """What is to be said of what was not judged to its end, if anything."""
    runs = f"; in {result.runs_lost} runs the end had too many outcomes to be followed" if result.runs_lost else ""
    clients = f"; {result.clients_lost} clients could be in too many states to be followed"
    return runs + (clients if result.clients_lost else "")


@contextmanager
def _only_new_garbage() -> Iterator[None]:
    """What lives already outlives the search: to look through all of it again and again costs more than each run's own
    garbage."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def of_walks(taken: Taken) -> Mapping[str, Mapping[str, int]]:
    """What the model did beside the nodes, under the names of a report."""
    return {"rules beside nodes": taken.of_rules, "guards beside nodes": taken.of_guards}


def kind_of(action: type) -> str:
    """`http register` of HttpRegister."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", action.__name__).lower()


ACTIONS = tuple(kind_of(each) for each in get_args(Action) if not issubclass(each, Shape | Reorder | Says | Answers))
"""What the walks of three nodes may consist of: all that the model has too, without members that are played."""


def _in_real_time(options: HuntOptions, began_s: float, on_progress: Callable[[str], None]) -> Hunt:
    """One round, of runs side by side. Of a failing one its own actions are kept, as they are."""
    taken = Taken()
    runs = SideBySide(
        options.target, options.seed, options.seconds, on_progress, lambda profile: counting(profile, taken)
    )
    found = runs.run()
    options = replace(options, profile=runs.profile)
    failure = None
    if found is not None:
        flaky = f"flaky, {found.rate}: " if found.is_flaky else ""
        message = f"{flaky}{found.error}"
        comment = f"Found by the machine on {options.target}, seed {options.seed}; {found.rate}: {found.error}"
        steps = [*found.actions, ExpectModel()]
        scenario = build(steps, nodes=options.nodes, comment=comment, played=options.nodes[1:])
        ours, first = (scenario, message, len(found.actions)), (found.steps, found.seconds)
        failure = FoundFailure(*ours, *first, found.error, found.is_flaky, target=options.target)
    seconds = time.monotonic() - began_s
    over = steps_over({"grpc": runs.steps})
    return Hunt(
        options,
        runs.steps,
        runs.runs,
        over,
        seconds,
        failure,
        clients_lost=runs.undecided,
        coverage=of_walks(taken),
    )


def _rounds(tally: _Tally, start: Callable[[], Stage | None]) -> None:
    """Until something fails or the budget is used."""
    options = tally.hunt.options
    for round_number in count():
        seed = options.seed * 1_000 + round_number
        tally.wire = wire_of(options.transport, round_number, seed)  # that of a failing run goes with it
        tally.http = options.has_http(round_number)
        machine = MACHINES[options.among_played, tally.http]
        runs = RUNS_PER_ROUND if options.runs_max is None else min(RUNS_PER_ROUND, options.runs_max - tally.hunt.runs)
        reports = {"start": staticmethod(start), "on_end": staticmethod(tally.ended)}
        try:
            draw(
                machine,
                seed,
                max(1, runs),
                options.steps_per_run,
                beginnings=_beginnings(options, http=tally.http),
                **reports,
            )
        except (DivergedError, Flaky):  # Flaky: `start` gave nothing any more when Hypothesis repeated the run
            if tally.failing is None:
                raise tally.broken or KitError("a run did not repeat itself; this is a defect of the kit") from None
        if tally.is_enough() or time.monotonic() - tally.began_s > options.seconds:
            break


def _kept(options: HuntOptions, began_s: float) -> FoundFailure | None:
    """The first of the kept failures that fails again."""
    if options.database is None:
        return None
    for scenario, message in broken_again(options.database, options.profile, options.mutant):
        steps = len(scenario.lines)
        return FoundFailure(scenario, message, steps, steps, time.monotonic() - began_s)
    return None


def _beginnings(options: HuntOptions, *, http: bool) -> Sequence[Sequence[Action]]:
    if not options.rare_starts or options.is_elsewhere or options.among_played:
        return ()
    from distro_conformance.walks.rare_starts import rare_starts  # noqa: PLC0415 - SciPy takes a second to load

    return rare_starts(options.profile, options.seed, http=http)


def _recorder(options: HuntOptions, run: int) -> Recorder | None:
    if options.record_into is None:
        return None
    name = f"lockstep-{options.seed}-{run + 1:04d}"
    if options.is_elsewhere:  # runs of an earlier search with the same seed were others
        options.record_into.joinpath(f"{name}{SUFFIX}").unlink(missing_ok=True)
    return Recorder(
        options.record_into,
        name,
        profile=options.profile,
        target=options.target,
        clock="wall" if options.is_elsewhere else "virtual",
        nodes=NODES,
        observed=INFERRED if options.is_elsewhere else EVERYTHING,
    )


def _failure(options: HuntOptions, tally: _Tally) -> FoundFailure | None:
    if tally.failing is None or tally.first_failure is None:
        return None
    actions, error = tally.failing
    if options.is_elsewhere:
        comment = f"Found on {options.target}, seed {options.seed}: {error}"
        steps: list[Step] = [*actions, expected_after(actions)]
        scenario = build(steps, nodes=NODES, comment=comment)
        ours = (scenario, str(error), len(actions))
        return FoundFailure(*ours, *tally.first_failure, recording=tally.recording, target=options.target)
    run = Run(options.nodes, tuple(actions))
    stage = partial(Among if options.among_played else Lockstep, serves_http=tally.http)
    on_nodes = OnNodes(
        options.profile, options.mutant, tally.wire, tally.tried, stage, model_first=not options.among_played
    )
    small = shrink(run, on_nodes, seconds=options.shrink_seconds) if options.shrink_seconds else None
    if small is not None and on_nodes.error is not None:
        run, error = small, on_nodes.error
    comment = f"Found by the {options.name}, seed {options.seed}: {error}"
    scenario = build(
        [*run.actions, ExpectModel()],
        nodes=run.nodes,
        profile=options.profile,
        mutant=options.mutant,
        wire=on_nodes.wire,
        comment=comment,
        played=run.nodes[1:] if options.among_played else (),
    )
    return FoundFailure(scenario, str(error), len(run.actions), *tally.first_failure, error)


def save_failure(failure: FoundFailure, directory: Path, name: str) -> tuple[Path, Path]:
    """Write `NAME.scenario` and `test_NAME.py`; returns both paths."""
    scenario = keep(directory, failure.scenario, name)
    test = directory / f"test_{name.replace('-', '_')}.py"
    test.write_text(pytest_file(failure.scenario, name, failure.target), encoding="utf-8")
    return scenario, test
