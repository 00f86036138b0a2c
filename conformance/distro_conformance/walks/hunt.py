"""The search for a run in which nodes and model diverge: Hypothesis within a time budget, and the failure, shrunk.

A failure is kept twice: as a scenario that `distrocheck replay` runs, and as a plain pytest file that fails on its
own. Seed and commit reproduce a search on embedded nodes.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from hypothesis.errors import Flaky

from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.regression import pytest_file
from distro_conformance.language.running import Step
from distro_conformance.language.text import build
from distro_conformance.verdict import KitError
from distro_conformance.walks import NODES
from distro_conformance.walks.kept import broken_again, keep
from distro_conformance.walks.machine import Machine
from distro_conformance.walks.result import FoundFailure, Hunt, HuntOptions
from distro_conformance.walks.shrink import OnNodes, Run, shrink
from distro_conformance.walks.side_by_side import SideBySide
from distro_conformance.walks.stage import Lockstep, RealTime, Stage, expected_after
from distro_conformance.walks.tally import ACTIONS, Check, Tally, beside_nodes
from distro_conformance.walks.walk import draw
from distro_conformance.wire.transports import wire_of
from distro_model.actions import Action
from distro_traces.ndjson import Recorder
from distro_traces.observed import EVERYTHING, INFERRED

RUNS_PER_ROUND = 10
"""Hypothesis takes a number of runs, not seconds; the budget is checked between rounds."""


def hunt(
    options: HuntOptions,
    on_progress: Callable[[str], None] = lambda _: None,
    is_over: Callable[[], bool] = lambda: False,
    check: Check | None = None,
) -> Hunt:
    """Search until the budget is used or a failure is found and shrunk; at least one round, however slow the machine.

    `is_over`: another process has found a failure. `check`: in real time a run whose nodes differ fails only if its
    recording shows more than the listed defects of the release; without `check` any such run fails. Errors other than
    a divergence are raised unchanged.
    """
    began_s = time.monotonic()
    if options.among_played and options.is_elsewhere:
        return SideBySide(options, on_progress).run()
    if kept := None if options.is_elsewhere else _kept(options, began_s):
        seconds = time.monotonic() - began_s
        return Hunt(options, kept.steps, 1, seconds=seconds, failure=kept)
    result = Hunt(options)
    tally = Tally(result, began_s, on_progress, is_over, check)
    real_time: RealTime | None = None

    def start_real_time() -> RealTime:
        return RealTime(options.target, None, NODES, on_progress, tally.is_known, tally.leave_open, options.credentials)

    if options.is_elsewhere:
        real_time = start_real_time()
        result.options = options = replace(options, profile=real_time.profile)

    def start() -> Stage | None:
        nonlocal real_time
        if tally.is_enough():
            return None
        if real_time is not None and tally.is_spoilt:
            real_time.stop()
            real_time, tally.is_spoilt = start_real_time(), False
        is_recorded = not options.among_played and (real_time is None or real_time.is_recorded)
        recorder = _recorder(options, result.runs) if is_recorded else None
        if real_time is not None:
            if recorder is not None:
                real_time.record_anew(recorder)
                tally.recording = recorder.path
            return real_time
        return Lockstep(
            options.nodes,
            options.profile,
            options.mutant,
            tally.wire,
            recorder,
            tally.watch,
            serves_http=tally.http,
            among_played=options.among_played,
        )

    try:
        with _only_new_garbage():
            _rounds(tally, start)
    finally:
        if real_time is not None:
            real_time.stop()
        tally.tidy()
    result.failure = failure = _failure(options, tally)
    if failure and options.database:
        keep(options.database, failure.scenario, f"{options.name}-{options.mutant or options.profile}-{options.seed}")
    result.seconds = time.monotonic() - began_s
    actions = {} if options.among_played else {"actions": dict.fromkeys(ACTIONS, 0) | tally.actions}
    beside = {} if options.is_elsewhere else beside_nodes(tally.taken)
    result.coverage = {**actions, **beside}
    return result


def lost_runs(result: Hunt) -> str:
    """The message about runs and clients that were not judged to their end; empty if there are none."""
    counted = (
        (result.runs_lost, "model state limit exceeded in {} runs"),
        (result.clients_lost, "{} clients could not be followed to their end"),
        (result.clients_left_out, "{} clients are in no comparison: not every node can know their last change or end"),
        (result.runs_open, "in {} runs the machine took too much of the time in which the nodes have to agree"),
        (result.node_late, "{} times the node was late by no more than the machine took"),
        (result.views_in_parts, "{} views of clients that were being changed are not judged"),
    )
    return "".join(f"; {text.format(count)}" for count, text in counted if count)


@contextmanager
def _only_new_garbage() -> Iterator[None]:
    """Freeze existing objects: they outlive the search, and collecting them again costs more than the garbage of a
    run."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _rounds(tally: Tally, start: Callable[[], Stage | None]) -> None:
    """Search until a run fails or the budget is used."""
    options = tally.hunt.options
    for round_number in count():
        seed = options.seed * 1_000 + round_number
        tally.wire = wire_of(options.transport, round_number, seed)  # a failing run keeps its wire
        tally.http = options.has_http(round_number)
        runs = RUNS_PER_ROUND if options.runs_max is None else min(RUNS_PER_ROUND, options.runs_max - tally.hunt.runs)
        members = {
            "start": staticmethod(start),
            "on_end": staticmethod(tally.ended),
            "nodes": [each for each in options.nodes if each not in options.played],
            "played": options.played,
            "http": tally.http,
            "beginnings": _beginnings(options, http=tally.http),
        }
        try:
            draw(Machine, seed, max(1, runs), options.steps_per_run, members)
        except (DivergedError, Flaky):  # Flaky: `start` returned None when Hypothesis repeated the run
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
    place = options.record_into
    if options.is_elsewhere:
        place /= f"walks-{options.seed}"
        if not run:  # recordings of an earlier search with the same seed are removed
            shutil.rmtree(place, ignore_errors=True)
    return Recorder(
        place,
        name,
        profile=options.profile,
        target=options.target,
        clock="wall" if options.is_elsewhere else "virtual",
        nodes=NODES,
        observed=INFERRED if options.is_elsewhere else EVERYTHING,
    )


def _failure(options: HuntOptions, tally: Tally) -> FoundFailure | None:
    if tally.failing is None or tally.first_failure is None:
        return None
    actions, error = tally.failing
    if options.is_elsewhere:
        comment = f"Found on {options.target}, seed {options.seed}: {error}"
        steps: list[Step] = [*actions, expected_after(actions, options.profile)]
        scenario = build(steps, nodes=NODES, comment=comment)
        smallest = (scenario, str(error), len(actions))
        return FoundFailure(*smallest, *tally.first_failure, recording=tally.recording, target=options.target)
    run = Run(options.nodes, tuple(actions))
    on_nodes = OnNodes(
        options.profile, options.mutant, tally.wire, tally.tried, tally.http, among_played=options.among_played
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
