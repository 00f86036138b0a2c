"""`report.sarif`: findings for services that show them beside the code (SARIF 2.1.0).

A rule is a requirement or a property, its id is stable. A fingerprint says what a finding is about and not how this run
came to it (no times, ports, client ids), so that the same finding of the next run is recognised. A node has no source
file: the location is the logical one of node and client, and the physical one, which services insist on, the report.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from distro_conformance.findings.finding import Finding, Judgement, Level
from distro_conformance.report.document import Report

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS_MAX = 1000
_KINDS = {
    Judgement.VIOLATES: "fail",
    Judgement.KNOWN: "fail",
    Judgement.NOT_JUDGED: "open",
    Judgement.NOT_APPLICABLE: "notApplicable",
    Judgement.CONFORMS: "pass",
}


def sarif_text(report: Report) -> str:
    return json.dumps(sarif_document(report), indent=2, ensure_ascii=False) + "\n"


def sarif_document(report: Report) -> dict[str, Any]:
    rules = {finding.about: finding for finding in reversed(report.findings)}
    order = sorted(rules)
    listed = sorted(report.findings, key=lambda finding: list(_KINDS).index(finding.judgement))[:RESULTS_MAX]
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "distrocheck",
                        "version": report.origin["version"],
                        "rules": [_rule(rules[name]) for name in order],
                    }
                },
                "invocations": [
                    {
                        "commandLine": report.origin["command"],
                        "endTimeUtc": report.origin["date"],
                        "executionSuccessful": True,
                    }
                ],
                "automationDetails": {"id": f"distrocheck/{report.target}/{report.profile}"},
                "properties": {"seed": report.seed, "profile": report.profile, "mutant": report.mutant},
                "results": [_result(finding, order.index(finding.about), report) for finding in listed],
            }
        ],
    }


def _rule(finding: Finding) -> dict[str, Any]:
    text = finding.text or finding.about
    rule: dict[str, Any] = {"id": finding.about, "shortDescription": {"text": text}}
    if finding.details.get("source"):
        rule["help"] = {"text": f"{text} Source: {finding.details['source']}."}
    return rule


def _result(finding: Finding, rule_index: int, report: Report) -> dict[str, Any]:
    kind = _KINDS[finding.judgement]
    result: dict[str, Any] = {
        "ruleId": finding.about,
        "ruleIndex": rule_index,
        "kind": kind,
        "level": ("error" if finding.level is Level.MUST else "warning") if kind == "fail" else "none",
        "message": {"text": finding.message or finding.text or finding.about},
        "locations": [_location(finding)],
        "partialFingerprints": {"finding/v1": fingerprint(finding, report)},
        "properties": {name: getattr(finding, name) for name in ("by", "run", "since", "after", "again")},
        "occurrenceCount": finding.times,
    }
    if finding.judgement is Judgement.KNOWN:
        why = f"known: {finding.known}" + (f", {finding.link}" if finding.link else "")
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _location(finding: Finding) -> dict[str, Any]:
    logical = [
        {"name": part, "kind": kind} for part, kind in ((finding.node, "module"), (finding.client, "object")) if part
    ]
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": "report.html"}}}
    return {**location, "logicalLocations": logical} if logical else location


def fingerprint(finding: Finding, report: Report) -> str:
    """The same for the same rule, judge, target and known bug. A node by its name within a run; an address varies."""
    node = finding.node if finding.node and ":" not in finding.node else ""
    parts = (
        finding.about,
        finding.by,
        report.target,
        report.profile,
        node,
        finding.judgement.value,
        finding.known or "",
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
