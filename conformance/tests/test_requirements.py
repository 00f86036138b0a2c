"""The table of requirements, the nodes to which one applies, and the effect of known failures on a verdict."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from distro_conformance.findings.finding import MUST, SHOULD, Finding, Judgement, Level, headline, verdict_of
from distro_conformance.findings.known import known_failure
from distro_conformance.findings.symptoms import SYMPTOMS
from distro_conformance.node.kit import Kit
from distro_conformance.node.run import run_node_conformance
from distro_conformance.release import Span, release_of
from distro_conformance.requirements import Requirement, all_requirements
from distro_conformance.requirements.requirement import requirement
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import UsageError, Verdict


def is_well_formed(entry: Requirement) -> bool:
    is_one_sentence = entry.text.endswith(".") and ". " not in entry.text
    has_source = re.search(r"docs/protocol #[a-z]", entry.source)
    return bool(re.fullmatch(r"DISTRO-[A-Z]+-\d{3}", entry.id) and is_one_sentence and has_source)


def test_every_requirement_is_one_sentence_with_a_source() -> None:
    assert [entry.id for entry in all_requirements() if not is_well_formed(entry)] == []


def test_a_second_sentence_or_a_missing_source_is_noticed() -> None:
    entry = next(iter(all_requirements()))
    assert not is_well_formed(replace(entry, text="A node answers. It does so at once."))
    assert not is_well_formed(replace(entry, source="somewhere"))


def test_an_id_is_given_once() -> None:
    taken = all_requirements()[0].id

    with pytest.raises(ValueError, match=f"two requirements are called {taken}"):
        requirement(taken, MUST, "")(all_requirements()[0].check)


def test_a_check_without_a_sentence_is_refused() -> None:
    async def check(kit: Kit) -> None: ...

    with pytest.raises(ValueError, match="the check of DISTRO-X-001 has no docstring"):
        requirement("DISTRO-X-001", MUST, "")(check)


@pytest.mark.parametrize(
    ("span", "profile", "applies"),
    [
        (Span(), "nacos-2.0.0", True),
        (Span("2.1.2"), "nacos-2.1.1", False),
        (Span("2.1.2"), "nacos-2.1.2", True),
        (Span("2.1.2"), "nacos-2.10.0", True),
        (Span("2.1.2", "2.2.4"), "nacos-2.2.4", True),
        (Span("2.1.2", "2.2.4"), "nacos-2.3.0", False),
        (Span("2.1.2"), "strict", True),
        (Span(until="2.2.4"), "strict", False),
    ],
)
def test_a_requirement_applies_to_a_span_of_releases(span: Span, profile: str, applies: bool) -> None:
    assert (profile in span) is applies


def test_a_profile_is_a_release_or_strict() -> None:
    with pytest.raises(UsageError, match="no profile 'zookeeper-3'"):
        release_of("zookeeper-3")


def test_every_known_failure_names_a_requirement_that_exists() -> None:
    assert {name for each in SYMPTOMS for name in each.about} <= {entry.id for entry in all_requirements()}


def test_b10_is_known_where_it_lives_and_nowhere_else() -> None:
    found = {profile: known_failure("DISTRO-REVISION-001", profile, "nacos") for profile in _PROFILES}

    assert [profile for profile, entry in found.items() if entry is not None] == ["nacos-2.1.2", "nacos-2.2.4"]


def test_an_unknown_requirement_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no requirement 'DISTRO-X-001'; most like it: DISTRO-"):
        run_node_conformance(resolve_target("embedded"), ["DISTRO-X-001"])


M, S = MUST, SHOULD
CONFORMS, VIOLATES, KNOWN = Judgement.CONFORMS, Judgement.VIOLATES, Judgement.KNOWN
NOT_JUDGED, NOT_APPLICABLE = Judgement.NOT_JUDGED, Judgement.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([(M, CONFORMS)], Verdict.CONFORMS),
        ([(M, CONFORMS), (M, VIOLATES), (M, NOT_JUDGED)], Verdict.VIOLATES),
        ([(M, CONFORMS), (M, NOT_JUDGED)], Verdict.INCONCLUSIVE),
        ([(M, CONFORMS), (S, NOT_JUDGED)], Verdict.CONFORMS),
        ([(M, CONFORMS), (M, KNOWN)], Verdict.CONFORMS),
        ([(M, KNOWN)], Verdict.CONFORMS),
        ([(S, VIOLATES), (M, CONFORMS)], Verdict.CONFORMS),
        ([(M, NOT_APPLICABLE)], Verdict.INCONCLUSIVE),
        ([(S, CONFORMS), (S, VIOLATES)], Verdict.VIOLATES),
        ([(M, NOT_APPLICABLE), (S, VIOLATES)], Verdict.VIOLATES),
        ([(S, CONFORMS), (S, NOT_JUDGED)], Verdict.INCONCLUSIVE),
        ([(S, CONFORMS), (S, NOT_APPLICABLE)], Verdict.CONFORMS),
        ([], Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict_of_a_run(found: list[tuple[Level, Judgement]], verdict: Verdict) -> None:
    assert verdict_of(findings(found)) is verdict


def test_unjudged_findings_are_in_the_headline_and_a_known_failure_is_no_pass() -> None:
    found = findings([(M, CONFORMS), (M, CONFORMS), (M, KNOWN), (M, NOT_JUDGED), (S, NOT_APPLICABLE)])
    assert headline(found) == "2 met, 1 fail as known, 1 not judged, 1 not applicable"
    assert headline(found[:2]) == "2 met, 0 not judged"


def findings(rows: list[tuple[Level, Judgement]]) -> list[Finding]:
    return [
        Finding(about=f"DISTRO-T-{number:03}", by="node", judgement=judgement, level=level)
        for number, (level, judgement) in enumerate(rows)
    ]


_PROFILES = ("nacos-2.0.4", "nacos-2.1.1", "nacos-2.1.2", "nacos-2.2.4", "nacos-2.3.0", "strict")
