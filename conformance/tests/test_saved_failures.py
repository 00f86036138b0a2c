"""Failures that are kept from run to run, and seeds: another one each time, printed, and in the document."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import ROOT

from distro_conformance.cli.options import chosen_seed
from distro_conformance.language.text import read
from distro_conformance.verdict import Verdict
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions
from distro_conformance.walks.saved_failures import save_scenario

B02 = ROOT / "scenarios" / "b02-lost-change-2.0.4.scenario"


def test_a_seed_that_is_not_given_is_another_one_each_time() -> None:
    assert len({chosen_seed(None) for _ in range(20)}) > 10
    assert chosen_seed(7) == 7


@pytest.mark.slow
@pytest.mark.quality
def test_a_finding_is_kept_and_comes_first_the_next_time(tmp_path: Path) -> None:
    options = WalkOptions(mutant="B02", seconds=30, seed=1, shrink_seconds=0, database=tmp_path, rare_starts=False)
    first = random_walks(options)
    assert first.failure is not None
    (kept,) = tmp_path.glob("*.scenario")
    assert read(kept).mutant == "B02"

    again = random_walks(WalkOptions(mutant="B02", seconds=30, seed=99, database=tmp_path, rare_starts=False))
    assert again.verdict is Verdict.VIOLATES
    assert again.failure is not None
    assert again.failure.message.startswith(f"{kept.name} fails again: line")
    assert again.runs == 1


def test_runs_kept_for_another_profile_are_left_alone(tmp_path: Path) -> None:
    save_scenario(tmp_path, read(B02), "b02")
    found = random_walks(WalkOptions(seconds=0.1, runs_max=1, seed=3, database=tmp_path, rare_starts=False))
    assert found.verdict is Verdict.CONFORMS
