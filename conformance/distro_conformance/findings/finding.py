"""A finding, and what many of them come to.

A run has one of three verdicts; a single finding has one of five, since "known" and "not judged" must never be mistaken
for a pass: the first is a violation that has the symptom of a listed failure, the second says that the kit could not
decide, with the reason. Both are counted in the headline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from distro_conformance.plain import fields_of
from distro_conformance.verdict import Verdict, worst
from distro_protos import Json


class Level(StrEnum):
    MUST = "MUST"  # a violation fails the run
    SHOULD = "SHOULD"  # a violation is reported
    MAY = "MAY"  # so do known nodes, and others need not


MUST, SHOULD = Level.MUST, Level.SHOULD


class Judgement(StrEnum):
    CONFORMS = "conforms"
    VIOLATES = "violates"
    KNOWN = "known"
    """It violates, with the symptom of a failure that is listed for this release."""
    NOT_JUDGED = "not-judged"
    """It applies and was not decided; the message says why."""
    NOT_APPLICABLE = "not-applicable"
    """Not asked of this release."""


NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Held:
    """What a node has of the finding's client when it is first wrong; `differs` from what its owner has."""

    node: str
    owned: bool
    content: str
    differs: bool


def differ(owner: tuple[int, object] | None, copy: tuple[int, object] | None) -> bool:
    """Whether a copy is not what its owner has, each a revision and a content; None: it has nothing. A revision of 0 is
    none: before 2.1.2 it does not travel."""
    if owner is None or copy is None:
        return owner is not copy
    (revision, content), (its_revision, its_content) = owner, copy
    return its_content != content or bool(revision and its_revision and its_revision != revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`about` is the id of a requirement or property and `text` its sentence; `by` says what judged it."""

    about: str
    by: str
    judgement: Judgement
    text: str = ""
    level: Level = MUST
    message: str = ""
    """What happened in one sentence, or why nothing was judged."""
    expected: str = ""
    observed: Mapping[str, object] = field(default_factory=dict)
    """What was observed, by name; the symptoms of known failures refer to these names."""
    run: str | None = None
    node: str | None = None
    client: str | None = None
    since: str | None = None
    """The event, or the time, from which on it was so."""
    until: str | None = None
    after: str | None = None
    """The last message or action before it."""
    evidence: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()
    """Of the client, side by side: the nodes, or the node under test and its played members."""
    known: str | None = None
    """The bug behind it, by its name in docs/reference/mutants.md or docs/protocol."""
    link: str | None = None
    """Where that bug was reported, or can be read."""
    again: str = ""
    """The command that judges it once more."""
    seconds: float = 0.0
    times: int = 1
    """So many like this one: lists are bounded."""
    details: Mapping[str, object] = field(default_factory=dict)
    """What else its kind has to say: source and releases of a requirement, the steps of a counterexample."""

    @property
    def counted(self) -> Verdict | None:
        """What it contributes to the verdict of a run: only a MUST does more than report."""
        is_should = self.level is not Level.MUST
        match self.judgement:
            case Judgement.CONFORMS | Judgement.KNOWN:
                return Verdict.CONFORMS
            case Judgement.VIOLATES:
                return Verdict.CONFORMS if is_should else Verdict.VIOLATES
            case Judgement.NOT_JUDGED:
                return None if is_should else Verdict.INCONCLUSIVE
            case Judgement.NOT_APPLICABLE:
                return None

    @property
    def violates(self) -> bool:
        return self.judgement is Judgement.VIOLATES

    def to_json(self) -> Json:
        """As in every document: `id` and `verdict` are the names that docs/schemas promises."""
        head = {"id": self.about, "by": self.by, "level": self.level, "verdict": self.judgement}
        return {**head, **fields_of(self, "about", "judgement", "details"), **self.details}


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """The worst that any of them contributes; nothing judged at all is no answer."""
    return worst(finding.counted for finding in findings if finding.counted is not None)


def counts(findings: Iterable[Finding]) -> Counter[Judgement]:
    return Counter(finding.judgement for finding in findings)


def headline(findings: Sequence[Finding]) -> str:
    """`58 met, 9 fail as known, 1 not judged`: what is not judged is counted and never left out."""
    number = counts(findings)
    parts = [f"{number[Judgement.CONFORMS]} met"]
    parts += [f"{number[Judgement.VIOLATES]} violated"] if number[Judgement.VIOLATES] else []
    parts += [f"{number[Judgement.KNOWN]} fail as known"] if number[Judgement.KNOWN] else []
    parts += [f"{number[Judgement.NOT_JUDGED]} not judged"]
    parts += [f"{number[Judgement.NOT_APPLICABLE]} not applicable"] if number[Judgement.NOT_APPLICABLE] else []
    return ", ".join(parts)
