"""Requirements that a release is known to fail: a violation with the symptom of one of its defects is `known`.

This applies to reference nodes and real servers, whose release the kit knows. The defects of other servers do not
follow from a release; a file lists their expected failures (`expected`). A known failure does not fail a run. But if
the requirement passes, the run fails in those releases in which the defect was observed: either the listed row is
wrong, or the check no longer detects the defect. In later releases a pass is only reported.
"""

from __future__ import annotations

from dataclasses import replace

from distro_conformance.findings.finding import MUST, Finding, Judgement
from distro_conformance.findings.symptoms import SYMPTOMS, RequirementSymptom
from distro_model.defects.symptom import of

REFERENCE_NODE, REAL_SERVER = "embedded", "nacos"
"""Kinds of target that have the defects of their release."""


def known_failure(requirement: str, profile: str, target_kind: str) -> RequirementSymptom | None:
    """The symptom of a defect of the target's release in that requirement, if it has one."""
    if target_kind not in (REFERENCE_NODE, REAL_SERVER):
        return None
    found = of(SYMPTOMS, requirement, profile)
    return next((each for each in found if each.on_reference_node or target_kind != REFERENCE_NODE), None)


def against_the_list(finding: Finding, profile: str, target_kind: str) -> Finding:
    """Mark a violation with the symptom of a defect of the release as known. A known failure that passes is a
    violation."""
    symptom = known_failure(finding.about, profile, target_kind)
    if symptom is None or finding.judgement not in (Judgement.VIOLATES, Judgement.CONFORMS):
        return finding
    if finding.judgement is Judgement.CONFORMS:
        return _passes(finding, symptom, profile, target_kind)
    if missing := symptom.missing(finding.observed):
        seen = ", ".join(f"{name} {value}" for name, value in finding.observed.items()) or "nothing more"
        lacks = "; ".join(clause.sentence for clause in missing)
        what = f"this is not {symptom.bug}, which is known of {profile}: {symptom.text}"
        return replace(finding, message=f"{finding.message} ({what}; missing: {lacks}; seen: {seen})")
    message = f"known, {symptom.bug} ({symptom.text}): {finding.message}"
    known, link = symptom.bug, symptom.defect.link
    return replace(finding, judgement=Judgement.KNOWN, known=known, link=link, message=message)


def _passes(finding: Finding, symptom: RequirementSymptom, profile: str, target_kind: str) -> Finding:
    if symptom.needs_a_race and target_kind == REAL_SERVER:
        return finding
    if symptom.defect.is_expected_only(profile):
        message = (
            f"{symptom.bug} does not show; the last release that is known to have it is {symptom.defect.last_seen}"
        )
        return replace(finding, message=message)
    message = f"{symptom.bug} is listed as a failure of {profile}, and it passes: remove the entry"
    return replace(finding, judgement=Judgement.VIOLATES, level=MUST, message=message)
