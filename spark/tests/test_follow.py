"""Recordings that are still being written: each violation once, whoever is killed, and none that the whole lacks."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from distro_spark.check import check
from distro_spark.follow import Follower, follow
from distro_spark.sinks import ParquetSink
from distro_spark.tail import Tail, recordings_below
from distro_traces.errors import NotATraceError
from distro_traces.event import Kind
from distro_traces.ndjson import LINE_BYTES_MAX, Recorder

pytestmark = pytest.mark.spark

Simulate = Callable[[Recorder, Random], None]
KEY = ("invariant", "run", "client", "node", "first_node", "first_seq")


def recorded(directory: Path, simulate: Simulate, runs: int) -> dict[str, list[bytes]]:
    """By file name the lines of random runs, in some of which replication goes wrong."""
    for seed in range(runs):
        with Recorder(directory, f"run{seed}", profile="strict", target="test", nodes=["a", "b", "c"]) as recorder:
            simulate(recorder, Random(seed))
    return {path.name: path.read_bytes().splitlines(keepends=True) for path in sorted(directory.iterdir())}


def grow(directory: Path, recordings: dict[str, list[bytes]], part: int, of: int) -> None:
    """Append that part of each; a file whose part is empty appears later, and the last line of a part is cut."""
    directory.mkdir(exist_ok=True)
    for name, lines in recordings.items():
        text = b"".join(lines)
        begin, end = (len(text) * number // of for number in (part, part + 1))
        with (directory / name).open("ab") as file:
            file.write(text[begin:end])


def kept(session: SparkSession, out: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row[name] for name in KEY) for row in ParquetSink(str(out)).read(session).collect())


def of_the_whole(session: SparkSession, directory: Path, out: Path) -> list[tuple[object, ...]]:
    check(session, directory, sinks=[ParquetSink(str(out))])
    return kept(session, out)


@pytest.mark.slow
def test_what_is_found_meanwhile_is_what_a_check_of_the_whole_finds(
    spark: SparkSession, tmp_path: Path, simulate: Simulate
) -> None:
    recordings = recorded(tmp_path / "whole", simulate, runs=14)
    news: list[int] = []
    sink = ParquetSink(str(tmp_path / "found"))
    follower = Follower(
        spark, tmp_path / "growing", tmp_path / "out", None, [sink], lambda rows: news.append(len(rows))
    )
    grow(tmp_path / "growing", recordings, 0, 4)
    stream = follower.start()
    try:
        for part in range(1, 4):
            stream.processAllAvailable()
            grow(tmp_path / "growing", recordings, part, 4)
        stream.processAllAvailable()
    finally:
        stream.stop()
    found = kept(spark, tmp_path / "found")
    assert len(news) > 2, "nothing was found before the end"
    assert sum(news) == len(found) == len(set(found))
    whole = of_the_whole(spark, tmp_path / "whole", tmp_path / "of-whole")
    assert set(found) <= set(whole)
    # What is left to the end: a round that nobody kept.
    assert {key[0] for key in set(whole) - set(found)} <= {"INV-ROUND"}
    check(spark, tmp_path / "growing", sinks=[sink])
    assert kept(spark, tmp_path / "found") == whole


KILLED = """
import os, signal, sys
from pathlib import Path
from distro_spark import follow
from distro_spark.session import local_session
from distro_spark.sinks import ParquetSink

growing, out, found, when = sys.argv[1:]

def die(*_):
    os.killpg(0, signal.SIGKILL)

if when == "judging":
    follow.judged = die
session = local_session("local[2]", small=True)
after = die if when == "written" else lambda _: None
follow.follow(session, Path(growing), Path(out), sinks=[ParquetSink(found)], on_news=after, idle_s=1)
"""


def run_until(when: str, *places: Path) -> int:
    command = [sys.executable, "-c", KILLED, *map(str, places), when]
    return subprocess.run(command, start_new_session=True, check=False, timeout=300).returncode


@pytest.mark.slow
def test_killed_in_the_middle_of_a_batch_it_goes_on_and_finds_everything_once(
    spark: SparkSession, tmp_path: Path, simulate: Simulate
) -> None:
    """Killed with all of its processes: before anything was found, and after that was written, but not committed."""
    recordings = recorded(tmp_path / "whole", simulate, runs=6)
    places = (tmp_path / "growing", tmp_path / "out", tmp_path / "found")
    grow(tmp_path / "growing", recordings, 0, 2)
    assert run_until("judging", *places) == -signal.SIGKILL
    assert kept(spark, tmp_path / "found") == []
    assert run_until("written", *places) == -signal.SIGKILL
    found = kept(spark, tmp_path / "found")
    assert found
    grow(tmp_path / "growing", recordings, 1, 2)
    assert run_until("never", *places) == 0
    more = kept(spark, tmp_path / "found")
    assert set(found) < set(more)
    assert len(more) == len(set(more))
    whole = of_the_whole(spark, tmp_path / "whole", tmp_path / "of-whole")
    assert [key for key in whole if key[0] != "INV-ROUND"] == more


def rows_of_overlap(recorder: Recorder, nodes: Sequence[str], client: str) -> None:
    """Two nodes claim one client."""
    for node in nodes:
        recorder.record(node, Kind.CLIENT_CONNECTED, at_ms=5, client=client, owned=True, revision=0, digest="X")


@pytest.mark.slow
def test_a_run_with_a_gap_waits_until_the_missing_rows_are_there(spark: SparkSession, tmp_path: Path) -> None:
    with Recorder(tmp_path / "whole", "r1", profile="strict", target="test", nodes=["a", "b"]) as recorder:
        rows_of_overlap(recorder, "ab", "c1")
        rows_of_overlap(recorder, "ab", "c2")
    header, *lines = recorder.path.read_bytes().splitlines(keepends=True)
    growing = tmp_path / "growing"
    growing.mkdir()
    (growing / "r1.ndjson").write_bytes(header + b"".join(lines[2:]))
    found = ParquetSink(str(tmp_path / "found"))
    follower = Follower(spark, growing, tmp_path / "out", ["INV-OWNER"], [found])
    stream = follower.start()
    try:
        stream.processAllAvailable()
        assert kept(spark, tmp_path / "found") == []
        with (growing / "r1.ndjson").open("ab") as file:
            file.write(b"".join(lines[:2]))
        stream.processAllAvailable()
    finally:
        stream.stop()
    assert [key[2] for key in kept(spark, tmp_path / "found")] == ["c1", "c2"]


@pytest.mark.slow  # a run that has grown is looked at in the tests above too; here it is how often
def test_a_long_run_is_looked_at_when_it_has_grown_and_in_the_end(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten batches of as many rows each; what the last of them brings is found when nothing more comes."""
    monkeypatch.setattr("distro_spark.follow.SMALL_ROWS", 0)
    monkeypatch.setattr("distro_spark.follow.GROWTH", 1.0)
    with Recorder(tmp_path / "whole", "r1", profile="strict", target="test", nodes=["a", "b"]) as recorder:
        for number in range(10):
            rows_of_overlap(recorder, "ab", f"c{number}")
    header, *lines = recorder.path.read_bytes().splitlines(keepends=True)
    growing, found, looks = tmp_path / "growing", ParquetSink(str(tmp_path / "found")), []
    growing.mkdir()
    (growing / "r1.ndjson").write_bytes(header)
    follower = Follower(spark, growing, tmp_path / "out", ["INV-OWNER"], [found], lambda rows: looks.append(len(rows)))
    stream = follower.start()
    try:
        for number in range(10):
            with (growing / "r1.ndjson").open("ab") as file:
                file.write(b"".join(lines[2 * number : 2 * number + 2]))
            stream.processAllAvailable()
        assert looks == [1, 1, 2, 4]
        follower.look_at_the_rest()
        follower.look_at_the_rest()
        assert looks == [1, 1, 2, 4, 2]
    finally:
        stream.stop()
    assert [key[2] for key in kept(spark, tmp_path / "found")] == [f"c{number}" for number in range(10)]


def test_a_line_is_read_once_it_is_whole_and_by_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "r.ndjson").write_bytes(b"header\nx\n")
    path = tmp_path / "r.ndjson"
    path.write_bytes(b"header\na\n" + b"x" * (LINE_BYTES_MAX + 30) + b"\nb\ncut")
    assert recordings_below(tmp_path) == [path]
    tail = Tail(tmp_path)
    first = dict(tail.latestOffset())
    with path.open("ab") as file:
        file.write(b" no more\n")
    second = dict(tail.latestOffset())

    def lines(start: dict[str, int], end: dict[str, int]) -> list[tuple[str, int]]:
        batches = [batch for piece in tail.partitions(start, end) for batch in tail.read(piece)]
        rows = [row for batch in batches for row in batch.to_pylist()]
        return [(row["text"][:9], row["bytes"]) for row in rows]

    for piece_bytes in (1 << 18, 1 << 19, 1 << 30):
        monkeypatch.setattr("distro_spark.tail.PIECE_BYTES", piece_bytes)
        assert lines({}, first) == [("a", 2), ("xxxxxxxxx", LINE_BYTES_MAX + 31), ("b", 2)]
    for piece_bytes in range(1, 20):  # begins and ends within lines, and where they do
        monkeypatch.setattr("distro_spark.tail.PIECE_BYTES", piece_bytes)
        assert lines(first, second) == [("cut no mo", 12)]
        (tmp_path / "short").write_bytes(b"header\na\n\nbcd\ne\n")
        short = {str(tmp_path / "short"): 16}
        assert lines({}, short) == [("a", 2), ("", 1), ("bcd", 4), ("e", 2)]


def test_what_is_no_recording_ends_it_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.ndjson").write_text("hello\n")
    with pytest.raises(NotATraceError, match=r"notes\.ndjson: not a distrocheck trace"):
        follow(spark, tmp_path, tmp_path / "out", sinks=[ParquetSink(str(tmp_path / "found"))])
