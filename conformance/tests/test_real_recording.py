"""The main job on real input: the check of a recording of three real servers, as recorded and altered."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from blocks import block
from lost_effect import Effect, effects, record_without

from distro_spark.check import check
from distro_spark.local import Local
from distro_spark.result import CheckResult
from distro_traces.event import Kind
from distro_traces.ndjson import read_ndjson

RECORDING = Path(__file__).parent / "data" / "real-cluster-2.2.4" / "real-cluster.ndjson"


@pytest.fixture(scope="module")
def healthy() -> CheckResult:
    return check(Local(RECORDING), convergence=True)


@dataclass(frozen=True)
class Sick:
    """The recording many times over, each time without another CHANGE's effect; runs are named after the message."""

    lost: dict[str, Effect]
    result: CheckResult


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Sick:
    directory, trace = tmp_path_factory.mktemp("sick"), read_ndjson(RECORDING)
    shutil.copy(RECORDING, directory)
    lost = {effect.message: effect for effect in effects(trace.events)}
    for message, effect in lost.items():
        record_without(effect, trace, directory, message)
    # A node that acknowledged a change it does not hold breaks INV-ACK too; this test is about copies.
    return Sick(lost, check(Local(directory), invariants=["INV-CONV", "INV-OWNER", "INV-REV"]))


def test_the_healthy_recording_conforms(healthy: CheckResult) -> None:
    assert healthy.verdict == "conforms", healthy.violations
    assert healthy.runs_with_checkpoint == 1
    assert not healthy.reasons


def test_the_release_shows_its_known_defects_and_no_other(healthy: CheckResult) -> None:
    found = {(violation.invariant, violation.known) for violation in healthy.violations}
    assert found == {("INV-INIT", "B33"), ("INV-REV", "B10")}


def test_every_change_converged_the_one_over_the_cut_link_last(healthy: CheckResult) -> None:
    events = read_ndjson(RECORDING).events
    changes = [e for e in events if e.kind in (Kind.CLIENT_CHANGED, Kind.CLIENT_DISCONNECTED)]
    assert healthy.convergence is not None
    assert healthy.convergence.unconverged == 0
    assert healthy.convergence.count == len(changes)
    slowest = healthy.changes[0]
    (cut,) = (e for e in events if e.detail == "cut")
    (healed,) = (e for e in events if e.detail == "healed")
    assert slowest.ms is not None
    assert cut.at_ms < slowest.event.at_ms < healed.at_ms < slowest.event.at_ms + slowest.ms
    assert (slowest.event.node, slowest.node) == (cut.node, cut.peer)


def test_each_lost_effect_is_flagged_at_its_node_since_the_change_and_nothing_else_is(sick: Sick) -> None:
    assert sick.result.verdict == "violates"
    assert sick.result.violations_left_out == 0
    found = {
        violation.run: (violation.invariant, violation.node, violation.client, violation.first_event.seq)
        for violation in sick.result.violations
        if violation.known is None
    }
    assert found == {
        message: ("INV-CONV", effect.applied.node, effect.applied.client, effect.change.seq)
        for message, effect in sick.lost.items()
    }
    assert len(found) == sum(violation.known is None for violation in sick.result.violations)


def test_a_flag_names_the_events_between_which_the_node_was_wrong(sick: Sick) -> None:
    for violation in sick.result.violations:
        if violation.known is None:
            effect = sick.lost[violation.run]
            first, last = violation.first_event, violation.last_event
            assert (first.node, first.kind) == (effect.change.node, Kind.CLIENT_CHANGED)
            assert (last.node, last.kind) == (effect.applied.node, Kind.CHECKPOINT)
            assert (last.at_ms, violation.evidence["checkpoints"]) == (
                effect.checkpoint.at_ms,
                effect.checkpoint.detail,
            )
            assert violation.evidence["expected"] == effect.applied.digest


def test_the_readme_quotes_what_is_said_of_one_of_them(sick: Sick) -> None:
    shown = " ".join(block("README.md", "violates       INV-CONV").split())
    (quoted,) = [each for each in sick.result.violations if (each.run, each.known) == ("m15", None)]
    rows = f"first {quoted.first_event}, last {quoted.last_event}"
    (text,) = [each.text for each in sick.result.invariants if each.name == "INV-CONV"]
    for line in (text, f"run doctored: {quoted.message}", rows):
        assert " ".join(line.split()) in shown
