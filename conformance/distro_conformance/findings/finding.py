"""A finding, the verdict of many findings, the result of a run, and the command that runs it again.

A run has one of three verdicts; a single finding has one of five, since "known" and "not judged" must never be mistaken
for a pass: the first is a violation that has the symptom of a listed failure, the second says that the kit could not
decide, with the reason. Both are counted in the headline.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from distro_conformance.plain import fields_of
from distro_conformance.release import listed_profile
from distro_conformance.verdict import UsageError, Verdict, worst
from distro_conformance.version import NAME
from distro_protos import Json


class Level(StrEnum):
    MUST = "MUST"  # a violation fails the run
    SHOULD = "SHOULD"  # a violation is reported
    MAY = "MAY"  # known nodes behave so, and other nodes need not


MUST, SHOULD = Level.MUST, Level.SHOULD


class Judgement(StrEnum):
    CONFORMS = "conforms"
    VIOLATES = "violates"
    KNOWN = "known"
    """It violates, with the symptom of a listed failure of this release."""
    NOT_JUDGED = "not-judged"
    """It applies and was not decided; the message says why."""
    NOT_APPLICABLE = "not-applicable"
    """Not required of this release."""


NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Held:
    """The state of the finding's client on a node, at the first wrong event; `differs`: from the state at its owner."""

    node: str
    owned: bool
    content: str
    differs: bool


def differ(owner: tuple[int, object] | None, copy: tuple[int, object] | None) -> bool:
    """Whether a copy differs from its owner's state, each a revision and a content; None: no state. A revision of 0 is
    not compared: releases before 2.1.2 do not send it."""
    if owner is None or copy is None:
        return owner is not copy
    (revision, content), (its_revision, its_content) = owner, copy
    return its_content != content or bool(revision and its_revision and its_revision != revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`about` is the id of a requirement or property and `text` its sentence; `by` names the judge."""

    about: str
    by: str
    judgement: Judgement
    text: str = ""
    level: Level = MUST
    message: str = ""
    """The observation in one sentence, or why nothing was judged."""
    expected: str = ""
    observed: Mapping[str, object] = field(default_factory=dict)
    """What was observed, by name; the symptoms of known failures refer to these names."""
    run: str | None = None
    node: str | None = None
    client: str | None = None
    since: str | None = None
    """The event, or the time, since which it is wrong."""
    until: str | None = None
    after: str | None = None
    """The last message or action before it."""
    evidence: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()
    """The state of the client, side by side: on the nodes, or on the node under test and its played members."""
    known: str | None = None
    """Its known bug, by the name in docs/reference/mutants.md or docs/protocol."""
    link: str | None = None
    """A link to the report or the source of that bug."""
    again: str = ""
    """The command that judges it again."""
    seconds: float = 0.0
    times: int = 1
    """The number of findings like this one, since lists are bounded."""
    details: Mapping[str, object] = field(default_factory=dict)
    """More data of its kind: source and releases of a requirement, the steps of a counterexample."""

    @property
    def counted(self) -> Verdict | None:
        """Its contribution to the verdict of a run: only a MUST can fail it."""
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
        """For every document: docs/schemas defines the names `id` and `verdict`."""
        head = {"id": self.about, "by": self.by, "level": self.level, "verdict": self.judgement}
        return {**head, **fields_of(self, "about", "judgement", "details"), **self.details}


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """The worst verdict that any of them contributes; inconclusive if nothing was judged. Where no MUST was judged, as
    in a run that selects a SHOULD by its id, the others count like one: the run has nothing else to judge by."""
    found = tuple(findings)
    if all(finding.level is not Level.MUST or finding.counted is None for finding in found):
        found = tuple(replace(finding, level=Level.MUST) for finding in found)
    return worst(finding.counted for finding in found if finding.counted is not None)


def counts(findings: Iterable[Finding]) -> Counter[Judgement]:
    return Counter(finding.judgement for finding in findings)


def headline(findings: Sequence[Finding]) -> str:
    """`58 met, 9 fail as known, 1 not judged`: the findings that were not judged are always counted."""
    number = counts(findings)
    parts = [f"{number[Judgement.CONFORMS]} met"]
    parts += [f"{number[Judgement.VIOLATES]} violated"] if number[Judgement.VIOLATES] else []
    parts += [f"{number[Judgement.KNOWN]} fail as known"] if number[Judgement.KNOWN] else []
    parts += [f"{number[Judgement.NOT_JUDGED]} not judged"]
    parts += [f"{number[Judgement.NOT_APPLICABLE]} not applicable"] if number[Judgement.NOT_APPLICABLE] else []
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a run of one kind of test: requirements of a node, scripts beside a real server, SDKs, mutants.
    `figures` are numbers and names of the whole run."""

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


def command(verb: str, *arguments: object, profile: str | None = None, mutant: str | None = None) -> str:
    """`arguments` are quoted where a shell would split them.

    A profile that the command line refuses is left out: the target reported it itself, and will report it again.
    """
    named = {"--profile": profile if profile and _can_be_named(profile) else None, "--mutant": mutant}
    options = [word for option, value in named.items() if value for word in (option, value)]
    return shlex.join([NAME, *verb.split(), *map(str, arguments), *options])


def _can_be_named(profile: str) -> bool:
    try:
        listed_profile(profile)
    except UsageError:
        return False
    return True
