"""A symptom: a way in which a known defect shows in a trace, by which a check knows a violation as one of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from distro_model.defects import Sign
from distro_model.release import Span
from distro_spark.history import Finding

Clauses = Iterator[tuple[str, bool]]
"""Sentences, and whether each holds of a violation."""

SYMPTOMS: list[Symptom] = []


@dataclass(frozen=True, kw_only=True)
class Symptom(Sign):
    look: Callable[[Finding], Clauses]

    def clauses(self, found: Finding) -> Mapping[str, bool]:
        return dict(self.look(found))

    def missing(self, found: Finding) -> tuple[str, ...]:
        """The clauses that do not hold: with none the violation is explained. A symptom without a clause explains
        nothing."""
        clauses = tuple(self.look(found)) or ((f"{self.bug} has a clause about this", False),)
        return tuple(sentence for sentence, holds in clauses if not holds)


def symptom(bug: str, *about: str, releases: Span | None = None) -> Callable[[Callable[[Finding], Clauses]], Symptom]:
    """The function below as a symptom of that defect in violations of these invariants. Its docstring is the sentence.
    `releases`: narrower than those of the defect."""

    def made(look: Callable[[Finding], Clauses]) -> Symptom:
        sentence = " ".join((look.__doc__ or "").split())
        SYMPTOMS.append(Symptom(bug=bug, about=about, sentence=sentence, releases=releases, look=look))
        return SYMPTOMS[-1]

    return made
