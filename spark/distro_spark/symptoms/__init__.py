"""How known defects show in traces: the symptoms by which a check of a release knows them from new violations.

A symptom explains a violation of an invariant in the releases that have the defect (`distro_model.defects`), by what
was stamped, sent, answered and when. "This release fails this invariant" excuses nothing. What is excused is never
dropped: it is listed with the id of the defect, counted apart, and does not make the verdict `violates`. `strict` has
no defects; every violation there counts.

A symptom is a function over a violation with the rows of its client. It yields its clauses, sentences that must all
hold. Where a clause is about a message, a node or a row that an earlier clause has found, and that found none, it is
left out, so that each clause is missed by itself. The tests have a run for each clause that misses it alone.
"""

from __future__ import annotations

from functools import cache

from distro_model.defects.symptom import of
from distro_spark.history import Finding
from distro_spark.symptoms import batches, leases, receiving, sending, stamps, torn, uncounted  # noqa: F401 - their symptoms
from distro_spark.symptoms.symptom import SYMPTOMS, Symptom

__all__ = ["SYMPTOMS", "known_bug", "symptoms_of"]


def known_bug(invariant: str, found: Finding) -> str | None:
    """The id of the defect that explains a violation, or None."""
    symptoms = symptoms_of(invariant, found.history.profile)
    return min((each.bug for each in symptoms if not each.missing(found)), default=None)


@cache
def symptoms_of(invariant: str, profile: str) -> tuple[Symptom, ...]:
    """Those that a violation of that invariant may have in that release."""
    return tuple(of(SYMPTOMS, invariant, profile))
