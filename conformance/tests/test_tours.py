"""Tours on the nodes: healthy ones stay in the model on each transition, a broken one is found without any chance."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import Document

from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.verdict import Verdict
from distro_conformance.walks.driver import Lockstep
from distro_conformance.walks.result import WalkOptions
from distro_conformance.walks.saved_failures import save_failure
from distro_conformance.walks.tours import TOURS, tour
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_model.actions import Action, Connect, Register
from distro_model.bounded.bounds import Bounds

CALM = {"calm": Bounds(changes=1, drops=0, swallows=0, in_flight=1)}

OVERTAKEN = """
profile strict
nodes a b
connect c1 a
advance 4.5s
hold b->a
crash b
restart b
advance 4.4s
hold a->b
advance 100ms
register c1 web 10.0.0.1:80 v=1
release b->a
disconnect c1
release a->b
expect model agrees
"""

pytestmark = pytest.mark.wire

ENOUGH_S = 600
"""They end by themselves, in seconds; a machine that is busy with something else must not decide."""


def test_healthy_nodes_follow_the_model_through_every_transition_that_has_times() -> None:
    report = tour(WalkOptions(seconds=ENOUGH_S), bounds=CALM)
    assert report.verdict is Verdict.CONFORMS, report.failure
    assert report.tours is not None
    (calm,) = report.tours.graphs
    assert (calm.edges, calm.covered) == (68, 55)
    assert report.tours.walks + report.tours.left_out == calm.walks_planned
    assert sum(report.tours.cut_short.values()) == calm.walks_planned - report.tours.whole


@pytest.mark.parametrize(
    "profile",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in ("nacos-2.0.4", "nacos-2.2.4")), "strict"],
)
def test_every_profile_has_tours_with_faults_and_with_a_crash(profile: str) -> None:
    report = tour(WalkOptions(profile=profile, runs_max=12, seconds=ENOUGH_S))
    assert report.verdict is Verdict.CONFORMS, report.failure
    assert report.tours is not None
    assert report.runs == report.tours.walks == 12
    assert [each.name for each in report.tours.graphs] == list(TOURS)
    assert report.tours.covered > 90
    assert report.steps > report.runs


@pytest.mark.parametrize("mutant", ["B02", "B07"])
def test_a_broken_node_is_found_by_the_tours_alone(mutant: str, tmp_path: Path) -> None:
    report = tour(WalkOptions(mutant=mutant, seconds=ENOUGH_S))
    assert report.verdict is Verdict.VIOLATES
    assert report.failure is not None
    assert report.failure.steps_until_found == report.steps
    assert replay(report.failure.scenario, target="embedded").reproduced
    assert not replay(report.failure.scenario, target="model").reproduced, "the model itself has no such bug"
    scenario, test = save_failure(report.failure, tmp_path, "tours")
    assert scenario.read_text() == report.failure.scenario.render()
    assert "Found by a tour of all transitions" in test.read_text()


@pytest.mark.parametrize(("refused_type", "covered"), [(Connect, 0), (Register, 5)])
def test_a_transition_counts_when_it_was_done_and_was_right(
    refused_type: type[Action], covered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later steps of the walk were never done, and neither was its own effect."""
    perform = Lockstep.perform

    def refusing(self: Lockstep, action: Action) -> None:
        if isinstance(action, refused_type):
            raise DivergedError(action, self.cluster.clock.now_ms(), "refused")
        perform(self, action)

    monkeypatch.setattr(Lockstep, "perform", refusing)
    report = tour(WalkOptions(seconds=ENOUGH_S), bounds=CALM)
    assert report.failure is not None
    assert report.failure.message.endswith("refused")
    assert report.tours is not None
    assert report.tours.covered == covered


def test_findings_of_the_tours_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verify that was sent before the first registration, and arrives at a copy of what came after it (D11)."""
    assert replay(parse(OVERTAKEN), target="embedded").verdict is Verdict.CONFORMS
    passes = DistroClientDataProcessor._is_verified
    monkeypatch.setattr(
        DistroClientDataProcessor, "_is_verified", lambda self, *about: about[1] == 0 or passes(self, *about)
    )
    again = replay(parse(OVERTAKEN), target="embedded")
    assert "c1 at b: the answer to VERIFY a->b revision 0 is success; the model expects fail" in again.steps[-1].outcome


def test_the_command_reports_the_transitions(document: Document, tmp_path: Path) -> None:
    code, found = document("test", "cluster", "--tours", "--examples", "3", "--out", str(tmp_path))
    assert code == 0
    assert (found["schema"], found["verdict"], found["failure"]) == ("distrocheck/test-cluster/1", "conforms", None)
    tours = found["tours"]
    assert tours["walks"] == found["runs"] == 3
    assert tours["edges"] == sum(each["edges"] for each in tours["graphs"]) > 2_000
    assert 20 < tours["covered"] < 200
