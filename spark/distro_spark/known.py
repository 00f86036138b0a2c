"""How known defects show in traces: the symptoms by which a check of a release knows them from new violations.

A symptom explains a violation of an invariant in the releases that have the defect (`distro_model.defects`): a look at
the rows of the violation's client that says whether the defect was at work, by what was stamped, sent, answered and
when. "This release fails this invariant" excuses nothing. What is excused is never dropped: it is listed with the id of
the defect, counted apart, and does not make the verdict `violates`. `strict` has no defects; every violation there
counts.
"""

from __future__ import annotations

from distro_model.defects import Symptom
from distro_model.defects.symptom import of
from distro_spark.history import Finding
from distro_spark.symptoms import batches, leases, receiving, sending, stamps, torn, uncounted

KNOWN: tuple[Symptom[Finding], ...] = (
    *torn.SYMPTOMS,
    *stamps.SYMPTOMS,
    *uncounted.SYMPTOMS,
    *batches.SYMPTOMS,
    *sending.SYMPTOMS,
    *receiving.SYMPTOMS,
    *leases.SYMPTOMS,
)


def known_bug(invariant: str, found: Finding) -> str | None:
    """The id of the defect that explains a violation, or None."""
    return min(
        (each.bug for each in of(KNOWN, invariant, found.history.profile) if not each.missing(found)), default=None
    )


def may_be_known(invariant: str, profile: str) -> bool:
    """Whether any symptom is about that invariant in that release."""
    return bool(of(KNOWN, invariant, profile))
