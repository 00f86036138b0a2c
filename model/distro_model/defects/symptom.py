"""How a defect is recognised in a finding: a symptom, which is a conjunction of clauses. In traces it is a function
(`distro_spark.symptoms`); both are a `Sign`.

Each clause is one part of the symptom's sentence with the predicate that tests it. The input of a predicate depends on
the kind of finding: the observations of a requirement's check, or a violation with the rows of a trace. For every
clause the tests have a finding that differs in this clause alone, and is not excused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from distro_model.defects.defect import Defect, is_in
from distro_model.defects.table import DEFECTS
from distro_model.release import Span

T = TypeVar("T")
S = TypeVar("S", bound="Sign")


@dataclass(frozen=True)
class Clause(Generic[T]):
    """`sentence`: the observation that the clause requires; `holds`: whether a finding has it."""

    sentence: str
    holds: Callable[[T], bool]


@dataclass(frozen=True, kw_only=True)
class Sign:
    """`about`: the ids of the requirements or invariants that the defect violates in this way.

    `sentence`: where the defect shows in several ways, this one. `releases`: narrower than the defect's, where the
    evidence says so.
    """

    bug: str
    about: tuple[str, ...]
    sentence: str = ""
    releases: Span | None = None

    @property
    def defect(self) -> Defect:
        return DEFECTS[self.bug]

    @property
    def text(self) -> str:
        return self.sentence or self.defect.sentence

    @property
    def span(self) -> Span:
        return self.releases or self.defect.releases or Span()

    def is_of(self, profile: str) -> bool:
        """Whether the profile is that of a release with the defect, in which it has this symptom."""
        return self.defect.is_of(profile) and (self.releases is None or is_in(self.releases, profile))


@dataclass(frozen=True, kw_only=True)
class Symptom(Sign, Generic[T]):
    clauses: tuple[Clause[T], ...]

    def missing(self, finding: T) -> tuple[Clause[T], ...]:
        """The clauses that do not hold: with none the finding is explained."""
        return tuple(clause for clause in self.clauses if not clause.holds(finding))


def of(symptoms: Iterable[S], about: str, profile: str) -> list[S]:
    """The defects that a release may show where that requirement or invariant is violated."""
    return [each for each in symptoms if about in each.about and each.is_of(profile)]
