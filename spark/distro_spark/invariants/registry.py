"""How an invariant enters the suite: `@invariant("INV-…", key=…, text=…)` above its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from distro_spark.history import Trace

Program = Callable[[Trace], DataFrame]


@dataclass(frozen=True, slots=True)
class Invariant:
    """`key`: the columns by which the rows must lie together; `needs_checkpoint`: cannot be judged without one."""

    name: str
    text: str
    key: tuple[str, ...]
    needs_checkpoint: bool
    program: Program

    def violations(self, trace: Trace) -> DataFrame:
        return self.program(trace)


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    name: str, *, key: tuple[str, ...], text: str, needs_checkpoint: bool = False
) -> Callable[[Program], Program]:
    """Register the decorated program under `name`."""

    def register(program: Program) -> Program:
        assert name not in INVARIANTS, f"{name} is registered twice"
        INVARIANTS[name] = Invariant(name, text, key, needs_checkpoint, program)
        return program

    return register
