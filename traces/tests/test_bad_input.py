"""What is wrong with a trace is told in a sentence that says where, by every reader that does not need Spark.

Each case makes one thing wrong with a good recording. Either the whole is refused in one line that names the file, or
the row is set aside with its line and the reason, and everything else is read.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distro_traces.compact import compact
from distro_traces.errors import TraceError
from distro_traces.event import Kind
from distro_traces.ndjson import LINE_BYTES_MAX, Recorder, read_ndjson, stream_ndjson
from distro_traces.query import query
from distro_traces.reading import read_run

COUNT = "SELECT count(*) FROM events"
LONG_BYTES = 64 * LINE_BYTES_MAX


def recorded(directory: Path, run: str = "r1", rows: int = 3) -> Path:
    with Recorder(directory, run, profile="strict", target="test", nodes=["a"]) as recorder:
        for at_ms in range(rows):
            recorder.record("a", Kind.CHECKPOINT, at_ms=at_ms, detail=str(at_ms))
    return recorder.path


def appended(path: Path, *lines: bytes) -> Path:
    with path.open("ab") as file:
        for line in lines:
            file.write(line + b"\n")
    return path


def event(seq: int, **fields: object) -> bytes:
    return json.dumps({"run": "r1", "node": "a", "seq": seq, "at_ms": 9, "kind": "checkpoint", **fields}).encode()


def foreign_parquet(at: Path) -> Path:
    pq.write_table(pa.table({"x": [1]}), at / "part-0.parquet")
    return at


def cut_parquet(at: Path) -> Path:
    (file,) = compact([recorded(at / "recorded")], at / "rest")
    file.write_bytes(file.read_bytes()[:-40])
    return at / "rest"


def newer(at: Path) -> Path:
    path = recorded(at)
    path.write_text(path.read_text().replace('"version":2', '"version":9'))
    return path


def no_header(at: Path) -> Path:
    return appended(at / "rows.ndjson", event(1))


def two_of_one_name(at: Path) -> Path:
    recorded(at / "one")
    recorded(at / "other")
    return at


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a path that is not there": (lambda at: at / "nowhere", "no such file or directory"),
    "an empty directory": (lambda at: at, "no *.ndjson below"),
    "a file of another kind": (lambda at: appended(at / "notes.txt", b"hello"), "neither .ndjson nor .parquet"),
    "an empty file": (lambda at: appended(at / "r1.ndjson"), "before its header was written"),
    "rows without a header": (no_header, "not a distrocheck trace"),
    "a foreign Parquet file": (foreign_parquet, "not a distrocheck trace"),
    "a Parquet file cut in the middle": (cut_parquet, "not a whole Parquet file"),
    "a newer schema": (newer, "written with version 9 of the trace schema, this distrocheck reads up to version 2"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("read", [lambda path: query(COUNT, path), read_run], ids=["query", "read_run"])
def test_what_cannot_be_used_is_refused_in_one_line_that_names_it(
    read: Callable[[Path], object], name: str, tmp_path: Path
) -> None:
    make, complaint = REFUSED[name]
    with pytest.raises(TraceError) as raised:
        read(make(tmp_path))
    assert complaint in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


SET_ASIDE: dict[str, tuple[tuple[bytes, ...], list[tuple[int, str]], int]] = {
    "a line that is no JSON": ((b"\xff\xfe{", event(4)), [(5, "not JSON")], 4),
    "a row of another run": ((event(4, run="r2"),), [(5, "run r2 has no header")], 3),
    "a kind that nobody knows": ((event(4, kind="exploded"),), [(5, "unknown kind exploded")], 3),
    "a line that is too long": (
        (b'{"run":"r1","detail":"' + b"x" * LONG_BYTES + b'"}', event(4)),
        [(5, "longer than 1 MiB")],
        4,
    ),
    "a clock that goes backwards": ((event(4, at_ms=-5),), [], 4),
    "a row that comes twice": ((event(3),), [], 4),
    "a gap": ((event(40),), [], 4),
}
"""Rows that are appended to a good recording of three; what is set aside, with its line; how many events there are.
The last three are events: `check` counts what is missing and what comes twice, and goes by no clock."""


@pytest.mark.parametrize("name", SET_ASIDE)
def test_a_row_that_does_not_fit_is_set_aside_with_its_line_and_the_others_are_read(name: str, tmp_path: Path) -> None:
    lines, rejected, events = SET_ASIDE[name]
    found = read_ndjson(appended(recorded(tmp_path), *lines))
    assert [(row.line, row.reason) for row in found.rejected] == rejected
    assert len(found.events) == events


def test_a_long_line_costs_no_more_memory_than_the_longest_that_is_taken(tmp_path: Path) -> None:
    path = appended(recorded(tmp_path), b"x" * LONG_BYTES, event(4))
    tracemalloc.start()
    try:
        assert sum(1 for _ in stream_ndjson(path)) == 5
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * LINE_BYTES_MAX


def test_a_query_names_the_line_that_is_too_long(tmp_path: Path) -> None:
    path = appended(recorded(tmp_path), b"x" * LONG_BYTES, event(4))
    with pytest.raises(TraceError) as raised:
        query(COUNT, path)
    assert str(raised.value) == f"{path}: line 5 is longer than 1 MiB, and no event is; take it out of the file"


def test_a_recording_cut_in_the_middle_of_a_line_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    found = read_ndjson(path)
    assert (len(found.events), found.cut is not None and found.cut.line) == (2, 4)
    assert query(COUNT, path).rows == [(2,)]


def test_two_recordings_of_one_run_are_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as raised:
        read_run(two_of_one_name(tmp_path))
    assert "r1" in str(raised.value)
