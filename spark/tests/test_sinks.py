"""Violations in tables: each once, however often it is found; Parquet anywhere, and a real PostgreSQL."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from engines import in_process
from pyspark.sql import SparkSession
from test_invariants import NODES, RunRecorder, call, no_rounds_of_a_node_that_has_a_snapshot

from distro_conformance.targets.jars import artifact
from distro_conformance.verdict import TargetError
from distro_spark.errors import SinkError
from distro_spark.sinks import JdbcSink, ParquetSink, Sink
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
from distro_traces.query import query

DRIVER = "org.postgresql:postgresql:42.7.7"


def record(directory: Path, run: str) -> Path:
    """Two nodes claim c1, and so they do c'2."""
    with Recorder(directory, run, profile="strict", target="test", nodes=["a", "b"]) as recorder:
        for client in ("c1", "c'2"):
            for node in "ab":
                recorder.record(node, Kind.CLIENT_CONNECTED, at_ms=5, client=client, owned=True, revision=0, digest="X")
    return recorder.path


def is_filled_once(read: Callable[[], list[dict[str, Any]]], sink: Sink, directory: Path) -> None:
    def clients() -> list[tuple[str, str, str]]:
        rows = read()
        assert {row["message"].split()[0] for row in rows} == {"b"}
        return sorted((row["invariant"], row["run"], row["client"]) for row in rows)

    first = record(directory, "r1")
    in_process(first, invariants=["INV-OWNER"], sinks=[sink])
    assert clients() == [("INV-OWNER", "r1", "c'2"), ("INV-OWNER", "r1", "c1")]
    record(directory, "r2")
    in_process(directory, invariants=["INV-OWNER"], sinks=[sink])
    assert [run for _, run, _ in clients()] == ["r1", "r1", "r2", "r2"]


def test_parquet_has_each_violation_once_and_a_query_shows_them(tmp_path: Path) -> None:
    place = tmp_path / "traces" / "violations"
    is_filled_once(lambda: pl.read_parquet(place).to_dicts(), ParquetSink(place), tmp_path / "traces")
    table = query("SELECT client, count(*) FROM violations GROUP BY client ORDER BY client", tmp_path / "traces")
    assert table.rows == [("c'2", 2), ("c1", 2)]


def two_contents_under_one_revision(run: RunRecorder) -> None:
    run.registered("X")
    run.apply("b", 1, "Y")
    run.apply("b", 1, "Z")


def an_old_copy_that_confirms_twice(run: RunRecorder) -> None:
    run.registered()
    run.change("a", 2, "Y")
    for _ in range(2):
        call(run, "a", "b", "VERIFY", revision=2)


def a_copy_that_comes_back_twice(run: RunRecorder) -> None:
    run.registered()
    run.disconnect("a")
    run.remove("bc")
    for _ in range(2):
        run.row("b", Kind.NODE_STOPPED)
        run.row("b", Kind.NODE_STARTED)
        run.apply("b", 1, "X")
        run.wait(300_000)
    run.remove("b")


@pytest.mark.parametrize(
    ("invariant", "record"),
    [
        ("INV-ROUND", no_rounds_of_a_node_that_has_a_snapshot),
        ("INV-REV", two_contents_under_one_revision),
        ("INV-VERIFY", an_old_copy_that_confirms_twice),
        ("INV-RESURRECT", a_copy_that_comes_back_twice),
    ],
)
def test_two_violations_with_the_same_first_event_are_two_rows(
    tmp_path: Path, invariant: str, record: Callable[[RunRecorder], object]
) -> None:
    """They differ in the member that is left out, the content, the answer, or the copy."""
    with Recorder(tmp_path, "r", profile="strict", target="test", nodes=NODES) as recorder:
        record(RunRecorder(recorder))
    for _ in range(2):
        found = in_process(tmp_path / "r.ndjson", invariants=[invariant], sinks=[ParquetSink(tmp_path / "violations")])
    assert len({each.first_event for each in found.violations}) == 1
    rows = pl.read_parquet(tmp_path / "violations")
    assert sorted(rows["message"]) == sorted(each.message for each in found.violations)
    assert rows["id"].n_unique() == len(found.violations) == 2


@pytest.mark.spark
def test_a_sink_that_cannot_be_written_is_named_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path, "r1")
    (tmp_path / "file").touch()
    for sink, text in (
        (ParquetSink(tmp_path / "file" / "violations"), str(tmp_path)),
        (
            JdbcSink(spark, "jdbc:nosuch://127.0.0.1/x?password=secret"),
            "No suitable driver; add the driver.s jar: --conf spark",
        ),
    ):
        with pytest.raises(SinkError, match=text) as raised:
            in_process(path, sinks=[sink])
        assert "\n" not in str(raised.value)
        assert "secret" not in str(raised.value)


@pytest.fixture
def database() -> Iterator[str]:
    """A cluster of its own on loopback; PostgreSQL does not run as root."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin")) + [
        Path(found).parent for found in [shutil.which("initdb")] if found
    ]
    if not programs:
        pytest.skip("no PostgreSQL on this machine; on Debian: apt-get install postgresql")
    user = "nobody" if os.geteuid() == 0 else None  # codespell:ignore nobody
    place = Path(tempfile.mkdtemp(prefix="distrocheck-postgres-"))
    if user:
        shutil.chown(place, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *arguments: str) -> None:
        command = [str(programs[-1] / program), "-D", str(place / "data"), *arguments]
        log = (place.parent / f"{place.name}.log").open("ab")
        with log:
            subprocess.run(command, user=user, cwd="/", stdout=log, stderr=log, check=True, timeout=300)

    try:
        run("initdb", "-A", "trust", "-U", "distrocheck", "--no-sync")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {place}"
        run("pg_ctl", "-w", "-t", "240", "-o", settings, "start")
        try:
            yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=distrocheck"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place)
        (place.parent / f"{place.name}.log").unlink(missing_ok=True)


@pytest.fixture
def with_driver(spark: SparkSession) -> SparkSession:
    try:
        jar = asyncio.run(artifact(DRIVER, print))
    except TargetError as error:
        pytest.skip(f"no driver of PostgreSQL: {error}")
    spark.sql(f"ADD JAR '{jar}'")
    return spark


@pytest.mark.spark
@pytest.mark.slow  # Parquet, which the same lines write, has them once too; this one starts PostgreSQL
def test_a_database_has_each_violation_once(with_driver: SparkSession, database: str, tmp_path: Path) -> None:
    sink = JdbcSink(with_driver, database)
    is_filled_once(lambda: sink.read().toArrow().to_pylist(), sink, tmp_path)
