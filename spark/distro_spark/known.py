"""Known failures: what a release is known to violate, so that a check of that release tells news from history.

A failure is known for a profile, an invariant and a signature (the evidence of that name). It is never dropped: it
is listed with its number in the catalogue, counted apart, and does not make the verdict `violates`. In `strict`
nothing is known; every violation there counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.violations import SIGNATURE


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """`bug` is the number in the catalogue, `source` where it was reported and repaired."""

    bug: str
    profiles: tuple[str, ...]
    invariant: str
    signature: str
    text: str
    source: str


_RELEASES = ("nacos-2.0.4", "nacos-2.1.1", "nacos-2.2.3", "nacos-2.2.4", "nacos-2.3.2")
"""Those that a target can be; the bugs listed for all of them are in every release."""

KNOWN: tuple[KnownFailure, ...] = (
    KnownFailure(
        "B10",
        ("nacos-2.1.2", *(f"nacos-2.2.{patch}" for patch in range(5))),
        "INV-REV",
        "stale stamp",
        "A replica takes over the content of a later sync, but keeps the revision that it was created with.",
        "alibaba/nacos #10056, #10693; repaired in 2.3.0 by #10553; docs/protocol #defect-d1",
    ),
    KnownFailure(
        "B24",
        _RELEASES,
        "INV-CONV",
        "DELETE swallowed",
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; the copy stays.",
        "alibaba/nacos #10809; seen on 2.2.4 and 2.3.2 (real-nacos.md section 6); docs/protocol #defect-d2",
    ),
)


def with_known(violations: DataFrame) -> DataFrame:
    """Add `known`: the number of the known failure that a violation is an instance of, or null."""
    bug = F.lit(None).cast("string")
    for failure in KNOWN:
        is_instance = (
            F.col("profile").isin(*failure.profiles)
            & (F.col("invariant") == failure.invariant)
            & (F.col("evidence")[SIGNATURE] == failure.signature)
        )
        bug = F.coalesce(F.when(is_instance, F.lit(failure.bug)), bug)
    return violations.withColumn("known", bug)
