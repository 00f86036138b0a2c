"""Random walks in real time, on nodes that no model follows step by step: they must agree when a run has ended."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis.stateful import initialize

from distro_conformance.cli.searching import checker, lines_of
from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.registry import ResolvedCluster
from distro_conformance.findings import Finding, Judgement
from distro_conformance.language.expectations import HeldCondition
from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.report.page import page_of
from distro_conformance.report.walks import failure_of, report_of_walks
from distro_conformance.slack import Slack
from distro_conformance.targets.embedded import ReferenceNode
from distro_conformance.verdict import UsageError, Verdict
from distro_conformance.walks import driver
from distro_conformance.walks import random_walks as walks
from distro_conformance.walks.comparable import left_out_after
from distro_conformance.walks.driver import WalkDriver, expected_after, is_explained
from distro_conformance.walks.machine import Machine
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions, finding_of
from distro_conformance.walks.saved_failures import save_failure
from distro_conformance.walks.walk import Walk
from distro_impl import Profile
from distro_model.actions import Action, Advance, Disconnect, Drop
from distro_model.clock.cluster import View
from distro_traces.event import Kind
from distro_traces.reading import read_run

pytestmark = pytest.mark.wire

SERVE = Path(__file__).parents[2] / "docs" / "examples" / "serve.toml"


class Silent(EmbeddedCluster):
    """Nodes in real time that tell each other nothing for ten minutes."""

    def _suited(self, profile: Profile) -> Profile:
        return replace(super()._suited(profile), sync_delay_ms=600_000, verify_interval_ms=600_000)


@pytest.mark.slow
def test_processes_agree_after_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    result = random_walks(WalkOptions(target=f"process:{SERVE}", seconds=15, steps_per_run=8, seed=4))
    assert result.verdict is Verdict.CONFORMS, result.failure
    assert result.steps > 5


def test_nodes_that_never_agree_are_found_and_the_run_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log = tmp_path / "naming.log"
    log.write_text("a line\n", encoding="utf-8")
    monkeypatch.setattr(ReferenceNode, "logs", (log,))
    silent = ResolvedCluster(Silent(real_time=True), "strict")
    monkeypatch.setattr(driver, "resolve_cluster", lambda *_: silent)
    monkeypatch.setattr(driver, "AGREE_WITHIN_MS", 500)
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 50)
    kept = {"record_into": tmp_path, "logs_into": tmp_path}
    result = random_walks(WalkOptions(target="silent", seconds=30, steps_per_run=10, seed=1, **kept))
    found = result.failure
    assert found is not None
    assert found.logs is not None
    assert {each.relative_to(found.logs) for each in found.logs.rglob("*.log")} == {
        Path(node, log.name) for node in "abc"
    }
    assert found.recording is not None
    recorded = read_run(found.recording)
    assert recorded.header.profile == "strict"
    assert {Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.CHECKPOINT} <= {event.kind for event in recorded.events}
    assert recorded.events[-1].kind is Kind.CHECKPOINT, "that the clients leave is not of this run"
    finding = finding_of(result)
    scenario, test = save_failure(found, tmp_path, "x")
    failure = failure_of(result, found, scenario, test)
    assert failure.replay == f"distrocheck replay {scenario} --target silent", "there it failed, and nowhere else"
    assert 'target="silent"' in test.read_text()
    (section,) = page_of(report_of_walks(result, finding, failure), tmp_path).sections
    assert len(section.held) == 3
    assert any(each.differs for each in section.held)
    assert f"connect {section.finding.client}" in section.scenario
    assert "<svg" in section.picture
    assert "the nodes differ: c" in found.message
    assert "expect within 0.5s: all agree" in found.scenario.render()
    assert replay(found.scenario, target="embedded").verdict is Verdict.CONFORMS, "other nodes do agree"


class LosesAChange(Walk):
    """Each run is the same: an acknowledged CHANGE stays lost, since a verify asks for existence only (B02)."""

    @initialize()
    def lose_a_change(self) -> None:
        run = parse("""
        nodes a b c
        connect c1 a
        register c1 web 10.0.0.1:80 version=1
        advance 3s
        swallow a->b CHANGE c1
        register c1 web 10.0.0.1:80 version=2
        advance 4s
        advance 4s
        """)
        for action in run.steps:
            assert isinstance(action, Action)
            self.perform(action)

    def come_to_rest(self, driver: WalkDriver) -> None:
        """Nothing is broken any more."""


class LosesDeletes(Walk):
    """More DELETEs are lost than a node can retry before the nodes must agree."""

    @initialize()
    def lose_deletes(self) -> None:
        run = parse("nodes a b c\nconnect c1 a\nregister c1 web 10.0.0.1:80\nadvance 2s")
        lost = [Drop("a", "b", "DELETE", "c1")] * 5
        self.perform(*(step for step in run.steps if isinstance(step, Action)), *lost, Disconnect("c1"))

    def come_to_rest(self, driver: WalkDriver) -> None:
        """The walk has no action that disarms a fault."""


@pytest.mark.slow
def test_faults_that_are_still_armed_are_repaired_before_the_nodes_must_agree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        driver, "resolve_cluster", lambda *_: ResolvedCluster(EmbeddedCluster(real_time=True), "strict")
    )
    monkeypatch.setattr(walks, "Machine", LosesDeletes)
    options = WalkOptions(target="x", seconds=600, steps_per_run=1, runs_max=1, seed=1, record_into=tmp_path)
    result = random_walks(options, check=checker())
    assert (result.verdict, result.runs, result.checked) == (Verdict.CONFORMS, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "bug"), [("nacos-2.0.4", "B02"), ("strict", None)])
def test_a_run_that_a_listed_defect_explains_is_reported_and_does_not_end_the_search(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str, bug: str | None
) -> None:
    nodes = Silent if bug is None else EmbeddedCluster
    monkeypatch.setattr(driver, "resolve_cluster", lambda *_: ResolvedCluster(nodes(real_time=True), profile))
    monkeypatch.setattr(driver, "AGREE_WITHIN_MS", 500)
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 3_000)
    monkeypatch.setattr(walks, "Machine", LosesAChange)
    options = WalkOptions(target="x", seconds=600, steps_per_run=1, runs_max=2, seed=1, record_into=tmp_path)
    result = random_walks(options, check=checker())
    assert {finding.known for finding in result.checked if finding.about == "INV-CONV"} == {bug}
    assert (result.failure is None, result.runs, result.runs_known) == ((True, 2, 2) if bug else (False, 1, 0))
    assert finding_of(result).judgement is (Judgement.KNOWN if bug else Judgement.VIOLATES)
    assert len(list(tmp_path.rglob("*.ndjson"))) == result.runs, "the recordings of findings are kept"


def test_a_run_is_known_only_if_the_invariants_know_every_client_that_differs() -> None:
    shared = {"about": "INV-CONV", "by": "trace", "run": "r", "again": "distrocheck check x"}
    known, open_, wrong = (
        Finding(client=client, judgement=judgement, message="differ", **shared)  # type: ignore[arg-type]
        for client, judgement in (("c1", Judgement.KNOWN), ("c2", Judgement.NOT_JUDGED), ("c3", Judgement.VIOLATES))
    )
    assert is_explained([known, open_], {"c1"}, "nacos:2.2.4")
    assert not is_explained([known, open_, wrong], {"c1"}, "nacos:2.2.4"), "and nothing else is found"
    assert not is_explained([known, open_], {"c1", "c2"}, "nacos:2.2.4")
    assert not is_explained([known], {"c1"}, "process:x.toml"), "the release of a described server excuses nothing"
    assert not is_explained([known], {"c1"}, "attach:127.0.0.1:8848")


def test_findings_of_the_invariants_are_reported_once_for_each_kind_with_node_time_and_message() -> None:
    about = {"about": "INV-CONV", "by": "trace", "judgement": Judgement.KNOWN, "known": "B02"}
    where = {"node": "b", "since": "client_changed of a at 5 ms", "after": "m4", "again": "distrocheck check x"}
    known = Finding(message="b holds nothing of c1", **about, **where)  # type: ignore[arg-type]
    unchecked = Finding(about="INV-CONV", by="trace", judgement=Judgement.NOT_JUDGED, message="no space", again="y")
    one, other = lines_of([known, known, unchecked])
    assert (one.verdict, one.text) == ("known", "INV-CONV   known, B02: b holds nothing of c1 (1 more)")
    assert one.below == ("b, since client_changed of a at 5 ms, after m4", "distrocheck check x")
    assert (other.text, other.below) == ("INV-CONV   no space", ("y",))


def test_a_run_whose_recording_cannot_be_checked_fails_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def out_of_order(_: Path) -> list[Finding]:
        raise OSError("no space left")

    monkeypatch.setattr(driver, "resolve_cluster", lambda *_: ResolvedCluster(Silent(real_time=True), "strict"))
    monkeypatch.setattr(driver, "AGREE_WITHIN_MS", 500)
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 50)
    options = WalkOptions(target="silent", seconds=30, steps_per_run=10, seed=1, record_into=tmp_path)
    result = random_walks(options, check=out_of_order)
    assert result.failure is not None
    assert result.failure.recording is not None
    assert result.failure.recording.exists()
    (finding,) = result.checked
    assert (finding.judgement, finding.counted) == (Judgement.NOT_JUDGED, None)
    assert "no space left" in finding.message


def test_nodes_need_not_agree_about_clients_of_which_one_cannot_know() -> None:
    """A member that comes back may have no copy to load, and another keeps its own for the rest of the lease."""
    run = parse("""
    nodes a b c
    connect c1 a
    connect c2 b
    connect c3 b
    disconnect c1
    swallow b->c DELETE c3
    disconnect c3
    crash b
    restart b
    connect c4 b
    """)
    wanted = expected_after((step for step in run.steps if isinstance(step, Action)), "strict")
    assert str(wanted.condition) == "all agree but c2 c3"
    assert isinstance(wanted.condition, HeldCondition)
    held = {"a": {"c2": View(1, (("web", "x"),))}, "b": {}, "c": {"c4": View(1, (("web", "y"),))}}
    assert wanted.condition.unmet_in(held) == "c4: a shows nothing, b shows nothing, c shows web y"


@pytest.mark.parametrize(
    ("since", "left_out"),
    [
        ("advance 4s", "c1"),
        ("advance 5s", ""),
        ("cut a->b\nadvance 15s", "c1"),
        ("cut a->b\nheal a->b\nadvance 14s", "c1"),
        ("cut a->b\nheal a->b\nadvance 15s", ""),
        ("hold a->b\nheal a->b\nadvance 15s", "c1"),
        ("pause a\nadvance 15s", "c1"),
        ("swallow a->b CHANGE\nadvance 14s", "c1"),
        ("swallow a->b CHANGE\nadvance 15s", ""),
        ("advance 15s\nconnect c2 a\ndisconnect c2", "c2"),
        ("advance 15s\nswallow a->b DELETE c1", ""),
        ("swallow a->b DELETE c1\nadvance 15s", "c1"),
    ],
)
@pytest.mark.parametrize("last", ["disconnect c1", "register c1 web 10.0.0.1:80"])
def test_a_client_without_time_to_replicate_before_a_crash_is_in_no_comparison(
    since: str, left_out: str, last: str
) -> None:
    """Seen on a 2.2.4: the client left a tenth of a second before its node crashed."""
    run = parse(f"nodes a b c\nconnect c1 a\n{last}\n{since}\ncrash a\nrestart a\nadvance 5s")
    actions = [step for step in run.steps if isinstance(step, Action)]
    if "DELETE" in since and "register" in last:
        left_out = " ".join(dict.fromkeys(["c1", *left_out.split()]))  # an end that is still to come will be lost
    assert " ".join(left_out_after(actions, 180_000)) == left_out


def test_a_crash_takes_no_client_out_of_the_comparison_that_the_others_had_received() -> None:
    """The other nodes return their copies of it and all must agree about them until the first copy expires."""
    run = parse("nodes a b c\nconnect c1 a\nregister c1 web 10.0.0.1:80\nconnect c2 b\nadvance 5s\ncrash a\nrestart a")
    actions = [step for step in run.steps if isinstance(step, Action)]
    assert left_out_after(actions, 180_000) == ()
    assert left_out_after([*actions, Advance(10_000)], 30_000) == ()
    assert left_out_after([*actions, Advance(10_001)], 30_000) == ("c1",)
    held = {"a": {}, "b": {"c1": View(1, (("web", "x"),))}, "c": {"c1": View(1, (("web", "x"),))}}
    wanted = expected_after(actions, "strict").condition
    assert isinstance(wanted, HeldCondition)
    assert wanted.unmet_in(held) == "c1: a shows nothing, b shows web x, c shows web x"


def test_a_run_in_which_the_machine_took_too_much_time_is_open_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "resolve_cluster", lambda *_: ResolvedCluster(Silent(real_time=True), "strict"))
    monkeypatch.setattr(driver, "AGREE_WITHIN_MS", 500)
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 50)
    monkeypatch.setattr(Slack, "is_starved_since", lambda *_: True)
    result = random_walks(WalkOptions(target="silent", seconds=30, steps_per_run=10, seed=1, runs_max=1))
    assert result.failure is None
    assert (result.runs, result.not_judged["runs_open"], result.verdict) == (1, 1, Verdict.INCONCLUSIVE)
    assert "in 1 runs the machine took too much of the time" in result.unjudged
    assert finding_of(result).judgement is Judgement.NOT_JUDGED


def test_the_recording_of_a_run_that_passed_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sound = ResolvedCluster(EmbeddedCluster(real_time=True), "strict")
    monkeypatch.setattr(driver, "resolve_cluster", lambda *_: sound)
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 50)
    result = random_walks(WalkOptions(target="sound", steps_per_run=3, runs_max=1, seed=1, record_into=tmp_path))
    assert result.verdict is Verdict.CONFORMS
    assert list(tmp_path.iterdir()) == []


def test_the_simplest_run_registers_at_least_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis begins with it, and a short search comes to no other."""
    monkeypatch.setattr(
        driver, "resolve_cluster", lambda *_: ResolvedCluster(EmbeddedCluster(real_time=True), "strict")
    )
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 50)
    result = random_walks(WalkOptions(target="sound", steps_per_run=2, runs_max=1, seed=1))
    done = {name for name, times in result.coverage["actions"].items() if times}
    assert {"connect", "register", "advance"} <= done
    assert (result.runs, result.runs_idle, result.verdict) == (1, 0, Verdict.CONFORMS)


def test_runs_in_which_only_time_passed_are_no_reason_for_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        driver, "resolve_cluster", lambda *_: ResolvedCluster(EmbeddedCluster(real_time=True), "strict")
    )
    monkeypatch.setattr(driver, "WAIT_MAX_MS", 50)
    monkeypatch.setattr(Machine, "begin", None)
    result = random_walks(WalkOptions(target="sound", steps_per_run=2, runs_max=1, seed=1))
    assert (result.runs, result.verdict) == (1, Verdict.INCONCLUSIVE)
    assert finding_of(result).judgement is Judgement.NOT_JUDGED


def test_there_is_nothing_to_walk_on_without_nodes() -> None:
    with pytest.raises(UsageError, match="there are no nodes to walk on in 'model'"):
        random_walks(WalkOptions(target="model"))
