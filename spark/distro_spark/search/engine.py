"""The search itself, level by level, each level checkpointed.

A level is `rows/level=N` in the checkpoint directory (Parquet: fingerprint, parent, packed row); everything else that
is known after it, counts and values and findings, is in the one file `state`, written when the level is complete. The
visited set is all `rows` together; a new level is what the expansion of the last one gave, deduplicated by the shuffle
and without those.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark program uses

from distro_model.search.readable import run_through
from distro_model.search.results import Limits, Progress, Run, Search, Stopped, Watch, never_stop
from distro_model.search.system import Finding, Row, System, Value, transitions
from distro_spark.errors import CheckpointError
from distro_spark.search.stepper import Found, Stepper, fingerprint, frozen, packed, unpacked

ROWS = "fingerprint long, parent long, row binary"
EXPANDED = f"{ROWS}, report binary"
_Expanded = tuple[int, int | None, bytearray | None, bytearray | None]
"""A row of EXPANDED: a successor, or at the end of a task its report."""


@dataclass
class _State:
    """What is known after a number of complete levels; written to the checkpoint as it is."""

    levels: list[int] = field(default_factory=list)
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, int]] = field(default_factory=Counter)
    findings: dict[str, tuple[Finding, int, int]] = field(default_factory=dict)
    calls: int = 0
    values: dict[int, Value] = field(default_factory=dict)


def search_on_spark(
    spark: SparkSession,
    system: System,
    checkpoint: Path,
    identity: str,
    limits: Limits = Limits(),
    watch: Watch = never_stop,
) -> Search:
    """Search every reachable row, or as many as the limits allow.

    `checkpoint` is a directory that all executors can write to; `identity` says which search it belongs to. An
    interrupted search of the same identity goes on after its last complete level. Raises CheckpointError.
    """
    return _SparkSearch(spark, system, checkpoint, identity).run(limits, watch)


class _SparkSearch:
    def __init__(self, spark: SparkSession, system: System, checkpoint: Path, identity: str) -> None:
        self.spark = spark
        self.system = system
        self.directory = checkpoint
        self.state = _State()
        self._claim(identity)

    def run(self, limits: Limits, watch: Watch) -> Search:
        if not self._resume():
            self._begin()
        stopped = None
        while self.state.levels[-1] and stopped is None:
            if limits.max_states is not None and sum(self.state.levels) > limits.max_states:
                stopped = Stopped.MAX_STATES
            elif watch(self._progress()):
                stopped = Stopped.ASKED
            else:
                self._next_level()
        return self._search(stopped)

    def _progress(self) -> Progress:
        levels = self.state.levels
        return Progress(len(levels) - 1, sum(levels), self.state.taken.total(), levels[-1])

    def _begin(self) -> None:
        stepper = Stepper(self.system, {})
        numbers = stepper.row(self.system.initial)
        first = self.spark.createDataFrame([(fingerprint(numbers), None, bytearray(packed(numbers)))], ROWS)
        first.write.mode("overwrite").parquet(self._rows(0))
        self._complete(1, stepper.found)

    def _next_level(self) -> None:
        level = len(self.state.levels)
        expanded = self._expand(level - 1).persist()
        try:
            report = _merged(row.report for row in expanded.where("report is not null").select("report").collect())
            candidates = expanded.where("report is null").select("fingerprint", "parent", "row")
            visited = self.spark.read.schema(ROWS).parquet(*[self._rows(done) for done in range(level)])
            distinct = candidates.dropDuplicates(["fingerprint"])
            new = distinct.join(visited.select("fingerprint"), "fingerprint", "left_anti")
            new.write.mode("overwrite").parquet(self._rows(level))
        finally:
            expanded.unpersist()
        self._complete(self.spark.read.schema(ROWS).parquet(self._rows(level)).count(), report)

    def _expand(self, level: int) -> DataFrame:
        context = self.spark.sparkContext
        # look-ups are closures, which plain pickle refuses
        shared = context.broadcast(cloudpickle.dumps((self.system, self.state.values)))  # type: ignore[no-untyped-call]
        rows = self.spark.read.schema(ROWS).parquet(self._rows(level))

        def expanded(rows: Iterable[Any]) -> Iterator[_Expanded]:
            return _expanded(Stepper(*pickle.loads(shared.value)), rows)

        # an RDD, since mapInArrow would ask for pandas; the time goes into the look-ups, not into the rows
        tasks = rows.rdd.repartition(context.defaultParallelism)
        return self.spark.createDataFrame(tasks.mapPartitions(expanded), EXPANDED)

    def _complete(self, size: int, found: Found) -> None:
        """The level is on disk; what it found is added, and the level counts from now on."""
        state = self.state
        state.levels.append(size)
        state.taken.update(found.taken)
        state.refused.update(found.refused)
        state.calls += found.calls
        state.values.update(found.values)
        for name, finding in found.findings.items():
            state.findings.setdefault(name, finding)
        temporary = self._saved.with_suffix(".part")
        temporary.write_bytes(frozen(state))
        temporary.replace(self._saved)  # at once, so that an interrupt leaves the old one or the new one

    def _rows(self, level: int) -> str:
        return str(self.directory / "rows" / f"level={level:05}")

    @property
    def _saved(self) -> Path:
        return self.directory / "state"

    def _claim(self, identity: str) -> None:
        """A directory belongs to one search; what somebody else left there is not overwritten."""
        name = self.directory / "identity"
        self.directory.mkdir(parents=True, exist_ok=True)
        if name.exists():
            if name.read_text(encoding="utf-8") != identity:
                held = name.read_text(encoding="utf-8")
                raise CheckpointError(f"{self.directory} holds another search ({held}); name another directory")
        elif any(self.directory.iterdir()):
            raise CheckpointError(f"{self.directory} is not empty and no checkpoint; name another directory")
        else:
            name.write_text(identity, encoding="utf-8")

    def _resume(self) -> bool:
        if not self._saved.exists():
            return False
        self.state = pickle.loads(self._saved.read_bytes())  # written by ourselves, for ourselves
        return True

    def _search(self, stopped: Stopped | None) -> Search:
        state = self.state
        levels = tuple(size for size in state.levels if size)
        distinct = sum(levels)
        return Search(
            stopped,
            distinct,
            state.taken.total(),
            levels,
            {chain.name: state.taken[chain.name] for chain in self.system.chains},
            {
                chain.name: tuple(state.refused[chain.name, position] for position in range(len(chain.lookups)))
                for chain in self.system.chains
            },
            {name: self._run_to(*finding) for name, finding in state.findings.items()},
            state.calls,
            distinct * (distinct - 1) / 2**65,
        )

    def _run_to(self, finding: Finding, seen_in: int, leads_to: int) -> Run:
        """Back from row to parent, then forward again by the transitions that connect them."""
        visited = self.spark.read.schema(ROWS).parquet(*[self._rows(done) for done in range(len(self.state.levels))])
        rows: list[Row] = []
        at: int | None = seen_in
        while at is not None:
            row = visited.where(F.col("fingerprint") == at).first()
            assert row is not None  # a parent is written before its children
            rows.append(tuple(self.state.values[number] for number in unpacked(row["row"])))
            at = row["parent"]
        rows.reverse()
        last = None
        if leads_to != seen_in:
            last = next(each for each in transitions(self.system, rows[-1]) if finding in each.findings)
        return run_through(self.system, rows, last, finding)


def _expanded(stepper: Stepper, rows: Iterable[Any]) -> Iterator[_Expanded]:
    """The successors of the rows of one task, each once; at the end one row with the task's report."""
    seen: set[int] = set()
    for row in rows:
        at = row["fingerprint"]
        for after in stepper.successors(unpacked(row["row"]), at):
            reached = fingerprint(after)
            if reached not in seen:
                seen.add(reached)
                yield reached, at, bytearray(packed(after)), None
    yield 0, None, None, bytearray(frozen(stepper.found))


def _merged(reports: Iterable[bytes]) -> Found:
    """What all tasks of a level found. Among findings of one property, one in a row comes before one that leads on."""
    merged = Found()
    for report in reports:
        found: Found = pickle.loads(report)  # made by our own tasks
        merged.taken.update(found.taken)
        merged.refused.update(found.refused)
        merged.values.update(found.values)
        merged.calls += found.calls
        for name, finding in found.findings.items():
            if name not in merged.findings or finding[1] == finding[2]:
                merged.findings[name] = finding
    return merged
