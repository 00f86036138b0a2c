"""The invariants that a trace can decide, one small file each; what is listed here is in the suite.

Names and sentences: docs/reference/invariants.md.
"""

from __future__ import annotations

from distro_spark.invariants import (
    ack,
    aim,
    asks,
    conv,
    delete,
    expire,
    gone,
    init,
    isolate,
    live,
    native,
    owner,
    pace,
    resurrect,
    retry,
    rev,
    silent,
    verify,
)
from distro_spark.invariants.registry import Invariant, Needs

INVARIANTS: dict[str, Invariant] = {
    each.name: each
    for each in (
        conv.INVARIANT,
        owner.INVARIANT,
        native.INVARIANT,
        live.INVARIANT,
        delete.INVARIANT,
        resurrect.INVARIANT,
        expire.EXPIRE,
        expire.RENEW,
        init.LOAD,
        retry.INVARIANT,
        ack.INVARIANT,
        verify.INVARIANT,
        rev.INVARIANT,
        pace.DELAY,
        aim.INVARIANT,
        gone.INVARIANT,
        init.INIT,
        pace.ROUND,
        isolate.INVARIANT,
        asks.INVARIANT,
        silent.INVARIANT,
    )
}

__all__ = ["INVARIANTS", "Invariant", "Needs"]
