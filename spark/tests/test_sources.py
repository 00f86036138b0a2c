"""Places of traces: any file system that the session can read, named as Spark names it; many traces or few."""

from pathlib import Path

import pytest
from engines import on_spark
from pyspark.sql import SparkSession

from distro_spark.load import discover
from distro_traces.compact import compact
from distro_traces.errors import EmptyTraceError, NotATraceError, TraceError, UnreadableTraceError
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder

pytestmark = pytest.mark.spark


def record(directory: Path, run: str) -> Path:
    with Recorder(directory, run, profile="strict", target="test", nodes=["a"]) as recorder:
        recorder.record("a", Kind.NODE_STARTED, at_ms=0, detail="a")
        recorder.record("a", Kind.CHECKPOINT, at_ms=5000, detail="1")
    return recorder.path


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> str:
    """`tmp_path` as a file system that Python cannot open: a table of mounts, as clusters of several HDFS have one."""
    name = f"m{abs(hash(tmp_path))}"
    configuration = spark._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    configuration.set(f"fs.viewfs.mounttable.{name}.link./traces", tmp_path.as_uri())
    return f"viewfs://{name}/traces"


@pytest.mark.slow
def test_a_file_system_that_only_spark_can_reach(spark: SparkSession, tmp_path: Path, elsewhere: str) -> None:
    recording = record(tmp_path / "new [1] +%20ü", "r1")
    compact([record(tmp_path / "new [1] +%20ü", "r2")], tmp_path / "old")
    recording.with_name("r2.ndjson").unlink()
    with recording.open("a") as file:
        file.write("broken\n{}\n")
    found = discover(spark, [elsewhere])
    assert [(source.path, source.header.run) for source in found] == [
        (f"{elsewhere}/new [1] +%20ü/r1.ndjson", "r1"),
        (f"{elsewhere}/old/run=r2/part-0.parquet", "r2"),
    ]
    result = on_spark(spark, elsewhere)
    assert (result.runs, result.events, result.quarantined) == (2, 4, 2)
    assert {each.file for each in result.quarantine} == {found[0].path}


def test_errors_of_that_file_system_are_one_line_too(spark: SparkSession, tmp_path: Path, elsewhere: str) -> None:
    def refused(path: str, error: type[TraceError], text: str) -> None:
        with pytest.raises(error, match=text) as raised:
            discover(spark, [path])
        assert str(raised.value).startswith(path)
        assert "\n" not in str(raised.value)

    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.ndjson").touch()
    (tmp_path / "text.parquet").write_text("hello")
    refused(f"{elsewhere}/nowhere", EmptyTraceError, "no such file or directory")
    refused(f"{elsewhere}/empty", EmptyTraceError, r"no \*\.ndjson and no \*\.parquet below")
    refused(f"{elsewhere}/empty.ndjson", EmptyTraceError, "before its header was written")
    refused(f"{elsewhere}/text.parquet", NotATraceError, "not a whole Parquet file")
    refused("nosuch://place/x", UnreadableTraceError, "cannot be read .*nosuch")


def test_a_path_may_be_a_uri_of_this_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = record(tmp_path / "a b", "r1")
    monkeypatch.chdir(tmp_path)
    for name in (recording.as_uri(), str(recording), "a b/r1.ndjson", Path("a b")):
        assert [source.path for source in discover(spark, [name])] == [str(recording)]


@pytest.mark.slow
def test_no_setting_of_a_given_session_is_changed(spark: SparkSession, tmp_path: Path) -> None:
    before = dict(spark.conf.getAll)
    on_spark(spark, record(tmp_path, "r1"), convergence=True)
    assert dict(spark.conf.getAll) == before
