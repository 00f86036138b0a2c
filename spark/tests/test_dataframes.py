"""Violations as a DataFrame: the rows of the engine in this process, under a key by which they are merged."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from engines import in_process
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.simulation.faults import faults_named
from distro_spark.arrow import frame
from distro_spark.dataframes import violations
from distro_spark.errors import UnknownInvariantError
from distro_spark.load import load
from distro_spark.sinks import COLUMNS, ParquetSink
from distro_traces.compact import compact
from distro_traces.errors import EmptyTraceError, NotATraceError
from distro_traces.event import Kind
from distro_traces.nacos_logs.importer import import_logs
from distro_traces.ndjson import Recorder, read_ndjson

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SERVERS = ROOT / "conformance" / "tests" / "data" / "real-cluster-2.2.4"
CLIENT = "1716170760000_10.0.0.1_40001"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real servers, with known defects; a mutant, with new ones; logs of which a part is missing; and a run that is not
    judged since its clock goes back."""
    place = tmp_path_factory.mktemp("corpus")
    shutil.copytree(SERVERS, place / "servers")
    faults = faults_named("all")
    simulate(SimulationOptions(out=place / "mutant", mutant="B02", clients=3, duration_s=60, seed=2, faults=faults))
    lines = {
        "naming-server.log.9": f"10:00:05,000 INFO Client connection {CLIENT} connect",
        "naming-server.log.8": "10:01:40,000 INFO all is well",
        "naming-server.log.6": "10:06:41,000 INFO all is well",
        "naming-distro.log.9": "10:00:00,000 INFO all is well",
        "naming-distro.log.8": f"10:06:40,000 INFO [Client-Delete] Received distro client sync data {CLIENT}",
    }
    (place / "logs" / "n0").mkdir(parents=True)
    for name, line in lines.items():
        (place / "logs" / "n0" / name).write_text(f"2024-05-20 {line}\n")
    import_logs(place / "logs", place / "imported", profile="nacos-2.3.2")
    with Recorder(place / "back", "back", profile="strict", target="test", clock="virtual", nodes=["a", "b"]) as run:
        for node, at_ms in (("a", 5), ("b", 5), ("a", 4)):
            client = {"client": "c1", "owned": True, "revision": 0, "digest": "X"}
            run.record(node, Kind.CLIENT_CONNECTED, at_ms=at_ms, **client)  # type: ignore[arg-type]
    return place


@pytest.fixture(scope="module")
def tables(spark: SparkSession, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFrame, DataFrame]:
    return tables_of(spark, corpus, tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def of_servers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[DataFrame, DataFrame]:
    """Of one recording, in two files that are written without Spark."""
    place = tmp_path_factory.mktemp("servers")
    (recording,) = SERVERS.glob("*.ndjson")
    (at_rest,) = compact([recording], place / "rest")
    rows = pq.ParquetFile(at_rest).read()
    (place / "events").mkdir()
    half = len(rows) // 2
    for number, part in enumerate((rows.slice(0, half), rows.slice(half))):
        pq.write_table(part, place / "events" / f"part-{number}.parquet")
    header = read_ndjson(recording).header
    runs = spark.createDataFrame([(header.run, json.dumps(header.to_json()))], "run string, header string")
    return spark.read.parquet(str(place / "events")), runs


def tables_of(spark: SparkSession, recordings: Path, place: Path) -> tuple[DataFrame, DataFrame]:
    """Events and runs, as two tables hold them: the events in no order."""
    loaded = load(spark, [recordings])
    loaded.events.drop("profile").orderBy(F.xxhash64("run", "node", "seq")).write.parquet(str(place / "events"))
    lines = [(each.header.run, json.dumps(each.header.to_json())) for each in loaded.sources]
    spark.createDataFrame(lines, "run string, header string").write.parquet(str(place / "runs"))
    return spark.read.parquet(str(place / "events")), spark.read.parquet(str(place / "runs"))


@pytest.mark.slow
def test_two_tables_give_the_rows_of_the_engine_in_this_process(
    corpus: Path, tables: tuple[DataFrame, DataFrame], tmp_path: Path
) -> None:
    checked = in_process(corpus, sinks=[ParquetSink(tmp_path / "expected")])
    assert any("in their time logs are missing" in reason for reason in checked.reasons)
    assert any("the virtual clock of a goes back from 5 ms to 4 ms" in reason for reason in checked.reasons)
    expected = pl.read_parquet(tmp_path / "expected").sort("id")
    assert 0 < expected["known"].null_count() < expected.height == expected["id"].n_unique()
    found = violations(*tables)
    assert found.columns == list(COLUMNS)
    assert frame(found).sort("id").equals(expected)


def test_rows_of_clients_are_judged_when_they_are_asked_for_by_one_exchange(
    of_servers: tuple[DataFrame, DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    violations(*of_servers).explain()
    plan = capsys.readouterr().out
    assert "MapInArrow" in plan
    assert re.findall(r"(?<!Broadcast)Exchange (\w+)", plan) == ["SinglePartition"]


@pytest.mark.slow
def test_merged_twice_by_its_key_the_table_stays_the_same(
    spark: SparkSession, tables: tuple[DataFrame, DataFrame], tmp_path: Path
) -> None:
    """A format without MERGE; of those with it `test_incremental.py` has Delta."""
    events, runs = tables
    place = tmp_path / "violations"
    mutant = runs.where("run <> 'real-cluster'")
    violations(events, mutant).write.parquet(str(place))
    before = frame(spark.read.parquet(str(place)))
    sizes = []
    for _ in range(2):
        known = spark.read.parquet(str(place))
        violations(events, runs).join(known, "id", "left_anti").write.parquet(str(place), mode="append")
        sizes.append(spark.read.parquet(str(place)).count())
    after = frame(spark.read.parquet(str(place))).sort("id")
    assert 0 < before.height < sizes[0] == sizes[1] == after["id"].n_unique()
    assert after.equals(frame(violations(events, runs)).sort("id"))


def test_tables_that_do_not_fit_are_refused_in_one_line(of_servers: tuple[DataFrame, DataFrame]) -> None:
    events, runs = of_servers
    other = runs.withColumn("header", F.regexp_replace("header", '"target": *"[^"]*"', '"target": "another"'))
    cases: list[tuple[DataFrame, DataFrame, type[Exception], str]] = [
        (events.drop("seq"), runs, NotATraceError, "^events: .* column seq is missing"),
        (events.withColumn("seq", F.col("seq").cast("string")), runs, NotATraceError, "^events: .* seq is string"),
        (events, runs.drop("header"), NotATraceError, "^runs: not a table of runs, its column header is missing"),
        (events, runs.where("false"), EmptyTraceError, "^runs: no row has a header"),
        (events, runs.withColumn("run", F.lit("r9")), NotATraceError, "^runs: the header of run r9 is that of run"),
        (events, runs.withColumn("header", F.lit("{}")), NotATraceError, "^runs: run .* not a distrocheck trace"),
        (events, runs.union(other), NotATraceError, "^runs: run .* has two headers that differ"),
    ]
    for rows, headers, error, text in cases:
        with pytest.raises(error, match=text) as raised:
            violations(rows, headers)
        assert "\n" not in str(raised.value)
    with pytest.raises(UnknownInvariantError):
        violations(events, runs, ["INV-NONE"])
