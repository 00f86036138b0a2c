"""A long run lies in several files, while it is recorded and at rest; a recorder that dies loses one line at most."""

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from distro_traces import run_writer
from distro_traces.compact import by_run, compact, read_manifest, recordings_at
from distro_traces.errors import EmptyTraceError, NotATraceError
from distro_traces.event import Event, Kind
from distro_traces.ndjson import LINE_BYTES_MAX, Recorder, read_header, read_ndjson
from distro_traces.parquet import parts_of, read_parquet
from distro_traces.reading import read_run


def record(directory: Path, events: int, *, run: str = "long", segment_bytes: int = 2000) -> Path:
    with Recorder(directory, run, profile="strict", target="test", segment_bytes=segment_bytes) as recorder:
        for number in range(events):
            recorder.record("ab"[number % 2], Kind.CLIENT_CHANGED, at_ms=number, client=f"c{number % 5}", digest="d")
    return recorder.path


def test_a_recording_goes_on_in_a_further_file_before_one_grows_too_large(tmp_path: Path) -> None:
    first = record(tmp_path, 100)
    segments = recordings_at(first)
    assert len(segments) > 2
    assert all(path.stat().st_size < 2200 for path in segments)
    assert sorted(read_header(path).segment for path in segments) == list(range(1, len(segments) + 1))
    (ordered,) = by_run(segments)
    assert [event.at_ms for path in ordered for event in read_ndjson(path).events] == list(range(100))


def test_segments_at_rest_are_one_run_in_files_that_are_neither_small_nor_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "BATCH_ROWS", 10)
    monkeypatch.setattr(run_writer, "GROUP_ROWS", 40)
    record(tmp_path / "recorded", 2000)
    parts = compact(recordings_at(tmp_path / "recorded"), tmp_path / "rest", part_bytes=20_000)
    sizes = [path.stat().st_size for path in parts]
    assert len(parts) > 2
    assert all(10_000 <= size <= 60_000 for size in sizes), sizes  # the footers weigh much at this size
    assert parts_of(parts[0].parent) == parts
    at_rest = read_parquet(parts[0].parent)
    assert [(event.node, event.seq) for event in at_rest.events] == [(n, s) for n in "ab" for s in range(1, 1001)]
    (listed,) = read_manifest(tmp_path / "rest")
    assert (listed["run"], listed["events"]) == ("long", 2000)
    assert [(file["path"], file["bytes"]) for file in listed["files"]] == [
        (f"run=long/part-{number}.parquet", size) for number, size in enumerate(sizes)
    ]
    assert pq.ParquetFile(parts[0]).metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_missing_segment_is_named(tmp_path: Path) -> None:
    first = record(tmp_path, 100)
    (tmp_path / "long.2.ndjson").unlink()
    with pytest.raises(NotATraceError, match=r"run long: segments \[1, 3, .* instead of 1 to"):
        compact(recordings_at(first), tmp_path / "rest")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyTraceError, match=r"no \*\.ndjson below"):
        recordings_at(tmp_path / "empty")


def test_a_last_file_at_rest_that_is_lost_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "BATCH_ROWS", 10)
    monkeypatch.setattr(run_writer, "GROUP_ROWS", 40)
    parts = compact([record(tmp_path, 2000, segment_bytes=10**6)], tmp_path / "rest", part_bytes=20_000)
    assert len(read_run(tmp_path / "rest").events) == 2000
    parts[-1].unlink()
    lost = rf"run long: segment {len(parts) - 1} is not the last one, and no further one is in .*part-0\.parquet"
    with pytest.raises(NotATraceError, match=lost):
        read_run(tmp_path / "rest")


def test_rows_out_of_order_are_sorted_at_rest(tmp_path: Path) -> None:
    first = record(tmp_path, 10, segment_bytes=10**6)
    header, *rows = first.read_text().splitlines()
    first.write_text("\n".join([header, *reversed(rows), ""]))
    (part,) = compact([first], tmp_path / "rest")
    assert [(event.node, event.seq) for event in read_parquet(part).events] == [
        (n, s) for n in "ab" for s in range(1, 6)
    ]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "BATCH_ROWS", 100)
    monkeypatch.setattr(run_writer, "GROUP_ROWS", 400)

    def peak(events: int) -> int:
        path = record(tmp_path, events, run=f"of-{events}", segment_bytes=10**9)
        tracemalloc.start()
        compact([path], tmp_path / "rest")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # loads modules
    small = peak(2_000)
    assert peak(20_000) < small * 1.5


def test_a_line_without_end_is_set_aside_and_not_taken_into_memory(tmp_path: Path) -> None:
    first = record(tmp_path, 2, segment_bytes=10**6)
    with first.open("ab") as file:
        for _ in range(64):
            file.write(b"x" * LINE_BYTES_MAX)
        file.write(b"\n")
    tracemalloc.start()
    trace = read_ndjson(first)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * LINE_BYTES_MAX
    assert [(row.line, row.reason, len(row.text)) for row in trace.rejected] == [
        (4, "longer than 1 MiB", LINE_BYTES_MAX)
    ]


RECORDS_UNTIL_KILLED = """
import sys
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
recorder = Recorder(sys.argv[1], "killed", profile="strict", target="test", segment_bytes=20_000)
number = 0
while True:
    number += 1
    recorder.record("a", Kind.CLIENT_CHANGED, at_ms=number, client="c" * 200, detail="ü" * 100)
    print(number, flush=True)
"""


@pytest.mark.parametrize("after_s", [0.1, 0.25, 0.4])
def test_kill_9_loses_one_line_at_most(tmp_path: Path, after_s: float) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RECORDS_UNTIL_KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=os.environ
    ) as recording:
        assert recording.stdout is not None
        recording.stdout.readline()
        time.sleep(after_s)
        recording.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in recording.stdout.read().splitlines() if line.strip()]
    (segments,) = by_run(recordings_at(tmp_path))
    traces = [read_ndjson(path) for path in segments]
    events: list[Event] = [event for trace in traces for event in trace.events]
    assert len(segments) > 1
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(events) >= max(acknowledged[:-1], default=1)  # the last number may itself be cut
    assert all(trace.cut is None for trace in traces[:-1])
    assert sum(len(trace.rejected) for trace in traces) == 0
