"""`check`: recorded traces in, one verdict out.

The nodes are measured first (`cluster`); then every invariant reads all rows of some whole clients at a time
(`violations`). An engine supplies the rows: this process (`local`) or Spark (`on_spark`). This module turns the results
of either into the verdict.
Three verdicts: `violates` when an invariant is violated in a way that is not a known failure of the run's profile;
`inconclusive` when none is, but evidence is missing (rows in quarantine or missing, no checkpoint, no event), or a run
is not judged since its recording is invalid, or there were too many violations to be explained; else `conforms`.
An invariant for which not enough was observed is `not-judged`; it makes the verdict `inconclusive` only when it was
requested by name, or if no other one was judged of that run either. The reasons are in `doubts`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from distro_spark.cluster import Cluster, cluster_of
from distro_spark.convergence import COLUMNS as LAGS
from distro_spark.convergence import distribution, lags
from distro_spark.doubts import (
    doubts,
    of_invalid,
    of_results,
    with_unreached_checkpoint,
    without_checkpoint,
    without_events,
)
from distro_spark.engine import PART_ROWS, Columns, Engine
from distro_spark.errors import UnknownInvariantError
from distro_spark.invariants import INVARIANTS, NEEDS
from distro_spark.invariants.registry import Invariant
from distro_spark.responsibility import COLUMNS as INTERVALS
from distro_spark.responsibility import MEASURED, intervals, responsibility_of
from distro_spark.result import (
    ChangeTime,
    CheckResult,
    ClaimedInterval,
    InvariantResult,
    Judgement,
    Replay,
    Responsibility,
    Verdict,
    Violation,
    violation,
)
from distro_spark.sinks import Sink
from distro_spark.tally import Tally, tallied, violations
from distro_spark.timeline import Timeline, timeline
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording, started_while_up

OWNER = "INV-OWNER"


def check(
    engine: Engine,
    *,
    invariants: Sequence[str] | None = None,
    allow_quarantined: bool = False,
    convergence: bool = False,
    responsibility: bool = False,
    replay: bool = False,
    sinks: Sequence[Sink] = (),
) -> CheckResult:
    """Evaluate `invariants` (all that are registered, unless named) over the traces of an engine.

    `allow_quarantined`: rows that do not fit are counted and do not make the verdict inconclusive. `convergence`:
    measure how long changes took to be everywhere. `responsibility`: for how long none, one or several members claimed
    each client; INV-OWNER is evaluated too, whichever are named. `replay`: check every row against the model too, some
    30,000 a second and core. `sinks` get every
    violation. Raises the TraceError family when a trace cannot be used at all, UnknownInvariantError, SinkError.
    """
    began = time.perf_counter()
    chosen = chosen_invariants([*invariants, OWNER] if invariants and responsibility else invariants)
    names = [each.name for each in chosen]
    aside = engine.set_aside()
    cluster, invalid = surveyed(engine)
    good = cluster.without(invalid)
    seconds = dict.fromkeys(names, 0.0)
    found = tallied(violations(engine, good, names, seconds), good, sinks)
    times, changes = distribution(_measured(engine, good, lags, LAGS)) if convergence else (None, ())
    by_model = _replay(engine, good) if replay else None
    results = tuple(_result(each, found, good, seconds[each.name]) for each in chosen)
    claims = None
    if responsibility:
        claims = _with_verdict(responsibility_of(_measured(engine, good, intervals, INTERVALS)), results)
    listed = tuple(violation(row) for name in names for row in found.listed.filter(invariant=name).to_dicts())
    quarantined = sum(each.rows for each in aside.invalid)
    reasons = (*without_events(engine.headers, cluster), *of_invalid(invalid))
    reasons += tuple(doubts(good, 0 if allow_quarantined else quarantined, chosen, invariants or ()))
    reasons += tuple(of_results(results, found.uncovered))
    if by_model is not None and by_model.undecided:
        reasons += (
            f"{by_model.undecided} rows could not be checked against the model: the rows before them were not observed",
        )
    return CheckResult(
        verdict="violates" if by_model is not None and by_model.rejected else _verdict(results, reasons),
        reasons=reasons,
        runs=len(engine.headers),
        runs_with_checkpoint=len(cluster.of_run) - len(without_checkpoint(cluster)),
        events=int(cluster.nodes["rows"].sum()),
        quarantined=quarantined,
        quarantine=aside.invalid,
        cuts=aside.cuts,
        missing=sum(cluster.missing.values()),
        doubled=cluster.doubled,
        invariants=results,
        violations=listed,
        violations_left_out=sum(each["all"] for each in found.counts.values()) - len(listed),
        convergence=times,
        changes=changes,
        changes_left_out=0 if times is None else times.count + times.unconverged - len(changes),
        seconds=time.perf_counter() - began,
        replay=by_model,
        responsibility=claims,
        began=_began(engine.headers, (*listed, *changes, *(claims.intervals if claims else ()))),
    )


def _measured(
    engine: Engine, cluster: Cluster, measure: Callable[[Timeline], pl.DataFrame], columns: Columns
) -> Iterable[pl.DataFrame]:
    return engine.of_clients(cluster, lambda part: measure(timeline(part, cluster)), columns, PART_ROWS)


def _replay(engine: Engine, cluster: Cluster) -> Replay:
    from distro_spark.replay import REPLAY_ROWS, replayed, replaying  # noqa: PLC0415 - loads the model's clusters

    judge, columns = replaying(cluster, engine.of_nodes(cluster))
    parts = engine.of_clients(cluster, judge, columns, REPLAY_ROWS)
    return replayed([row for part in parts for row in part.to_dicts()])


def _with_verdict(measured: Responsibility, results: Iterable[InvariantResult]) -> Responsibility:
    owner = next(each for each in results if each.name == OWNER)
    return replace(measured, verdict=owner.verdict, violations=owner.violations)


def chosen_invariants(names: Sequence[str] | None) -> list[Invariant]:
    """Those of the registry that are named, or all. Raises UnknownInvariantError."""
    unknown = [name for name in names or () if name not in INVARIANTS]
    if unknown:
        raise UnknownInvariantError(f"no invariant {', '.join(unknown)}; there are {', '.join(INVARIANTS)}")
    return [INVARIANTS[name] for name in dict.fromkeys(names or INVARIANTS)]


def surveyed(engine: Engine) -> tuple[Cluster, dict[str, InvalidRecording]]:
    """What is known of the nodes of all runs, and by run the reason why it is not judged.

    Rows that are missing, beyond those that were set aside, may be the ones whose absence would be a violation."""
    cluster = cluster_of(*engine.measured(), engine.headers, {**NEEDS, **MEASURED}, engine.set_aside().of_run)
    return cluster.with_gaps(), invalid_recordings(engine, cluster)


def invalid_recordings(engine: Engine, cluster: Cluster) -> dict[str, InvalidRecording]:
    """By run the reason why it is not judged."""
    found = {**dict(_starts(cluster)), **engine.invalid(cluster)}
    return {run: found[run] for run in sorted(found)}


def _starts(cluster: Cluster) -> Iterator[tuple[str, InvalidRecording]]:
    for g, run, last, distinct in cluster.nodes.select("g", "run", "last_seq", "distinct").iter_rows():
        if cluster.headers[run].observed.lossless and last == distinct:
            start = started_while_up(cluster.of_node[g].rows)
            if start is not None:
                yield run, start


def _began(headers: Mapping[str, Header], named: Iterable[Violation | ChangeTime | ClaimedInterval]) -> dict[str, str]:
    return {run: began for run in sorted({each.run for each in named}) if (began := headers[run].began) is not None}


def _result(invariant: Invariant, found: Tally, cluster: Cluster, seconds: float) -> InvariantResult:
    name, counts = invariant.name, found.counts[invariant.name]
    known, unexplained = counts["known"], counts["unexplained"]
    count = counts["all"] - known - unexplained
    undecided = len(cluster.names) - len(cluster.judged[name])
    verdict = _judgement(invariant, cluster, count, known, unexplained + found.uncovered[name])
    return InvariantResult(
        name, invariant.text, verdict, count, known, seconds, counts["clients"], undecided, unexplained
    )


def _judgement(invariant: Invariant, cluster: Cluster, violations: int, known: int, unjudged: int) -> Judgement:
    if violations:
        return "violates"
    if cluster.names and not any(invariant.applies_to(cluster.headers[run].profile) for run in cluster.of_run):
        return "not-applicable"
    blind = not cluster.judged[invariant.name]
    without_end = invariant.needs_checkpoint and (without_checkpoint(cluster) or with_unreached_checkpoint(cluster))
    if blind or unjudged or without_end:
        return "not-judged"
    return "known" if known else "conforms"


def _verdict(results: Sequence[InvariantResult], doubts: tuple[str, ...]) -> Verdict:
    if any(result.violations for result in results):
        return "violates"
    return "inconclusive" if doubts else "conforms"
