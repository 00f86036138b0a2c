"""The report as values. Rendering is elsewhere, so that every format says the same.

Every finding answers the question the kit exists for: which node, from when, after which message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from typing import Any

from distro_conformance.diagrams.sequence import Sequence
from distro_conformance.findings.finding import Finding, Judgement, counts, headline
from distro_conformance.plain import fields_of, plain
from distro_conformance.verdict import Verdict
from distro_conformance.version import origin


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline. `figures` are numbers worth reading, names with their units."""

    name: str
    verdict: Verdict
    seconds: float
    summary: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InvariantRow:
    """All findings about one property by one judge: "model", in every reachable state, or "trace"."""

    name: str
    by: str
    verdict: Judgement
    violations: int
    known: int
    message: str

    @property
    def judgement(self) -> Judgement:
        return self.verdict


@dataclass(frozen=True, slots=True)
class Failure:
    """The failing run behind the finding `about`, made small: the scenario in full, and where it was saved."""

    about: str
    title: str
    scenario: str
    replay: str
    pytest: str
    recording: str = ""
    """The trace of it, where it was run on nodes."""
    shrunk: str = ""
    """How many steps it had when it was found, and how many are left."""
    diagram: Sequence | None = None
    """Of the run in the model, or of what was done, where nothing was recorded. Not in the JSON."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture that a verb brings along: an SVG element, and how to read it."""

    title: str
    svg: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run of the gate, or of another verb that has a page.

    `scope` says in one sentence what ran on the target and what beside it.
    """

    target: str
    profile: str
    mutant: str | None = None
    budget: str = ""
    seed: int | None = None
    scope: str
    verdict: Verdict
    seconds: float
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...] = ()
    convergence: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()
    """What changed, with the time until every other node had it: in the real cluster, or the slowest of all runs."""
    coverage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often: "transitions" of the model, by kind; "guards" that forbade one; "actions" on nodes; "rules beside
    nodes" that the model applied then, "guards beside nodes" by their answers."""
    charts: tuple[Chart, ...] = ()
    traces: str = ""
    origin: Mapping[str, str] = field(default_factory=origin)
    """Version and command line of the tool, and the date."""

    @property
    def requirements(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.by == "node")

    @property
    def kills(self) -> tuple[Finding, ...]:
        """Mutants that were put to the test."""
        return tuple(finding for finding in self.findings if finding.by == "mutant")

    @property
    def invariants(self) -> tuple[InvariantRow, ...]:
        """One row a property and judge."""
        keys = dict.fromkeys((each.about, each.by) for each in self.findings if each.by in ("model", "trace"))
        return tuple(self._row(*key) for key in keys)

    def _row(self, name: str, by: str) -> InvariantRow:
        every = [finding for finding in self.findings if (finding.about, finding.by) == (name, by)]
        number = counts(every)
        worst = next((each for each in WORST_FIRST if number[each]), Judgement.NOT_JUDGED)
        shown = next(finding for finding in every if finding.judgement is worst)
        times = Counter({each: sum(f.times for f in every if f.judgement is each) for each in Judgement})
        return InvariantRow(
            name,
            by,
            worst,
            times[Judgement.VIOLATES],
            times[Judgement.KNOWN],
            shown.message if by == "model" else shown.text,
        )

    @property
    def violating(self) -> tuple[Finding, ...]:
        """What violates: on traces, in the model, on the nodes."""
        return tuple(finding for finding in self.findings if finding.violates)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """Of traces: which node diverged, from when, after which message."""
        return tuple(finding for finding in self.violating if finding.by == "trace")

    @property
    def known_violations(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.by == "trace" and each.judgement is Judgement.KNOWN)

    @property
    def known(self) -> Counter[tuple[str, str]]:
        """How many of the violations of traces have the symptom of a known bug, by invariant and bug."""
        found: Counter[tuple[str, str]] = Counter()
        for finding in self.known_violations:
            found[finding.about, finding.known or "not listed"] += finding.times
        return found

    @property
    def not_judged(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.judgement is Judgement.NOT_JUDGED)

    @property
    def open_questions(self) -> Mapping[str, Several[Finding]]:
        """What was not judged, by the reason: a search that was stopped leaves many open for the same one."""
        by_reason: dict[str, list[Finding]] = {}
        for finding in self.not_judged:
            by_reason.setdefault(finding.message, []).append(finding)
        return by_reason

    @property
    def headline(self) -> str:
        """`nacos:2.2.4: 12 met, 10 fail as known, 0 not judged`, of the requirements."""
        return f"{self.target}: {headline(self.requirements or self.findings)}"

    def to_json(self) -> dict[str, Any]:
        judged = {"requirements": plain(self.requirements), "invariants": plain(self.invariants)}
        failures = [fields_of(each, "diagram") for each in self.failures]
        head = {"verdict": self.verdict, "headline": self.headline, "scope": self.scope}
        return {**head, **fields_of(self, "charts", "origin", failures=failures, **judged)}


WORST_FIRST = (
    Judgement.VIOLATES,
    Judgement.NOT_JUDGED,
    Judgement.KNOWN,
    Judgement.CONFORMS,
    Judgement.NOT_APPLICABLE,
)
