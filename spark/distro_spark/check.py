"""`check`: recorded traces in, one verdict out.

The nodes are measured first (`cluster`); then every invariant reads all rows of some whole clients at a time
(`violations`). An engine supplies the rows: this process (`local`) or Spark (`on_spark`). This module turns the results
of either into the verdict.
Three verdicts: `violates` when an invariant is violated in a way that is not a known failure of the run's profile;
`inconclusive` when none is, but evidence is missing (rows in quarantine or missing, no checkpoint, no event), or a run
is not judged since its recording is invalid, or there were too many violations to be explained; else `conforms`.
An invariant for which not enough was observed is `not-judged`; it makes the verdict `inconclusive` only when it was
requested by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import polars as pl

from distro_spark.cluster import Cluster, cluster_of
from distro_spark.convergence import COLUMNS as LAGS
from distro_spark.convergence import distribution, lags
from distro_spark.engine import PART_ROWS, Columns, Engine
from distro_spark.errors import UnknownInvariantError
from distro_spark.invariants import INVARIANTS, NEEDS, Invariant
from distro_spark.replay import REPLAY_ROWS, replayed, replaying
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
from distro_traces.header import UNKNOWN_RELEASE, Header
from distro_traces.invalid import InvalidRecording, started_while_up
from distro_traces.invalid import doubled as doubled_rows
from distro_traces.invalid import missing as missing_rows

CHECKPOINT = (
    "a moment of rest at which all nodes should agree: simulate, test and gate record it, logs have none; "
    "for live servers, audit shows whether they agree"
)
"""Names the checkpoint that a run lacks when its end state is not judged."""

OWNER = "INV-OWNER"
INVALID_MAX = 3
"""Limit of the runs that are named with the reason why they are not judged."""


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
    missing = max(0, good.missing - quarantined)
    reasons = tuple(_of_invalid(invalid)) if cluster.names else ("there is no event",)
    reasons += tuple(_doubts(good, 0 if allow_quarantined else quarantined, missing, chosen, invariants or ()))
    reasons += tuple(_unexplained(results))
    reasons += tuple(
        f"{count} violations of {name} are not judged: in their time logs are missing that might say otherwise"
        for name, count in found.uncovered.items()
    )
    if by_model is not None and by_model.undecided:
        reasons += (
            f"{by_model.undecided} rows could not be checked against the model: the rows before them were not observed",
        )
    return CheckResult(
        verdict="violates" if by_model is not None and by_model.rejected else _verdict(results, reasons),
        reasons=reasons,
        runs=len(engine.headers),
        runs_with_checkpoint=len(cluster.of_run) - len(_without_checkpoint(cluster)),
        events=int(cluster.nodes["rows"].sum()),
        quarantined=quarantined,
        quarantine=aside.invalid,
        cuts=aside.cuts,
        missing=max(0, cluster.missing - quarantined),
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
    """What is known of the nodes of all runs, and by run the reason why it is not judged."""
    cluster = cluster_of(*engine.measured(), engine.headers, {**NEEDS, **MEASURED})
    return cluster, invalid_recordings(engine, cluster)


def invalid_recordings(engine: Engine, cluster: Cluster) -> dict[str, InvalidRecording]:
    """By run the reason why it is not judged."""
    found = {**dict(_starts(cluster)), **engine.invalid(cluster)}
    return {run: found[run] for run in sorted(found)}


def _starts(cluster: Cluster) -> Iterator[tuple[str, InvalidRecording]]:
    for g, run, last, distinct in cluster.nodes.select("g", "run", "last_seq", "distinct").iter_rows():
        if cluster.headers[run].observed.lossless and last == distinct:
            start = started_while_up(cluster.rows_of_node[g])
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
    if blind or unjudged or (invariant.needs_checkpoint and _without_checkpoint(cluster)):
        return "not-judged"
    return "known" if known else "conforms"


def _without_checkpoint(cluster: Cluster) -> list[str]:
    there = set(cluster.checks["run"])
    return [run for run in cluster.of_run if run not in there]


def _of_invalid(invalid: Mapping[str, InvalidRecording]) -> Iterator[str]:
    for run, fault in islice(invalid.items(), INVALID_MAX):
        yield f"run {run} is not judged: {fault}"
    if len(invalid) > INVALID_MAX:
        yield f"{len(invalid) - INVALID_MAX} further runs are not judged for such reasons"


def _doubts(
    cluster: Cluster, quarantined: int, missing: int, chosen: Sequence[Invariant], named: Sequence[str]
) -> Iterator[str]:
    if quarantined:
        yield f"{quarantined} rows do not fit the schema"
    if missing:
        yield missing_rows(missing)
    if cluster.doubled:
        yield doubled_rows(cluster.doubled)
    nameless = [run for run in cluster.of_run if cluster.headers[run].profile == UNKNOWN_RELEASE]
    if nameless:
        yield (
            f"{len(nameless)} of {len(cluster.of_run)} runs, {nameless[0]} for one, are not judged: their logs name "
            "no release, or several, and which failures are known depends on it; import them with --profile nacos-X.Y.Z"
        )
    blind = [each.name for each in chosen if each.needs_checkpoint]
    without = _without_checkpoint(cluster)
    if blind and without:
        which = f"{len(without)} of {len(cluster.of_run)} runs, {without[0]} for one, have no checkpoint"
        whole = len(without) == len(cluster.of_run)
        yield f"{', '.join(blind)} cannot be judged: {'no run has a checkpoint' if whole else which} ({CHECKPOINT})"
    for each in chosen:
        if each.name in named and cluster.names and not cluster.judged[each.name]:
            yield f"{each.name} cannot be judged: it needs {each.needs}, which was not observed"


def _unexplained(results: Iterable[InvariantResult]) -> Iterator[str]:
    for each in results:
        if each.unexplained:
            yield f"{each.unexplained} violations of {each.name} are too many to be compared with the known failures"


def _verdict(results: Sequence[InvariantResult], doubts: tuple[str, ...]) -> Verdict:
    if any(result.violations for result in results):
        return "violates"
    return "inconclusive" if doubts else "conforms"
