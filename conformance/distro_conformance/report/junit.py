"""`junit.xml`: what a CI service shows as tests, a case for each requirement and each property.

A known failure and what is not applicable are skipped with their reason, a violation is a failure, and what was
not decided is an error: it must not look like a pass in a table of tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from distro_conformance.findings import Finding, Judgement
from distro_conformance.report.document import Report

_SUITES = {"node": "requirements", "model": "model", "lockstep": "lockstep", "trace": "traces"}
_TAGS = {
    Judgement.VIOLATES: "failure",
    Judgement.NOT_JUDGED: "error",
    Judgement.KNOWN: "skipped",
    Judgement.NOT_APPLICABLE: "skipped",
}


def junit_xml(report: Report) -> str:
    suites = ET.Element("testsuites", name=f"distrocheck {report.target}", time=f"{report.seconds:.3f}")
    ordered = sorted(
        report.findings, key=lambda finding: list(_SUITES).index(finding.by) if finding.by in _SUITES else 9
    )
    for by, found in groupby(ordered, key=lambda finding: finding.by):
        _suite(suites, _SUITES.get(by, by), list(found), report)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(suites: ET.Element, name: str, findings: Sequence[Finding], report: Report) -> None:
    by_id: dict[str, list[Finding]] = {}
    for finding in findings:
        by_id.setdefault(finding.about, []).append(finding)
    suite = ET.SubElement(suites, "testsuite", name=name, timestamp=report.origin["date"].removesuffix("Z"))
    properties = ET.SubElement(suite, "properties")
    for key, value in (("target", report.target), ("profile", report.profile), ("seed", str(report.seed))):
        ET.SubElement(properties, "property", name=key, value=value)
    tags = [_case(suite, name, about, found) for about, found in by_id.items()]
    suite.attrib |= {"tests": str(len(tags)), "time": f"{sum(finding.seconds for finding in findings):.3f}"}
    suite.attrib |= {
        f"{tag}s" if tag != "skipped" else tag: str(tags.count(tag)) for tag in dict.fromkeys(_TAGS.values())
    }


def _case(suite: ET.Element, classname: str, about: str, findings: Sequence[Finding]) -> str | None:
    """The case of one requirement or property; the tag that says how it ended, None for a pass."""
    seconds = sum(finding.seconds for finding in findings)
    case = ET.SubElement(suite, "testcase", name=about, classname=f"distrocheck.{classname}", time=f"{seconds:.3f}")
    for judgement, tag in _TAGS.items():
        judged = [finding for finding in findings if finding.judgement is judgement]
        if judged:
            times = sum(finding.times for finding in judged)
            message = _printable(judged[0].message or judged[0].text) + (
                f" (and {times - 1} more)" if times > 1 else ""
            )
            end = ET.SubElement(case, tag, message=message, type=judgement.value)
            end.text = _printable("\n".join(_lines(judged[0])))
            return tag
    return None


def _lines(finding: Finding) -> list[str]:
    names = ("expected", "node", "client", "since", "after", "known", "link", "again")
    named = {"requirement": finding.text, **{name: getattr(finding, name) for name in names}}
    return [*(f"{name}: {value}" for name, value in named.items() if value), *finding.evidence]


def _printable(text: str) -> str:
    """XML has no place for most control characters."""
    return "".join(char if char >= " " or char in "\t\n" else "�" for char in text)
