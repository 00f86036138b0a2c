"""`check`: recorded traces in, one verdict out.

A look at the nodes (`facts`), one shuffle of the rows as numbers in which every invariant looks for what is wrong, and
the texts of those clients alone in which something is (`judge`). What comes back to the driver is counted or bounded.
Three verdicts: `violates` when an invariant is broken in a way that is not a known failure of the run's profile;
`inconclusive` when none is, but something needed to say so is missing (rows in quarantine or gone, no checkpoint, no
event); else `conforms`.
An invariant for which not enough was observed is `not-judged`, and leaves the whole open only when it was asked for by
name.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.convergence import convergence as measured
from distro_spark.errors import UnknownInvariantError
from distro_spark.facts import Overview, overview
from distro_spark.invariants import INVARIANTS, Invariant
from distro_spark.judge import TOLD_MAX, Suspect, first_of_each_run, suspects, told, told_of_nodes
from distro_spark.load import CUT, Loaded, load
from distro_spark.replay import replay as held_against_the_model
from distro_spark.result import CheckResult, CutFile, InvariantResult, Judgement, Misfit, Verdict, Violation, violation
from distro_traces.errors import TraceError
from distro_traces.header import Header
from distro_traces.ndjson import LINE_BYTES_MAX

VIOLATIONS_MAX = 200
"""Listed per invariant; further ones are only counted."""


def check(
    session: SparkSession,
    paths: Path | str | Iterable[Path | str],
    *,
    invariants: Sequence[str] | None = None,
    allow_quarantined: bool = False,
    convergence: bool = False,
    replay: bool = False,
    line_bytes_max: int = LINE_BYTES_MAX,
) -> CheckResult:
    """Evaluate `invariants` (all that are registered, unless named) over the traces at `paths`.

    `allow_quarantined`: rows that do not fit are counted and do not make the verdict inconclusive. `convergence`:
    measure how long changes took to be everywhere, which costs a second look at every row. `replay`: hold every row
    against the model too, some 30,000 a second and core. `line_bytes_max`: a line that is longer is no event of any
    trace, and nothing of it is kept in memory. Raises the TraceError family when a trace cannot be used at all,
    UnknownInvariantError.
    """
    began = time.perf_counter()
    chosen = _chosen(invariants)
    loaded = load(session, [paths] if isinstance(paths, Path | str) else paths, line_bytes_max)
    headers = {source.header.run: source.header for source in loaded.sources}
    with _one_line_errors():
        seen = overview(loaded.rows, headers)
        loaded.refuse_too_long(seen.text_bytes)
        quarantine, cuts = _quarantine(loaded) if seen.misfits > loaded.headers else ((), _cuts_at_rest(loaded))
        judged, listed = _judged(session, loaded.events, seen, headers, chosen)
        times, changes = measured(session, loaded.events, seen) if convergence else (None, ())
        replayed = held_against_the_model(session, loaded.events, seen, headers) if replay else None
    quarantined = sum(misfit.rows for misfit in quarantine)
    missing = max(0, seen.missing - quarantined)
    reasons = tuple(_doubts(seen, 0 if allow_quarantined else quarantined, missing, chosen, invariants or ()))
    if replayed is not None and replayed.undecided:
        reasons += (
            f"{replayed.undecided} rows could not be held against the model: what came before was not observed",
        )
    return CheckResult(
        verdict="violates" if replayed is not None and replayed.rejected else _verdict(judged, reasons),
        reasons=reasons,
        runs=len(headers),
        runs_with_checkpoint=len(seen.runs) - len(seen.runs_without_checkpoint),
        events=seen.events,
        quarantined=quarantined,
        quarantine=quarantine,
        cuts=cuts,
        missing=missing,
        doubled=seen.doubled,
        invariants=judged,
        violations=listed,
        violations_left_out=sum(each.violations + each.known for each in judged) - len(listed),
        convergence=times,
        changes=changes,
        changes_left_out=0 if times is None else times.count + times.unconverged - len(changes),
        seconds=time.perf_counter() - began,
        replay=replayed,
    )


def _chosen(names: Sequence[str] | None) -> list[Invariant]:
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
) -> tuple[tuple[InvariantResult, ...], tuple[Violation, ...]]:
    """What each invariant found, and the violations that are listed."""
    began = time.perf_counter()
    found: defaultdict[str, list[Suspect]] = defaultdict(list)
    for suspect in suspects(session, events, seen, chosen) if seen.client_rows else ():
        found[list(INVARIANTS)[suspect.invariant]].append(suspect)
    listed = {name: first_of_each_run([s for s in each if s.key is not None], TOLD_MAX) for name, each in found.items()}
    profiles = {run: header.profile for run, header in headers.items()}
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    if found:
        wanted = [suspect for each in listed.values() for suspect in each]
        for row in told(session, events, seen, profiles, wanted).toArrow().to_pylist():
            rows[row["invariant"]].append(row)
    for row in told_of_nodes(seen, profiles, chosen):
        rows[row["invariant"]].append(row)
    seconds = (time.perf_counter() - began) / len(chosen)
    results, violations = [], []
    for each in chosen:
        clients = sum(suspect.run if suspect.key is None else 1 for suspect in found[each.name])
        not_told = clients - len(listed.get(each.name, ()))
        result = _result(each, rows[each.name], clients, not_told, seen, profiles, seconds)
        results.append(result)
        violations += _in_order(rows[each.name])[:VIOLATIONS_MAX]
    return tuple(results), tuple(violation(row) for row in violations)


def _result(
    invariant: Invariant,
    rows: Sequence[Mapping[str, Any]],
    clients: int,
    not_told: int,
    seen: Overview,
    profiles: Mapping[str, str],
    seconds: float,
) -> InvariantResult:
    known = sum(row["count"] for row in rows if row["known"] is not None)
    count = sum(row["count"] for row in rows) - known + not_told
    undecided = seen.undecided(invariant.name)
    verdict = _judgement(invariant, seen, profiles, count, known)
    return InvariantResult(invariant.name, invariant.text, verdict, count, known, seconds, clients, undecided)


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


def _doubts(
    seen: Overview, quarantined: int, missing: int, chosen: Sequence[Invariant], named: Sequence[str]
) -> Iterator[str]:
    if seen.events == 0:
        yield "there is no event"
    if quarantined:
        yield f"{quarantined} rows do not fit the schema"
    if missing:
        yield f"{missing} rows are missing: the sequence numbers have gaps"
    if seen.doubled:
        yield (
            f"{seen.doubled} rows come twice: the same node and sequence number (a file read twice, or two nodes of "
            "one name); one of each was taken"
        )
    blind = [each.name for each in chosen if each.needs_checkpoint]
    without = seen.runs_without_checkpoint
    if blind and seen.events and without:
        which = f"{len(without)} of {len(seen.runs)} runs, {without[0]} for one, have no checkpoint"
        whole = len(without) == len(seen.runs)
        yield f"{', '.join(blind)} cannot be judged: {'no run has a checkpoint' if whole else which}"
    for each in chosen:
        if each.name in named and seen.nodes and seen.undecided(each.name) == len(seen.nodes):
            yield f"{each.name} cannot be judged: it needs {each.needs}, which was not observed"


def _verdict(results: Sequence[InvariantResult], doubts: tuple[str, ...]) -> Verdict:
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
