"""`check`: recorded traces in, one verdict out.

The rows are parsed once, shuffled once by (run, client) and kept; every invariant and the convergence times work on
that. What comes back to the driver is counted or bounded. Three verdicts: `violates` when an invariant is broken in a
way that is not a known failure of the run's profile; `inconclusive` when none is, but something needed to say so is
missing (rows in quarantine or gone, no checkpoint, no event); else `conforms`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.convergence import convergence, slowest, summary
from distro_spark.errors import UnknownInvariantError
from distro_spark.history import Trace, is_one_of, stretches
from distro_spark.invariants import INVARIANTS, Invariant
from distro_spark.known import with_known
from distro_spark.load import CUT, Loaded, load
from distro_spark.result import (
    CheckResult,
    CutFile,
    InvariantResult,
    Judgement,
    Misfit,
    Verdict,
    Violation,
    change_time,
    violation,
)
from distro_traces.errors import TraceError
from distro_traces.event import COLUMNS, Kind

VIOLATIONS_MAX = 200
"""Listed per invariant; further ones are only counted."""

CHANGES_MAX = 200


def check(
    session: SparkSession,
    paths: Path | str | Iterable[Path | str],
    *,
    invariants: Sequence[str] | None = None,
    allow_quarantined: bool = False,
) -> CheckResult:
    """Evaluate `invariants` (all that are registered, unless named) over the traces at `paths`.

    `allow_quarantined`: rows that do not fit are counted and do not make the verdict inconclusive. Raises the
    TraceError family when a trace cannot be used at all, UnknownInvariantError.
    """
    began = time.perf_counter()
    chosen = _chosen(invariants)
    loaded = load(session, [paths] if isinstance(paths, Path | str) else paths)
    with _one_line_errors(), _kept(loaded) as (trace, misfits):
        overview = _overview(trace.events)
        misfit_rows = int(misfits.get["misfits"])
        quarantine, cuts = _quarantine(loaded) if misfit_rows > loaded.headers else ((), _cuts_at_rest(loaded))
        judged = [_judge(each, trace, overview) for each in chosen]
        times = slowest(convergence(trace)).persist()
        totals = summary(times)
        changes = times.orderBy(F.desc_nulls_first("ms"), "run", "event.at_ms", "client").limit(CHANGES_MAX).collect()
        times.unpersist()
    quarantined = sum(misfit.rows for misfit in quarantine)
    missing = max(0, overview.gaps - quarantined)
    reasons = tuple(_doubts(overview, 0 if allow_quarantined else quarantined, missing, chosen))
    return CheckResult(
        verdict=_verdict([result for result, _ in judged], reasons),
        reasons=reasons,
        runs=len(loaded.sources),
        runs_with_checkpoint=overview.runs - len(overview.runs_without_checkpoint),
        events=overview.events,
        quarantined=quarantined,
        quarantine=quarantine,
        cuts=cuts,
        missing=missing,
        invariants=tuple(result for result, _ in judged),
        violations=tuple(violation for _, listed in judged for violation in listed),
        violations_left_out=sum(result.violations + result.known - len(listed) for result, listed in judged),
        convergence=totals,
        changes=tuple(change_time(row) for row in changes),
        changes_left_out=totals.count + totals.unconverged - len(changes),
        seconds=time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True)
class _Overview:
    events: int
    gaps: int  # rows that the sequence numbers promise and the trace has not
    runs: int
    runs_without_checkpoint: tuple[str, ...]
    profiles: tuple[str, ...]


def _chosen(names: Sequence[str] | None) -> list[Invariant]:
    unknown = [name for name in names or () if name not in INVARIANTS]
    if unknown:
        raise UnknownInvariantError(f"no invariant {', '.join(unknown)}; there are {', '.join(INVARIANTS)}")
    return [INVARIANTS[name] for name in names or INVARIANTS]


@contextmanager
def _kept(loaded: Loaded) -> Iterator[tuple[Trace, Observation]]:
    """The trace, lying together by (run, client), and the count of all other rows once a job has run over them."""
    observation = Observation("rows")
    rows = loaded.rows.observe(observation, F.count_if(F.col("reason").isNotNull()).alias("misfits"))
    events = rows.where("reason is null").select(*COLUMNS, "profile").repartition("run", "client").persist()
    history = stretches(events).persist()
    try:
        yield Trace(events, history), observation
    finally:
        history.unpersist()
        events.unpersist()


def _overview(events: DataFrame) -> _Overview:
    by_node = events.groupBy("run", "node").agg(
        F.count("*").alias("rows"),
        F.max("seq").alias("last"),
        F.max(is_one_of(Kind.CHECKPOINT)).alias("checked"),
        F.first("profile").alias("profile"),
    )
    by_run = by_node.groupBy("run", "profile").agg(
        F.sum("rows").alias("events"),
        F.sum(F.greatest(F.col("last") - F.col("rows"), F.lit(0))).alias("gaps"),
        F.max("checked").alias("checked"),
    )
    rows = by_run.collect()
    return _Overview(
        sum(row["events"] for row in rows),
        sum(row["gaps"] for row in rows),
        len(rows),
        tuple(sorted(row["run"] for row in rows if not row["checked"])),
        tuple(sorted({row["profile"] for row in rows})),
    )


def _quarantine(loaded: Loaded) -> tuple[tuple[Misfit, ...], tuple[CutFile, ...]]:
    """Reasons with their counts, and the cut recordings."""
    place = F.struct("file", "line")
    found = loaded.quarantine.groupBy("reason", F.when(F.col("reason") == CUT, F.col("file")).alias("cut")).agg(
        F.count("*").alias("rows"), F.min(place).alias("first")
    )
    rows = found.orderBy(F.desc("rows"), "reason").collect()
    misfits = tuple(
        Misfit(row["reason"], row["rows"], row["first"]["file"], row["first"]["line"])
        for row in rows
        if row["cut"] is None
    )
    cuts = tuple(CutFile(row["cut"], row["first"]["line"]) for row in rows if row["cut"] is not None)
    return misfits, cuts + _cuts_at_rest(loaded)


def _cuts_at_rest(loaded: Loaded) -> tuple[CutFile, ...]:
    return tuple(CutFile(str(source.path), source.cut.line) for source in loaded.sources if source.cut is not None)


def _judge(invariant: Invariant, trace: Trace, overview: _Overview) -> tuple[InvariantResult, list[Violation]]:
    began = time.perf_counter()
    violations = with_known(invariant.violations(trace), trace.events)
    in_order = violations.orderBy("known", "run", "first_event.at_ms", "client", "node")  # news first
    listed = [violation(row) for row in in_order.limit(VIOLATIONS_MAX + 1).collect()]
    known = sum(each.known is not None for each in listed)
    count = len(listed) - known
    if len(listed) > VIOLATIONS_MAX:
        totals = violations.agg(F.count("*"), F.count("known")).collect()[0]
        count, known = totals[0] - totals[1], totals[1]
    seconds = time.perf_counter() - began
    result = InvariantResult(
        invariant.name, invariant.text, _judgement(invariant, overview, count, known), count, known, seconds
    )
    return result, listed[:VIOLATIONS_MAX]


def _judgement(invariant: Invariant, overview: _Overview, violations: int, known: int) -> Judgement:
    if violations:
        return "violates"
    if overview.events and not any(map(invariant.applies_to, overview.profiles)):
        return "not-applicable"
    if overview.events == 0 or (invariant.needs_checkpoint and overview.runs_without_checkpoint):
        return "not-judged"
    return "known" if known else "conforms"


def _doubts(overview: _Overview, quarantined: int, missing: int, chosen: list[Invariant]) -> Iterator[str]:
    if overview.events == 0:
        yield "there is no event"
    if quarantined:
        yield f"{quarantined} rows do not fit the schema"
    if missing:
        yield f"{missing} rows are missing: the sequence numbers have gaps"
    blind = [each.name for each in chosen if each.needs_checkpoint]
    without = overview.runs_without_checkpoint
    if blind and overview.events and without:
        which = f"{len(without)} of {overview.runs} runs, {without[0]} for one, have no checkpoint"
        whole = len(without) == overview.runs
        yield f"{', '.join(blind)} cannot be judged: {'no run has a checkpoint' if whole else which}"


def _verdict(results: list[InvariantResult], doubts: tuple[str, ...]) -> Verdict:
    if any(result.violations for result in results):
        return "violates"
    return "inconclusive" if doubts else "conforms"


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """A file that was whole at the start of the job and is not in its midst: the user's matter, not ours."""
    try:
        yield
    except PySparkException as error:
        if not (error.getCondition() or "").startswith("FAILED_READ_FILE"):
            raise
        said = str(error).splitlines()[0]
        raise TraceError(f"a trace cannot be read to its end ({said}); record or compact it again") from error
