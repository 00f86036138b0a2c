"""The invariants, one small file each; a file that is imported here is in the registry.

An invariant is a function from a trace (`history.Trace`: the events, and who held what when), already shuffled by
(run, client), to violations in the schema of `violations.py`. Names and sentences are those of known-bugs.md.
"""

from __future__ import annotations

from distro_spark.invariants import conv, owner, rev
from distro_spark.invariants.registry import INVARIANTS, Invariant

__all__ = ["INVARIANTS", "Invariant", "conv", "owner", "rev"]
