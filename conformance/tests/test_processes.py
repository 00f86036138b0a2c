"""Random walks in several processes: the merged result, the reported seed, and the end of all processes."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import psutil
import pytest

from distro_conformance.node_mutants.mutant import UnknownMutantError
from distro_conformance.verdict import Verdict
from distro_conformance.walks.processes import random_walks_on
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions
from distro_conformance.wire.transports import TransportKind

FEW = WalkOptions(seconds=60.0, seed=5, runs_max=2, steps_per_run=20, rare_starts=False, transport=TransportKind.MEMORY)


@pytest.mark.slow
def test_each_process_walks_with_a_seed_of_its_own() -> None:
    progress: list[str] = []
    both = random_walks_on(2, FEW, progress.append)
    one, other = (random_walks(replace(FEW, seed=seed, runs_max=1)) for seed in (5, 6))
    assert (both.runs, both.steps) == (2, one.steps + other.steps)
    assert both.steps_over == {"grpc": 0, "memory": both.steps}
    assert both.coverage["actions"] == {
        kind: count + other.coverage["actions"][kind] for kind, count in one.coverage["actions"].items()
    }
    assert both.verdict is Verdict.CONFORMS
    assert {text.rpartition(", ")[2] for text in progress} == {"seed 5", "seed 6"}


@pytest.mark.slow
def test_a_failure_comes_with_the_seed_that_finds_it_again() -> None:
    wrong = replace(FEW, mutant="m-no-delete", runs_max=None, steps_per_run=60, shrink_seconds=0)
    both = random_walks_on(2, wrong)
    assert both.failure is not None
    assert both.options.seed in (5, 6)
    again = random_walks(both.options)
    assert again.failure is not None
    assert again.failure.scenario == both.failure.scenario
    assert str(again.failure.error) == str(both.failure.error)


@pytest.mark.slow
def test_an_error_that_is_no_divergence_is_raised_unchanged() -> None:
    with pytest.raises(UnknownMutantError, match="no-such-mutant"):
        random_walks_on(2, replace(FEW, mutant="no-such-mutant"))


def test_an_error_is_raised_unchanged_after_the_others_have_ended_the_search() -> None:
    """Hypothesis repeats a run that failed, and by then the search may have ended."""
    asked = count()
    with pytest.raises(UnknownMutantError, match="no-such-mutant"):
        random_walks(replace(FEW, mutant="no-such-mutant"), is_over=lambda: next(asked) > 0)


@pytest.mark.slow
def test_processes_end_with_their_starter(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("distrocheck"), "test", "cluster", "--jobs", "2", "--seconds", "60"]
    begun = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    walkers: list[psutil.Process] = []
    while len(walkers) < 2 and begun.poll() is None:
        time.sleep(0.1)
        walkers = [each for each in psutil.Process(begun.pid).children() if "spawn_main" in "".join(each.cmdline())]
    begun.kill()
    begun.wait()
    _, left = psutil.wait_procs(walkers, timeout=30)
    assert (len(walkers), left) == (2, [])
