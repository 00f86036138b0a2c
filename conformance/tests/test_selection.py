"""Which requirements are judged: the named ones, by the features of the server and its observability."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from programs import Document

from distro_conformance.findings import Judgement
from distro_conformance.findings.finding import MUST
from distro_conformance.node.run import check_requirements, members_beside, run_requirements
from distro_conformance.requirements import all_requirements
from distro_conformance.requirements.requirement import requirements_named
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.process import description_of
from distro_conformance.targets.target import Limits
from distro_conformance.verdict import UsageError

SYNC = {each.id for each in all_requirements() if each.id.startswith("DISTRO-SYNC-")}


def named(*names: str, skip: tuple[str, ...] = ()) -> set[str]:
    return {each.id for each in requirements_named(names, skip)}


def test_a_name_is_an_id_or_the_beginning_of_ids_or_a_level() -> None:
    every, musts = (
        {each.id for each in all_requirements()},
        {each.id for each in all_requirements() if each.level == MUST},
    )
    assert named() == every
    assert named("DISTRO-SYNC-001") == {"DISTRO-SYNC-001"}
    assert named("DISTRO-SYNC") == named("DISTRO-SYNC-") == SYNC
    assert named("MUST") == named("must") == musts
    assert 0 < len(musts) < len(every)
    assert named("DISTRO-SYNC", "MUST") == SYNC & musts
    in_order = [each.id for each in requirements_named(["DISTRO-SYNC-002", "DISTRO-LOAD-001"])]
    assert in_order == ["DISTRO-SYNC-002", "DISTRO-LOAD-001"]
    assert named("DISTRO-SYNC", "DISTRO-LOAD-001") == SYNC | {"DISTRO-LOAD-001"}
    assert named(skip=("SHOULD",)) == musts
    assert named("DISTRO-SYNC", skip=("DISTRO-SYNC-001",)) == SYNC - {"DISTRO-SYNC-001"}


@pytest.mark.parametrize(
    ("names", "skip", "reason"),
    [
        (("DISTRO-SYN",), (), "DISTRO-SYN"),
        ((), ("DISTRO-NONE",), "DISTRO-NONE"),
        (("DISTRO-SYNC",), ("DISTRO-SYNC",), "no requirement is left"),
    ],
)
def test_a_name_that_means_nothing_is_refused(names: tuple[str, ...], skip: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        named(*names, skip=skip)


@pytest.mark.wire
def test_the_command_takes_beginnings_and_what_to_leave_out(document: Document) -> None:
    options = ("--requirement", "DISTRO-REGISTER", "--skip", "DISTRO-REGISTER-001")
    code, found = document("test", "node", "--transport", "memory", *options)
    ids = [each["id"] for each in found["requirements"]]
    assert code == 0
    assert ids
    assert all(name.startswith("DISTRO-REGISTER-") and name != "DISTRO-REGISTER-001" for name in ids)


class Lacking(EmbeddedTarget):
    limits = Limits(lacks=frozenset({"http", "batch"}))


async def test_a_requirement_whose_feature_the_server_lacks_does_not_apply() -> None:
    """A near miss: a requirement that needs none of them is judged."""
    ids = ["DISTRO-BATCH-001", "DISTRO-HOLDER-001", "DISTRO-IPPORT-001", "DISTRO-REGISTER-001"]
    findings = await run_requirements(Lacking("nacos-2.2.4"), ids)
    assert {each.about: each.judgement for each in findings} == {
        "DISTRO-BATCH-001": Judgement.NOT_APPLICABLE,
        "DISTRO-HOLDER-001": Judgement.CONFORMS,  # about a client of that kind, which a member says it has
        "DISTRO-IPPORT-001": Judgement.NOT_APPLICABLE,
        "DISTRO-REGISTER-001": Judgement.CONFORMS,
    }
    assert "lacks 'http'" in findings[2].message


def test_a_feature_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text('command = ["./s", "{port}"]\nlacks = ["htp"]\n')
    with pytest.raises(UsageError, match="no feature 'htp' to lack; features are http, batch"):
        description_of(str(path))
    path.write_text('command = ["./s", "{port}"]\nlacks = ["http"]\n')
    assert description_of(str(path)).lacks == {"http"}


class Attached(EmbeddedTarget):
    limits = Limits(counts_members=False, takes_syncs=False)


async def test_only_requirements_that_can_be_observed_apply_to_an_attached_server() -> None:
    unseen = "DISTRO-SYNC-001"
    [finding] = await run_requirements(Attached("nacos-2.2.4"), [unseen])
    assert finding.judgement is Judgement.NOT_APPLICABLE
    assert "members of the kit on its list" in finding.message


@pytest.mark.parametrize(
    ("profile", "ids"),
    [
        ("strict", None),
        ("nacos-2.2.4", ["DISTRO-MEMBER-003"]),  # the only one that does not apply to strict
        *(pytest.param(each, None, marks=pytest.mark.slow) for each in ("nacos-2.2.4", "nacos-3.0.3")),
    ],
)
async def test_of_an_attached_server_all_that_can_be_observed_is_judged(profile: str, ids: list[str] | None) -> None:
    """What would change its state as a member does not apply, and leaves nothing open: else no run could conform."""
    findings = await run_requirements(Attached(profile), ids)
    judged = Counter(each.judgement for each in findings)
    assert not judged[Judgement.NOT_JUDGED], [str(each) for each in findings if each.judgement is Judgement.NOT_JUDGED]
    assert ids or judged[Judgement.CONFORMS] + judged[Judgement.KNOWN] >= 35


def test_each_requirement_applies_to_strict_or_is_judged_of_an_attached_server_by_its_id() -> None:
    assert {each.id for each in all_requirements() if "strict" not in each.releases} == {"DISTRO-MEMBER-003"}


async def test_of_an_attached_server_what_is_asked_for_by_its_id_and_cannot_be_observed_is_not_judged() -> None:
    asked = ["DISTRO-HOLDER-002"]
    target = Attached("strict")
    async with members_beside(target, lambda _: None) as peers:
        findings = await check_requirements(target, peers, requirements_named(asked), lambda _: None, asked)
    assert [each.judgement for each in findings] == [Judgement.NOT_JUDGED]
    assert "no VERIFY is sent to it as by a member" in findings[0].message
