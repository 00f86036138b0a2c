"""From events to violations, in two steps: find whom something is wrong with, then tell what, of them alone.

The finders see every row once, as numbers, together by client and in order. They give for each invariant how many
clients they found and the first of these; the tellers get the rows of those with their texts. So a healthy trace costs
one shuffle of numbers, and a sick one as much more as is listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.compiling import suited
from distro_spark.encoding import client_key, numbered
from distro_spark.facts import Overview
from distro_spark.invariants import INVARIANTS, Invariant
from distro_spark.rows import Facts, Rows, past_of, rows_of, whole_clients
from distro_spark.story import CALLS, RESETS, Finding, Row, Story, Told
from distro_spark.violations import VIOLATION_COLUMNS, violation_row
from distro_traces.event import Kind

TOLD_MAX = 1000
"""So many clients of each invariant are told at most; further ones are counted."""

CLIENT_MAX = 200
"""So many violations of one invariant by one client, and as many that one known bug excuses."""

PARTITION_ROWS = 1_000_000
_TEXTS = ("run", "client", *(name for name in Row._fields if name not in ("seq", "at_ms")))
_FOUND = pa.schema([("invariant", pa.int64()), ("key", pa.int64()), ("run", pa.int64()), ("at_ms", pa.int64())])


class Suspect(NamedTuple):
    """A client in which an invariant found something, the first of it at that time; without a key: so many more."""

    invariant: int
    key: int | None
    run: int
    at_ms: int


class Found(NamedTuple):
    """What one invariant found: violations in the columns of `VIOLATION_COLUMNS`, in how many clients, and in how many
    of these it is not told."""

    rows: list[dict[str, Any]]
    clients: int
    not_told: int


def judged(
    session: SparkSession, events: DataFrame, seen: Overview, profiles: Mapping[str, str], chosen: Sequence[Invariant]
) -> dict[str, Found]:
    """By invariant what it finds in `events`, of which `seen` is the overview; `profiles` by run."""
    found: defaultdict[str, list[Suspect]] = defaultdict(list)
    for suspect in suspects(session, events, seen, chosen) if seen.client_rows else ():
        found[list(INVARIANTS)[suspect.invariant]].append(suspect)
    wanted = {name: first_of_each_run([s for s in each if s.key is not None], TOLD_MAX) for name, each in found.items()}
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    if found:
        every = [suspect for each in wanted.values() for suspect in each]
        for row in told(session, events, seen, profiles, every).toArrow().to_pylist():
            rows[row["invariant"]].append(row)
    for row in told_of_nodes(seen, profiles, chosen):
        rows[row["invariant"]].append(row)
    clients = {name: sum(suspect.run if suspect.key is None else 1 for suspect in each) for name, each in found.items()}
    return {
        name: Found(rows[name], clients.get(name, 0), clients.get(name, 0) - len(wanted.get(name, ())))
        for name in (each.name for each in chosen)
    }


def suspects(session: SparkSession, events: DataFrame, seen: Overview, chosen: Sequence[Invariant]) -> list[Suspect]:
    """One scan and one shuffle of `events`. At most `TOLD_MAX` of each invariant have a key; the rest is a number."""
    rows = together(numbered(events), seen.client_rows)
    found = rows.mapInArrow(_finding(session, seen.facts, chosen), _ddl(_FOUND)).toArrow()
    return [Suspect(*(row[name] for name in _FOUND.names)) for row in found.to_pylist()]


def together(rows: DataFrame, count: int) -> DataFrame:
    """The rows of each client side by side and in order; as many partitions as their number asks for."""
    partitions = max(1, -(-count // PARTITION_ROWS))
    if partitions > 1:
        # With few, let there be work for every core.
        partitions = max(partitions, rows.sparkSession.sparkContext.defaultParallelism)
    return rows.repartition(partitions, "key").sortWithinPartitions("key", "node", "seq")


Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _finding(session: SparkSession, facts: Facts, chosen: Sequence[Invariant]) -> Batches:
    shared = session.sparkContext.broadcast(facts)
    names = [each.name for each in chosen]

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        facts = shared.value
        found: dict[str, list[Suspect]] = {name: [] for name in names}
        left_out = dict.fromkeys(names, 0)
        for rows in whole_clients(batches, facts.node):
            for name, (_, last) in findings(rows, facts, names).items():
                at = last[np.unique(rows.key[last], return_index=True)[1]]
                number = INVARIANT_NUMBERS[name]
                news = [Suspect(number, int(rows.key[i]), int(facts.run[rows.node[i]]), int(rows.at_ms[i])) for i in at]
                kept = first_of_each_run(found[name] + news, TOLD_MAX)
                left_out[name] += len(found[name]) + len(news) - len(kept)
                found[name] = kept
        rest = [Suspect(INVARIANT_NUMBERS[name], None, count, 0) for name, count in left_out.items() if count]
        listed = [suspect for suspects in found.values() for suspect in suspects] + rest
        yield pa.RecordBatch.from_pylist([suspect._asdict() for suspect in listed], schema=_FOUND)

    return find


INVARIANT_NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(INVARIANTS)}


def findings(rows: Rows, facts: Facts, names: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """By invariant the positions of the first and the last events that it found."""
    size = len(rows.seq)
    past = suited(past_of, size)(rows, facts)
    first, last = np.empty(size, np.int64), np.empty(size, np.int64)
    found = {}
    with np.errstate(over="ignore"):  # sums of hashes, as they are when compiled
        for name in names:
            find = INVARIANTS[name].find
            decides = facts.decides[INVARIANT_NUMBERS[name]]
            count = suited(find, size)(rows, facts, past, decides, first, last) if find else 0
            if count:
                found[name] = (first[:count].copy(), last[:count].copy())
    return found


def first_of_each_run(found: Sequence[Suspect], limit: int) -> list[Suspect]:
    """The earliest of each run first, then the second of each, and so on: no run is drowned by another."""
    if len(found) <= limit:
        return list(found)
    turns: defaultdict[int, int] = defaultdict(int)
    ranked = []
    for suspect in sorted(found, key=lambda suspect: suspect.at_ms):
        ranked.append((turns[suspect.run], suspect))
        turns[suspect.run] += 1
    ranked.sort(key=lambda pair: (pair[0], pair[1].at_ms))
    return [suspect for _, suspect in ranked[:limit]]


def told(
    session: SparkSession,
    events: DataFrame,
    seen: Overview,
    profiles: Mapping[str, str],
    wanted: Iterable[Suspect],
) -> DataFrame:
    """The violations of the suspects, in the columns of `VIOLATION_COLUMNS`."""
    names: defaultdict[int, list[str]] = defaultdict(list)
    for suspect in wanted:
        if suspect.key is not None:
            names[suspect.key].append(list(INVARIANTS)[suspect.invariant])
    keys = session.createDataFrame(pa.table({"suspect": pa.array(list(names), pa.int64())}))
    their = events.where("client is not null").join(F.broadcast(keys), client_key() == F.col("suspect"), "left_semi")
    texts = [F.col(name).alias(f"text_{name}") for name in _TEXTS]
    rows = together(numbered(their, *texts), len(names) * 1000)
    return rows.mapInArrow(_telling(session, seen, profiles, dict(names)), _ddl(VIOLATION_COLUMNS))


def _telling(
    session: SparkSession, seen: Overview, profiles: Mapping[str, str], names: Mapping[int, Sequence[str]]
) -> Batches:
    shared = session.sparkContext.broadcast((seen, dict(profiles), dict(names)))

    def tell_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen, profiles, names = shared.value
        for table in _client_by_client(batches):
            client = int(table["key"][0].as_py())
            story = story_of(table, seen, profiles)
            rows = rows_of(table.select(_NUMBERS).to_batches(), seen.facts.node)
            lines = []
            for name, (first, last) in findings(rows, seen.facts, names[client]).items():
                pairs = [_finding_in(story, rows, seen, *pair) for pair in zip(first, last, strict=True)]
                tell = INVARIANTS[name].tell
                assert tell is not None, f"{name} finds something and cannot tell it"
                lines += listed(name, story, tell(story, pairs))
            yield pa.RecordBatch.from_pylist(lines, schema=VIOLATION_COLUMNS)

    return tell_all


def _finding_in(story: Story, rows: Rows, seen: Overview, first: int, last: int) -> Finding:
    def row(i: int) -> Row:
        return story.at(seen.nodes[rows.node[i]].name, int(rows.seq[i]))

    return Finding(None if first < 0 else row(first), row(last))


def told_of_nodes(seen: Overview, profiles: Mapping[str, str], chosen: Sequence[Invariant]) -> list[dict[str, Any]]:
    """The violations that the nodes' own rows show, of which there are few: here and now."""
    lines = []
    for run, marks in seen.marks.items():
        judged = {name: set(seen.decided(run, name)) for name in (each.name for each in chosen)}
        for each in chosen:
            if each.of_nodes:
                of_run = {node: rows for node, rows in marks.items() if node in judged[each.name]}
                lines += listed(each.name, Story(run, profiles[run], "", (), {}, {}), each.of_nodes(of_run))
    return lines


def listed(name: str, story: Story, found: Iterator[Told]) -> list[dict[str, Any]]:
    """The first ones of what is news and of each known bug; the last of these counts for the rest. No bug excuses what
    was not looked at."""
    lines: list[dict[str, Any]] = []
    alike: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        line = violation_row(name, story, each)
        before = alike[line["known"]]
        if len(before) == CLIENT_MAX:
            before[-1]["count"] += 1
        else:
            before.append(line)
            lines.append(line)
    return lines


_NUMBERS = ["key", "node", "seq", "at_ms", "what", "peer", "message", "revision", "digest"]


def story_of(table: pa.Table, seen: Overview, profiles: Mapping[str, str]) -> Story:
    """One client's rows, each once, in order of node and sequence number."""
    texts = {name: table[f"text_{name}"].to_pylist() for name in _TEXTS}
    run, client = texts["run"][0], texts["client"][0]
    of_rows = [texts[name] if name in texts else table[name].to_pylist() for name in Row._fields]
    rows = {(row.node, row.seq): row for row in (Row(*values) for values in zip(*of_rows, strict=True))}
    return Story(
        run,
        profiles[run],
        client,
        [rows[place] for place in sorted(rows)],
        seen.marks_of(run, RESETS),
        seen.marks_of(run, [Kind.CHECKPOINT]),
        seen.deleters[run],
        seen.marks_of(run, [Kind.LINK_FAULT, Kind.MEMBERS_CHANGED]),
        seen.marks_of(run, CALLS),
        seen.blind(run),
    )


def _client_by_client(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows == 0:
            continue
        key = batch.column("key").to_numpy()
        starts = [0, *(np.flatnonzero(key[1:] != key[:-1]) + 1), len(key)]
        for one, end in pairwise(starts):
            part = batch.slice(one, end - one)
            if waiting and waiting[-1]["key"][0] != part["key"][0]:
                yield pa.Table.from_batches(waiting)
                waiting = []
            waiting.append(part)
    if waiting:
        yield pa.Table.from_batches(waiting)


_SQL_TYPES = {pa.int64(): "long", pa.string(): "string"}


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_SQL_TYPES[field.type]}" for field in schema)
