"""The whole pipeline in small: every stage, one report in three files, and a verdict that a broken node changes."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from blocks import block
from programs import executed
from promises import hold

from distro_conformance.cli.gate import closing_line, stage_line
from distro_conformance.findings import Finding, Judgement
from distro_conformance.gate import run
from distro_conformance.gate.options import BUDGETS, Budget, GateOptions
from distro_conformance.gate.run import Gate, chosen_stages
from distro_conformance.gate.stages import StageResult, check_stage
from distro_conformance.language.recording import record
from distro_conformance.language.text import parse
from distro_conformance.report import Report, Stage, write_report
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_model.bounded.bounds import Bounds
from distro_spark.invariants import INVARIANTS

TINY = Budget("tiny", (Bounds(crashes=1),), explore_seconds=300, lockstep_seconds=0.5)
PAGE_BYTES_MAX = 500_000
REFUTED = """
profile nacos-2.2.4
mutant B07
nodes a b c
connect c1 a
register c1 web 10.0.0.1:80
advance 12s
"""


def gate(out: Path, **options: str) -> Report:
    return Gate(GateOptions(budget=TINY, seed=0, out=out, **options)).run()


@pytest.mark.parametrize(
    ("target", "stages"),
    [
        ("embedded", ["explore", "node", "lockstep", "check"]),
        ("nacos:2.2.4", ["node", "cluster", "check"]),
        ("process:x {port} {offset}", ["node", "cluster", "check"]),
        ("process:x {port}", ["node"]),
        ("attach:127.0.0.1:9", ["node"]),
    ],
)
def test_a_gate_runs_by_default_what_its_target_is_judged_by(target: str, stages: list[str]) -> None:
    """Search and lockstep are about the model and the nodes of this project; nothing else is recorded."""
    assert list(chosen_stages(None, resolve_target(target, None if "nacos" in target else "nacos-2.2.4"))) == stages


def test_stages_are_chosen_by_name_and_run_in_their_order() -> None:
    real, attached = resolve_target("nacos:2.2.4"), resolve_target("attach:127.0.0.1:9", "nacos-2.2.4")
    assert chosen_stages(["check", "cluster", "explore"], real) == ("explore", "cluster", "check")
    for named, target, problem in (
        (["nod"], real, "there is no stage 'nod'; stages are explore, node, lockstep, cluster, check"),
        (["cluster"], attached, "attach:127.0.0.1:9 has no stage 'cluster'; it has explore, node, lockstep, check"),
        (["node", "check"], real, "'check' reads what lockstep or cluster record; name one of these, too"),
        (["explore"], real, "explore judge the model and reference nodes, and nothing of nacos:2.2.4; name node or cl"),
        (["lockstep", "check"], attached, "nothing of attach:127.0.0.1:9; name node, too, or leave --target out"),
    ):
        with pytest.raises(UsageError, match=problem):
            chosen_stages(named, target)


@pytest.mark.parametrize("option", [{"requirements": ["DISTRO-SYNC"]}, {"skip": ["MUST"]}])
def test_requirements_are_not_selected_for_a_gate_without_their_stage(tmp_path: Path, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="are for the stage 'node'; name it, too"):
        Gate(GateOptions(budget=TINY, seed=0, out=tmp_path, stages=["explore"], **option))


@pytest.mark.parametrize("verdict", [Verdict.INCONCLUSIVE, Verdict.VIOLATES])
def test_a_stage_without_a_finding_that_says_so_is_red_in_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict
) -> None:
    """As where Spark cannot run, or a recording contradicts itself."""
    met = Finding(about="INV-CONV", by="trace", judgement=Judgement.CONFORMS)
    ended = StageResult(Stage("explore", verdict, 1.0, "not checked on Spark"), (met,))
    monkeypatch.setitem(run.PLAYED, "explore", lambda *_: ended)
    report = Gate(GateOptions(budget=TINY, seed=0, out=tmp_path, stages=["explore"])).run()
    write_report(report, tmp_path, schema="distrocheck/gate/1")
    assert report.verdict is verdict
    suites = ET.parse(tmp_path / "junit.xml")
    assert len(suites.findall(".//error") + suites.findall(".//failure")) == 1
    results = json.loads((tmp_path / "report.sarif").read_text())["runs"][0]["results"]
    assert sorted(each["kind"] for each in results) == sorted(
        ("pass", "open" if verdict is Verdict.INCONCLUSIVE else "fail")
    )


def test_a_gate_that_does_not_end_leaves_no_report_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI service shows the files that it finds, after a failed step too."""
    met = Finding(about="INV-CONV", by="trace", judgement=Judgement.CONFORMS)
    monkeypatch.setitem(
        run.PLAYED, "explore", lambda *_: StageResult(Stage("explore", Verdict.CONFORMS, 1.0, ""), (met,))
    )
    again = Gate(GateOptions(budget=TINY, seed=0, out=tmp_path, stages=["explore"]))
    write_report(again.run(), tmp_path, schema="distrocheck/gate/1")
    written = {each.name for each in tmp_path.iterdir()}

    def unreachable(*_: object) -> StageResult:
        raise TargetError("not reached")

    monkeypatch.setitem(run.PLAYED, "explore", unreachable)
    with pytest.raises(TargetError):
        again.run()
    assert {"junit.xml", "report.html"} <= written
    assert {each.name for each in tmp_path.iterdir()} == {"history.ndjson", "traces"}


def without_figures(line: str) -> list[str]:
    """The lines that the README's run and one with a tiny budget have in common."""
    return re.sub(r"\d+(\.\d+)?", "N", line.partition(";")[0]).split()


@pytest.mark.wire
@pytest.mark.slow
def test_a_conforming_node_passes_every_stage_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = gate(tmp_path)
    assert report.verdict is Verdict.CONFORMS, report
    assert [stage.name for stage in report.stages] == ["explore", "node", "lockstep", "check"]
    assert [finding.about for finding in report.requirements] == [requirement.id for requirement in all_requirements()]
    others = {each.about: each.judgement for each in report.requirements if each.judgement is not Judgement.CONFORMS}
    assert others == {"DISTRO-MEMBER-003": Judgement.NOT_APPLICABLE}  # it ends at 3.0.0
    assert {row.name for row in report.invariants if row.by == "trace"} == set(INVARIANTS)

    assert not list(tmp_path.rglob("*.ndjson")), "recordings are at rest"
    assert len(list((tmp_path / "traces").glob("run=*/*.parquet"))) == report.stages[2].figures["runs"]

    shown = block("README.md", "conforms       explore").splitlines()
    printed = [f"conforms {line}" for line in (*map(stage_line, report.stages), closing_line(report))]
    assert [without_figures(line) for line in shown[:5]] == [without_figures(line) for line in printed]
    assert shown[4].split(";")[0].split() == printed[4].split(";")[0].split(), "as many requirements"

    assert Gate(GateOptions(budget=TINY, seed=0, out=tmp_path)).scope, "the next run may take their place"

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "steps.md"))
    page = write_report(report, tmp_path, schema="distrocheck/gate/1")
    document = json.loads((tmp_path / "report.json").read_text())
    hold(document, "gate")
    assert document["schema"] == "distrocheck/gate/1"
    assert document["verdict"] == "conforms"
    assert set(document["stages"][0]) >= {"name", "verdict", "seconds"}
    assert set(document["requirements"][0]) >= {"id", "level", "verdict"}
    assert document["report"] == str(page)
    text = page.read_text()
    HTMLParser().feed(text)
    assert len(text) < PAGE_BYTES_MAX
    assert all(finding.about in text for finding in report.requirements)
    cases = ET.parse(tmp_path / "junit.xml").findall(".//testcase")
    assert {case.get("name") for case in cases} == {finding.about for finding in report.findings}
    assert json.loads((tmp_path / "report.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "steps.md").read_text() == (tmp_path / "summary.md").read_text()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.wire
@pytest.mark.quality
def test_a_recording_of_a_mutated_node_of_a_release_is_judged_like_any_other(tmp_path: Path) -> None:
    """The model of a release went along with its nodes, not with a mutant's: no blanket covers its recordings."""
    traces = tmp_path / "traces"
    record(parse(REFUTED), target="embedded", profile="nacos-2.2.4", directory=traces, run="lockstep-0-0001")
    options = GateOptions(budget=TINY, seed=0, out=tmp_path, profile="nacos-2.2.4", mutant="B07")
    result = check_stage(options, lambda _: None)
    assert result.stage.verdict is Verdict.VIOLATES
    assert {finding.about for finding in result.findings if finding.violates} >= {"INV-OWNER"}


ON_SPARK = """
import sys
from pathlib import Path
from distro_conformance.gate.options import BUDGETS, GateOptions
from distro_conformance.gate.stages import check_stage
from distro_spark.on_spark import OnSpark

options = GateOptions(budget=BUDGETS["ci"], seed=0, out=Path(sys.argv[1]))
of_clients = OnSpark.of_clients
for finds in (of_clients, lambda *arguments: (part.clear() for part in of_clients(*arguments))):
    OnSpark.of_clients = finds
    stage = check_stage(options, lambda _: None).stage
    print(stage.verdict.value, stage.summary, sep=": ")
"""


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """The directory of a gate that recorded nodes without a mutant."""
    text = REFUTED.replace("mutant B07", "").replace("nacos-2.2.4", "strict") + "checkpoint\n"
    record(parse(text), target="embedded", profile="strict", directory=tmp_path / "traces", run="lockstep-0-0001")
    return tmp_path


@pytest.mark.spark
@pytest.mark.slow
def test_both_engines_check_what_a_longer_gate_recorded(healthy: Path) -> None:
    """As it is, and where Spark finds nothing."""
    assert not BUDGETS["quick"].on_spark
    assert BUDGETS["nightly"].on_spark
    done = executed(sys.executable, "-c", ON_SPARK, str(healthy))
    expected = (r"conforms: .*; the same on Spark", r"violates: .*; Spark finds something else: .*convergence.*")
    lines = done.stdout.splitlines()
    assert len(lines) == len(expected), done.stderr[-2000:]
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), line


@pytest.mark.slow
def test_where_there_is_no_java_a_longer_gate_is_inconclusive(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    stage = check_stage(GateOptions(budget=BUDGETS["ci"], seed=0, out=healthy), lambda _: None).stage
    assert stage.verdict is Verdict.INCONCLUSIVE
    assert "; not checked on Spark: /nowhere/bin/java does not run " in stage.summary


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.slow  # each stage is seen to judge such a node by itself
def test_a_broken_node_is_named_by_every_stage_that_can_see_it(tmp_path: Path) -> None:
    report = gate(tmp_path, mutant="B07")
    verdicts = {stage.name: stage.verdict for stage in report.stages}
    assert verdicts["explore"] is Verdict.CONFORMS, "the model is not what is broken"
    assert verdicts["node"] is Verdict.VIOLATES
    assert verdicts["lockstep"] is Verdict.VIOLATES
    assert verdicts["check"] is Verdict.VIOLATES
    assert report.verdict is Verdict.VIOLATES
    assert "DISTRO-OWNER-001" in [finding.about for finding in report.requirements if finding.violates]
    owner = next(violation for violation in report.violations if violation.about == "INV-OWNER")
    assert owner.node in ("a", "b", "c")
    assert owner.since
    assert owner.until
    assert "LOCKSTEP" in [finding.about for finding in report.violating]
    (failure,) = report.failures
    assert "expect model agrees" in failure.scenario
    assert failure.replay.endswith(".scenario")
