"""Every reader that does not need Spark reports an invalid trace in one sentence with the place of the fault.

Each case adds one fault to a valid recording. Either the whole is refused in one line that names the file, or
the row is set aside with its line and the reason, and everything else is read.
"""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distro_traces.compact import compact, recordings_at
from distro_traces.errors import TraceError, UnreadableTraceError
from distro_traces.event import Kind
from distro_traces.ndjson import LINE_BYTES_MAX, Recorder, read_ndjson, stream_ndjson
from distro_traces.query import query
from distro_traces.reading import read_run

COUNT = "SELECT count(*) FROM events"
LONG_BYTES = 64 * LINE_BYTES_MAX
LONG = b"<so many bytes>"
"""Written out when a test runs, and not when it is collected."""


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


def damaged_parquet(at: Path) -> Path:
    """Damaged between valid first and last bytes."""
    (file,) = compact([recorded(at / "recorded", rows=100)], at / "rest")
    data = bytearray(file.read_bytes())
    data[20:200] = bytes(180)
    file.write_bytes(data)
    return at / "rest"


def of_another_shape(at: Path) -> Path:
    (file,) = compact([recorded(at / "recorded")], at / "rest")
    table = pq.ParquetFile(file).read().drop_columns(["seq"])
    pq.write_table(table, file)
    return file


def packed(at: Path) -> Path:
    path = recorded(at)
    path.with_name("r1.ndjson.gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    path.unlink()
    return at


def below(make: Callable[[Path], Path], name: str) -> Callable[[Path], Path]:
    """Of what `make` makes that file."""
    return lambda at: make(at) / name


def text_as_parquet(at: Path) -> Path:
    (at / "notes.parquet").write_text("hello")
    return at


def directory_called(name: str) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        (at / name).mkdir()
        return at

    return make


def dangling(at: Path) -> Path:
    (at / "r1.ndjson").symlink_to(at / "nowhere")
    return at


def with_header(**fields: object) -> Callable[[Path], Path]:
    def make(at: Path) -> Path:
        path = recorded(at)
        header, *lines = path.read_text().splitlines()
        path.write_text("\n".join([json.dumps({**json.loads(header), **fields}), *lines]))
        return path

    return make


def in_both_forms(at: Path) -> Path:
    compact([recorded(at)], at / "rest")
    return at


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


NO_HEADER = "not a distrocheck trace, this Parquet file has no header in its metadata (its columns: x)"
DAMAGED = "the header is damaged, its {}; record the run again"
REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a path that is not there": (lambda at: at / "nowhere", "nowhere: no such file or directory"),
    "an empty directory": (lambda at: at, "no *.ndjson and no *.parquet below"),
    "a file of another kind": (lambda at: appended(at / "notes.txt", b"hello"), "neither .ndjson nor .parquet"),
    "an empty file": (lambda at: appended(at / "r1.ndjson"), "before its header was written"),
    "rows without a header": (no_header, "not a distrocheck trace"),
    "a foreign NDJSON file": (lambda at: appended(at / "x.ndjson", b'{"a":1}').parent, "x.ndjson: not a distrocheck"),
    "a foreign Parquet file": (below(foreign_parquet, "part-0.parquet"), f"part-0.parquet: {NO_HEADER}"),
    "a directory with it": (foreign_parquet, f"part-0.parquet: {NO_HEADER}"),
    "a directory with it, called anything": (
        lambda at: (foreign_parquet(at) / "part-0.parquet").rename(at / "data.parquet").parent,
        f"data.parquet: {NO_HEADER}",
    ),
    "a foreign Parquet file beside a trace": (
        lambda at: foreign_parquet(recorded(at).parent),
        f"part-0.parquet: {NO_HEADER}",
    ),
    "a text called Parquet": (text_as_parquet, "notes.parquet: not a whole Parquet file"),
    "a Parquet file cut in the middle": (cut_parquet, "part-0.parquet: not a whole Parquet file"),
    "a Parquet file damaged in the middle": (damaged_parquet, "run=r1/part-0.parquet"),
    "Parquet of another shape": (of_another_shape, "column seq is missing instead of int64"),
    "a packed recording": (packed, "r1.ndjson.gz is packed, unpack it"),
    "a packed recording by its name": (below(packed, "r1.ndjson.gz"), "gz: neither .ndjson nor .parquet; unpack it"),
    "a directory called like a recording": (
        directory_called("r1.ndjson"),
        "r1.ndjson: cannot be read (Is a directory)",
    ),
    "a directory called like Parquet": (directory_called("r1.parquet"), "r1.parquet: cannot be read ("),
    "a link to nowhere": (dangling, "r1.ndjson: no such file"),
    "a run in both forms": (in_both_forms, "run r1 is in two files, "),
    "a newer schema": (newer, "written with version 9 of the trace schema, this distrocheck reads up to version 2"),
    "no version": (with_header(version=None), "the header names no schema version"),
    "nodes that are none": (with_header(nodes=5), DAMAGED.format("nodes is 5")),
    "a segment that is no number": (with_header(segment="x"), DAMAGED.format("segment is 'x'")),
    "an unknown clock": (with_header(clock="moon"), DAMAGED.format("clock is 'moon'")),
    "a profile that is no text": (with_header(profile=5), DAMAGED.format("profile is 5")),
    "nothing about what was observed": (with_header(observed=[]), "the header is damaged, observed is no object"),
}
READERS: dict[str, Callable[[Path], object]] = {
    "query": lambda path: query("SELECT * FROM events", path),
    "read_run": read_run,  # what `validate` and `export` do
    "compact": lambda path: compact(recordings_at(path), (path if path.is_dir() else path.parent) / "compacted"),
}
OF_COMPACT: dict[str, str | None] = {
    "an empty directory": "no *.ndjson below; name a recording",
    "a file of another kind": "notes.txt: no .ndjson",
    "a packed recording by its name": "r1.ndjson.gz: no .ndjson",
    "a foreign Parquet file beside a trace": None,
    "a run in both forms": None,
    "a directory called like Parquet": "no *.ndjson below; ",
}
"""What `compact` says of them, which takes recordings alone. Of Parquet it says that it is Parquet; None: nothing."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("reader", READERS)
def test_an_unusable_file_is_refused_in_one_line_that_names_it(reader: str, name: str, tmp_path: Path) -> None:
    make, problem = REFUSED[name]
    path = make(tmp_path)
    if reader == "compact":
        of_parquet = "part-0.parquet: no .ndjson" if path.is_file() else ".parquet is Parquet already"
        said = OF_COMPACT.get(name, of_parquet if "parquet" in problem or "column" in problem else problem)
        if said is None:
            READERS[reader](path)
            return
        problem = said
    with pytest.raises(TraceError) as raised:
        READERS[reader](path)
    assert problem in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read every file, so the refusal of the system is simulated."""
    recorded(tmp_path)

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    for read in READERS.values():
        with pytest.raises(UnreadableTraceError, match=r"r1\.ndjson: cannot be read \(Permission denied\); check"):
            read(tmp_path)


def test_a_row_at_rest_that_does_not_fit_is_set_aside_and_the_others_are_read(tmp_path: Path) -> None:
    (file,) = compact([recorded(tmp_path / "recorded")], tmp_path / "rest")
    table = pq.ParquetFile(file).read()
    kinds = pa.array(["checkpoint", "exploded", None])
    column = table.schema.get_field_index("kind")
    pq.write_table(table.set_column(column, pa.field("kind", pa.string()), kinds), file)
    found = read_run(file)
    assert [row.place for row in found.rejected] == ["unknown kind exploded", "missing field kind"]
    assert json.loads(found.rejected[0].text)["kind"] == "exploded"
    assert len(found.events) == 1


SET_ASIDE: dict[str, tuple[tuple[bytes, ...], list[tuple[int, str]], int]] = {
    "a line that is no JSON": ((b"\xff\xfe{", event(4)), [(5, "not JSON")], 4),
    "a row of another run": ((event(4, run="r2"),), [(5, "run r2 has no header")], 3),
    "an unknown kind": ((event(4, kind="exploded"),), [(5, "unknown kind exploded")], 3),
    "a line that is too long": (
        (b'{"run":"r1","detail":"' + LONG + b'"}', event(4)),
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
    found = read_ndjson(appended(recorded(tmp_path), *(line.replace(LONG, b"x" * LONG_BYTES) for line in lines)))
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
