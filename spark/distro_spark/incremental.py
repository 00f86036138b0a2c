"""Violations kept up to date while segments of recordings arrive: each batch of a stream judges the runs it touches.

    judged(session, "s3a://traces", partial(merge, into="violations"))
        .option("checkpointLocation", "s3a://judged").trigger(availableNow=True).start().awaitTermination()

Later rows can add a violation, extend one or excuse one. So a run is judged from its beginning whenever a segment of it
arrives, and its violations in the table are replaced by those that are found then. To replace them twice is the same as
once: a stream that is killed repeats its last batch and loses or doubles nothing. A batch reads the segments of its
runs; of all others it lists the names.

A segment is a file that is complete when it appears (moved or uploaded). Those of a run lie in one directory, named as
the recorder names them (`RUN.ndjson`, `RUN.2.ndjson`, …), or as Parquet in a directory of their own (`compact`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.readwriter import DataStreamWriter

from distro_spark.dataframes import violations_of
from distro_spark.files import literal, name_of, named, traces_below
from distro_spark.load import load
from distro_spark.on_spark import OnSpark
from distro_traces.ndjson import SUFFIX
from distro_traces.places import SUFFIXES

Write = Callable[[DataFrame, Sequence[str]], None]
"""Replaces the violations of these runs by those in the DataFrame (`sinks.COLUMNS`)."""

_FILES = "path string, modificationTime timestamp, length long, content binary"


def judged(
    session: SparkSession, place: str, write: Write, invariants: Sequence[str] | None = None
) -> DataStreamWriter:
    """The stream of the segments below a directory, ready to be started; the caller adds checkpoint and trigger. The
    query fails with what `load` and `violations` raise, and repeats the batch when it is started again."""
    place = named(place)
    files = session.readStream.format("binaryFile").schema(_FILES).option("recursiveFileLookup", "true")
    new = files.option("pathGlobFilter", f"*{{{','.join(SUFFIXES)}}}").load(literal(place)).select("path")

    def judge(batch: DataFrame, _: int) -> None:
        touched = {recording(name_of(row["path"])) for row in batch.collect()}
        segments = [name for name in traces_below(batch.sparkSession, place) if recording(name) in touched]
        loaded = load(batch.sparkSession, segments)
        with OnSpark(batch.sparkSession, loaded) as engine:
            write(violations_of(engine, invariants), sorted({each.header.run for each in loaded.sources}))

    return new.writeStream.foreachBatch(judge)


def recording(segment: str) -> str:
    """What the names of all segments of a run have in common."""
    path = PurePosixPath(segment)
    return re.sub(r"\.\d+$", "", segment.removesuffix(SUFFIX)) if path.suffix == SUFFIX else str(path.parent)


def merge(found: DataFrame, runs: Sequence[str], *, into: str) -> None:
    """A `Write` into a table of a format that has MERGE (Delta, Iceberg); it is created if it does not exist."""
    found.limit(0).write.saveAsTable(into, mode="ignore")
    (
        found.alias("found")
        .mergeInto(into, F.expr(f"{into}.id = found.id"))
        .whenMatched()
        .updateAll()
        .whenNotMatched()
        .insertAll()
        .whenNotMatchedBySource(F.col(f"{into}.run").isin(list(runs)))
        .delete()
        .merge()
    )
