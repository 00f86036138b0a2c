"""Segments that arrive one after the other: each run is judged when one of its segments arrives, and no other run."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from delta import settings_of_delta
from engines import in_process
from pyspark.sql import DataFrame, SparkSession

from distro_spark.arrow import frame
from distro_spark.incremental import judged, recording
from distro_spark.sinks import ParquetSink
from distro_traces.compact import compact
from distro_traces.ndjson import Recorder

Simulate = Callable[[Recorder, Random], None]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "judge_segments.py"
RUNS = 8


@pytest.fixture
def recorded(tmp_path: Path, simulate: Simulate) -> dict[str, list[Path]]:
    """By run the segments of random runs, in some of which replication goes wrong."""
    segments: dict[str, list[Path]] = {}
    for seed in range(RUNS):
        place = tmp_path / "recorded" / f"r{seed}"
        with Recorder(
            place, f"r{seed}", profile="strict", target="test", nodes=["a", "b", "c"], segment_bytes=2000
        ) as run:
            simulate(run, Random(seed))
        segments[f"r{seed}"] = sorted(place.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert sum(len(each) > 1 for each in segments.values()) > RUNS / 2
    return segments


def arrive(segments: Sequence[Path], place: Path) -> None:
    place.mkdir(exist_ok=True)
    for segment in segments:
        hidden = shutil.copy(segment, place / f".{segment.name}")
        Path(hidden).rename(place / segment.name)


def of_the_whole(place: Path, kept: Path) -> pl.DataFrame:
    in_process(place, sinks=[ParquetSink(kept)])
    return pl.read_parquet(kept).sort("id")


def bytes_read(session: SparkSession) -> int:
    """By all tasks of the session so far, from files."""
    gateway: Any = session.sparkContext._gateway
    context: Any = session._jsc
    nothing = gateway.jvm.java.util.ArrayList()
    stages = context.sc().statusStore().stageList(None, False, False, gateway.new_array(gateway.jvm.double, 0), nothing)
    return sum(stages.apply(i).inputBytes() for i in range(stages.size()))


class Table:
    """Violations by run, in memory."""

    def __init__(self) -> None:
        self.rows = dict[str, pl.DataFrame]()
        self.batches = list[list[str]]()

    def write(self, found: DataFrame, runs: Sequence[str]) -> None:
        rows = frame(found)
        self.rows |= {run: rows.filter(run=run) for run in runs}
        self.batches.append(list(runs))

    def all(self) -> pl.DataFrame:
        return pl.concat(self.rows.values()).sort("id")


@pytest.mark.slow
@pytest.mark.spark
def test_only_the_runs_of_new_segments_are_read_and_judged(
    spark: SparkSession, tmp_path: Path, recorded: dict[str, list[Path]]
) -> None:
    place, table, costs = tmp_path / "arrived", Table(), list[int]()

    def judge() -> None:
        before = bytes_read(spark)
        stream = judged(spark, str(place), table.write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start().awaitTermination()
        costs.append(bytes_read(spark) - before)

    arrive([segments[0] for segments in recorded.values()], place)
    judge()
    grown = next(run for run, segments in recorded.items() if len(segments) > 1)
    arrive(recorded[grown][1:], place)
    judge()
    judge()
    assert table.batches == [sorted(recorded), [grown]]
    others = [run for run, segments in recorded.items() if run != grown and len(segments) > 1]
    arrive([segment for run in others for segment in recorded[run][1:]], place)
    judge()
    sizes = [sum(path.stat().st_size for run in touched for path in recorded[run]) for touched in ([grown], others)]
    assert (costs[2], sizes[0] * 3 < sizes[1]) == (0, True)
    assert all(size < cost < 5 * size for cost, size in zip((costs[1], costs[3]), sizes, strict=True))
    expected = of_the_whole(place, tmp_path / "expected")
    assert table.all().equals(expected)
    assert expected.height > 10


def test_segments_are_of_a_run_by_their_names(tmp_path: Path, recorded: dict[str, list[Path]]) -> None:
    for run, segments in recorded.items():
        assert {recording(str(segment)) for segment in segments} == {str(segments[0].parent / run)}
    parts = compact([path for segments in recorded.values() for path in segments], tmp_path / "rest")
    assert {recording(str(part)) for part in parts} == {str(tmp_path / "rest" / f"run={run}") for run in recorded}


KILLED = """
import json, os, runpy, signal, sys
from pyspark.errors import StreamingQueryException
from distro_spark import check, incremental, load, on_spark, session, tables

settings, when, kept, example = sys.argv[1:5]
merge, start = incremental.merge, session.local_session

def failed(found, runs, *, into):
    raise OSError("failed when it is judged")

def killed(found, runs, *, into):
    merge(found, runs, into=into)
    os.kill(os.getpid(), signal.SIGKILL)

spark = start("local[1]", small=True, settings=json.loads(settings))
session.local_session = lambda: spark
for table in os.scandir(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")):
    spark.sql(f"CREATE TABLE {table.name} USING delta LOCATION '{table.path}'")
sys.argv = sys.argv[4:]
if when == "killed":
    incremental.merge = failed
    try:
        runpy.run_path(example)
    except StreamingQueryException as error:
        assert "failed when it is judged" in str(error), error
        incremental.merge = killed
runpy.run_path(example)
spark.table(sys.argv[2]).write.format("parquet").save(kept)
loaded = load.load(spark, [sys.argv[1]])
tables.add(spark, "table:traces", loaded.events, [source.header for source in loaded.sources])
with on_spark.OnSpark(spark, "table:traces") as engine:
    found = check.check(engine)
print(spark.sql("DESCRIBE DETAIL traces").collect()[0]["format"], found.events, len(found.violations))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_killed_at_any_time_each_violation_is_in_the_table_once(
    tmp_path: Path, recorded: dict[str, list[Path]]
) -> None:
    """The example of the page on Delta; it fails when a batch is judged, and is killed when that is merged and not yet
    committed. Delta's reader also reads a table of traces."""
    place, kept, warehouse = tmp_path / "arrived", tmp_path / "kept", tmp_path / "warehouse"
    warehouse.mkdir()
    settings = json.dumps(settings_of_delta(warehouse))

    def judge(when: str) -> subprocess.CompletedProcess[str]:
        arguments = [settings, when, str(kept), str(EXAMPLE), str(place), "violations", str(tmp_path / "checkpoint")]
        command = [sys.executable, "-c", KILLED, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)

    arrive([segments[0] for segments in recorded.values()], place)
    ended = judge("killed")
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]
    assert (warehouse / "violations").is_dir()
    arrive([segment for segments in recorded.values() for segment in segments[1:]], place)
    done = judge("whole")
    assert done.returncode == 0, done.stderr[-3000:]
    whole = in_process(place)
    assert done.stdout.splitlines()[-1] == f"delta {whole.events} {len(whole.violations)}"
    found = pl.read_parquet(f"{kept}/*.parquet").sort("id")
    assert found.equals(of_the_whole(place, tmp_path / "expected"))
    assert found["id"].n_unique() == found.height > 10
