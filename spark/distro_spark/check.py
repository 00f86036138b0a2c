"""`check`: recorded traces in, one verdict out.

A look at the nodes (`facts`), one shuffle of the rows as numbers in which every invariant looks for what is wrong, and
the texts of those clients alone in which something is (`judge`). What comes back to the driver is counted or bounded.
Three verdicts: `violates` when an invariant is broken in a way that is not a known failure of the run's profile;
`inconclusive` when none is, but something needed to say so is missing (rows in quarantine or gone, no checkpoint, no
event), or a run is spoiled and was not judged; else `conforms`.
An invariant for which not enough was observed is `not-judged`, and leaves the whole open only when it was asked for by
name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.convergence import convergence as measured
from distro_spark.errors import UnknownInvariantError
from distro_spark.facts import Overview, overview
from distro_spark.invariants import INVARIANTS, Invariant
from distro_spark.judge import Found, judged
from distro_spark.load import CUT, Loaded, load
from distro_spark.replay import replay as held_against_the_model
from distro_spark.responsibility import responsibility as claimed
from distro_spark.result import (
    ChangeTime,
    CheckResult,
    ClaimedInterval,
    CutFile,
    InvariantResult,
    Judgement,
    Misfit,
    Verdict,
    Violation,
    violation,
)
from distro_spark.sinks import Sink, add_to_all
from distro_spark.spoiled import spoiled
from distro_traces.errors import TraceError
from distro_traces.header import UNKNOWN_RELEASE, Header
from distro_traces.ndjson import LINE_BYTES_MAX
from distro_traces.spoiled import Spoiled
from distro_traces.spoiled import doubled as doubled_rows
from distro_traces.spoiled import missing as missing_rows

VIOLATIONS_MAX = 200
"""Listed per invariant; further ones are only counted."""

CHECKPOINT = (
    "a moment of rest at which all nodes should agree: simulate, test and gate record it, logs have none; "
    "of live servers audit tells whether they agree"
)
"""What a run lacks whose end state is not judged."""

SPOILED_MAX = 3
"""So many runs that are not judged are named with the reason; finding its place costs a look at every row."""


def check(
    session: SparkSession,
    paths: Path | str | Iterable[Path | str],
    *,
    invariants: Sequence[str] | None = None,
    allow_quarantined: bool = False,
    convergence: bool = False,
    responsibility: bool = False,
    replay: bool = False,
    line_bytes_max: int = LINE_BYTES_MAX,
    sinks: Sequence[Sink] = (),
) -> CheckResult:
    """Evaluate `invariants` (all that are registered, unless named) over the traces at `paths`.

    `allow_quarantined`: rows that do not fit are counted and do not make the verdict inconclusive. `convergence`:
    measure how long changes took to be everywhere, which costs a second look at every row. `responsibility`: for how
    long none, one or several members claimed each client, at the same cost. `replay`: hold every row against the model
    too, some 30,000 a second and core. `line_bytes_max`: a line that is longer is no event of any
    trace, and nothing of it is kept in memory. `sinks` get every violation that is told. Raises the TraceError family
    when a trace cannot be used at all, UnknownInvariantError, SinkError.
    """
    began = time.perf_counter()
    chosen = chosen_invariants(invariants)
    for sink in sinks:
        sink.make(session)
    loaded = load(session, [paths] if isinstance(paths, Path | str) else paths, line_bytes_max)
    headers = {source.header.run: source.header for source in loaded.sources}
    with one_line_errors(), loaded.parsed_once():
        seen = overview(loaded.rows, headers)
        loaded.refuse_too_long(seen.text_bytes)
        quarantine, cuts = _quarantine(loaded) if seen.misfits > loaded.headers else ((), _cuts_at_rest(loaded))
        unjudged = spoiled(loaded.rows, seen, headers)
        events, good = loaded.events.where(~F.col("run").isin(*unjudged)), seen.without(unjudged, headers)
        results, listed = _judged(session, events, good, headers, chosen, sinks)
        times, changes = measured(session, events, good) if convergence else (None, ())
        claims = claimed(session, events, good, headers) if responsibility else None
        replayed = held_against_the_model(session, events, good, headers) if replay else None
        reasons = tuple(_of_spoiled(loaded, unjudged)) if seen.events else ("there is no event",)
    quarantined = sum(misfit.rows for misfit in quarantine)
    missing = max(0, good.missing - quarantined)
    reasons += tuple(_doubts(good, 0 if allow_quarantined else quarantined, missing, chosen, invariants or ()))
    if replayed is not None and replayed.undecided:
        reasons += (
            f"{replayed.undecided} rows could not be held against the model: what came before was not observed",
        )
    return CheckResult(
        verdict="violates" if replayed is not None and replayed.rejected else _verdict(results, reasons),
        reasons=reasons,
        runs=len(headers),
        runs_with_checkpoint=len(seen.runs) - len(seen.runs_without_checkpoint),
        events=seen.events,
        quarantined=quarantined,
        quarantine=quarantine,
        cuts=cuts,
        missing=max(0, seen.missing - quarantined),
        doubled=seen.doubled,
        invariants=results,
        violations=listed,
        violations_left_out=sum(each.violations + each.known for each in results) - len(listed),
        convergence=times,
        changes=changes,
        changes_left_out=0 if times is None else times.count + times.unconverged - len(changes),
        seconds=time.perf_counter() - began,
        replay=replayed,
        responsibility=claims,
        began=_began(headers, (*listed, *changes, *(claims.intervals if claims else ()))),
    )


def _began(headers: Mapping[str, Header], named: Iterable[Violation | ChangeTime | ClaimedInterval]) -> dict[str, str]:
    return {run: began for run in sorted({each.run for each in named}) if (began := headers[run].began) is not None}


def chosen_invariants(names: Sequence[str] | None) -> list[Invariant]:
    """Those of the registry that are named, or all. Raises UnknownInvariantError."""
    unknown = [name for name in names or () if name not in INVARIANTS]
    if unknown:
        raise UnknownInvariantError(f"no invariant {', '.join(unknown)}; there are {', '.join(INVARIANTS)}")
    return [INVARIANTS[name] for name in names or INVARIANTS]


def _judged(
    session: SparkSession,
    events: DataFrame,
    seen: Overview,
    headers: Mapping[str, Header],
    chosen: Sequence[Invariant],
    sinks: Sequence[Sink],
) -> tuple[tuple[InvariantResult, ...], tuple[Violation, ...]]:
    """What each invariant found, and the violations that are listed."""
    began = time.perf_counter()
    profiles = {run: header.profile for run, header in headers.items()}
    found = judged(session, events, seen, profiles, chosen)
    add_to_all(session, sinks, [row for each in found.values() for row in each.rows])
    seconds = (time.perf_counter() - began) / len(chosen)
    results = tuple(_result(each, found[each.name], seen, profiles, seconds) for each in chosen)
    violations = [row for each in chosen for row in _in_order(found[each.name].rows)[:VIOLATIONS_MAX]]
    return results, tuple(violation(row) for row in violations)


def _result(
    invariant: Invariant, found: Found, seen: Overview, profiles: Mapping[str, str], seconds: float
) -> InvariantResult:
    known = sum(row["count"] for row in found.rows if row["known"] is not None)
    count = sum(row["count"] for row in found.rows) - known + found.not_told
    undecided = seen.undecided(invariant.name)
    verdict = _judgement(invariant, seen, profiles, count, known)
    return InvariantResult(invariant.name, invariant.text, verdict, count, known, seconds, found.clients, undecided)


def _judgement(
    invariant: Invariant, seen: Overview, profiles: Mapping[str, str], violations: int, known: int
) -> Judgement:
    if violations:
        return "violates"
    if seen.events and not any(invariant.applies_to(profiles[run]) for run in seen.runs):
        return "not-applicable"
    nobody = seen.undecided(invariant.name) == len(seen.nodes)
    if nobody or (invariant.needs_checkpoint and seen.runs_without_checkpoint):
        return "not-judged"
    return "known" if known else "conforms"


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """News first."""
    return sorted(
        rows,
        key=lambda row: (row["known"] or "", row["run"], row["first_at_ms"], row["client"], row["node"]),
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
    return tuple(CutFile(source.path, source.cut.line) for source in loaded.sources if source.cut is not None)


def _of_spoiled(loaded: Loaded, unjudged: Mapping[str, Spoiled]) -> Iterator[str]:
    for run, fault in islice(unjudged.items(), SPOILED_MAX):
        yield f"run {run} is not judged: {fault} ({loaded.place_of(run, fault.node, fault.seq)})"
    if len(unjudged) > SPOILED_MAX:
        yield f"{len(unjudged) - SPOILED_MAX} further runs are not judged for such reasons"


def _doubts(
    seen: Overview, quarantined: int, missing: int, chosen: Sequence[Invariant], named: Sequence[str]
) -> Iterator[str]:
    if quarantined:
        yield f"{quarantined} rows do not fit the schema"
    if missing:
        yield missing_rows(missing)
    if seen.doubled:
        yield doubled_rows(seen.doubled)
    nameless = [run for run in seen.runs if seen.builds[run][1] == UNKNOWN_RELEASE]
    if nameless:
        yield (
            f"{len(nameless)} of {len(seen.runs)} runs, {nameless[0]} for one, are not judged: their logs do not name "
            "the release, and which failures are known depends on it; import them with --profile nacos-X.Y.Z"
        )
    blind = [each.name for each in chosen if each.needs_checkpoint]
    without = seen.runs_without_checkpoint
    if blind and seen.events and without:
        which = f"{len(without)} of {len(seen.runs)} runs, {without[0]} for one, have no checkpoint"
        whole = len(without) == len(seen.runs)
        yield f"{', '.join(blind)} cannot be judged: {'no run has a checkpoint' if whole else which} ({CHECKPOINT})"
    for each in chosen:
        if each.name in named and seen.nodes and seen.undecided(each.name) == len(seen.nodes):
            yield f"{each.name} cannot be judged: it needs {each.needs}, which was not observed"


def _verdict(results: Sequence[InvariantResult], doubts: tuple[str, ...]) -> Verdict:
    if any(result.violations for result in results):
        return "violates"
    return "inconclusive" if doubts else "conforms"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A file that is whole at its ends and not in its midst: the user's matter, not ours."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = next((line for line in str(error).splitlines() if "FAILED_READ_FILE" in line), None)
        if said is None:
            raise
        said = said.partition("FAILED_READ_FILE")[2].partition("] ")[2]
        raise TraceError(f"a trace cannot be read to its end ({said}); record or compact it again") from error
