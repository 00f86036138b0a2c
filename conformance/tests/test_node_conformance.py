"""The requirements on the reference node: those of each profile, and the end of a run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zlib import adler32

import pytest

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.symptoms import SYMPTOMS, RequirementSymptom
from distro_conformance.node import run as conformance_run
from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.node.run import both, members_beside, run_node_conformance, run_requirements
from distro_conformance.requirements import all_requirements
from distro_conformance.requirements.requirement import Requirement
from distro_conformance.targets.embedded import EmbeddedClock, EmbeddedTarget
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, Verdict
from distro_conformance.waiting import Poll
from distro_model.defects import link_of

pytestmark = pytest.mark.wire


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_release_fails_what_it_is_known_to_fail_and_nothing_else(*, whole: bool) -> None:
    here = [each for each in SYMPTOMS if each.is_of("nacos-2.2.4") and each.on_reference_node]
    listed = [(name, each.bug) for each in here for name in each.about]
    if not whole:  # some of them, and two that it meets
        listed = [each for each in listed if adler32(each[0].encode()) % 4 == 0]
    some = [*(name for name, _ in listed), "DISTRO-SYNC-001", "DISTRO-VERIFY-002"]
    report = run_node_conformance(resolve_target("embedded", "nacos-2.2.4"), None if whole else some)

    asked = [finding for finding in report.findings if finding.judgement is not Judgement.NOT_APPLICABLE]
    failed = [finding for finding in asked if finding.judgement is not Judgement.CONFORMS]
    assert [(each.about, each.message) for each in failed if each.judgement is not Judgement.KNOWN] == []
    assert all(finding.link and finding.expected and finding.again and finding.since for finding in failed)
    assert sorted((finding.about, finding.known or "") for finding in failed) == sorted(listed)
    assert report.verdict is Verdict.CONFORMS


@pytest.mark.parametrize(
    ("requirement", "mutant", "contents", "differing"),
    [
        ("DISTRO-HOLDER-006", "m-change-only-adds", ["holds revision 2, svc-", "sent revision 2, svc-"], [True, False]),
        (
            "DISTRO-SYNC-006",
            "B08",
            ["holds nothing", "was sent revision 1, svc-", "was sent revision 1"],
            [False, True, True],
        ),
    ],
)
def test_a_finding_lists_the_copies_of_its_client_at_node_and_members(
    requirement: str, mutant: str, contents: list[str], differing: list[bool]
) -> None:
    """Its owner is a played member in the one case, which alone sends its state, and the node in the other."""
    (found,) = run_node_conformance(resolve_target("embedded", mutant=mutant), [requirement]).findings
    assert found.client
    assert [each.differs for each in found.held] == differing
    assert found.link == link_of(mutant)
    assert all(each.content.startswith(text) for each, text in zip(found.held, contents, strict=True)), found.held
    assert [each.owned for each in found.held].count(True) == 1


@pytest.mark.parametrize(
    ("taken_ms", "is_starved", "timed"),
    [
        (0, False, Judgement.VIOLATES),
        (500, False, Judgement.VIOLATES),  # of 1,600 ms
        (1_000, False, Judgement.NOT_JUDGED),  # of 2,100 ms
        (1_000, True, Judgement.NOT_JUDGED),
    ],
)
def test_a_starved_machine_leaves_only_checks_of_time_open(
    monkeypatch: pytest.MonkeyPatch, taken_ms: int, timed: Judgement, *, is_starved: bool
) -> None:
    """The node sends no CHANGE, and takes every VERIFY for a success: the second can be judged at any time."""
    monkeypatch.setattr(EmbeddedClock, "slack_since", lambda *_: taken_ms)
    monkeypatch.setattr(EmbeddedClock, "is_starved_since", lambda *_: is_starved)
    (found,) = run_node_conformance(resolve_target("embedded", mutant="m-no-change"), ["DISTRO-SYNC-001"]).findings
    assert found.judgement is timed, found.message
    assert "a CHANGE of " in found.message
    (found,) = run_node_conformance(resolve_target("embedded", mutant="B02"), ["DISTRO-HOLDER-001"]).findings
    assert found.judgement is Judgement.VIOLATES


def test_requirements_that_are_met_do_not_judge_a_mutant_that_never_took_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of a real server that match nothing are ignored silently; what violates counts all the same."""
    monkeypatch.setattr(EmbeddedTarget, "unaltered", lambda _: "its rules never fired")
    target = resolve_target("embedded", mutant="B02")
    met, violated = run_node_conformance(target, ["DISTRO-SYNC-001", "DISTRO-HOLDER-001"]).findings
    assert (met.judgement, met.message) == (Judgement.NOT_JUDGED, "B02: its rules never fired")
    assert violated.judgement is Judgement.VIOLATES


def test_a_member_that_stays_silent_too_long_may_have_been_given_up_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the kit that gave no sign of life, and nothing that is missing says anything."""
    monkeypatch.setattr(Kit, "client_without_keep_alive", "c1 gave no sign of life for 21000 ms")
    (found,) = run_node_conformance(resolve_target("embedded", mutant="B02"), ["DISTRO-HOLDER-001"]).findings
    assert found.judgement is Judgement.NOT_JUDGED
    assert found.message.startswith("c1 gave no sign of life for 21000 ms; expected ")


@pytest.mark.parametrize(
    ("first", "second", "counts", "says"),
    [
        (Judgement.NOT_JUDGED, Judgement.CONFORMS, Judgement.CONFORMS, "^$"),
        (Judgement.NOT_JUDGED, Judgement.NOT_JUDGED, Judgement.NOT_JUDGED, "^not-judged$"),
        (
            Judgement.NOT_JUDGED,
            Judgement.VIOLATES,
            Judgement.VIOLATES,
            r"^violates \(1 of 2 tries; the other",
        ),
    ],
)
def test_a_question_that_is_asked_again_keeps_both_answers(
    first: Judgement, second: Judgement, counts: Judgement, says: str
) -> None:
    tries = [
        Finding(about="R", by="node", judgement=each, message="" if each is Judgement.CONFORMS else each.value)
        for each in (first, second)
    ]
    found = both(*tries)
    assert found.judgement is counts
    assert re.search(says, found.message)
    assert found.evidence == ("not judged: not-judged; asked once more",)


@pytest.mark.parametrize(("seconds", "order"), [(20.0, "S L S"), (200.0, "S S L")], ids=["short", "long"])
def test_a_short_check_is_repeated_when_all_others_have_been_carried_out(
    monkeypatch: pytest.MonkeyPatch, seconds: float, order: str
) -> None:
    """The checks themselves keep a machine busy. Until then the members give signs of life: the others may all have
    nodes of their own."""
    ended: list[str] = []
    stayed: list[PlayedPeer] = []

    async def keep_alive(peer: PlayedPeer) -> None:
        stayed.append(peer)

    async def check(_: object, requirement: Requirement, judged: Finding) -> Finding:
        name = "S" if requirement.id == "DISTRO-SYNC-001" else "L"
        await asyncio.sleep(0.05 if name == "S" else 0.5)
        is_open = name == "S" and not ended
        ended.append(name)
        if is_open:
            stayed.clear()
        return replace(judged, seconds=seconds, judgement=Judgement.NOT_JUDGED if is_open else Judgement.CONFORMS)

    monkeypatch.setattr(conformance_run, "_check", check)
    monkeypatch.setattr(conformance_run, "_KEEP_ALIVE_S", 0.1)
    monkeypatch.setattr(PlayedPeer, "keep_alive", keep_alive)
    monkeypatch.setattr(EmbeddedClock, "is_real", True)
    report = run_node_conformance(resolve_target("embedded"), ["DISTRO-SYNC-001", "DISTRO-SYNC-002"])
    assert [each.judgement for each in report.findings] == [Judgement.CONFORMS] * 2
    assert " ".join(ended) == order
    assert bool(stayed) == (order == "S L S")


@pytest.mark.slow
def test_requirements_that_a_release_did_not_promise_are_not_applicable() -> None:
    report = run_node_conformance(resolve_target("embedded", "nacos-2.0.4"))

    others = [finding for finding in report.findings if finding.judgement is Judgement.NOT_APPLICABLE]
    messages = {finding.about: finding.message for finding in others}
    assert sorted(messages) == [each.id for each in all_requirements() if "nacos-2.0.4" not in each.releases]
    assert messages["DISTRO-VERIFY-001"] == "applies from 2.1.2 on; the target behaves as nacos-2.0.4"
    assert report.verdict is Verdict.CONFORMS


def test_played_members_show_the_identity_that_a_release_asks_for() -> None:
    asked = ["DISTRO-HOLDER-001", "DISTRO-VERIFY-002", "DISTRO-MEMBER-002", "DISTRO-MEMBER-013"]
    report = run_node_conformance(resolve_target("embedded", "nacos-3.0.3"), asked)
    judged = {finding.about: finding.judgement for finding in report.findings}
    assert set(judged.values()) == {Judgement.CONFORMS}, judged


def test_a_listed_failure_that_passes_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = RequirementSymptom(bug="B01", about=("DISTRO-SYNC-001",), sentence="it was repaired", clauses=())
    monkeypatch.setattr("distro_conformance.findings.known.SYMPTOMS", (stale,))

    report = run_node_conformance(resolve_target("embedded", "nacos-3.0.3"), ["DISTRO-SYNC-001"])

    (finding,) = report.findings
    assert finding.judgement is Judgement.VIOLATES
    assert finding.message == "B01 is listed as a failure of nacos-3.0.3, and it passes: remove the entry"
    assert report.verdict is Verdict.VIOLATES


def test_a_result_lists_the_observed_messages_with_sender_and_time() -> None:
    findings: list[Finding] = []

    report = run_node_conformance(resolve_target("embedded"), ["DISTRO-SYNC-001"], on_finding=findings.append)

    (finding,) = findings
    assert (finding,) == report.findings
    assert any(re.match(r"\d+ ms: 127\.0\.0\.1:.*: CHANGE of ", line) for line in finding.evidence)
    assert finding.to_json()["verdict"] == "conforms"


class DeafTarget(EmbeddedTarget):
    """A node whose list lacks the played member, so its replication cannot be observed."""

    async def start(self, other_members: Sequence[str], on_progress: OnProgress) -> None:  # noqa: ARG002 - the point
        await super().start([], on_progress)


def applicable(target: EmbeddedTarget) -> list[str]:
    return [each.id for each in all_requirements() if target.profile in each.releases]


async def test_a_check_that_cannot_be_carried_out_is_inconclusive() -> None:
    target = DeafTarget("strict")
    results = await conformance_run.run_requirements(target, applicable(target))

    assert {finding.judgement for finding in results} == {Judgement.NOT_JUDGED}
    assert all("the node's cluster connection" in finding.message for finding in results)


async def test_a_node_that_dies_under_a_check_is_no_violation() -> None:
    target = EmbeddedTarget("strict")
    requirements = [each for each in all_requirements() if target.profile in each.releases]
    async with members_beside(target, lambda _: None) as peers:
        await target.stop()
        results = await conformance_run.check_requirements(target, peers, requirements, lambda _: None)
    assert {finding.judgement for finding in results} == {Judgement.NOT_JUDGED}


@pytest.mark.parametrize("requirement", ["DISTRO-SYNC-005", "DISTRO-LOAD-001"])
def test_a_node_that_ends_while_it_is_watched_conforms_to_nothing(
    monkeypatch: pytest.MonkeyPatch, requirement: str
) -> None:
    """It sends nothing that it must not send, since it sends nothing any more; on a shared node and on its own."""
    watch = Kit.never

    async def ends(kit: Kit, poll: Poll[object], **named: Any) -> None:
        await kit.target.stop()
        await watch(kit, poll, **named)

    monkeypatch.setattr(Kit, "never", ends)
    (finding,) = asyncio.run(run_requirements(EmbeddedTarget("strict"), [requirement]))
    assert finding.judgement is Judgement.NOT_JUDGED
    assert finding.message.startswith("the node serves no longer at the end of the check")


async def test_a_target_that_cannot_start_leaves_nothing_behind() -> None:
    target = EmbeddedTarget("strict")
    squatter = PlayedPeer(int(target.address.rpartition(":")[2]), lambda: 0)
    await squatter.start()
    try:
        with pytest.raises(TargetError, match="in use"):
            await conformance_run.run_requirements(target)
    finally:
        await squatter.stop()


@pytest.mark.parametrize(("profile", "judgement"), [("nacos-3.0.3", Judgement.KNOWN), ("strict", Judgement.CONFORMS)])
def test_a_release_is_asked_by_the_later_version_of_the_api_that_it_has(profile: str, judgement: Judgement) -> None:
    """3.x answers 410 to version 2."""
    (found,) = run_node_conformance(resolve_target("embedded", profile), ["DISTRO-IPPORT-012"]).findings
    assert found.judgement is judgement, found.message
