"""The same text on the model and on nodes: both do the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.exploration.explored import explore_profile
from distro_conformance.language.expectations import AllAgree, NodeHolds
from distro_conformance.language.replay import assert_scenario, replay
from distro_conformance.language.text import Scenario, ScenarioError, parse, read
from distro_conformance.verdict import UsageError, Verdict
from distro_model.bounded.bounds import Bounds
from distro_model.clock.cluster import View

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.scenario"))
TARGETS = ("model", "embedded")

HEALTHY = """
nodes a b
connect c1 a
register c1 web 10.0.0.1:80
expect b has no c1
expect within 2s: b has c1 web 10.0.0.1:80
expect all agree
"""


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_kept_scenario_ends_as_its_header_says(path: Path, target: str) -> None:
    """`violates` in the comment of a scenario: a release is expected to show its known defect; `strict` never does."""
    scenario = read(path)
    expected = Verdict.VIOLATES if "violates" in scenario.comment else Verdict.CONFORMS
    assert replay(scenario, target=target).verdict is expected
    assert replay(scenario, target=target, options=ClusterOptions(profile="strict")).verdict is Verdict.CONFORMS


@pytest.mark.wire
def test_a_v2_request_of_a_scenario_is_sent_by_v3_to_a_release_without_v2() -> None:
    (path,) = (each for each in SCENARIOS if each.stem.startswith("d7"))
    on_model, on_nodes = (
        replay(read(path), target=target, options=ClusterOptions(profile="nacos-3.0.3")) for target in TARGETS
    )
    assert on_model.steps == on_nodes.steps


@pytest.mark.wire
def test_the_model_follows_a_member_to_its_new_address() -> None:
    (path,) = (each for each in SCENARIOS if each.stem == "another-address")
    assert_scenario(f"{path.read_text()}expect model agrees\n", target="embedded")


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.slow  # the next test does it with one that the explorer finds, test_a_kept_scenario with all that are kept
@pytest.mark.parametrize("profile", ["nacos-2.0.4", "nacos-2.2.4"])
def test_counterexamples_of_the_explorer_happen_on_the_wire(profile: str) -> None:
    found = explore_profile(profile, Bounds(nodes=2, clients=1, changes=2, drops=1, swallows=1, crashes=1))
    scenarios = {name: scenario for name, scenario in found.scenarios.items() if isinstance(scenario, Scenario)}
    assert "INV-CONV" in scenarios
    for scenario in scenarios.values():
        on_model, on_nodes = (replay(scenario, target=target) for target in TARGETS)
        assert on_model.steps == on_nodes.steps, scenario.render()


@pytest.mark.wire
@pytest.mark.quality
def test_an_acknowledged_but_lost_sync_diverges_2_0_4_for_good_and_strict_never() -> None:
    bounds = Bounds(nodes=2, clients=1, changes=2, drops=0, swallows=1)
    scenario = explore_profile("nacos-2.0.4", bounds).scenarios["INV-CONV"]
    assert isinstance(scenario, Scenario)
    assert all(replay(scenario, target=target).reproduced for target in TARGETS)
    strict = explore_profile("strict", bounds)
    assert strict.exploration.complete
    assert strict.verdict is Verdict.CONFORMS
    assert not strict.exploration.result("REACH-RETRY").applies, "without drops nothing can be said about retries"
    assert not strict.scenarios


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_every_line_has_its_time_and_outcome(target: str) -> None:
    result = replay(parse(HEALTHY), target=target)
    assert result.verdict is Verdict.CONFORMS
    assert [(step.line, step.at_ms, step.outcome) for step in result.steps] == [
        (3, 0, "done"),
        (4, 0, "done"),
        (5, 0, "holds"),
        (6, 0, "holds"),
        (7, 1000, "holds"),
    ]


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_an_expectation_that_fails_names_the_observed_state(target: str) -> None:
    result = replay(parse("nodes a b\nconnect c1 a\nregister c1 web 10.0.0.1:80\nexpect b has c1"), target=target)
    assert result.reproduced
    assert result.steps[-1].outcome == "b does not have c1"
    with pytest.raises(AssertionError, match="line 4 'expect b has c1' at 0 ms: b does not have c1"):
        assert_scenario("nodes a b\nconnect c1 a\nregister c1 web 10.0.0.1:80\nexpect b has c1", target=target)


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (
            "cut a->b\nregister c1 web 10.0.0.1:80\nexpect within 4s: query web everywhere shows 10.0.0.1:80",
            "b shows web",
        ),
        ("members a a\nadvance 4s\nexpect all up", "a counts b UP is not so"),
        ("crash a\ncrash b\nexpect within 1s: query web everywhere shows 10.0.0.1:80", "no node is up"),
        ("crash a\ncrash b\nexpect within 1s: all agree", "no node is up"),
        ("crash a\ncrash b\nexpect within 1s: all up", "no node is up"),
    ],
)
def test_one_node_decides_what_is_expected_of_all_and_no_node_meets_it(target: str, lines: str, outcome: str) -> None:
    """Nodes that meet it are no other possible state of the one that does not."""
    result = replay(parse(f"nodes a b\nconnect c1 a\n{lines}\n"), target=target)
    assert (result.verdict, result.steps[-1].outcome.startswith(outcome)) == (Verdict.VIOLATES, True), result.steps[-1]


@pytest.mark.parametrize("target", TARGETS)
def test_an_action_that_makes_no_sense_is_refused_with_its_line(target: str) -> None:
    with pytest.raises(ScenarioError, match="line 2: 'disconnect c1' makes no sense here: c1 has never been connected"):
        replay(parse("nodes a b\ndisconnect c1"), target=target)


def test_an_unknown_target_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no cluster 'moon'; known: model, embedded, nacos:VERSION"):
        replay(parse(HEALTHY), target="moon")


def test_views_differ_by_what_a_subscriber_sees_only() -> None:
    empty, held = View(0, ()), View(2, (("web", "10.0.0.1:80"),))
    condition = AllAgree()
    assert condition.unmet_in({"a": {"c1": empty}, "b": {}}) is None
    assert condition.unmet_in({"a": {"c1": held}, "b": {"c1": View(1, held.content)}, "c": None}) is None
    assert condition.unmet_in({"a": {"c1": held}, "b": {}}) == "c1: a shows web 10.0.0.1:80, b shows nothing"
    several = {"a": {"c1": held, "c2": held, "c3": held}, "b": {"c2": held}}
    assert [client for client, _ in condition.differences(several)] == ["c1", "c3"]
    assert NodeHolds("c", "c1").unmet_in({"c": None}) == "c is down"


@pytest.mark.parametrize("target", [pytest.param("embedded", marks=pytest.mark.wire), "model"])
@pytest.mark.parametrize("line", ["", "expect all agree\n"])
def test_a_scenario_that_expects_nothing_does_not_conform(target: str, line: str) -> None:
    """A wrong node does all that it asks for too."""
    result = replay(parse(f"nodes a b\nconnect c1 a\nregister c1 web 10.0.0.1:80\nadvance 2s\n{line}"), target=target)
    assert result.verdict is (Verdict.CONFORMS if line else Verdict.INCONCLUSIVE), result.steps
    if not line:
        assert result.steps[-1].outcome.startswith("nothing was expected")
        with pytest.raises(AssertionError, match="nothing was expected"):
            assert_scenario("nodes a b\nconnect c1 a\n", target=target)
