"""Requirements and time: the assumptions of a check about the kit's own pace; no check compares times itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from distro_conformance import requirements
from distro_conformance.findings import Finding, Judgement
from distro_conformance.node.kit import Kit
from distro_conformance.node.player import PlayedClient
from distro_conformance.node.run import run_node_conformance
from distro_conformance.requirements import sync
from distro_conformance.targets.embedded import EmbeddedClock
from distro_conformance.targets.registry import resolve_target
from distro_impl.naming.client_manager import ClientManager

MODULES = sorted(Path(requirements.__file__).parent.glob("*.py"))


def judged(requirement: str, mutant: str | None = None) -> Finding:
    (found,) = run_node_conformance(resolve_target("embedded", mutant=mutant), [requirement]).findings
    return found


def the_machine_takes(monkeypatch: pytest.MonkeyPatch, ms: int) -> None:
    monkeypatch.setattr(EmbeddedClock, "slack_since", lambda *_: ms)


def compared_times(text: str) -> list[str]:
    """Conditions of `require`, which is judged on any machine, in which a time is compared."""
    calls = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call) and each.args]
    conditions = [
        each.args[0] for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr == "require"
    ]
    named = {
        each: [getattr(node, "id", None) or getattr(node, "attr", "") for node in ast.walk(each)] for each in conditions
    }
    return [ast.unparse(each) for each, names in named.items() if any(name.endswith("_ms") for name in names)]


def test_no_check_compares_times_by_itself() -> None:
    found = {module.stem: compared_times(module.read_text(encoding="utf-8")) for module in MODULES}
    assert len(found) > 20
    assert {module: times for module, times in found.items() if times} == {}


def test_a_check_that_compares_times_by_itself_is_found() -> None:
    apart = "second.at_ms - first.at_ms <= 100"
    assert compared_times(f"kit.require({apart}, 'x', 1)") == [apart]
    assert compared_times("kit.require(kit.target.clock.now_ms() < end, 'x', 1)") != []
    allowed = "kit.require_within(took_ms, 100, 'x', since_ms=0)\nkit.require(reply.succeeded, 'x', 1)"
    assert compared_times(allowed) == []


@pytest.mark.wire
@pytest.mark.parametrize(
    ("taken_ms", "judgement"), [(0, Judgement.VIOLATES), (100, Judgement.VIOLATES), (400, Judgement.NOT_JUDGED)]
)
def test_a_node_that_restarts_the_delay_is_never_met_by_changes_that_came_too_slowly(
    monkeypatch: pytest.MonkeyPatch, taken_ms: int, judgement: Judgement
) -> None:
    the_machine_takes(monkeypatch, taken_ms)
    found = judged("DISTRO-SYNC-004", "m-merge-keeps-max-delay")
    assert found.judgement is judgement, found.message
    if judgement is Judgement.NOT_JUDGED:
        assert "one change after the other within 700 ms" in found.message


@pytest.mark.wire
def test_a_node_that_restarts_the_delay_is_open_and_not_met_where_the_kit_changes_too_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a busy machine: a change every 1.3 s, and a CHANGE after each of them."""
    monkeypatch.setattr("distro_conformance.requirements.sync._CHANGES_EVERY_MS", 1_300)
    found = judged("DISTRO-SYNC-004", "m-merge-keeps-max-delay")
    assert found.judgement is Judgement.NOT_JUDGED, found.message


@pytest.mark.wire
def test_a_verify_within_the_sync_delay_is_not_the_expected_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of VERIFYs comes half a second after the first change, and the node restarts the delay at each change."""
    keeps_changing = sync._goes_on_changing

    async def before_a_round(kit: Kit) -> tuple[PlayedClient, list[str], list[int]]:
        other, _, _ = await kit.replicated()
        await kit.eventually_sent("VERIFY", other.id, within_ms=kit.timings.verify_ms)
        await kit.sleep(kit.timings.verify_ms - 500)
        return await keeps_changing(kit)

    monkeypatch.setattr(sync, "_goes_on_changing", before_a_round)
    found = judged("DISTRO-SYNC-004", "m-merge-keeps-max-delay")
    assert found.judgement is Judgement.VIOLATES, found.message


@pytest.mark.wire
@pytest.mark.parametrize(
    ("requirement", "taken_ms", "gone", "judgement"),
    [
        ("DISTRO-IPPORT-007", 0, True, Judgement.VIOLATES),
        ("DISTRO-IPPORT-007", 12_000, True, Judgement.NOT_JUDGED),
        ("DISTRO-IPPORT-007", 4_000, False, Judgement.VIOLATES),
        ("DISTRO-IPPORT-002", 0, True, Judgement.VIOLATES),
        ("DISTRO-IPPORT-002", 12_000, True, Judgement.NOT_JUDGED),
        ("DISTRO-IPPORT-002", 2_000, False, Judgement.VIOLATES),
    ],
)
def test_an_instance_that_is_gone_before_it_was_unhealthy_is_a_violation_unless_checks_of_beats_were_late(
    monkeypatch: pytest.MonkeyPatch, requirement: str, taken_ms: int, judgement: Judgement, *, gone: bool
) -> None:
    """The node never takes an instance for unhealthy, as if it looked at its beats only when it is due to go; or never
    at all."""
    if not gone:
        monkeypatch.setattr(ClientManager, "expire_instance", lambda *_: None)
    monkeypatch.setattr(ClientManager, "take_for_dead", lambda *_: None)
    the_machine_takes(monkeypatch, taken_ms)
    found = judged(requirement)
    assert found.judgement is judgement, found.message


@pytest.mark.wire
@pytest.mark.parametrize(
    ("before_ms", "taken_ms", "judgement"),
    [(1_600, 2_000, Judgement.NOT_JUDGED), (500, 600, Judgement.KNOWN), (500, 0, Judgement.KNOWN)],
)
def test_a_delete_before_the_change_failed_does_not_show_that_it_survives_a_failure(
    monkeypatch: pytest.MonkeyPatch, before_ms: int, taken_ms: int, judgement: Judgement
) -> None:
    """B24 loses a DELETE that waits while a CHANGE fails. A client that leaves 1.6 s before the time-out stands for a
    server that notices the time-out late: its DELETE is sent before."""
    monkeypatch.setattr("distro_conformance.requirements.retry._BEFORE_THE_TIME_OUT_MS", before_ms)
    the_machine_takes(monkeypatch, taken_ms)
    (found,) = run_node_conformance(resolve_target("embedded", "nacos-2.2.4"), ["DISTRO-RETRY-006"]).findings
    assert found.judgement is judgement, found.message


@pytest.mark.wire
def test_a_change_that_the_kit_received_late_may_have_failed_before_the_client_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine takes two seconds between the registration and the arrival of the CHANGE, and nothing later."""

    def slack_since(clock: EmbeddedClock, since_ms: int) -> int:
        return 2_000 if clock.now_ms() - since_ms >= 3_000 else 0

    monkeypatch.setattr("distro_conformance.requirements.retry._BEFORE_THE_TIME_OUT_MS", 1_600)
    monkeypatch.setattr(EmbeddedClock, "slack_since", slack_since)
    (found,) = run_node_conformance(resolve_target("embedded", "nacos-2.2.4"), ["DISTRO-RETRY-006"]).findings
    assert found.judgement is Judgement.NOT_JUDGED, found.message
