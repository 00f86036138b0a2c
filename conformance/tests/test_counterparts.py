"""`strict` of the model and of the node have the same repairs, or a reason is listed; and each repair was observed."""

from __future__ import annotations

import ast
import asyncio
from dataclasses import fields, replace
from pathlib import Path
from zlib import adler32

import pytest
from counterparts import (
    NODE_ALONE,
    PARAMETERS,
    PARAMETERS_WITHOUT,
    PARTS_OF_ADDRESSES,
    SEEN_ELSEWHERE,
    SEEN_IN_LOCKSTEP,
    SWITCHES,
    WITHOUT,
    of_a_release,
)

from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.findings import Judgement
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.replay import replay
from distro_conformance.language.text import read
from distro_conformance.node.run import run_requirements
from distro_conformance.node_mutants import MUTANTS, Mutant
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.verdict import Verdict
from distro_conformance.wire.transports import Wire
from distro_impl import PROFILES as NODE_PROFILES
from distro_model.profiles import PROFILES, RELEASES, STRICT, beside_nodes

REPAIRED = sorted({name for release in RELEASES for name, _ in PROFILES[release.name].rules})
REQUIREMENTS = [switch for switch, seen in SEEN_ELSEWHERE.items() if "::" not in seen.by]
NODE_TESTS = sorted(SEEN_ELSEWHERE.keys() - REQUIREMENTS)
ROOT = Path(__file__).parents[2]
BOTH = [each.name for each in RELEASES if each.name in NODE_PROFILES]


def differing(strict, releases):
    """The fields in which some release is not like strict, but for names and rules."""
    names = {each.name for each in fields(strict)} - {"name", "rules", "replaced"}
    return {name for name in names if any(getattr(each, name) != getattr(strict, name) for each in releases)}


def test_every_parameter_of_the_model_has_a_counterpart_or_a_reason():
    assert differing(STRICT, PROFILES.values()) == {*PARAMETERS, *PARAMETERS_WITHOUT}
    assert not PARAMETERS.keys() & PARAMETERS_WITHOUT.keys()


def test_parameters_have_the_same_values_on_both_sides():
    sides = {release: (beside_nodes(PROFILES[release]), NODE_PROFILES[release]) for release in ["strict", *BOTH]}
    assert [
        (release, parameter)
        for release, (model, node) in sides.items()
        for parameter, field in PARAMETERS.items()
        if getattr(node, field) not in (None, getattr(model, parameter))
    ] == []


def test_every_switch_of_the_node_has_a_counterpart_or_a_reason():
    mapped = {*SWITCHES.values(), *PARAMETERS.values()}
    assert differing(NODE_PROFILES["strict"], NODE_PROFILES.values()) == mapped | NODE_ALONE.keys()
    assert not mapped & NODE_ALONE.keys()


def test_each_repair_of_strict_has_a_counterpart_in_the_node_or_a_reason():
    assert sorted([*SWITCHES, *WITHOUT]) == REPAIRED


def test_the_counterpart_distinguishes_strict_from_a_release_in_the_node_too():
    strict = NODE_PROFILES["strict"]
    assert {*SWITCHES.values()} - differing(strict, NODE_PROFILES.values()) == set()


def test_where_the_model_differs_from_strict_the_node_does_too():
    strict = NODE_PROFILES["strict"]
    assert [
        (release, rule)
        for release in BOTH
        for rule in sorted(PROFILES[release].replaced.keys() & SWITCHES.keys())
        if getattr(NODE_PROFILES[release], SWITCHES[rule]) == getattr(strict, SWITCHES[rule])
    ] == []


def test_every_counterpart_is_seen_in_lockstep_or_elsewhere_for_a_reason():
    assert sorted([*SEEN_IN_LOCKSTEP, *SEEN_ELSEWHERE]) == sorted({*SWITCHES.values(), *PARAMETERS.values()})


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.parametrize(
    "switch",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (adler32(each.encode()) % 3 > 0))  # a third in `make test`
        for each in SEEN_IN_LOCKSTEP
    ],
)
def test_nodes_with_one_switch_of_a_release_leave_the_model_and_others_do_not(switch, monkeypatch):
    scenario = read(SEEN_IN_LOCKSTEP[switch])
    assert isinstance(scenario.steps[-1], ExpectModel)
    if switch == "member_found_by_substring":
        monkeypatch.setattr(Wire, "main_ports", lambda *_: list(PARTS_OF_ADDRESSES))
    assert replay(scenario, target="embedded").verdict is Verdict.CONFORMS

    only = Mutant(f"only-{switch}", "It is as in a release.", {switch: of_a_release(switch)})
    monkeypatch.setitem(MUTANTS, only.id, only)
    last = replay(scenario, target="embedded", options=ClusterOptions(mutant=only.id)).steps[-1]
    (seen,) = (row.removeprefix("Seen: ") for row in scenario.comment.splitlines() if row.startswith("Seen: "))
    assert last.verdict is Verdict.VIOLATES
    assert last.outcome.startswith("differs from the model: ")
    assert seen in last.outcome


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.parametrize("switch", REQUIREMENTS)
def test_a_requirement_notices_the_switch_that_lockstep_cannot(switch):
    strict = NODE_PROFILES["strict"]
    nodes = (strict, replace(strict, **{switch: of_a_release(switch)}))
    found = [asyncio.run(run_requirements(EmbeddedTarget(each), [SEEN_ELSEWHERE[switch].by])) for each in nodes]
    assert [each.judgement for (each,) in found] == [Judgement.CONFORMS, Judgement.VIOLATES]


@pytest.mark.parametrize("switch", NODE_TESTS)
def test_a_test_of_the_node_is_about_the_switch_that_lockstep_cannot_see(switch):
    file, _, name = SEEN_ELSEWHERE[switch].by.partition("::")
    tests = {each.name: each for each in ast.parse((ROOT / file).read_text("utf-8")).body if hasattr(each, "name")}
    parameters = ast.unparse(tests[name].decorator_list[0])
    assert f"(replace(STRICT, {switch}={of_a_release(switch)}), False), (STRICT, True)" in parameters
