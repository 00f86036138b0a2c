"""Random walks in real time, on nodes that nobody follows step by step: they must agree when a run has come to rest."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.registry import Resolved
from distro_conformance.language.replay import replay
from distro_conformance.verdict import UsageError, Verdict
from distro_conformance.walks import stage
from distro_conformance.walks.hunt import HuntOptions, hunt
from distro_impl import Profile

pytestmark = pytest.mark.wire

SERVE = Path(__file__).parents[2] / "docs" / "examples" / "serve.toml"


class Silent(EmbeddedCluster):
    """Nodes in real time that tell each other nothing for ten minutes."""

    def _suited(self, profile: Profile) -> Profile:
        return replace(super()._suited(profile), sync_delay_ms=600_000, verify_interval_ms=600_000)


@pytest.mark.slow
def test_processes_agree_after_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    result = hunt(HuntOptions(target=f"process:{SERVE}", seconds=15, steps_per_run=8, seed=4))
    assert result.verdict is Verdict.CONFORMS, result.failure
    assert result.steps > 5


def test_nodes_that_never_agree_are_found_and_the_run_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Resolved(Silent(real_time=True), "strict")
    monkeypatch.setattr(stage, "resolve_cluster", lambda *_: silent)
    monkeypatch.setattr(stage, "AGREE_WITHIN_MS", 500)
    monkeypatch.setattr(stage, "WAIT_MAX_MS", 50)
    found = hunt(HuntOptions(target="silent", seconds=30, steps_per_run=10, seed=1)).failure
    assert found is not None
    assert "the nodes differ: c" in found.message
    assert "expect within 15s: all agree" in found.scenario.render()
    assert replay(found.scenario, target="embedded").verdict is Verdict.CONFORMS, "other nodes do agree"


def test_there_is_nothing_to_walk_on_without_nodes() -> None:
    with pytest.raises(UsageError, match="there are no nodes to walk on in 'model'"):
        hunt(HuntOptions(target="model"))
