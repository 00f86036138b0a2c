"""A real server of 2.2.4 and two reference nodes as one cluster; other releases are run by hand, with the same command.

Skipped, and said so, where there is no Java and where Maven cannot fetch the release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from distro_conformance.drivers.registry import ClusterOptions, resolve_cluster
from distro_conformance.language.replay import replay
from distro_conformance.language.text import read
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import UsageError, Verdict

RELEASE, LEASE_MS = "2.2.4", 10_000
MIXED_LIFE = read(Path(__file__).parents[2] / "scenarios" / "mixed-life.scenario")


@pytest.mark.wire
@pytest.mark.slow
def test_a_real_server_and_reference_nodes_take_each_other_for_their_own_kind(
    need_release: Callable[..., None],
) -> None:
    need_release(nacos_release(RELEASE))
    played = replay(replace(MIXED_LIFE, lease_ms=LEASE_MS), target=f"mixed:{RELEASE}", to_the_end=True)
    assert [f"{step.text}: {step.outcome}" for step in played.steps if step.verdict is not Verdict.CONFORMS] == []
    assert len(played.steps) == len(MIXED_LIFE.lines)


@pytest.mark.parametrize(
    ("target", "profile", "mutant", "problem"),
    [
        ("mixed:9.9.9", None, None, "Maven has no Nacos release '9.9.9'; known: 2.0.4"),
        ("mixed:2.2.4", "strict", None, "behaves as nacos-2.2.4, not as strict"),
        ("mixed:2.2.4", None, "B02", "has no mutants"),
        ("nacos:2.2.4", "nacos-2.0.4", None, "behaves as nacos-2.2.4, not as nacos-2.0.4"),
        ("embedded:3", None, None, "the target embedded takes no argument"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(
    target: str, profile: str | None, mutant: str | None, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        resolve_cluster(target, ClusterOptions(profile=profile, mutant=mutant))
