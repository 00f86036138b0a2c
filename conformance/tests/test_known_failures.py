"""A known failure excuses its symptom, clause by clause: a run that differs from it in one clause is a violation.

The symptoms are observed on nodes that have the defect (`test_node_conformance`); here are their near misses.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.finding import Level
from distro_conformance.findings.known import against_the_list
from distro_conformance.findings.symptoms import SYMPTOMS, RequirementSymptom
from distro_conformance.node.run import run_requirements
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.verdict import Verdict
from distro_impl.naming.client import SyncData
from distro_impl.naming.client_manager import ClientManager
from distro_model.defects import DEFECTS
from distro_spark.symptoms import SYMPTOMS as SYMPTOMS_OF_TRACES

PROFILE = "nacos-2.2.4"
EARLIER: dict[str, str] = {"DISTRO-PUSH-007": "nacos-2.0.4", "DISTRO-PUSH-008": "nacos-2.1.1"}
"""The last profile in which an entry counts that is mended in PROFILE."""

OVERWRITTEN = {"sent": ["other"], "published": ["other"], "announced": True, "verified": True}
COPY = {"acknowledged": True, "sent": ["late"], "published": ["late"], "confirmed": True, "claimed": False}

EXAMPLES: dict[str, dict[str, object]] = {
    "DISTRO-LOAD-006": OVERWRITTEN,
    "DISTRO-NATIVE-001": {**OVERWRITTEN, "acknowledged": True},
    "DISTRO-CONNECTION-001": {"held": True, "detections": 0},
    "DISTRO-CONNECTION-002": {"detections": 1, "after_ms": 100},
    "DISTRO-CONNECTION-003": {"held": True},
    "DISTRO-HOLDER-012": {"revision": 2, "of_both": 20, "of_newer": 18, "of_none": 0},
    "DISTRO-IPPORT-007": {"revision": 7},
    "DISTRO-REVISION-001": {"round": "2", "verified_as": [1]},
    "DISTRO-LOAD-009": {"asked": [2, 2], "parts": False, "smaller": True},
    "DISTRO-REGISTER-005": {"shown": 0},
    "DISTRO-MEMBER-007": {"reply": "ok", "held": True},
    "DISTRO-ERROR-005": {"error_code": 500, "held": False},
    "DISTRO-REFUSAL-002": {"error_code": 500, "held": False},
    "DISTRO-LEASE-004": {"lasted_ms": 184_000, "lease_ms": 180_000},
    "DISTRO-BATCH-002": {"revisions": [1, 1, 1], "ports": [81]},
    "DISTRO-BATCH-003": {"ports": [79], "error_code": 500},
    "DISTRO-OWNER-004": {"held": True, "sent": 0},
    "DISTRO-OWNER-008": {"acknowledged": True, "before": True},
    "DISTRO-LEASE-008": {"known": False, "again": True},
    "DISTRO-RETRY-006": {"here": ["CHANGE"], "other": True},
    "DISTRO-HOLDER-003": COPY,
    "DISTRO-LOAD-007": {**COPY, "others": True},
    "DISTRO-LOAD-008": {"is_what_is_held": True},
    "DISTRO-NATIVE-002": {"acknowledged": True, "published": None},
    "DISTRO-RETRY-004": {"verified": True},
    "DISTRO-HOLDER-008": {"acknowledged": True, "clusters": ["DEFAULT"]},
    "DISTRO-IPPORT-012": {"shown": True},
    "DISTRO-SETUP-010": {"both": True, "sent": []},
    "DISTRO-PUSH-007": {"enabled": [80, 81], "disabled": [82]},
    "DISTRO-PUSH-008": {"ports": [80, 81]},
    "DISTRO-HOLDER-011": {"right": True, "other": False},
    "DISTRO-LIST-009": {"same_services": True},
}
"""The observations of a release with the defect, by the first requirement of the symptom."""

NEAR_MISSES: dict[str, dict[str, tuple[dict[str, object], str]]] = {
    "DISTRO-LOAD-006": {
        "the held content is exactly the content that was sent": ({"published": None}, "the node lost the client"),
        "the node announces it as its own": ({"announced": False}, "members keep the new"),
        "the node verifies it as its own": ({"verified": False}, "it belongs to no member any more"),
    },
    "DISTRO-NATIVE-001": {
        "it is acknowledged": ({"acknowledged": False}, "refused and applied"),
        "the held content is exactly the content that was sent": ({"published": []}, "what it published is gone"),
        "the node announces it as its own": ({"announced": False}, "members keep what it was"),
        "the node verifies it as its own": ({"verified": False}, "it belongs to no member any more"),
    },
    "DISTRO-CONNECTION-001": {
        "the client is still held": ({"held": False}, "it was given up too late, and without being asked"),
        "the silent client was not asked for a sign of life": ({"detections": 3}, "asked, not answered, and kept"),
    },
    "DISTRO-CONNECTION-002": {
        "the client has answered a detection": ({"detections": 0}, "it is removed without being asked"),
        "it is removed within a second of that answer": (
            {"after_ms": 5_100},
            "its answer does not end the wait for it",
        ),
    },
    "DISTRO-CONNECTION-003": {
        "the client is still held": ({"held": False}, "the idle client was given up without being asked"),
    },
    "DISTRO-HOLDER-012": {
        "the revision is that of one of the two": ({"revision": 3}, "a revision that was never sent"),
        "all services that both have are held": ({"of_both": 19}, "a service is lost that both CHANGEs have"),
        "no service is held that neither has": ({"of_none": 1}, "a service of another client"),
    },
    "DISTRO-IPPORT-007": {"the client has a revision": ({"revision": 0}, "it has no revision at all")},
    "DISTRO-REVISION-001": {
        "the copy has the content of the second CHANGE": ({"round": "1"}, "it was acknowledged and not applied"),
        "the revision of the first is confirmed, and no other": ({"verified_as": []}, "no revision is confirmed"),
    },
    "DISTRO-LOAD-009": {
        "the node asks every member for a snapshot": ({"asked": [4, 0]}, "the second member is never asked"),
        "no client of the large snapshot is held": ({"parts": True}, "one of its clients is taken, and no other"),
        "a smaller one is taken when it asks again": ({"smaller": False}, "no snapshot is ever taken"),
    },
    "DISTRO-REGISTER-005": {"the service has no hosts": ({"shown": 1}, "it is listed, and no client holds it")},
    "DISTRO-MEMBER-007": {
        "the registration succeeds": ({"reply": "caused: no member"}, "the client has no owner"),
        "the node holds the client itself": ({"held": False}, "it was acknowledged and dropped"),
    },
    "DISTRO-ERROR-005": {
        "the answer has the errorCode 500": ({"error_code": 0}, "nothing in the answer shows it"),
        "the request is not applied": ({"held": True}, "refused in one code, and applied"),
    },
    "DISTRO-REFUSAL-002": {
        "the answer has the errorCode 500": ({"error_code": 0}, "nothing in the answer shows it"),
        "the request is not applied": ({"held": True}, "applied as if it were known"),
    },
    "DISTRO-LEASE-004": {
        "the copy stayed for its lease": ({"lasted_ms": 179_000}, "the copy went before its lease was over"),
    },
    "DISTRO-BATCH-002": {
        "the revision is the same before and after each batch": (
            {"revisions": [1, 2, 2]},
            "only the second batch is not counted",
        ),
        "the last batch is held": ({"ports": [80, 81]}, "the second batch was not applied"),
    },
    "DISTRO-BATCH-003": {
        "the single instance is shown": ({"ports": []}, "the single instance went, and no batch came"),
        "the answer has the errorCode 500": ({"error_code": 0}, "acknowledged without an exception"),
    },
    "DISTRO-OWNER-004": {
        "the client is still held": ({"held": False}, "the node lost the client"),
        "the new owner is sent no request about the client": (
            {"sent": 1},
            "the new owner was sent something else",
        ),
    },
    "DISTRO-OWNER-008": {
        "it is acknowledged": ({"acknowledged": False}, "what is refused is applied"),
        "the held content is the one before the change": ({"before": False}, "the client is gone"),
    },
    "DISTRO-LEASE-008": {
        "the copy is gone": ({"known": True}, "the copy stays without what it published"),
        "a CHANGE after that is applied": ({"again": False}, "the node does not work any more"),
    },
    "DISTRO-RETRY-006": {
        "the member is sent nothing after the CHANGE that it did not answer": (
            {"here": ["CHANGE", "CHANGE"]},
            "the CHANGE of a client that is gone is sent again",
        ),
        "the other member is sent the DELETE": ({"other": False}, "no member is sent the DELETE"),
    },
    "DISTRO-HOLDER-003": {
        "it is acknowledged": ({"acknowledged": False}, "refused and applied"),
        "the held content is exactly the content that was sent": (
            {"published": ["old", "late"]},
            "the old came back",
        ),
        "the revision that was sent is confirmed": ({"confirmed": False}, "it never converges"),
        "the node neither announces nor verifies it as its own": ({"claimed": True}, "B07, a copy that is native"),
    },
    "DISTRO-LOAD-007": {
        "the DELETE is acknowledged": ({"acknowledged": False}, "the DELETE was refused"),
        "the held content is exactly the content that was sent": ({"published": []}, "it comes back empty"),
        "the revision that was sent is confirmed": ({"confirmed": False}, "it never converges"),
        "the node neither announces nor verifies it as its own": ({"claimed": True}, "B07, a copy that is native"),
        "the other clients of the snapshot are held": ({"others": False}, "what came after it was not taken"),
    },
    "DISTRO-LOAD-008": {
        "the snapshot has the client that is connected, and no other": (
            {"is_what_is_held": False},
            "an empty snapshot, though a client is connected",
        ),
    },
    "DISTRO-NATIVE-002": {
        "it is acknowledged": ({"acknowledged": False}, "refused and applied"),
        "the client is gone": ({"published": []}, "the client stays without what it published"),
    },
    "DISTRO-RETRY-004": {
        "the member is asked to confirm the client all the same": (
            {"verified": False},
            "nothing at all is sent to that member any more",
        ),
    },
    "DISTRO-HOLDER-008": {
        "it is acknowledged": ({"acknowledged": False}, "refused, and rightly not applied"),
        "the instance is held with the cluster that it had": ({"clusters": []}, "the instance is gone"),
    },
    "DISTRO-IPPORT-012": {
        "the instance is listed at the node that was asked": ({"shown": False}, "acknowledged, and held by no member"),
    },
    "DISTRO-SETUP-010": {
        "the copy has the registered instance and the old ones": (
            {"both": False},
            "the registration is in no client",
        ),
        "the members are sent no request about it": ({"sent": ["CHANGE"]}, "the copy is announced as the node's own"),
    },
    "DISTRO-PUSH-007": {
        "the enabled instances are shown": ({"enabled": [80]}, "one of them is missing too"),
        "the disabled instance is shown as disabled": ({"disabled": [80, 82]}, "another one is shown twice"),
    },
    "DISTRO-PUSH-008": {
        "the instances of both clusters are pushed": ({"ports": [80]}, "those of the other cluster alone"),
    },
    "DISTRO-HOLDER-011": {
        "the revision that the copy was sent with is confirmed": ({"right": False}, "the node lost the revision"),
        "another revision is not confirmed": ({"other": True}, "B02: every revision is confirmed"),
    },
    "DISTRO-LIST-009": {
        "the pages have the same services in another order": ({"same_services": False}, "a service is listed no more"),
    },
}
"""For each clause of a symptom, by its sentence: the other observation, and the violation that it is."""


def violation(requirement: str, observed: dict[str, object]) -> Finding:
    return Finding(
        about=requirement, by="node", judgement=Judgement.VIOLATES, message="expected something", observed=observed
    )


EACH = [(each, name) for each in SYMPTOMS for name in each.about]
"""Generated from the table: a symptom without an example, and a clause without a near miss, fails."""


def test_the_symptom_is_excused_with_bug_and_link() -> None:
    judged = {
        name: against_the_list(violation(name, EXAMPLES[symptom.about[0]]), EARLIER.get(name, PROFILE), "nacos")
        for symptom, name in EACH
    }
    assert {name: (each.judgement, each.known, each.link) for name, each in judged.items()} == {
        name: (Judgement.KNOWN, symptom.bug, symptom.defect.link) for symptom, name in EACH
    }


@pytest.mark.parametrize("target", ["process", "attach"])
def test_the_release_that_a_server_reports_excuses_nothing(target: str) -> None:
    changed = []
    for symptom, name in EACH:
        found, profile = violation(name, EXAMPLES[symptom.about[0]]), EARLIER.get(name, PROFILE)
        repaired = replace(found, judgement=Judgement.CONFORMS, message="")
        changed += [name for each in (found, repaired) if against_the_list(each, profile, target) is not each]
    assert changed == []


def excuse(symptom: RequirementSymptom, name: str, sentence: str) -> str | None:
    """Why a near miss of that clause is not refused as it should be; None where it is."""
    change, what = NEAR_MISSES[symptom.about[0]][sentence]
    observed = {**EXAMPLES[symptom.about[0]], **change}
    missing = [clause.sentence for clause in symptom.missing(observed)]
    if missing != [sentence]:
        return f"{name}, {what}: lacks {missing}, not only {sentence!r}"
    judged = against_the_list(violation(name, observed), EARLIER.get(name, PROFILE), "nacos")
    parts = (f"this is not {symptom.bug}, ", f"missing: {sentence}; seen: ")
    if judged.judgement is Judgement.VIOLATES and all(part in judged.message for part in parts):
        return None
    return f"{name}, {what}: {judged.judgement}, {judged.message}"


def test_a_near_miss_of_each_clause_is_a_violation() -> None:
    each_clause = [(symptom, name, clause.sentence) for symptom, name in EACH for clause in symptom.clauses]
    assert [found for each in each_clause if (found := excuse(*each))] == []


def test_a_violation_without_observations_is_not_excused() -> None:
    assert [name for symptom, name in EACH if not symptom.clauses] == []
    judged = {name: against_the_list(violation(name, {}), EARLIER.get(name, PROFILE), "nacos") for _, name in EACH}
    assert [name for name, each in judged.items() if not each.violates] == []


def test_every_near_miss_is_that_of_a_clause() -> None:
    clauses = {each.about[0]: {clause.sentence for clause in each.clauses} for each in SYMPTOMS}
    assert {name: set(misses) for name, misses in NEAR_MISSES.items()} == clauses


def test_of_every_bug_that_is_named_it_is_known_where_to_read() -> None:
    """By a requirement, by a symptom on nodes or in a trace; the search of the model has its own part of the table."""
    named = {each.bug for each in (*all_requirements(), *SYMPTOMS, *SYMPTOMS_OF_TRACES)} - {None}
    assert named == DEFECTS.keys()
    assert all(each.link.startswith("https://github.com/alibaba/nacos/") for each in DEFECTS.values())


@pytest.mark.parametrize(("target", "judgement"), [("nacos", Judgement.CONFORMS), ("embedded", Judgement.VIOLATES)])
def test_a_pass_removes_no_entry_where_the_bug_needs_a_race(target: str, judgement: Judgement) -> None:
    passed = Finding(about="DISTRO-RETRY-006", by="node", judgement=Judgement.CONFORMS, message="")
    assert against_the_list(passed, PROFILE, target).judgement is judgement


@pytest.mark.parametrize(
    ("profile", "judgement"),
    [
        ("nacos-3.0.3", Judgement.VIOLATES),
        ("nacos-3.1.0", Judgement.VIOLATES),
        ("nacos-3.1.1", Judgement.CONFORMS),
        ("nacos-3.2.0", Judgement.CONFORMS),
        ("strict", Judgement.CONFORMS),
    ],
)
def test_a_pass_in_a_release_after_the_last_that_was_read_is_only_reported(profile: str, judgement: Judgement) -> None:
    passed = Finding(about="DISTRO-NATIVE-001", by="node", judgement=Judgement.CONFORMS)
    judged = against_the_list(passed, profile, "nacos")
    assert judged.judgement is judgement
    last_seen = "B01 does not show; the last release that is known to have it is 3.1.0"
    assert judged.message == ("" if profile == "strict" else last_seen) or judgement is Judgement.VIOLATES


@pytest.mark.parametrize("level", Level)
def test_a_listed_failure_that_passes_is_red_at_every_level(level: Level) -> None:
    passed = Finding(about="DISTRO-LOAD-008", by="node", judgement=Judgement.CONFORMS, level=level)
    assert against_the_list(passed, PROFILE, "nacos").counted is Verdict.VIOLATES


def test_a_defect_that_no_release_repaired_is_expected_of_later_ones() -> None:
    found = violation("DISTRO-NATIVE-001", EXAMPLES["DISTRO-NATIVE-001"])
    judged = against_the_list(found, "nacos-3.1.0", "nacos")
    assert (judged.judgement, judged.known) == (Judgement.KNOWN, "B01")
    assert against_the_list(found, "strict", "embedded") is found


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


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.parametrize("requirement", ["DISTRO-NATIVE-001", "DISTRO-LOAD-006"])
def test_b01_is_known_where_the_announcement_comes_after_a_time_out(requirement: str) -> None:
    """On a busy machine a request may reach no member before its time-out; then it is repeated."""
    late = EmbeddedTarget(PROFILE, mutant="m-sync-late")
    (found,) = asyncio.run(run_requirements(late, [requirement]))
    assert (found.judgement, found.known) == (Judgement.KNOWN, "B01"), found.message
