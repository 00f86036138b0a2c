"""Printed commands can be run again: a shell splits them as intended, and the command line accepts every part.

What pages say to type is in `test_page_commands`.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest
from programs import Call, Document, understood

from distro_conformance.exploration.explored import explore_profile
from distro_conformance.findings.finding import command
from distro_conformance.gate import stages
from distro_conformance.gate.options import BUDGETS, GateOptions
from distro_conformance.language.text import read
from distro_conformance.mutation.kill import kill
from distro_conformance.node.run import run_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.verdict import TargetError
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions, finding_of
from distro_model.bounded.bounds import Bounds


class Called(EmbeddedTarget):
    """A node under another name, which reports its release itself."""

    def __init__(self, spec: str, profile: str) -> None:
        super().__init__("strict")
        self.spec, self.profile = spec, profile


@pytest.mark.wire
@pytest.mark.parametrize(
    ("profile", "named"),
    [
        ("nacos-2.2.4", "nacos-2.2.4"),
        ("nacos-2.2.3", "nacos-2.2.3"),
        ("nacos-4.0.0", None),  # not examined, so it has no name
    ],
)
def test_a_requirement_is_judged_again_of_the_same_node(profile: str, named: str | None) -> None:
    node = Called("process:./my\\ toy --at {port} 'a b'", profile)
    (found,) = asyncio.run(run_requirements(node, ["DISTRO-REGISTER-001"]))
    asked = understood(shlex.split(found.again))
    assert (asked["target"], asked["requirement"], asked["profile"]) == (node.spec, ("DISTRO-REGISTER-001",), named)


@pytest.mark.wire
def test_a_scenario_in_any_file_is_played_again(tmp_path: Path, call: Call, document: Document) -> None:
    file = tmp_path / "my $HOME" / "it's.scenario"
    file.parent.mkdir()
    file.write_text("nodes a b\nprofile nacos-2.2.3\nexpect within 1s: all agree\n")
    _, played = document("replay", str(file))
    (again,) = {finding["again"] for finding in played["findings"]}
    ran = call(*shlex.split(again)[1:])
    assert ran.returncode == 0, ran.stderr
    assert "profile nacos-2.2.3" in ran.stdout


def test_the_scenario_of_the_gate_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_: object, **__: object) -> None:
        raise TargetError("it does not start")

    monkeypatch.setattr(stages, "record", ends)
    options = GateOptions(target="nacos:2.2.4", profile=None, budget=BUDGETS["quick"], seed=1, out=tmp_path)
    (found,) = stages.real_cluster_stage(options, "nacos-2.2.4", print).findings
    assert read(Path(understood(shlex.split(found.again))["file"])).lines


def test_searches_of_model_and_nodes_are_made_again_with_their_mutant() -> None:
    searched = explore_profile("nacos-2.2.3", Bounds(nodes=2, changes=1, drops=1), mutant="B26")
    for found in searched.findings:
        asked = understood(shlex.split(found.again))
        assert (asked["profile"], asked["mutant"], asked["changes"]) == ("nacos-2.2.3", "B26", 1)
    walked = random_walks(WalkOptions(profile="nacos-2.2.3", seed=3, runs_max=1, steps_per_run=2))
    asked = understood(shlex.split(finding_of(walked).again))
    assert (asked["profile"], asked["seed"]) == ("nacos-2.2.3", 3)
    assert understood(shlex.split(kill("B02", "node", (), 1.0).again))["mutant"] == ("B02",)


def test_a_path_stays_one_word() -> None:
    assert command("check", Path("my traces")) == "distrocheck check 'my traces'"
    assert command("test node", "--target", "nacos:2.2.4", profile="nacos-2.2.4", mutant="B02") == (
        "distrocheck test node --target nacos:2.2.4 --profile nacos-2.2.4 --mutant B02"
    )
