"""How an invariant enters the suite: `@invariant("INV-…", key=…, text=…)` above its function."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from distro_spark.history import Trace

Program = Callable[[Trace], DataFrame]


@dataclass(frozen=True, slots=True)
class Invariant:
    """`key`: the columns by which the rows must lie together; `needs_checkpoint`: cannot be judged without one;
    `not_on`: pattern of the profiles that lack what it is about."""

    name: str
    text: str
    key: tuple[str, ...]
    needs_checkpoint: bool
    not_on: str | None
    program: Program

    def applies_to(self, profile: str) -> bool:
        return self.not_on is None or re.search(self.not_on, profile) is None

    def violations(self, trace: Trace) -> DataFrame:
        return self.program(trace)


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    name: str, *, key: tuple[str, ...], text: str, needs_checkpoint: bool = False, not_on: str | None = None
) -> Callable[[Program], Program]:
    """Register the decorated program under `name`."""

    def register(program: Program) -> Program:
        assert name not in INVARIANTS, f"{name} is registered twice"
        INVARIANTS[name] = Invariant(name, text, key, needs_checkpoint, not_on, program)
        return program

    return register
