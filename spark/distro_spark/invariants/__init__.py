"""The invariants that a trace can decide, each a function over a timeline; `check` evaluates those listed here.

Names and sentences: docs/reference/invariants.md.
"""

from __future__ import annotations

from distro_spark.invariants import (
    aim,
    answers,
    conv,
    delete,
    isolate,
    leases,
    load,
    native,
    owner,
    pace,
    retry,
    rev,
    silent,
    source,
)
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs

INVARIANTS: dict[str, Invariant] = {
    each.name: each
    for each in (
        conv.INVARIANT,
        owner.INVARIANT,
        native.INVARIANT,
        leases.LIVE,
        delete.DELETE,
        delete.RESURRECT,
        leases.EXPIRE,
        leases.RENEW,
        load.LOAD,
        source.INVARIANT,
        retry.INVARIANT,
        answers.ACK,
        answers.VERIFY,
        rev.INVARIANT,
        pace.DELAY,
        aim.INVARIANT,
        answers.GONE,
        load.INIT,
        pace.ROUND,
        isolate.INVARIANT,
        answers.ASKS,
        silent.INVARIANT,
    )
}

NEEDS: dict[str, Needs] = {name: invariant.needs for name, invariant in INVARIANTS.items()}
