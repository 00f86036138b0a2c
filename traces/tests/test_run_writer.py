"""A run that is written at once has the same content as one that was recorded and compacted."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from distro_traces import run_writer
from distro_traces.compact import compact
from distro_traces.errors import RunExistsError, UnwritableTraceError
from distro_traces.event import COLUMNS, Event, Kind, Outcome
from distro_traces.header import Header
from distro_traces.ndjson import Recorder
from distro_traces.parquet import read_footer, read_parquet
from distro_traces.run_writer import Row, RunWriter

HEADER = Header(run="r 1", profile="strict", target="model", clock="virtual", nodes=("b", "a"))
ROWS = (
    ("b", Row(0, Kind.NODE_STARTED, detail="a,b")),
    ("a", Row(5, Kind.CLIENT_CONNECTED, client="c1", owned=True, revision=0, digest="X")),
    ("a", Row(7, Kind.REQUEST_SENT, "b", "m1", "CHANGE", "c1", None, 1, "Y")),
    ("b", Row(8, Kind.REPLY_SENT, "a", "m1", "CHANGE", "c1", outcome=Outcome.SUCCESS)),
)


def written(directory: Path) -> Path:
    writer = RunWriter(directory, HEADER)
    for node, row in ROWS:
        writer.add(node, row)
    (path,) = writer.close()
    return path


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_a_run_equals_its_compacted_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int) -> None:
    monkeypatch.setattr(run_writer, "BATCH_ROWS", batch_rows)
    with Recorder(tmp_path, "r 1", profile="strict", target="model", nodes=("b", "a")) as recorder:
        for node, row in ROWS:
            fields = row._asdict()
            recorder.record(node, fields.pop("kind"), **fields)
    (compacted,) = compact([recorder.path], tmp_path / "compacted")
    path = written(tmp_path / "written")
    assert path.relative_to(tmp_path / "written") == compacted.relative_to(tmp_path / "compacted")
    assert read_parquet(path) == read_parquet(compacted)
    assert pq.read_schema(path) == pq.read_schema(compacted)


def test_a_run_without_rows_is_written_too(tmp_path: Path) -> None:
    (path,) = RunWriter(tmp_path, HEADER).close()
    assert read_footer(path)[0] == HEADER
    assert read_parquet(path).events == ()


def test_rows_have_all_columns_except_run_node_and_seq() -> None:
    assert [name for name in COLUMNS if name not in Row._fields] == ["run", "node", "seq"]
    assert set(Row._fields) < set(Event.__dataclass_fields__)


def test_an_existing_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = path.read_bytes()
    with pytest.raises(RunExistsError, match="the run is there already"):
        RunWriter(tmp_path, HEADER)
    assert path.read_bytes() == before


def test_a_path_that_cannot_be_written_is_reported_as_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UnwritableTraceError, match=r"file.*: cannot be written \(Not a directory\); choose another place"
    ):
        written(tmp_path / "file")
