"""One search on several processes: walks share no state, so throughput grows with the cores.

Each process searches with its own seed, which alone reproduces its walks. The first process that finds a failure
shrinks it; the others end after their current run.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from queue import Empty
from threading import Thread

from distro_conformance.interruption import kept_from_children
from distro_conformance.walks.driver import Check
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions, WalkResult
from distro_conformance.wire.transports import steps_over

_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class _Shared:
    """State that a process shares with its parent."""

    progress: Queue[str]
    is_over: Event


_shared: list[_Shared] = []  # of this process, if it has a parent


def random_walks_on(
    processes: int,
    options: WalkOptions,
    on_progress: Callable[[str], None] = lambda _: None,
    check: Check | None = None,
) -> WalkResult:
    """Search with `options.seed` and the seeds after it, one for each process, each for the whole time. The result
    names the seed that found a failure. `check` is for real time, which has one process. Errors other than a divergence
    are raised unchanged.
    """
    if processes == 1:
        return random_walks(options, on_progress, check=check)
    context = multiprocessing.get_context("spawn")  # gRPC does not support fork
    shared = _Shared(context.Queue(), context.Event())
    with ProcessPoolExecutor(processes, context, _set_shared, (shared,)) as pool:
        runs_max = options.runs_max and math.ceil(options.runs_max / processes)
        each = [replace(options, seed=options.seed + number, runs_max=runs_max) for number in range(processes)]
        try:
            with kept_from_children():
                running = [pool.submit(_in_process, share) for share in each]
            _await(running, shared, on_progress)
        except BaseException:  # results of the other processes are not needed, and a run can be long
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return _merged(options, [each.result() for each in running])


def _set_shared(shared: _Shared) -> None:
    """Set up a new process, which ends when its parent ends, for any reason."""
    _shared.append(shared)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_it() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_it, daemon=True).start()


def _in_process(options: WalkOptions) -> WalkResult:
    (shared,) = _shared
    return random_walks(
        options, lambda text: shared.progress.put(f"{text}, seed {options.seed}"), shared.is_over.is_set
    )


def _await(running: Sequence[Future[WalkResult]], shared: _Shared, on_progress: Callable[[str], None]) -> None:
    """Wait until all have ended; a process that finds a failure or raises ends the others."""
    left = set(running)
    while left:
        ended, left = wait(left, _LOOK_S, FIRST_COMPLETED)
        if any(each.exception() or each.result().failure for each in ended):
            shared.is_over.set()
        with suppress(Empty):
            while True:
                on_progress(shared.progress.get_nowait())


def _merged(options: WalkOptions, running: Sequence[WalkResult]) -> WalkResult:
    found = next((each for each in running if each.failure), None)
    kinds = dict.fromkeys(kind for each in running for kind in each.coverage)
    return WalkResult(
        found.options if found else options,
        sum(each.steps for each in running),
        sum(each.runs for each in running),
        steps_over(_sum(each.steps_over for each in running)),
        max(each.seconds for each in running),
        found.failure if found else None,
        sum(each.runs_with_http for each in running),
        sum(each.runs_idle for each in running),
        not_judged=_sum(each.not_judged for each in running),
        coverage={kind: _sum(each.coverage.get(kind, {}) for each in running) for kind in kinds},
    )


def _sum(counted: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Add the counts; counts of 0 stay."""
    total: Counter[str] = Counter()
    for each in counted:
        total.update(each)
    return total
