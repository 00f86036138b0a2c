"""Traces in a table of a catalog, read by the reader that the catalog has; one of Delta is in `test_incremental.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import in_process, on_spark
from pyspark.sql import SparkSession

from distro_spark import tables
from distro_spark.load import load
from distro_traces.errors import EmptyTraceError, NotATraceError, TraceError
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder

pytestmark = pytest.mark.spark


def record(directory: Path, run: str, *, rows: int = 2) -> Path:
    """So many nodes claim c1."""
    with Recorder(directory, run, profile="strict", target="test", nodes=["a", "b"]) as recorder:
        for node in "ab"[:rows]:
            recorder.record(node, Kind.CLIENT_CONNECTED, at_ms=5, client="c1", owned=True, revision=0, digest="X")
    return recorder.path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, in one of which two nodes claim a client."""
    place = tmp_path_factory.mktemp("recorded")
    record(place, "r1", rows=1)
    record(place, "r2")
    return place


@pytest.fixture(scope="module")
def name(spark: SparkSession, recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A table of these runs in the session's own catalog, with a row of a run that has no header."""
    spark.sql(f"CREATE DATABASE ops LOCATION '{tmp_path_factory.mktemp('ops')}'")
    try:
        for run in sorted(recorded.iterdir()):
            loaded = load(spark, [run])
            tables.add(spark, "table:ops.traces", loaded.events, [source.header for source in loaded.sources])
        spark.sql(
            "INSERT INTO ops.traces SELECT 'r9', node, seq, at_ms, kind, peer, message, operation, client, owned, "
            "revision, digest, outcome, detail, NULL FROM ops.traces WHERE run = 'r1'"
        )
        yield "table:ops.traces"
    finally:
        spark.sql("DROP DATABASE ops CASCADE")
        spark.conf.unset("spark.sql.catalog.lake")


@pytest.mark.slow
def test_a_table_is_judged_like_a_recording(spark: SparkSession, tmp_path: Path, recorded: Path, name: str) -> None:
    alone = in_process(recorded, invariants=["INV-OWNER"])
    found = on_spark(spark, [name, record(tmp_path, "r3")], invariants=["INV-OWNER"])
    messages = {each.run: each.message for each in found.violations}
    assert messages == dict.fromkeys(("r2", "r3"), alone.violations[0].message)
    assert (found.runs, found.events, found.missing) == (3, 5, 0)
    assert [(each.reason, each.file, each.line) for each in found.quarantine] == [("run r9 has no header", name, None)]


@pytest.mark.slow
def test_another_table_is_refused_in_one_line(spark: SparkSession, name: str) -> None:
    spark.sql("CREATE VIEW ops.narrow AS SELECT run, node FROM ops.traces")
    spark.sql("CREATE VIEW ops.odd AS SELECT * EXCEPT (seq), string(seq) seq FROM ops.traces")
    spark.sql("CREATE VIEW ops.headless AS SELECT * EXCEPT (header), string(null) header FROM ops.traces")
    spark.conf.set("spark.sql.catalog.lake", "org.example.NoSuchCatalog")
    cases: list[tuple[str, type[TraceError], str]] = [
        ("ops.nothing", EmptyTraceError, "cannot be found"),
        ("a b", EmptyTraceError, "Syntax error"),
        ("lake.ops.traces", EmptyTraceError, "NoSuchCatalog.*--conf"),
        ("ops.narrow", NotATraceError, "column seq is missing"),
        ("ops.odd", NotATraceError, "column seq is string instead of bigint"),
        ("ops.headless", EmptyTraceError, "no row has a header"),
    ]
    for table, error, text in cases:
        with pytest.raises(error, match=text) as raised:
            load(spark, [f"table:{table}"])
        assert str(raised.value).startswith(f"table:{table}: ")
        assert "\n" not in str(raised.value)
