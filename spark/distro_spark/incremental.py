"""Violations kept up to date while segments of recordings arrive: each batch of a stream judges the runs of its
segments.

    judged(session, "s3a://traces", partial(merge, into="violations"))
        .option("checkpointLocation", "s3a://judged").trigger(availableNow=True).start().awaitTermination()

Later rows can add a violation, extend it or excuse it. So whenever a segment of a run arrives, the run is judged from
its beginning, and its violations in the table are replaced by the new ones. Replacing them twice has the effect of
once, so a stream that is killed and repeats its last batch neither loses nor doubles a violation. A batch reads the
segments of its runs; of other runs it only lists the file names.

A segment is a file that is complete when it appears (moved or uploaded). The segments of a run are in one directory,
with the names that the recorder gives them (`RUN.ndjson`, `RUN.2.ndjson`, …), or as Parquet in a directory of the run
alone (`compact`).
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
"""A function that replaces the violations of these runs by those in the DataFrame (`sinks.COLUMNS`)."""

_FILES = "path string, modificationTime timestamp, length long, content binary"


def judged(
    session: SparkSession, place: str, write: Write, invariants: Sequence[str] | None = None
) -> DataStreamWriter:
    """The stream of the segments below a directory; the caller adds a checkpoint and a trigger and starts it.

    If `load` or `violations` raises, the query fails with that error. When it is started again it repeats the batch.
    """
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
    """The common part of the names of all segments of a run."""
    path = PurePosixPath(segment)
    return re.sub(r"\.\d+$", "", segment.removesuffix(SUFFIX)) if path.suffix == SUFFIX else str(path.parent)


def merge(found: DataFrame, runs: Sequence[str], *, into: str) -> None:
    """A `Write` into a table of a format with MERGE (Delta, Iceberg). The table is created if it does not exist."""
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
