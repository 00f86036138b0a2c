"""`check --follow`: violations in recordings that are still being written, as soon as they can be decided.

A stream of Spark reads what is new (`tail`) in batches. Each is kept as Parquet beside the stream's checkpoint, under
its number; then the runs that it is about are judged as `check` judges them, from their beginning. What is found goes
to the sinks, which take a violation once. A batch that is played again after a crash has the same number and the same
lines, writes the same files, and finds nothing that it has not found before.

What is judged is the beginning of a run, so that no later row can take a violation back:

* a run in which sequence numbers are missing, beyond its lines in quarantine, waits until they are there;
* a run that is spoiled (`spoiled`) is never judged, and a `check` of the whole says why;
* its last checkpoint counts once every node that is up has reached it.

A look costs what the run has been so far: nearly every invariant asks for a client's whole past, and a client that
lives is heard of in every batch. So a long run is looked at when it has grown by a tenth since the last look, or when
nothing more comes. All looks together then cost at most eleven times what a check of the whole costs, however long the
run, and a violation in it is told after a tenth of the time that the run has lasted at the latest.

A violation can say more when more of the run is known (a divergence that lasts for further checkpoints); its id stays.
What only the end of a run decides (`Invariant.needs_end`, a checkpoint that a node never reaches) is found by a
`check` of the whole into the same sinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from distro_spark.check import chosen_invariants, one_line_errors
from distro_spark.facts import Overview, facts_of, overview
from distro_spark.judge import judged
from distro_spark.load import fitted, from_ndjson
from distro_spark.sinks import Sink, add_to_all
from distro_spark.sources import Source, discover
from distro_spark.spoiled import spoiled
from distro_spark.story import RESETS, Row
from distro_spark.tables import EVENT_SCHEMA
from distro_spark.tail import Recordings, recordings_below, whole_until
from distro_traces.errors import EmptyTraceError, TraceError
from distro_traces.event import COLUMNS, Kind
from distro_traces.header import Header
from distro_traces.ndjson import LINE_BYTES_MAX, TOO_LONG

_STREAM, _ROWS = "_stream", "_rows"
"""Below `out`; names that Spark takes for no data, so that `out` may lie among the recordings."""
_TRIGGER = "2 seconds"
_QUIET_S = 10
"""When nothing came for so long, what was put off is looked at."""

SMALL_ROWS, GROWTH = 200_000, 0.1
"""A run of fewer rows is looked at with every batch; a longer one when it has grown by so much."""
_KEPT = f"{', '.join(f'{f.name} {f.dataType.simpleString()}' for f in EVENT_SCHEMA)}, profile string, reason string, \
bytes long, file string, position long, text string"

News = Callable[[Sequence[Mapping[str, Any]]], None]


def follow(
    session: SparkSession,
    directory: Path,
    out: Path,
    *,
    invariants: Sequence[str] | None = None,
    sinks: Sequence[Sink] = (),
    on_news: News = lambda _: None,
    idle_s: int | None = None,
) -> None:
    """Add to `sinks` what is decided of the recordings below `directory`, until nothing new was written for `idle_s`.

    `directory` is on a disk that every executor has; `out` is where the state is kept, and where a later call goes on.
    The sinks must be the same in every call. `on_news` gets the violations of a batch that were not there before, in
    the columns of `VIOLATION_COLUMNS`, from a thread of Spark. `idle_s` None: for ever. Raises SinkError,
    UnknownInvariantError, and the TraceError family.
    """
    follower = Follower(session, directory.absolute(), out, invariants, sinks, on_news)
    query = follower.start()
    try:
        before = -1
        while idle_s is None or follower.batches > before:
            before = follower.batches
            query.awaitTermination(_QUIET_S if idle_s is None else idle_s)
            query.processAllAvailable()
            if follower.batches == before:
                follower.look_at_the_rest()
    except StreamingQueryException as error:
        if follower.error is not None:
            raise follower.error from None
        raise TraceError(f"{directory}: cannot be followed ({str(error).splitlines()[0]})") from error
    finally:
        query.stop()


@dataclass
class Follower:
    """The stream, and what is done with each of its batches. `batches`: so many were done; `error`: what one raised, of
    which the stream ends."""

    session: SparkSession
    directory: Path
    out: Path
    invariants: Sequence[str] | None
    sinks: Sequence[Sink]
    on_news: News = lambda _: None
    batches: int = 0
    error: Exception | None = None
    _rows: Counter[str] = field(default_factory=Counter)
    """By run, so many are there."""
    _looked_at: Counter[str] = field(default_factory=Counter)
    """So many were, when the run was looked at last; after a restart nothing has been."""
    _one_look: Lock = field(default_factory=Lock)

    def start(self) -> StreamingQuery:
        self._chosen = [each for each in chosen_invariants(self.invariants) if not each.needs_end]
        for sink in self.sinks:
            sink.make(self.session)
        self.session.dataSource.register(Recordings)
        lines = self.session.readStream.format(Recordings.name()).option("path", str(self.directory)).load()
        stream = lines.writeStream.foreachBatch(self._batch).trigger(processingTime=_TRIGGER)
        return stream.option("checkpointLocation", str(self.out / _STREAM)).start()

    def _batch(self, lines: DataFrame, number: int) -> None:
        try:
            with one_line_errors(), self._one_look:
                news = self._judge(lines, number)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.batches += 1
        if news:
            self.on_news(news)

    def _judge(self, lines: DataFrame, number: int) -> Sequence[Mapping[str, Any]]:
        session = lines.sparkSession
        sources = _recordings(session, self.directory)
        place = str(self.out / _ROWS / f"batch={number}")
        _kept(lines, sources).write.mode("overwrite").parquet(place)
        # After a restart the batches of before count too; those that come again are counted twice, and do no harm.
        counted = session.read.schema(_KEPT).parquet(place if self._rows else str(self.out / _ROWS))
        for row in counted.where("reason is null").groupBy("run").count().collect():
            self._rows[row["run"]] += row["count"]
        return self._look(session, sources, [run for run in self._rows if self._is_due(run)])

    def _is_due(self, run: str) -> bool:
        rows, before = self._rows[run], self._looked_at[run]
        return rows > before and (rows < SMALL_ROWS or rows >= before * (1 + GROWTH))

    def look_at_the_rest(self) -> None:
        """At the runs that have grown, however little, since they were looked at. Raises as `follow` does."""
        with one_line_errors(), self._one_look:
            runs = [run for run, rows in self._rows.items() if rows > self._looked_at[run]]
            news = self._look(self.session, _recordings(self.session, self.directory), runs) if runs else ()
        if news:
            self.on_news(news)

    def _look(
        self, session: SparkSession, sources: Sequence[Source], runs: Sequence[str]
    ) -> Sequence[Mapping[str, Any]]:
        """What is news in these runs."""
        self._looked_at.update({run: self._rows[run] - self._looked_at[run] for run in runs})
        if not runs:
            return ()
        every = session.read.schema(_KEPT).parquet(str(self.out / _ROWS))
        headers = {source.header.run: source.header for source in sources}
        gone = [run for run in runs if run not in headers]
        if gone:
            raise EmptyTraceError(f"{self.directory}: no recording of run {gone[0]} any more; leave it where it is")
        seen = overview(every.where(F.col("run").isin(runs)), headers)
        waiting = _with_gaps(seen, every, sources)
        unjudged = waiting.union(spoiled(every.where(F.col("run").isin(runs)), seen, headers))
        seen = seen.without(unjudged, headers)
        runs = [run for run in runs if run not in unjudged]
        events = every.where(F.col("run").isin(runs) & F.col("reason").isNull()).select(*COLUMNS, "profile")
        profiles = {run: header.profile for run, header in headers.items()}
        found = judged(session, events, settled(seen, headers), profiles, self._chosen)
        return add_to_all(session, self.sinks, [row for each in found.values() for row in each.rows])


def _recordings(session: SparkSession, directory: Path) -> tuple[Source, ...]:
    """Those that have a header by now. Raises the TraceError family."""
    return discover(session, [path for path in recordings_below(directory) if whole_until(str(path), 0)])


def _kept(lines: DataFrame, sources: Iterable[Source]) -> DataFrame:
    """The rows of a batch as they are kept: of an event its columns, of what is none its reason and its text."""
    rows = from_ndjson(lines.withColumn("block", F.lit(0)))
    too_long = F.when(F.col("bytes") > LINE_BYTES_MAX + 1, TOO_LONG)
    rows = fitted(rows.withColumn("reason", F.coalesce(too_long, "reason")), sources)
    return rows.select(*COLUMNS, "profile", "reason", "bytes", "file", "position", "text")


def _with_gaps(seen: Overview, every: DataFrame, sources: Iterable[Source]) -> set[str]:
    """The runs of which rows are missing, more than are in quarantine."""
    missing: Counter[str] = Counter()
    for node in seen.nodes:
        missing[node.run] += node.last_seq - node.different
    if not missing.total():
        return set()
    run_of = {source.path: source.header.run for source in sources}
    for row in every.where("reason is not null").groupBy("file").count().collect():
        missing[run_of[row["file"]]] -= row["count"]
    return {run for run, rows in missing.items() if rows > 0}


def settled(seen: Overview, headers: Mapping[str, Header]) -> Overview:
    """Without the last checkpoint of a run while a node that is up has not reached it."""
    marks = {run: _without_open_checkpoint(by_node) for run, by_node in seen.marks.items()}
    return replace(seen, marks=marks, facts=facts_of(seen.nodes, marks, headers))


def _without_open_checkpoint(marks: Mapping[str, Sequence[Row]]) -> Mapping[str, Sequence[Row]]:
    checkpoints = [row for rows in marks.values() for row in rows if row.kind == Kind.CHECKPOINT]
    if not checkpoints:
        return marks
    last = max(checkpoints, key=lambda row: row.at_ms).detail
    reached = {row.node for row in checkpoints if row.detail == last}
    if all(node in reached or _is_down(rows) for node, rows in marks.items()):
        return marks
    return {
        node: [row for row in rows if row.kind != Kind.CHECKPOINT or row.detail != last] for node, rows in marks.items()
    }


def _is_down(marks: Sequence[Row]) -> bool:
    changes = [row.kind for row in marks if row.kind in RESETS]
    return bool(changes) and changes[-1] == Kind.NODE_STOPPED
