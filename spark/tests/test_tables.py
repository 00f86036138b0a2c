"""Traces in a table of a catalog, read by the reader that the catalog has: of Spark itself, and of Delta."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from delta import settings_of_delta
from engines import on_spark
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


@pytest.fixture
def name(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of two runs, in one of which two nodes claim a client, in the session's own catalog."""
    spark.sql(f"CREATE DATABASE ops LOCATION '{tmp_path}/ops'")
    try:
        for run in ("r1", "r2"):
            loaded = load(spark, [record(tmp_path / "recorded", run, rows=2 if run == "r2" else 1)])
            tables.add(spark, "table:ops.traces", loaded.events, [source.header for source in loaded.sources])
        yield "table:ops.traces"
    finally:
        spark.sql("DROP DATABASE ops CASCADE")
        spark.conf.unset("spark.sql.catalog.lake")


@pytest.mark.slow
def test_a_table_is_judged_like_a_recording(spark: SparkSession, tmp_path: Path, name: str) -> None:
    found = on_spark(spark, name, invariants=["INV-OWNER"])
    recorded = on_spark(spark, tmp_path / "recorded", invariants=["INV-OWNER"])
    assert [(each.run, each.message) for each in found.violations] == [("r2", recorded.violations[0].message)]
    assert (found.runs, found.events, found.missing) == (2, 3, 0)
    both = on_spark(spark, [name, record(tmp_path / "more", "r3")], invariants=["INV-OWNER"])
    assert sorted(each.run for each in both.violations) == ["r2", "r3"]


@pytest.mark.slow
def test_a_row_of_a_run_without_header_is_set_aside(spark: SparkSession, name: str) -> None:
    spark.sql(
        "INSERT INTO ops.traces SELECT 'r9', node, seq, at_ms, kind, peer, message, operation, client, owned, "
        "revision, digest, outcome, detail, NULL FROM ops.traces WHERE run = 'r1'"
    )
    found = on_spark(spark, name, invariants=["INV-OWNER"])
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


ON_DELTA = """
import json, sys
from distro_spark import tables
from distro_spark.check import check
from distro_spark.load import load
from distro_spark.on_spark import OnSpark
from distro_spark.session import local_session

recording, settings = sys.argv[1:]
session = local_session("local[1]", small=True, settings=json.loads(settings))
loaded = load(session, [recording])
tables.add(session, "table:traces", loaded.events, [source.header for source in loaded.sources])
print(session.sql("DESCRIBE DETAIL traces").collect()[0]["format"])
with OnSpark(session, "table:traces") as engine:
    found = check(engine, invariants=["INV-OWNER"])
print(found.events, *(violation.run for violation in found.violations))
session.stop()
"""


@pytest.mark.slow
def test_a_table_of_delta_is_read(tmp_path: Path) -> None:
    """Into one violations are merged by `test_incremental.py`."""
    settings = json.dumps(settings_of_delta(tmp_path / "warehouse"))
    command = [sys.executable, "-c", ON_DELTA, str(record(tmp_path, "r1")), settings]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines() == ["delta", "2 r1"], done.stderr[-2000:]
