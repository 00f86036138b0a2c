"""A known failure excuses its symptom, and a near miss of it is news: what else breaks there is no known bug.

The symptom of each is seen on nodes that have the bug (`test_node_conformance`); here stand the near misses.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.known import against_the_list, known_failure
from distro_conformance.findings.symptoms import SYMPTOMS as LISTED
from distro_conformance.node.run import run_requirements
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_impl.naming.client import SyncData
from distro_impl.naming.client_manager import ClientManager
from distro_model.defects import DEFECTS
from distro_spark.known import KNOWN as KNOWN_OF_TRACES

PROFILE = "nacos-2.2.4"
EARLIER: dict[str, str] = {"DISTRO-PUSH-008": "nacos-2.1.1"}
"""The last profile in which an entry counts that is mended in PROFILE."""

SYMPTOMS: dict[str, dict[str, object]] = {
    "DISTRO-REVISION-001": {"round": "2", "verified_as": [1]},
    "DISTRO-BATCH-002": {"revisions": [1, 1, 1]},
    "DISTRO-BATCH-003": {"ports": [79], "error_code": 500},
    "DISTRO-CONNECTION-001": {"held": True, "detections": 0},
    "DISTRO-CONNECTION-003": {"held": True, "detections": 0},
    "DISTRO-CONNECTION-004": {"held": True, "detections": 0},
    "DISTRO-ERROR-005": {"result_code": 200, "error_code": 500, "held": False},
    "DISTRO-HOLDER-008": {"acknowledged": True, "clusters": ["DEFAULT"]},
    "DISTRO-HOLDER-011": {"zero": True, "right": True},
    "DISTRO-HOLDER-012": {"revision": 2, "services": 38},
    "DISTRO-IPPORT-007": {"before": 7, "after": 7},
    "DISTRO-IPPORT-012": {"shown": True},
    "DISTRO-LEASE-004": {"changes": 12, "held": False},
    "DISTRO-LEASE-008": {"known": False},
    "DISTRO-LOAD-006": {"published": ["old"], "sent": ["old"], "announced": True, "verified": True},
    "DISTRO-LOAD-007": {"acknowledged": True, "published": ["old"], "sent": ["old"]},
    "DISTRO-LOAD-008": {"given": 0},
    "DISTRO-LOAD-009": {"asked": 4},
    "DISTRO-MEMBER-007": {"passed_on": False, "reply": "ok"},
    "DISTRO-OWNER-004": {"held": True, "told": 0},
    "DISTRO-OWNER-006": {"sent": 2, "both": True},
    "DISTRO-REGISTER-005": {"acknowledged": True, "shown": 0},
    "DISTRO-RETRY-004": {"changes": 1, "verified": True},
    "DISTRO-RETRY-009": {"changes": 1, "verified": True},
    "DISTRO-RETRY-006": {"here": ["CHANGE"], "other": True},
    "DISTRO-HOLDER-003": {"acknowledged": True, "sent": ["late"], "published": ["late"]},
    "DISTRO-NATIVE-001": {"acknowledged": True, "sent": ["other"], "published": ["other"]},
    "DISTRO-NATIVE-002": {"acknowledged": True, "published": None},
    "DISTRO-REFUSAL-001": {"result_code": 200, "error_code": 500, "held": False},
    "DISTRO-REFUSAL-002": {"result_code": 200, "error_code": 500, "held": False},
    "DISTRO-REFUSAL-003": {"result_code": 200, "error_code": 500, "held": False},
    "DISTRO-PUSH-008": {"ports": [80, 81]},
    "DISTRO-SETUP-010": {"both": True, "sent": []},
}

NEAR_MISSES: list[tuple[str, dict[str, object], str]] = [
    ("DISTRO-REVISION-001", {"round": None, "verified_as": []}, "the node lost the client"),
    ("DISTRO-REVISION-001", {"round": "1", "verified_as": [1]}, "the second CHANGE was acknowledged and not applied"),
    ("DISTRO-REVISION-001", {"round": "2", "verified_as": []}, "no revision is confirmed"),
    ("DISTRO-BATCH-002", {"revisions": [1, None, None]}, "the node lost the client"),
    ("DISTRO-BATCH-002", {"revisions": [1, 2, 2]}, "only the second batch is not counted"),
    ("DISTRO-BATCH-002", {"revisions": [1, 0, 0]}, "the batch sets the revision back"),
    ("DISTRO-BATCH-003", {"ports": [], "error_code": 500}, "the single instance went, and no batch came"),
    ("DISTRO-BATCH-003", {"ports": [80], "error_code": 0}, "half of the batch is shown"),
    ("DISTRO-BATCH-003", {"ports": [79], "error_code": 0}, "acknowledged without an exception"),
    ("DISTRO-CONNECTION-001", {"held": True, "detections": 3}, "detected, not answered, and kept"),
    ("DISTRO-CONNECTION-003", {"held": False, "detections": 0}, "the idle client was given up without being asked"),
    ("DISTRO-CONNECTION-004", {"held": False, "detections": 0}, "the idle client was given up without being asked"),
    ("DISTRO-ERROR-005", {"result_code": 200, "error_code": 500, "held": True}, "refused in one code, and applied"),
    ("DISTRO-HOLDER-008", {"acknowledged": True, "clusters": []}, "the instance is gone"),
    ("DISTRO-HOLDER-011", {"zero": True, "right": False}, "the node lost the revision"),
    ("DISTRO-HOLDER-012", {"revision": None, "services": 0}, "the node lost the client"),
    ("DISTRO-HOLDER-012", {"revision": 3, "services": 40}, "a revision that nobody sent"),
    ("DISTRO-IPPORT-007", {"before": 0, "after": 0}, "it has no revision at all"),
    ("DISTRO-IPPORT-012", {"shown": False}, "it was answered with success, and nobody has it"),
    ("DISTRO-LEASE-004", {"changes": 2, "held": False}, "the copy went long before its lease was over"),
    ("DISTRO-LEASE-008", {"known": True}, "the copy stays without what it published"),
    ("DISTRO-LOAD-006", {"published": None, "sent": ["old"]}, "the node lost the client"),
    ("DISTRO-LOAD-006", {"published": ["old"], "sent": ["old"], "verified": False}, "nobody speaks for it any more"),
    ("DISTRO-LOAD-006", {"published": ["old"], "sent": ["old"], "announced": False}, "members keep the new"),
    ("DISTRO-LOAD-007", {"acknowledged": False, "published": ["old"], "sent": ["old"]}, "the DELETE was refused"),
    ("DISTRO-LOAD-008", {"given": None}, "a refusal that was taken for a violation"),
    ("DISTRO-LOAD-009", {"asked": 1}, "it is asked for once, and never again"),
    ("DISTRO-MEMBER-007", {"passed_on": False, "reply": "caused: no member"}, "it is nobody's"),
    ("DISTRO-OWNER-004", {"held": False, "told": 0}, "the node lost the client"),
    ("DISTRO-OWNER-004", {"held": True, "told": 1}, "the new owner was told of something else"),
    ("DISTRO-OWNER-006", {"sent": 2, "both": False}, "what is sent lacks what the client registered here"),
    ("DISTRO-REGISTER-005", {"acknowledged": True, "shown": 1}, "it is shown, and by whom is it held"),
    ("DISTRO-RETRY-004", {"changes": 1, "verified": False}, "nothing at all is sent to that member any more"),
    ("DISTRO-RETRY-009", {"changes": 1, "verified": False}, "nothing at all is sent to that member any more"),
    ("DISTRO-RETRY-006", {"here": ["CHANGE"], "other": False}, "nobody was told of the end"),
    ("DISTRO-RETRY-006", {"here": ["CHANGE", "CHANGE"], "other": True}, "the CHANGE of who is gone goes on"),
    ("DISTRO-HOLDER-003", {"acknowledged": True, "sent": ["late"], "published": ["old", "late"]}, "the old came back"),
    ("DISTRO-HOLDER-003", {"acknowledged": False, "sent": ["late"], "published": ["late"]}, "refused and applied"),
    ("DISTRO-NATIVE-001", {"acknowledged": True, "sent": ["other"], "published": None}, "the node lost the client"),
    ("DISTRO-NATIVE-001", {"acknowledged": True, "sent": ["other"], "published": []}, "what it published is gone"),
    ("DISTRO-NATIVE-001", {"sent": ["other"], "published": ["other"], "verified": False}, "nobody speaks for it"),
    ("DISTRO-NATIVE-001", {"sent": ["other"], "published": ["other"], "announced": False}, "members keep what it was"),
    ("DISTRO-NATIVE-002", {"acknowledged": True, "published": []}, "the client stays without what it published"),
    ("DISTRO-NATIVE-002", {"acknowledged": False, "published": None}, "refused and applied"),
    ("DISTRO-REFUSAL-001", {"result_code": 200, "error_code": 0, "held": False}, "nothing tells"),
    ("DISTRO-REFUSAL-001", {"result_code": 200, "error_code": 500, "held": True}, "half of it was applied"),
    ("DISTRO-REFUSAL-002", {"result_code": 200, "error_code": 0, "held": True}, "applied as if it were known"),
    ("DISTRO-REFUSAL-003", {"result_code": 200, "error_code": 0, "held": True}, "applied as a CHANGE"),
    ("DISTRO-PUSH-008", {"ports": []}, "nothing was pushed, or an empty list"),
    ("DISTRO-PUSH-008", {"ports": [80]}, "the other cluster alone"),
    ("DISTRO-SETUP-010", {"both": False, "sent": []}, "the registration is in no client"),
    ("DISTRO-SETUP-010", {"both": True, "sent": ["CHANGE"]}, "the copy is announced as the node's own"),
]


def violation(requirement: str, observed: dict[str, object]) -> Finding:
    return Finding(
        about=requirement, by="node", judgement=Judgement.VIOLATES, message="expected something", observed=observed
    )


@pytest.mark.parametrize("requirement", SYMPTOMS)
def test_the_symptom_is_excused_with_bug_and_link(requirement: str) -> None:
    profile = EARLIER.get(requirement, PROFILE)
    judged = against_the_list(violation(requirement, SYMPTOMS[requirement]), profile, "nacos")
    entry = known_failure(requirement, profile, "nacos")
    assert entry is not None
    assert (judged.judgement, judged.known, judged.link) == (Judgement.KNOWN, entry.bug, entry.defect.link)


@pytest.mark.parametrize("requirement", SYMPTOMS)
def test_a_described_server_may_have_the_bug_or_have_mended_it(requirement: str) -> None:
    found = violation(requirement, SYMPTOMS[requirement])
    profile = EARLIER.get(requirement, PROFILE)
    assert against_the_list(found, profile, "process").judgement is Judgement.KNOWN
    mended = replace(found, judgement=Judgement.CONFORMS, message="")
    assert against_the_list(mended, profile, "process") is mended


@pytest.mark.parametrize(("requirement", "observed", "what"), NEAR_MISSES, ids=lambda value: str(value)[:40])
def test_a_near_miss_is_news(requirement: str, observed: dict[str, object], what: str) -> None:
    judged = against_the_list(violation(requirement, observed), EARLIER.get(requirement, PROFILE), "nacos")
    assert judged.judgement is Judgement.VIOLATES, what
    assert "this is not " in judged.message
    assert all(f"{name} {value}" in judged.message for name, value in observed.items())


def test_a_violation_of_which_nothing_is_known_to_have_been_seen_is_news() -> None:
    for name in SYMPTOMS:
        assert against_the_list(violation(name, {}), PROFILE, "nacos").violates, name


def test_every_entry_has_a_symptom_and_a_near_miss() -> None:
    entries = {name for each in LISTED for name in each.about}
    assert entries == set(SYMPTOMS) == {requirement for requirement, _, _ in NEAR_MISSES}


def test_of_every_bug_that_is_named_it_is_known_where_to_read() -> None:
    """By a requirement, by a symptom on nodes or in a trace; the search of the model has its own part of the table."""
    named = {each.bug for each in (*all_requirements(), *LISTED, *KNOWN_OF_TRACES)} - {None}
    assert named == DEFECTS.keys()
    assert all(each.link.startswith("https://github.com/alibaba/nacos/") for each in DEFECTS.values())


@pytest.mark.parametrize(("target", "judgement"), [("nacos", Judgement.CONFORMS), ("embedded", Judgement.VIOLATES)])
def test_a_pass_removes_no_entry_where_the_bug_needs_a_race(target: str, judgement: Judgement) -> None:
    passed = Finding(about="DISTRO-RETRY-006", by="node", judgement=Judgement.CONFORMS, message="")
    assert against_the_list(passed, PROFILE, target).judgement is judgement


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.parametrize("requirement", ["DISTRO-NATIVE-001", "DISTRO-LOAD-006"])
def test_a_client_that_is_given_away_is_no_b01(requirement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases overwrite the content of a connected client, and announce and verify it as their own. A node that takes
    it for the member's from then on holds the same, says nothing of it, and ends it with its lease."""
    target = EmbeddedTarget(PROFILE)
    (as_released,) = asyncio.run(run_requirements(target, [requirement]))
    assert as_released.judgement is Judgement.KNOWN
    apply = ClientManager.apply

    def given_away(self: ClientManager, sync: SyncData, **named: Any) -> None:
        if (held := self.get(sync.client_id)) is not None:
            held.native = False
        apply(self, sync, **named)

    monkeypatch.setattr(ClientManager, "apply", given_away)
    (found,) = asyncio.run(run_requirements(target.fresh(), [requirement]))
    assert found.judgement is Judgement.VIOLATES, found.message
    assert "this is not B01" in found.message
