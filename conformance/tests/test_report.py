"""The files of a report say the same, each in the form that its readers expect: JUnit, SARIF, Markdown, the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from distro_conformance.findings import SHOULD, Finding, Judgement
from distro_conformance.report import Report, Stage, write_report
from distro_conformance.report.junit import junit_xml
from distro_conformance.report.sarif import sarif_document
from distro_conformance.verdict import Verdict

KNOWN = Finding(
    about="DISTRO-NATIVE-001",
    by="node",
    judgement=Judgement.KNOWN,
    text="A member's CHANGE leaves a client that is connected to the node as it is.",
    message="known, B01",
    known="B01",
    link="https://example.invalid/15857",
    node="127.0.0.1:8848",
    details={"source": "known-bugs.md B01", "releases": "all releases"},
)
DIVERGED = Finding(
    about="INV-CONV",
    by="trace",
    judgement=Judgement.VIOLATES,
    text="At rest every member's view is the same.",
    message="b holds X of c1 at checkpoint 2 | while its owner holds Y",
    run="lockstep-7-0001",
    node="b",
    client="c1",
    since="client_changed of a at 10 ms (seq 3)",
    after="m7",
    again="distrocheck check out/traces --invariant INV-CONV",
)
FINDINGS = (
    Finding(about="DISTRO-SYNC-001", by="node", judgement=Judgement.CONFORMS, text="It arrives.", seconds=1.5),
    KNOWN,
    Finding(about="DISTRO-VERIFY-001", by="node", judgement=Judgement.NOT_APPLICABLE, message="applies from 2.1.2 on"),
    Finding(about="DISTRO-VERIFY-002", by="node", judgement=Judgement.NOT_JUDGED, message="failed: \x00 DEADLINE"),
    Finding(about="DISTRO-CONNECTION-002", by="node", level=SHOULD, judgement=Judgement.VIOLATES, message="it left"),
    DIVERGED,
    replace(DIVERGED, message="19 more were counted and not listed", times=19),
    Finding(about="INV-REV", by="model", judgement=Judgement.CONFORMS, text="One content."),
)


def report(*findings: Finding) -> Report:
    return Report(
        target="nacos:2.2.4",
        profile="nacos-2.2.4",
        mutant=None,
        budget="quick",
        seed=4711,
        scope="on nacos:2.2.4 itself: node, real cluster; on our model of nacos-2.2.4: explore",
        verdict=Verdict.VIOLATES,
        seconds=3.0,
        stages=(Stage("node", Verdict.INCONCLUSIVE, 2.0, "1 met, 1 fail as known, 1 not judged"),),
        findings=findings or FINDINGS,
        traces="out/traces",
    )


def test_every_requirement_and_property_is_a_case_and_only_a_pass_has_no_mark() -> None:
    root = ET.fromstring(junit_xml(report()))
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert cases.keys() == {finding.about for finding in FINDINGS}
    marks = {name: [mark.tag for mark in case] for name, case in cases.items()}
    assert marks == {
        "DISTRO-SYNC-001": [],
        "DISTRO-NATIVE-001": ["skipped"],
        "DISTRO-VERIFY-001": ["skipped"],
        "DISTRO-VERIFY-002": ["error"],
        "DISTRO-CONNECTION-002": ["failure"],
        "INV-CONV": ["failure"],
        "INV-REV": [],
    }
    skipped = cases["DISTRO-NATIVE-001"][0]
    assert (skipped.get("message"), skipped.get("type")) == ("known, B01", "known")
    assert "https://example.invalid/15857" in str(skipped.text)
    assert str(cases["INV-CONV"][0].get("message")).endswith("(and 19 more)")
    suite = root.find("testsuite[@name='requirements']")
    assert suite is not None
    figures = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert figures == {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}


def strict_object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = strict_object(["text"], text=TEXT)
BAG = {"type": "object"}
RULE = strict_object(["id"], id=TEXT, shortDescription=MESSAGE, help=MESSAGE)
LOGICAL = strict_object([], name=TEXT, kind={"enum": ["module", "object"]})
LOCATION = strict_object(
    [],
    physicalLocation=strict_object([], artifactLocation=strict_object([], uri=TEXT)),
    logicalLocations={"type": "array", "items": LOGICAL, "uniqueItems": True},
)
SUPPRESSION = strict_object(
    ["kind"],
    kind={"enum": ["inSource", "external"]},
    status={"enum": ["accepted", "underReview", "rejected"]},
    justification=TEXT,
)
RESULT = strict_object(
    ["message"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations={"type": "array", "items": LOCATION},
    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
    suppressions={"type": "array", "items": SUPPRESSION, "uniqueItems": True},
    occurrenceCount={"type": "integer", "minimum": 1},
    properties=BAG,
)
INVOCATION = strict_object(
    ["executionSuccessful"],
    commandLine=TEXT,
    endTimeUtc={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
    executionSuccessful={"type": "boolean"},
)
DRIVER = strict_object(["name"], name=TEXT, version=TEXT, rules={"type": "array", "items": RULE, "uniqueItems": True})
RUN = strict_object(
    ["tool"],
    tool=strict_object(["driver"], driver=DRIVER),
    invocations={"type": "array", "items": INVOCATION},
    automationDetails=strict_object([], id=TEXT),
    results={"type": "array", "items": RESULT},
    properties=BAG,
)
SARIF = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **strict_object(
        ["version", "runs"],
        **{"$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"}},
        version={"const": "2.1.0"},
        runs={"type": "array", "items": RUN, "minItems": 1},
    ),
}
"""What SARIF 2.1.0 (OASIS, section 3) says of the objects that the report uses, and nothing that it does not use."""


def test_sarif_holds_to_its_schema_and_a_known_failure_is_suppressed() -> None:
    document = json.loads(json.dumps(sarif_document(report())))
    jsonschema.validate(document, SARIF)
    (run,) = document["runs"]
    by_rule = {result["ruleId"]: result for result in run["results"]}
    assert by_rule["INV-CONV"]["kind"] == "fail"
    assert by_rule["DISTRO-NATIVE-001"]["suppressions"][0]["justification"].startswith("known: B01")
    assert by_rule["DISTRO-VERIFY-002"]["kind"] == "open"
    assert by_rule["DISTRO-CONNECTION-002"]["level"] == "warning"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert (result["level"] == "none") == (result["kind"] != "fail")  # section 3.27.10


def test_a_fingerprint_outlives_the_run() -> None:
    def prints(*findings: Finding) -> list[str]:
        run = sarif_document(report(*findings))["runs"][0]
        return [result["partialFingerprints"]["finding/v1"] for result in run["results"]]

    again = replace(DIVERGED, run="lockstep-8-0009", client="c9", since="later", after="m99", message="b holds Z")
    assert prints(DIVERGED) == prints(again)
    assert prints(KNOWN) == prints(replace(KNOWN, node="127.0.0.1:9999"))
    assert prints(DIVERGED) != prints(replace(DIVERGED, node="c"))


def test_all_files_have_the_headline_where_it_came_from_and_what_was_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    (tmp_path / "step.md").write_text("before\n")
    write_report(report(), tmp_path, schema="distrocheck/gate/1")
    document = json.loads((tmp_path / "report.json").read_text())
    line = "nacos:2.2.4: 1 met, 1 violated, 1 fail as known, 1 not judged, 1 not applicable"
    assert document["headline"] == line
    assert document["tool"].keys() == {"version", "command", "date"}
    assert {row["name"]: (row["verdict"], row["violations"]) for row in document["invariants"]} == {
        "INV-CONV": ("violates", 20),
        "INV-REV": ("conforms", 0),
    }
    summary, page = (tmp_path / "summary.md").read_text(), (tmp_path / "report.html").read_text()
    for text in (summary, page):
        assert line in text
        assert "On nacos:2.2.4 itself: node, real cluster" in text
        assert document["tool"]["date"] in text
        assert "4711" in text
        assert "DISTRO-VERIFY-002" in text
    assert (tmp_path / "step.md").read_text() == "before\n" + summary
    assert "checkpoint 2 | while" in summary, "only cells of tables are escaped"
