"""At rest: a run comes back from Parquet as it was recorded, and a Parquet file appears whole or not at all."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distro_traces.compact import compact
from distro_traces.errors import EmptyTraceError, InvalidLinesError, NewerTraceError, NotATraceError, RunExistsError
from distro_traces.event import COLUMNS, Kind, Outcome
from distro_traces.ndjson import Recorder, read_ndjson
from distro_traces.parquet import SCHEMA, read_parquet


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    choose = random.Random(0).choice
    with Recorder(tmp_path, "run/1 = x", profile="nacos-2.2.4", target="nacos:2.2.4", clock="wall") as recorder:
        for at_ms in range(100):
            recorder.record(
                choose("cab"),
                Kind.REPLY_RECEIVED,
                at_ms=at_ms,
                client=f"c{at_ms % 7}",
                owned=choose([None, True, False]),
                revision=choose([None, 0, -7, at_ms]),
                outcome=choose([None, *Outcome]),
            )
    return recorder.path


def test_a_run_comes_back_as_it_was_recorded_in_the_order_of_node_and_seq(recording: Path, tmp_path: Path) -> None:
    (path,) = compact([recording], tmp_path / "rest")
    assert path == tmp_path / "rest" / "run=run%2F1 %3D x" / "part-0.parquet"
    recorded, at_rest = read_ndjson(recording), read_parquet(path)
    assert at_rest.header == recorded.header
    assert at_rest.events == tuple(sorted(recorded.events, key=lambda event: (event.node, event.seq)))
    assert at_rest.cut is None


def test_the_columns_are_those_of_the_event() -> None:
    assert tuple(SCHEMA.names) == COLUMNS
    assert [field.name for field in SCHEMA if not field.nullable] == ["run", "node", "seq", "at_ms", "kind"]


def test_a_cut_recording_stays_known_as_cut(recording: Path, tmp_path: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-20])
    (path,) = compact([recording], tmp_path / "rest")
    at_rest = read_parquet(path)
    assert at_rest.cut is not None
    assert at_rest.cut == read_ndjson(recording).cut
    assert len(at_rest.events) == 99


def test_lines_that_do_not_fit_are_not_lost_in_compaction(recording: Path, tmp_path: Path) -> None:
    lines = recording.read_text().splitlines()
    recording.write_text("\n".join([*lines[:5], "{}", *lines[5:], ""]))
    with pytest.raises(
        InvalidLinesError, match=r"lines that do not fit: 1 \(the first: line 6 of .*, missing field run\)"
    ):
        compact([recording], tmp_path / "rest")
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_run_at_rest_is_not_overwritten(recording: Path, tmp_path: Path) -> None:
    compact([recording], tmp_path)
    with pytest.raises(RunExistsError):
        compact([recording], tmp_path)


def test_nothing_half_written_is_left_behind(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_in_the_middle(writer: pq.ParquetWriter, _: pa.Table) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fails_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        compact([recording], tmp_path / "rest")
    assert list((tmp_path / "rest").iterdir()) == []


def test_a_newer_schema_is_refused(recording: Path, tmp_path: Path) -> None:
    recorded = read_ndjson(recording)
    newer = SCHEMA.with_metadata({"distrocheck.header": json.dumps(recorded.header.to_json() | {"version": 3})})
    path = tmp_path / "newer.parquet"
    pq.write_table(pa.Table.from_pylist([], schema=newer), path)
    with pytest.raises(NewerTraceError, match="version 3"):
        read_parquet(path)


def test_another_parquet_file_is_refused(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"seq": ["one"]}), path)
    with pytest.raises(NotATraceError, match="not a distrocheck trace"):
        read_parquet(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(NotATraceError, match="not a whole Parquet file"):
        read_parquet(path)
    with pytest.raises(EmptyTraceError):
        read_parquet(tmp_path / "nowhere.parquet")


def test_columns_of_other_types_are_refused_by_name(recording: Path, tmp_path: Path) -> None:
    (path,) = compact([recording], tmp_path)
    table = pq.ParquetFile(path).read()
    index = table.schema.get_field_index("seq")
    pq.write_table(table.set_column(index, "seq", table["seq"].cast(pa.string())), path)
    with pytest.raises(NotATraceError, match="column seq is string instead of int64"):
        read_parquet(path)
