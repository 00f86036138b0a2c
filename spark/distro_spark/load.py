"""From paths to rows: each line becomes an event, or is put into quarantine with the reason. No line is lost.

Spark reads the files; no rows pass through the driver. To check that a line was read without loss, its event is written
again and compared with the line. The lines of a recorder always pass this check. Other lines are parsed again as a
variant, at ten times the cost, since Spark's JSON reader is too lenient: it accepts `"seq": "1"` as a number and
ignores a second object on the line. Parquet files of some megabytes are also listed, to be read in Python (`chunks`).
The reasons are word for word those of `distro_traces.ndjson.parse_event`; a test compares both readers.

If the last line of a recording is incomplete JSON, the recording was cut by a crash, which is no defect. The cut is
reported and does not change the verdict: all lines before it are complete. INV-CONV is judged at the checkpoints that
were recorded, and what happened after the last of them is not part of it; a run without any does not conform.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import ddl
from distro_spark.engine import PART_ROWS
from distro_spark.files import beginnings, contents, is_local, literal, named, sizes, traces_below
from distro_spark.frames import EVENT_TYPES, Source, distinct, headed
from distro_spark.tables import EVENT, as_events, fitting, headers_of, is_table, rows_of
from distro_traces.event import COLUMNS, REQUIRED_COLUMNS
from distro_traces.header import Header
from distro_traces.ndjson import CALLED, DIGEST_CHARS, KINDS, LINE_BYTES_MAX, NOT_JSON, OUTCOMES, SUFFIX, TOO_LONG

CUT = "cut in mid-line"
WHOLE_FILE_BYTES = 32 << 20
"""Larger files are read by Spark in pieces, since the content of a smaller one is in the memory of a JVM as a whole."""

ROW_BYTES, LINE_BYTES = 8, 150
"""The approximate minimum size of a row in Parquet, and in NDJSON."""

_AT_ONCE = 16
_WITHOUT_NULLS = {"ignoreNullFields": "true"}


@dataclass(frozen=True)
class Loaded:
    """Rows of one or many runs.

    `rows` has the columns of `Event` and `reason`, which is null for an event. `events` and `quarantine` are
    its two parts; quarantine has file, line (null in Parquet), reason, text, and run if the row has one. The first line
    of each NDJSON file, its header, counts among the rows with a reason and is not in quarantine.
    """

    sources: tuple[Source, ...]
    rows: DataFrame
    others: DataFrame | None  # the part of `rows` that is not in `files`
    files: DataFrame | None  # path and content of the Parquet files that Python reads as a whole
    lines: DataFrame  # of NDJSON files, as `_lines` returns them
    tables: tuple[DataFrame, ...]
    file_rows: int  # the approximate number of rows that are not in tables
    small_runs: frozenset[str]  # runs in a single one of `files`, small enough to be judged at once

    @property
    def events(self) -> DataFrame:
        return self.rows.where("reason is null").select(*COLUMNS)

    @property
    def quarantine(self) -> DataFrame:
        return _placed(self.rows.where("reason is not null"), self.lines)

    @property
    def headers(self) -> int:
        return sum(source.is_ndjson for source in self.sources)

    @property
    def runs(self) -> frozenset[str]:
        return frozenset(source.header.run for source in self.sources)

    def count(self) -> int:
        """The approximate number of rows. The rows of tables are counted by a job."""
        return self.file_rows + sum(table.count() for table in self.tables)


def discover(session: SparkSession, paths: Iterable[Path | str]) -> tuple[Source, ...]:
    """The traces at `paths`: files, directories with NDJSON or Parquet anywhere below, or `table:NAME`. Raises the
    TraceError family, since each header is read: headers of local files in threads, of others on the executors.

    A path is whatever Spark can read. Hidden files are skipped.
    """
    paths = list(dict.fromkeys(paths))
    tables = [str(path) for path in paths if is_table(path)]
    found = (name for path in paths if not is_table(path) for name in traces_below(session, named(path)))
    names = list(dict.fromkeys(found))
    elsewhere = beginnings(session, [name for name in names if not is_local(name)])
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # each thread waits for the file system
        sources = list(pool.map(lambda name: headed(name, elsewhere.get(name)), names))
    sources += [Source(table, header) for table in tables for header in headers_of(session, table)]
    return distinct(sources)


def load(session: SparkSession, paths: Iterable[Path | str]) -> Loaded:
    """Load the traces at `paths` (files, directories, `table:NAME`). Lazy; raises the TraceError family before any job
    over the rows runs."""
    sources = discover(session, paths)
    recordings = [source.path for source in sources if source.is_ndjson]
    at_rest = [source.path for source in sources if not source.is_ndjson and not is_table(source.path)]
    names = dict.fromkeys(source.path for source in sources if is_table(source.path))
    bytes_of = sizes(session, [*recordings, *at_rest])
    small = [name for name in at_rest if bytes_of[name] <= WHOLE_FILE_BYTES]
    large = [name for name in at_rest if bytes_of[name] > WHOLE_FILE_BYTES]
    lines = _lines(session, recordings)
    tables = [_at_rest(rows_of(session, name).withColumn("file", F.lit(name))) for name in names]
    others = [
        *([from_ndjson(lines)] if recordings else []),
        *([_from_parquet(session, large)] if large else []),
        *tables,
    ]
    every = [*others, *([_from_parquet(session, small)] if small else [])]
    segments = Counter(source.header.run for source in sources)
    of_small = [each for each in sources if each.path in small and bytes_of[each.path] <= PART_ROWS * ROW_BYTES]
    return Loaded(
        sources,
        fitted(reduce(DataFrame.unionByName, every), sources),
        fitted(reduce(DataFrame.unionByName, others), sources) if others else None,
        contents(session, small) if small else None,
        lines,
        tuple(tables),
        sum(bytes_of[name] // (LINE_BYTES if name.endswith(SUFFIX) else ROW_BYTES) for name in bytes_of),
        frozenset(each.header.run for each in of_small if segments[each.header.run] == 1),
    )


def loaded_of(events: DataFrame, headers: Iterable[Header]) -> Loaded:
    """The rows of a DataFrame that has the columns of an event, of the runs with these headers. Raises
    NotATraceError."""
    sources = tuple(Source("", header) for header in headers)
    rows = _at_rest(as_events(fitting(events, "events", EVENT)).withColumn("file", F.lit("")))
    of_runs = fitted(rows, sources)
    return Loaded(sources, of_runs, of_runs, None, _lines(events.sparkSession, []), (rows,), 0, frozenset())


def _lines(session: SparkSession, files: list[str]) -> DataFrame:
    """The columns text, file, block and position. `position` increases within a `block` of the file, from any
    number."""
    if not files:
        return session.createDataFrame([], "text string, file string, block long, position long")
    return (
        session.read.option("lineSep", "\n")
        .text([literal(file) for file in files])
        .select(
            F.col("value").alias("text"),
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("position"),
        )
    )


def fitted(rows: DataFrame, sources: Iterable[Source]) -> DataFrame:
    """The rows with the reason why one is no event of any run. Rows without a reason lose their text."""
    runs = sorted({source.header.run for source in sources})
    # An Arrow table, since it needs no Python worker.
    table = pa.table({"run": pa.array(runs, pa.string()), "has_header": [True] * len(runs)})
    known = F.broadcast(rows.sparkSession.createDataFrame(table))
    headless = F.when(F.col("has_header").isNull(), F.format_string("run %s has no header", "run"))
    reason = F.coalesce("reason", _invalid(), headless)
    text = F.when(F.col("reason").isNotNull(), F.col("text"))
    return rows.join(known, "run", "left").withColumn("reason", reason).withColumn("text", text).drop("has_header")


def from_ndjson(lines: DataFrame) -> DataFrame:
    """From lines (text, file, block, position) the columns of their events, and the reason if a line is no event."""
    lines = (
        lines.where(F.col("text").rlike("[^ \\t\\r]"))
        .withColumn("event", F.from_json("text", ddl(EVENT_TYPES)))
        .withColumn("is_exact", F.coalesce(F.to_json("event", _WITHOUT_NULLS) == F.col("text"), F.lit(False)))
        # Within brackets, so that a second value on the line is found and not dropped.
        .withColumn("json", F.try_parse_json(F.when(~F.col("is_exact"), F.concat(F.lit("["), "text", F.lit("]")))))
    )
    types = {name: F.schema_of_variant(F.try_variant_get("json", f"$[0].{name}", "variant")) for name in COLUMNS}
    whole = F.col("json").isNotNull() & F.try_variant_get("json", "$[1]", "variant").isNull()
    invalid = F.coalesce(
        F.when(~whole, F.lit(NOT_JSON)),
        F.when(~F.ltrim("text").startswith("{"), F.lit("not a JSON object")),
        *(
            F.when(F.coalesce(types[name], F.lit("VOID")) == "VOID", F.lit(f"missing field {name}"))
            for name in REQUIRED_COLUMNS
        ),
        *(
            F.when(~types[name].isin("VOID", kind.upper()), F.lit(f"wrong type for {name}"))
            for name, kind in EVENT.items()
        ),
    )
    too_long = F.when(F.octet_length("text") > LINE_BYTES_MAX, F.lit(TOO_LONG))
    reason = F.coalesce(too_long, F.when(~F.col("is_exact"), invalid))
    values = [
        F.when(F.col("is_exact"), F.col("event")[name])
        .otherwise(F.try_variant_get("json", f"$[0].{name}", kind))
        .alias(name)
        for name, kind in EVENT.items()
    ]
    return lines.select(*values, reason.alias("reason"), "text", "file", "block", "position")


def _from_parquet(session: SparkSession, files: list[str]) -> DataFrame:
    # `run` is a column of the file, and must not be inferred from its path
    rows = session.read.schema(ddl(EVENT_TYPES)).option("recursiveFileLookup", "true").parquet(*map(literal, files))
    return _at_rest(rows.select(*COLUMNS, F.col("_metadata.file_path").alias("file")))


def _at_rest(rows: DataFrame) -> DataFrame:
    """Rows of Parquet or tables: the columns of an event, and `file`."""
    return rows.select(
        *COLUMNS,
        F.lit(None).cast("string").alias("reason"),
        F.to_json(F.struct(*COLUMNS)).alias("text"),
        "file",
        F.lit(None).cast("long").alias("block"),
        F.lit(None).cast("long").alias("position"),
    )


def _invalid() -> Column:
    """The reason why a row with columns of the right types is no event; null if it is one."""
    return F.coalesce(
        *(F.when(F.col(name).isNull(), F.lit(f"missing field {name}")) for name in REQUIRED_COLUMNS),
        F.when(~F.col("kind").isin(*KINDS), F.format_string("unknown kind %s", "kind")),
        F.when(~F.col("outcome").isin(*OUTCOMES), F.format_string("unknown outcome %s", "outcome")),
        F.when(~F.col("operation").isin(*CALLED), F.format_string("unknown operation %s", "operation")),
        F.when(
            F.length("digest").isin(*DIGEST_CHARS) & (F.col("digest") != F.lower("digest")),
            F.lit("digest in capital letters"),
        ),
        F.when(F.col("seq") < 1, F.lit("seq below 1")),
    )


def _placed(rows: DataFrame, lines: DataFrame) -> DataFrame:
    """Rows of `Loaded.rows` with their line numbers, without the headers.

    Spark does not number lines. A position counts within one block of a file, so the number of lines in the blocks
    before is added. The table of these numbers has a row for each block, and is only computed if rows are in
    quarantine.
    """
    blocks = (
        lines.groupBy("file", "block")
        .agg(F.min("position").alias("first"), F.max("position").alias("last"))
        .selectExpr(
            "file",
            "block",
            "first",
            "sum(last - first + 1) over (partition by file order by block) - (last - first + 1) as lines_before",
            "last = max_by(last, block) over (partition by file) as is_last_block",
            "last",
        )
    )
    line = F.col("lines_before") + F.col("position") - F.col("first") + 1
    is_last = F.col("is_last_block") & (F.col("position") == F.col("last"))
    is_header = (F.col("lines_before") == 0) & (F.col("position") == F.col("first"))
    return (
        rows.join(F.broadcast(blocks), ["file", "block"], "left")
        .where(~F.coalesce(is_header, F.lit(False)))
        .select(
            F.url_decode(F.replace(F.regexp_replace("file", "^file:/+", "/"), F.lit("+"), F.lit("%2B"))).alias("file"),
            line.alias("line"),
            F.when(is_last & (F.col("reason") == NOT_JSON), F.lit(CUT)).otherwise(F.col("reason")).alias("reason"),
            "text",
            "run",
        )
    )
