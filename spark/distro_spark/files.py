"""The file systems that a session can read: `file:`, `hdfs:`, `s3a:` or whatever is configured.

Spark has the configuration and credentials to reach them; Python does not. So Spark's own index finds the files, which
lists large trees on the executors, and Spark's readers read their beginnings there, through DataFrames alone, so that a
session of Spark Connect suffices. Python itself opens files on this machine's disk, which is a hundred times faster. A
path without a scheme is one of this machine if it exists here, else of the session's default file system.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.errors import one_line
from distro_traces.errors import EmptyTraceError, TraceError, UnreadableTraceError
from distro_traces.ndjson import SUFFIX
from distro_traces.places import SUFFIXES, is_of_a_check, not_named_so, nothing_below, traces_at

_FILE = "file"
_NOTHING = ("PATH_NOT_FOUND", "FileNotFoundException", "NoSuchFileException")


def named(path: Path | str) -> str:
    """An absolute path of the local disk, or a URI of anything else."""
    text = str(path)
    parts = urlsplit(text)
    if parts.scheme == _FILE:
        return unquote(parts.path)
    is_elsewhere = parts.scheme and text.startswith(f"{parts.scheme}:/")
    return text if is_elsewhere or not os.path.exists(text) else os.path.abspath(text)


def traces_below(session: SparkSession, path: str) -> list[str]:
    """The traces that a name stands for, in order: those at any depth of a directory, or itself. Hidden ones are
    skipped: an unfinished compaction is one. Raises the TraceError family."""
    if is_local(path):
        return [str(file) for file in traces_at(Path(path))]
    with one_line(partial(_error, path)):
        index = session.read.format("binaryFile").option("recursiveFileLookup", "true")
        found = index.option("pathGlobFilter", f"*{{{','.join(SUFFIXES)}}}").load(literal(path)).inputFiles()
        names = sorted(name_of(file) for file in found)
        if not names and [name_of(file) for file in index.load(literal(path)).inputFiles()] == [path]:
            raise not_named_so(path)
    traces = [name for name in names if not is_of_a_check(name.removeprefix(path).split("/")[:-1])]
    if not traces:
        raise nothing_below(path)
    return traces


def beginnings(session: SparkSession, names: Sequence[str]) -> dict[str, io.BytesIO]:
    """Of files that only Spark can reach, the first line of a recording, or a Parquet file of the same schema without
    rows."""
    found = dict.fromkeys(names, b"")
    text = [name for name in names if name.endswith(SUFFIX)]
    if text:
        with one_line(partial(_error, text[0])):
            lines = session.read.option("lineSep", "\n").text([literal(name) for name in text])
            place = F.struct("_metadata.file_block_start", F.monotonically_increasing_id())
            placed = lines.select("value", F.col("_metadata.file_path").alias("file"), place.alias("place"))
            first = placed.groupBy("file").agg(F.min_by("value", "place"))
            found |= {name_of(file): f"{line}\n".encode() for file, line in first.toLocalIterator()}
    found |= _without_rows(session, [name for name in names if not name.endswith(SUFFIX)])
    return {name: io.BytesIO(content) for name, content in found.items()}


def _without_rows(session: SparkSession, names: Sequence[str]) -> dict[str, bytes]:
    """`without_rows` of Parquet files, on the executors."""
    if not names:
        return {}

    def looked_at(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [without_rows(content.as_buffer()) for content in batch.column("content")]
            yield pa.RecordBatch.from_arrays([batch.column("path"), pa.array(found, pa.binary())], ["path", "found"])

    with one_line(partial(_error, names[0])):
        rows = contents(session, names).mapInArrow(looked_at, "path string, found binary").collect()
    return {name_of(row["path"]): bytes(row["found"]) for row in rows}


def without_rows(content: pa.Buffer) -> bytes:
    """A Parquet file of the same schema and metadata without rows; of any other file its beginning."""
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            metadata = {key: value for key, value in file.metadata.metadata.items() if key != b"ARROW:schema"}
            schema = file.schema_arrow.with_metadata(metadata)
    except pa.ArrowInvalid:
        return bytes(content[:16])
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    return bytes(sink.getvalue())


def contents(session: SparkSession, names: Sequence[str]) -> DataFrame:
    """path, content."""
    return session.read.format("binaryFile").load([literal(name) for name in names]).select("path", "content")


def sizes(session: SparkSession, names: Sequence[str]) -> dict[str, int]:
    """In bytes."""
    found = {name: os.path.getsize(name) for name in names if is_local(name)}
    elsewhere = [literal(name) for name in names if name not in found]
    if elsewhere:
        files = session.read.format("binaryFile").load(elsewhere).select("path", "length")
        found |= {name_of(row["path"]): row["length"] for row in files.collect()}
    return found


def is_local(name: str) -> bool:
    return name.startswith("/") and os.path.exists(name)


def name_of(uri: str) -> str:
    """The name of a file as Spark reports it, decoded: `file:/tmp/a%20b` is `/tmp/a b`."""
    parts = urlsplit(uri)
    if parts.scheme in ("", _FILE):
        return unquote(parts.path)
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"


def literal(name: str) -> str:
    """Escape a name, since Spark reads paths as patterns."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", name)


def _error(name: str, text: str) -> TraceError:
    """Of a file system."""
    if any(each in text for each in _NOTHING):
        return EmptyTraceError(f"{name}: no such file or directory; name a recording or a directory of them")
    return UnreadableTraceError(name, OSError(text))
