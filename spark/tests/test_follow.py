"""Recordings that are still being written: each violation once, even after a kill, and none that the whole lacks."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Thread

import polars as pl
import pytest
from engines import in_process

from distro_spark import follow as following
from distro_spark.follow import follow
from distro_spark.sinks import KEY, ParquetSink
from distro_traces.errors import NotATraceError
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder

Simulate = Callable[[Recorder, Random], None]


def recorded(directory: Path, simulate: Simulate, runs: int) -> dict[str, bytes]:
    """By file name the text of random runs, in some of which replication goes wrong."""
    for seed in range(runs):
        with Recorder(directory, f"run{seed}", profile="strict", target="test", nodes=["a", "b", "c"]) as recorder:
            simulate(recorder, Random(seed))
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def grow(directory: Path, recordings: dict[str, bytes], part: int, of: int) -> None:
    """Append that part of each, with its header; the last line of a part may be cut."""
    directory.mkdir(exist_ok=True)
    for name, text in recordings.items():
        header = text.index(b"\n") + 1
        begin, end = (header + (len(text) - header) * number // of for number in (part, part + 1))
        with (directory / name).open("ab") as file:
            file.write(text[0 if part == 0 else begin : end])


def kept(place: Path) -> list[tuple[object, ...]]:
    parts = list(place.glob("*.parquet"))
    return sorted(pl.concat([pl.read_parquet(part) for part in parts]).select(*KEY, "id").iter_rows()) if parts else []


def of_the_whole(directory: Path, place: Path) -> list[tuple[object, ...]]:
    """Without the violations that depend on the end of a run."""
    in_process(directory, sinks=[ParquetSink(place)])
    return [key for key in kept(place) if key[1] != "INV-ROUND"]


@pytest.mark.slow
def test_following_finds_the_same_as_a_check_of_the_whole(tmp_path: Path, simulate: Simulate) -> None:
    recordings = recorded(tmp_path / "whole", simulate, runs=14)
    news: list[int] = []
    growing, place = tmp_path / "growing", tmp_path / "found"
    for part in range(3):
        grow(growing, recordings, part, 3)
        follow(growing, sinks=[ParquetSink(place)], on_violations=lambda rows: news.append(rows.height), idle_s=0)
    assert kept(place) == of_the_whole(tmp_path / "whole", tmp_path / "of-whole")
    assert sum(news) == len(kept(place)) > 20
    assert len(news) > 10


KILLED = """
import os, signal, sys
from pathlib import Path
from distro_spark import follow
from distro_spark.sinks import ParquetSink

growing, found, when = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if when == "judging":
    follow.decided = die
after = die if when == "written" else lambda _: None
follow.follow(Path(growing), sinks=[ParquetSink(Path(found))], on_violations=after, idle_s=0)
"""


def run_until(when: str, *places: Path) -> int:
    command = [sys.executable, "-c", KILLED, *map(str, places), when]
    return subprocess.run(command, check=False, timeout=300).returncode


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_and_finds_everything_once(tmp_path: Path, simulate: Simulate) -> None:
    """Killed before anything was found, and after some of it was written."""
    recordings = recorded(tmp_path / "whole", simulate, runs=6)
    places = (tmp_path / "growing", tmp_path / "found")
    grow(tmp_path / "growing", recordings, 0, 2)
    assert run_until("judging", *places) == -signal.SIGKILL
    assert kept(tmp_path / "found") == []
    assert run_until("written", *places) == -signal.SIGKILL
    found = kept(tmp_path / "found")
    assert found
    grow(tmp_path / "growing", recordings, 1, 2)
    assert run_until("never", *places) == 0
    more = kept(tmp_path / "found")
    assert set(found) < set(more)
    assert len(more) == len(set(more))
    assert more == of_the_whole(tmp_path / "whole", tmp_path / "of-whole")


def claimed_twice(directory: Path) -> Path:
    """Two nodes claim each of two clients."""
    with Recorder(directory, "r1", profile="strict", target="test", nodes=["a", "b"]) as recorder:
        for client in ("c1", "c2"):
            for node in "ab":
                recorder.record(node, Kind.CLIENT_CONNECTED, at_ms=5, client=client, owned=True, revision=0, digest="X")
    return recorder.path


def test_a_run_with_a_gap_waits_until_the_missing_rows_are_there(tmp_path: Path) -> None:
    header, *lines = claimed_twice(tmp_path / "whole").read_bytes().splitlines(keepends=True)
    growing, place = tmp_path / "growing", tmp_path / "found"
    growing.mkdir()
    (growing / "r1.ndjson").write_bytes(header + b"".join(lines[2:]))
    follow(growing, sinks=[ParquetSink(place)], idle_s=0)
    assert kept(place) == []
    with (growing / "r1.ndjson").open("ab") as file:
        file.write(b"".join(lines[:2]))
    follow(growing, sinks=[ParquetSink(place)], idle_s=0)
    assert [key[3] for key in kept(place)] == ["c1", "c2"]


@pytest.mark.slow
def test_rows_written_during_the_run_are_judged(tmp_path: Path) -> None:
    header, *lines = claimed_twice(tmp_path / "whole").read_bytes().splitlines(keepends=True)
    growing = tmp_path / "growing"
    growing.mkdir()
    path = growing / "r1.ndjson"
    path.write_bytes(header)
    clients: list[str] = []

    def on_violations(found: pl.DataFrame) -> None:
        clients.extend(found["client"])

    follower = Thread(
        target=lambda: follow(growing, sinks=[ParquetSink(tmp_path / "o")], on_violations=on_violations, idle_s=4)
    )
    follower.start()
    with path.open("ab") as file:
        file.write(b"".join(lines))
    follower.join(60)
    assert sorted(clients) == ["c1", "c2"]


def test_a_large_run_is_judged_again_when_it_has_grown_by_a_tenth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulate: Simulate
) -> None:
    recordings = recorded(tmp_path / "whole", simulate, runs=1)
    looks: list[int] = []
    monkeypatch.setattr(following, "SMALL_BYTES", 0)
    monkeypatch.setattr(following, "LOOK_S", 0.05)
    monkeypatch.setattr(following, "decided", lambda files, _: looks.append(files[0].stat().st_size) or pl.DataFrame())
    grow(tmp_path / "growing", recordings, 0, 20)
    follow(tmp_path / "growing", idle_s=0.3)
    assert len(looks) == 1


def test_what_is_no_recording_ends_it_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_text("{}\n")
    with pytest.raises(NotATraceError):
        follow(tmp_path, idle_s=0)
