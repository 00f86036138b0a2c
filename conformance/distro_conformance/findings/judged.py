"""The result of a run of one kind of test: its findings, its target, and its figures.

Requirements of a node, scripts beside a real server, SDKs on three nodes, and mutants all make findings, with the same
data around them. So one function prints all of them (`cli/output.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distro_conformance.findings.finding import Finding, Judgement, headline, verdict_of
from distro_conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """`figures` are numbers and names of the whole run."""

    target: str
    profile: str | None
    findings: tuple[Finding, ...]
    seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)

    @property
    def headline(self) -> str:
        return f"{self.target}: {headline(self.findings)}"

    def those(self, judgement: Judgement) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.judgement is judgement)
