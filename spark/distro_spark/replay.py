"""`check --replay`: every row a step of the model, as `validate` asks of one run, on as many machines as there are.

Almost every rule reads the slice of one client (`distro_spark.validation`). So the clients of a run are dealt out to
tasks; each of these gets the run's rows about no client too (starts, stops, loads, faults of links), of which there are
few, and judges its clients side by side. What is wrong with a recording itself `check` says for every trace
(`spoiled`); where rows are missing, nothing is rejected for want of one. A client that is rejected is not judged any
further; the others are.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from distro_model.profiles import profile_named
from distro_spark.facts import Overview
from distro_spark.result import EventReference, Rejected, Replay
from distro_spark.validation.validate import Slices
from distro_spark.validation.verdict import Rejection
from distro_traces.event import COLUMNS, Event
from distro_traces.exports.causal import causal_order
from distro_traces.header import Header
from distro_traces.parquet import event_of

REPLAY_ROWS = 100_000
"""So many rows of a task are in memory at once, some 50 MB; more when they are of one client."""

REJECTED_MAX = 200
"""So many are listed, of each task and of all; further ones are counted."""

_TEXTS = ("run", "client", "node", "kind", "message", "guards")
_NUMBERS = ("seq", "at_ms", "rejected", "undecided")
_FOUND = pa.schema([*((name, pa.string()) for name in _TEXTS), *((name, pa.int64()) for name in _NUMBERS)])
_DDL = ", ".join(f"{field.name} {'string' if field.name in _TEXTS else 'long'}" for field in _FOUND)


def replay(session: SparkSession, events: DataFrame, seen: Overview, headers: Mapping[str, Header]) -> Replay:
    """Raises what `profile_named` does, before any job runs, when a run is of a release that nobody knows."""
    for header in headers.values():
        profile_named(header.profile)
    of_nobody: defaultdict[str, list[Event]] = defaultdict(list)
    for row in events.where("client is null").select(*COLUMNS).toArrow().to_pylist():
        of_nobody[row["run"]].append(event_of(row))
    gaps = {node.run for node in seen.nodes if node.last_seq > node.different}
    headers = {run: header.with_gaps() if run in gaps else header for run, header in headers.items()}
    parts = max(1, -(-seen.client_rows // REPLAY_ROWS))
    rows = events.where("client is not null").select(*COLUMNS).repartition(parts, "run", "client")
    judge = _judging(session, headers, of_nobody, _ends_ms(seen))
    found = rows.sortWithinPartitions("run").mapInArrow(judge, _DDL).toArrow().to_pylist()
    return _replay(found)


def _ends_ms(seen: Overview) -> dict[str, int]:
    ends: dict[str, int] = {}
    for node in seen.nodes:
        ends[node.run] = max(ends.get(node.run, 0), node.last_at_ms)
    return ends


Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _judging(
    session: SparkSession,
    headers: Mapping[str, Header],
    of_nobody: Mapping[str, Sequence[Event]],
    ends_ms: Mapping[str, int],
) -> Batches:
    shared = session.sparkContext.broadcast((dict(headers), dict(of_nobody), dict(ends_ms)))

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        headers, of_nobody, ends_ms = shared.value
        for run, own in _run_by_run(batches):
            slices = Slices(headers[run], profile_named(headers[run].profile))
            once = {(event.node, event.seq): event for event in (*of_nobody.get(run, ()), *own)}
            rejected = list(slices.rejections(causal_order(once.values()), until_ms=ends_ms[run]))
            lines = [_line(run, rejection) for rejection in rejected[:REJECTED_MAX]]
            clients = sum(rejection.event.client is not None for rejection in rejected)
            lines.append({"run": run, "rejected": clients, "undecided": slices.undecided})
            yield pa.RecordBatch.from_pylist(lines, schema=_FOUND)

    return judge


def _run_by_run(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, list[Event]]]:
    own: list[Event] = []
    for batch in batches:
        for row in batch.to_pylist():
            if own and own[-1].run != row["run"]:
                yield own[-1].run, own
                own = []
            own.append(event_of(row))
    if own:
        yield own[-1].run, own


def _line(run: str, rejection: Rejection) -> dict[str, object]:
    event = rejection.event
    same = {name: getattr(event, name) for name in ("client", "node", "seq", "at_ms", "kind", "message")}
    return {**same, "run": run, "guards": json.dumps([str(candidate) for candidate in rejection.candidates])}


def _replay(found: Sequence[Mapping[str, Any]]) -> Replay:
    """What is about no client every task says, who each had the same rows of it."""
    listed = {_rejected(row) for row in found if row["guards"] is not None}
    of_nobody = sum(each.client is None for each in listed)
    rejected = _sum(found, "rejected") + of_nobody
    ordered = sorted(listed, key=lambda each: (each.run, each.event.at_ms, each.client or "", each.event.seq))
    shown = tuple(ordered[:REJECTED_MAX])
    return Replay(rejected, _sum(found, "undecided"), shown, rejected - len(shown))


def _sum(found: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(row[name] or 0 for row in found)


def _rejected(row: Mapping[str, Any]) -> Rejected:
    event = EventReference(*(row[name] for name in ("node", "seq", "at_ms", "kind", "message")))
    return Rejected(row["run"], row["client"], event, tuple(json.loads(row["guards"])))
