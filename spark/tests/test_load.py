"""Loading: every row becomes an event or is set aside with its reason and place; unusable files are refused."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import in_process, on_spark
from pyspark.sql import SparkSession

from distro_spark import on_spark as on_spark_engine
from distro_spark.check import check, surveyed
from distro_spark.frames import SameRunTwiceError
from distro_spark.load import load
from distro_spark.local import Local
from distro_spark.on_spark import OnSpark
from distro_traces import run_writer
from distro_traces.compact import compact
from distro_traces.errors import EmptyTraceError, NewerTraceError, NotATraceError, TraceError
from distro_traces.event import COLUMNS, Kind, Outcome
from distro_traces.ndjson import LINE_BYTES_MAX, Recorder, read_ndjson
from distro_traces.parquet import read_parquet

ROW = {"run": "r1", "node": "a", "seq": 1, "at_ms": 0, "kind": "checkpoint"}

MISFITS = [
    "{not json",
    json.dumps(ROW) + json.dumps(ROW),
    json.dumps(ROW) + ", " + json.dumps(ROW),
    "[1, 2]",
    "null",
    '"text"',
    json.dumps({**ROW, "seq": None}),
    *(json.dumps({key: value for key, value in ROW.items() if key != name}) for name in ROW),
    json.dumps({**ROW, "seq": "1"}),
    json.dumps({**ROW, "seq": 1.0}),
    json.dumps({**ROW, "seq": True}),
    json.dumps({**ROW, "at_ms": [1]}),
    json.dumps({**ROW, "revision": 2**63}),
    json.dumps({**ROW, "client": 5}),
    json.dumps({**ROW, "detail": {"a": 1}}),
    json.dumps({**ROW, "owned": "true"}),
    json.dumps({**ROW, "kind": "exploded"}),
    json.dumps({**ROW, "outcome": "maybe"}),
    json.dumps({**ROW, "operation": "Snapshot"}),
    json.dumps({**ROW, "digest": "4F53CDA18C2BAA0C"}),
    json.dumps({**ROW, "digest": "4f53cda18c2baA0c" * 4}),
    json.dumps({**ROW, "seq": 0}),
    json.dumps({**ROW, "run": "r2"}),
    json.dumps({"schema": "distrocheck-trace", "version": 1, "run": "r1"}),
    json.dumps({**ROW, "detail": "x" * LINE_BYTES_MAX}),
]
MISFITS += [line.replace(", ", ",").replace(": ", ":") for line in MISFITS if ": " in line]  # as a recorder writes them


def record(directory: Path, run: str = "r1", rows: int = 3) -> Path:
    with Recorder(directory, run, profile="nacos-2.2.4", target="test", nodes=["a"]) as recorder:
        for at_ms in range(rows):
            recorder.record(
                "a",
                Kind.REPLY_RECEIVED,
                at_ms=at_ms,
                client="ü c",
                owned=True,
                revision=-5,
                outcome=Outcome.TIMEOUT,
                detail='say "}"',
            )
    return recorder.path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.mark.spark
def test_events_arrive_as_they_were_recorded_from_both_formats(spark: SparkSession, tmp_path: Path) -> None:
    recording = record(tmp_path / "a[1] {x} ?+%20ü")
    (at_rest,) = compact([record(tmp_path / "elsewhere", "r2")], tmp_path / "a[1] {x} ?+%20ü")
    loaded = load(spark, [tmp_path / "a[1] {x} ?+%20ü"])
    rows = loaded.events.orderBy("run", "seq").collect()
    expected = [*read_ndjson(recording).events, *read_parquet(at_rest).events]
    assert [{name: row[name] for name in COLUMNS if row[name] is not None} for row in rows] == [
        event.to_json() for event in expected
    ]
    assert OnSpark(spark, loaded).set_aside().invalid == ()


@pytest.mark.spark
def test_invalid_rows_are_set_aside_as_by_the_other_reader(spark: SparkSession, tmp_path: Path) -> None:
    recording = record(tmp_path / "with+plus and space")
    append(recording, "\n".join(["", *MISFITS, "\t \r", json.dumps({**ROW, "seq": 4}), ""]))
    engine = OnSpark(spark, recording)
    expected = read_ndjson(recording)
    assert len(expected.rejected) == len(MISFITS)
    first = dict(reversed([(reason, line) for line, reason, _ in expected.rejected]))
    counts = Counter(reason for _, reason, _ in expected.rejected)
    assert {(each.reason, each.rows, each.file, each.line) for each in engine.set_aside().invalid} == {
        (reason, count, str(recording), first[reason]) for reason, count in counts.items()
    }
    assert engine.set_aside() == Local(recording).set_aside()
    assert engine.loaded.events.count() == len(expected.events) == 4


@pytest.mark.spark
@pytest.mark.parametrize("is_at_rest", [False, True])
def test_rows_are_read_once_for_several_jobs(spark: SparkSession, tmp_path: Path, *, is_at_rest: bool) -> None:
    path = record(tmp_path)
    expected = in_process(path, convergence=True).without_times()
    if is_at_rest:
        (path,) = compact([path], tmp_path / "rest")
    with OnSpark(spark, path) as engine:
        engine.measured()
        path.unlink()
        assert check(engine, convergence=True).without_times() == expected
        assert engine.chunks.storageLevel.useDisk
    assert not engine.chunks.storageLevel.useDisk


@pytest.mark.spark
def test_all_rows_of_a_client_are_judged_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From files with one run, a file that has a row of another run too, segments, and recordings."""

    def counted(part: pl.DataFrame) -> pl.DataFrame:
        return part.group_by("run", "client").agg(rows=pl.len().cast(pl.Int64)).drop("client")

    monkeypatch.setattr(on_spark_engine, "PART_ROWS", 2)
    for run in ("r1", "r2", "r3"):
        (path,) = compact([record(tmp_path / "recorded", run, rows=5)], tmp_path / "rest")
    table = pq.ParquetFile(path).read()
    runs = pa.array(["r3", "r3", "r3", "r1", "r1"])
    table = table.set_column(0, table.schema.field(0), runs).set_column(2, table.schema.field(2), [[6, 7, 8, 6, 7]])
    pq.write_table(table, path)
    record(tmp_path / "rest", "r4", rows=5)
    with OnSpark(spark, tmp_path / "rest") as engine:
        cluster, _ = surveyed(engine)
        found = pl.concat(engine.of_clients(cluster, counted, {"run": pl.String(), "rows": pl.Int64()}, 2))
    assert sorted(found.rows()) == [("r1", 7), ("r2", 5), ("r3", 3), ("r4", 5)]


@pytest.mark.slow
@pytest.mark.spark
def test_lines_are_numbered_through_all_blocks_of_a_long_file(spark: SparkSession, tmp_path: Path) -> None:
    recording = record(tmp_path, rows=5000)
    other = record(tmp_path, "r2", rows=2000)
    append(recording, "broken\n" + json.dumps({**ROW, "seq": 6000}) + "\n")
    append(other, json.dumps({**ROW, "run": "r2", "seq": -1}) + "\n" + '{"run":"r2","no')
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        engine = OnSpark(spark, tmp_path)
        assert engine.loaded.lines is not None
        assert engine.loaded.lines.rdd.getNumPartitions() > 10
        found = engine.set_aside()
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert [(each.file, each.line, each.reason) for each in found.invalid] == [
        (str(recording), 5002, "not JSON"),
        (str(other), 2002, "seq below 1"),
    ]
    assert [(each.file, each.line) for each in found.cuts] == [(str(other), 2003)]


@pytest.mark.spark
def test_a_row_at_rest_that_is_no_event_is_set_aside_too(spark: SparkSession, tmp_path: Path) -> None:
    (path,) = compact([record(tmp_path / "recorded")], tmp_path / "rest")
    table = pq.ParquetFile(path).read()
    kinds = pa.array(["reply_received", "exploded", None])
    index = table.schema.get_field_index("kind")
    pq.write_table(table.set_column(index, pa.field("kind", pa.string()), kinds), path)
    engine = OnSpark(spark, path)
    assert [(each.file, each.line, each.reason) for each in engine.set_aside().invalid] == [
        (str(path), None, "missing field kind"),
        (str(path), None, "unknown kind exploded"),
    ]
    assert engine.loaded.events.count() == 1


def test_an_unfinished_compaction_is_not_read(tmp_path: Path) -> None:
    (path,) = compact([record(tmp_path / "recorded")], tmp_path / "rest")
    (path.parent / ".part-0.parquet.17.tmp").write_bytes(b"PAR1")
    (path.parent / ".part-1.parquet").write_bytes(b"PAR1")
    assert in_process(tmp_path / "rest").events == 3


def refused(path: Path, error: type[TraceError], text: str) -> None:
    with pytest.raises(error, match=text) as raised:
        Local(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unusable_file_is_refused_in_one_line(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", EmptyTraceError, "no such file or directory")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", EmptyTraceError, r"no \*\.ndjson and no \*\.parquet below")
    (tmp_path / "notes.txt").write_text("hello")
    refused(tmp_path / "notes.txt", NotATraceError, "neither .ndjson nor .parquet")
    (tmp_path / "empty.ndjson").touch()
    refused(tmp_path / "empty.ndjson", EmptyTraceError, "before its header was written")
    (tmp_path / "rows.ndjson").write_text(json.dumps(ROW) + "\n")
    refused(tmp_path / "rows.ndjson", NotATraceError, "not a distrocheck trace")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "empty" / "data.parquet")
    refused(tmp_path / "empty", NotATraceError, r"data\.parquet: not .* no header .* \(its columns: x\)")


@pytest.mark.spark
def test_a_file_damaged_in_the_middle_is_refused_when_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    (path,) = compact([record(tmp_path / "recorded")], tmp_path / "rest")
    data = bytearray(path.read_bytes())
    data[20:200] = bytes(180)
    path.write_bytes(data)
    with pytest.raises(TraceError, match=r"part-0\.parquet: cannot be read to its end \(") as raised:
        on_spark(spark, path)
    assert "\n" not in str(raised.value)


def test_a_newer_schema_is_refused_in_both_formats(tmp_path: Path) -> None:
    recording = record(tmp_path)
    (at_rest,) = compact([recording], tmp_path / "rest")
    recording.write_text(recording.read_text().replace('"version":2', '"version":3'))
    refused(recording, NewerTraceError, "version 3 .* up to version 2")
    table = pq.ParquetFile(at_rest).read()
    metadata = {key: value.replace(b'"version": 2', b'"version": 3') for key, value in table.schema.metadata.items()}
    pq.write_table(table.replace_schema_metadata(metadata), at_rest)
    refused(at_rest, NewerTraceError, "version 3 .* up to version 2")


def test_columns_of_another_type_are_refused(tmp_path: Path) -> None:
    (at_rest,) = compact([record(tmp_path)], tmp_path / "rest")
    table = pq.ParquetFile(at_rest).read()
    index = table.schema.get_field_index("at_ms")
    pq.write_table(table.set_column(index, "at_ms", table["at_ms"].cast(pa.string())), at_rest)
    refused(at_rest, NotATraceError, "column at_ms is string instead of int64")


def test_a_lost_last_file_at_rest_is_missed_by_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "BATCH_ROWS", 10)
    monkeypatch.setattr(run_writer, "GROUP_ROWS", 40)
    *_, last = compact([record(tmp_path / "recorded", rows=5000)], tmp_path / "rest", part_bytes=20_000)
    assert in_process(tmp_path / "rest").missing == 0
    last.unlink()
    with pytest.raises(NotATraceError, match="is not the last one"):
        in_process(tmp_path / "rest")


def test_the_same_run_in_two_files_is_refused(tmp_path: Path) -> None:
    recording = record(tmp_path)
    (at_rest,) = compact([recording], tmp_path / "rest")
    with pytest.raises(SameRunTwiceError, match=r"run r1 is in two files"):
        Local(tmp_path)
    assert in_process([recording, recording]).events == in_process(at_rest).events == 3
