"""The kill matrix: a mutant is killed where it shows, lives where it does not, and is never taken for `strict`."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import Document

from distro_conformance.findings import Judged, Judgement
from distro_conformance.mutation.kill import kill as kill_of
from distro_conformance.mutation.levels import ENOUGH_STEPS, kill_in_lockstep, kill_on_node
from distro_conformance.mutation.matrix import run_mutants, score
from distro_conformance.mutation.traces import (
    PROVOKED,
    SHOWN,
    SHOWN_BY,
    Circumstances,
    broken_by,
    checked,
    kill_by_chance,
    kill_seen,
    record_scenario,
)
from distro_conformance.node_mutants import MUTANTS as NODE_MUTANTS
from distro_conformance.targets.mutants import Fired, real_mutants
from distro_conformance.verdict import Verdict
from distro_conformance.walks.result import WalkOptions, WalkResult
from distro_model.mutants import MUTANTS
from distro_spark.result import EventReference, Violation


def violation(invariant: str, run: str) -> Violation:
    event = EventReference("a", 1, 0, "client_changed", None)
    return Violation(invariant, run, "strict", "c1", "a", event, event, {}, "", None)


def test_a_violation_of_strict_in_the_same_simulation_is_no_kill() -> None:
    found = [
        violation("INV-REV", "simulate-strict-0-000001"),
        violation("INV-CONV", "simulate-strict-0-B02-000001"),
        violation("INV-REV", "simulate-strict-0-B02-000002"),
    ]
    assert broken_by("B02", found) == ("INV-CONV",)
    assert broken_by("B02", found[:1]) == ()


def test_a_matrix_conforms_when_every_mutant_is_killed_and_says_how() -> None:
    dead = kill_of("B02", "trace", ("INV-CONV", "INV-REV"), 1.0, 4189)
    refused = kill_of("B07", "node", ("DISTRO-OWNER-001",), 1.0)
    alive = kill_of("B10", "model", (), 1.0, reason="no property breaks within its bounds")
    assert (Judged("node", None, (dead, refused), 2.0).verdict, score((dead, refused))) == (Verdict.CONFORMS, 1.0)
    assert (Judged("node", None, (dead, alive), 2.0).verdict, score((dead, alive))) == (Verdict.VIOLATES, 0.5)
    assert Judged("node", None, (), 0.0).verdict is Verdict.INCONCLUSIVE
    assert [each.message for each in (dead, refused, alive)] == [
        "INV-CONV, INV-REV in 4189 events",
        "DISTRO-OWNER-001",
        "no property breaks within its bounds",
    ]


def test_a_search_that_did_not_end_says_nothing_about_a_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distro_conformance.mutation.levels._broken_by_strict", lambda *_: None)
    found = run_mutants("model", ["B07"])
    assert (found.findings[0].judgement, found.verdict) == (Judgement.NOT_JUDGED, Verdict.INCONCLUSIVE)


def test_the_search_of_a_mutant_that_did_not_end_says_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distro_conformance.mutation.levels._broken_by_strict", lambda *_: frozenset())
    (found,) = run_mutants("model", ["m-merge-keeps-max-delay"], 0.001).findings
    assert (found.judgement, found.message) == (
        Judgement.NOT_JUDGED,
        "the mutant was not searched to its end in the time given",
    )


@pytest.mark.parametrize(
    ("steps", "judgement"), [(ENOUGH_STEPS - 1, Judgement.NOT_JUDGED), (ENOUGH_STEPS, Judgement.VIOLATES)]
)
def test_a_mutant_of_the_node_lives_only_after_enough_steps_in_lockstep(steps: int, judgement: Judgement) -> None:
    found = kill_in_lockstep("B07", WalkResult(WalkOptions(mutant="B07"), steps=steps), seconds=60)
    assert (found.judgement, str(steps) in found.message) == (judgement, True)


def test_each_defect_searched_in_traces_is_a_mutant_and_found_one_way() -> None:
    assert SHOWN_BY.keys() <= MUTANTS.keys()
    assert PROVOKED.keys() <= MUTANTS.keys() | NODE_MUTANTS.keys()
    assert not SHOWN_BY.keys() & PROVOKED.keys()
    assert len(SHOWN) >= 25


def test_the_model_kills_a_mutant_within_its_bounds() -> None:
    (kill,) = run_mutants("model", ["B07"]).findings
    assert kill.judgement is Judgement.CONFORMS
    assert kill.details["steps"]


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.quality
def test_a_broken_node_fails_a_requirement() -> None:
    kill = kill_on_node("B07", seconds_max=60)
    assert "DISTRO-OWNER-001" in kill.observed["killed_by"]  # type: ignore[operator]


def test_every_rule_file_of_a_real_server_says_what_it_breaks() -> None:
    for mutant in real_mutants().values():
        text = mutant.path.read_text("utf-8")
        assert mutant.text.endswith("."), mutant.id
        assert text.count("\nRULE ") == text.count("\nENDRULE") >= 1, mutant.id
        assert text.count(f'\nDO traceln("fired {mutant.id}"); ') == text.count("\nRULE "), mutant.id
    assert len(real_mutants()) >= 25


def test_rules_that_never_fired_say_why_if_they_can() -> None:
    fired = Fired()
    fired.add("fired m-no-delete\nstarted\nfired m-no-delete\n")
    fired.add("org.jboss.byteman.rule.exception.TypeException: invalid path foo\n\tat A.f(A.java)\n")
    assert (fired.times, fired.problem) == (2, "org.jboss.byteman.rule.exception.TypeException: invalid path foo")


NEVER_LATE = {"B32"}
"""Its first load has failed when the cluster started, before anything was judged."""


@pytest.mark.quality
@pytest.mark.slow
def test_every_provoked_mutant_shows_in_traces_and_the_first_violation_points_at_its_first_wrong(
    tmp_path: Path,
) -> None:
    for mutant in PROVOKED:
        record_scenario(mutant, tmp_path)
    result = checked([tmp_path])
    strict = [each for each in result.violations if each.run.endswith("-without")]
    assert not strict, "a scenario provokes the mutant, and not the protocol"
    assert result.violations_left_out == 0
    for mutant in PROVOKED:
        found = kill_seen(mutant, tmp_path, result.violations)
        assert not found.violates, f"{mutant}: {found.message}"
        pointed = found.details["points_at_the_first"]
        assert isinstance(pointed, dict)
        assert all(pointed.values()) == (mutant not in NEVER_LATE), (mutant, pointed)


@pytest.mark.quality
def test_a_mutant_does_not_show_where_nothing_provokes_it() -> None:
    calm = kill_by_chance(checked, "B24", 0, Circumstances(duration_s=30, clients=2))
    assert calm.judgement is Judgement.NOT_JUDGED, "it takes a CHANGE that is lost just before its client leaves"
    assert calm.message.startswith("no invariant breaks in ")


@pytest.mark.quality
@pytest.mark.slow
def test_the_command_reports_each_mutant_with_its_killers(document: Document) -> None:
    code, found = document("mutants", "run", "--level", "trace", "--mutant", "B07")
    assert (code, found["schema"], found["score"]) == (0, "distrocheck/mutants-run/1", 1.0)
    (row,) = found["mutants"]
    assert (row["id"], row["level"], row["killed"]) == ("B07", "trace", True)
    assert "INV-OWNER" in row["killed_by"]
