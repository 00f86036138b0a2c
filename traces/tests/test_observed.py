"""The header declares the observed facts of a recording; a header of version 1, without them, stands for all facts."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distro_traces.compact import compact
from distro_traces.errors import NotATraceError
from distro_traces.event import Kind
from distro_traces.header import parse_header
from distro_traces.ndjson import Recorder, read_ndjson
from distro_traces.observed import EVERYTHING, FACTS, Covered, Observed, parse_observed
from distro_traces.parquet import SCHEMA, read_parquet

ONE_LOG = Observed(
    reported=("b",),
    inferred=("c",),
    sent=("b->*",),
    received=("*->b", "a->c"),
    operations=("CHANGE", "DELETE"),
    values=("owned",),
    lossless=False,
    limits=("VERIFY is logged at DEBUG only",),
)


def test_what_was_observed_stands_in_the_header_of_a_recording_and_at_rest(tmp_path: Path) -> None:
    with Recorder(tmp_path, "r", profile="strict", target="logs", nodes=["a", "b"], observed=ONE_LOG) as recorder:
        recorder.record("b", Kind.CHECKPOINT, at_ms=0)
    (at_rest,) = compact([recorder.path], tmp_path / "rest")
    assert read_ndjson(recorder.path).header.observed == ONE_LOG
    assert read_parquet(at_rest).header.observed == ONE_LOG


def test_a_pattern_names_one_node_or_every_node() -> None:
    assert [ONE_LOG.state_of(node) for node in "abc"] == [False, True, True]
    assert [ONE_LOG.sending(*pair) for pair in ("bc", "ba", "ab")] == [True, True, False]
    assert [ONE_LOG.receiving(*pair) for pair in ("ab", "cb", "ac", "ba")] == [True, True, True, False]
    assert EVERYTHING.state_of("z")
    assert EVERYTHING.sending("y", "z")
    assert EVERYTHING.receiving("z", "y")


def test_a_fact_is_covered_where_its_log_was_read_and_as_long_as_it_reaches(tmp_path: Path) -> None:
    spans = (Covered(node="b", fact="owned", from_ms=100, until_ms=200),)
    observed = replace(ONE_LOG, covered=spans)
    assert parse_observed(json.loads(json.dumps(observed.to_json()))) == observed
    asked = [(), (100,), (100, 200), (99,), (100, 201)]
    assert [observed.covers("b", "owned", *span) for span in asked] == [True, True, True, False, False]
    assert not observed.covers("c", "owned")
    assert not observed.covers("b", "state")
    # Without listed spans the other fields hold at all times.
    assert [ONE_LOG.covers("b", fact) for fact in ("owned", "revision", "sent", "received", "loads", "state")] == [
        *(True, False, True, True, False, False)
    ]
    assert all(EVERYTHING.covers("z", fact, 0, 10**9) for fact in FACTS)
    with pytest.raises(ValueError, match=r"observed\.covered"):
        parse_observed({**observed.to_json(), "covered": [{"node": "b"}]})


def version_1() -> dict[str, object]:
    return {
        "schema": "distrocheck-trace",
        "version": 1,
        "run": "r",
        "profile": "strict",
        "target": "embedded",
        "clock": "virtual",
        "nodes": ["a"],
    }


def test_version_1_is_read_as_a_recording_of_everything(tmp_path: Path) -> None:
    row = {"run": "r", "node": "a", "seq": 1, "at_ms": 0, "kind": "checkpoint"}
    recording = tmp_path / "old.ndjson"
    recording.write_text(f"{json.dumps(version_1())}\n{json.dumps({**row, 'payload': '{}'})}\n")
    old = read_ndjson(recording)
    assert (old.header.observed, old.rejected) == (EVERYTHING, ())

    columns = pa.schema([*SCHEMA, pa.field("payload", pa.string())])
    metadata = {"distrocheck.header": json.dumps(version_1())}
    at_rest = tmp_path / "old.parquet"
    pq.write_table(pa.Table.from_pylist([{**row, "payload": "{}"}], columns.with_metadata(metadata)), at_rest)
    assert read_parquet(at_rest) == replace(old, cut=None)


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        (None, "lacks observed"),
        ([], "observed is no object"),
        ({**EVERYTHING.to_json(), "lossless": "yes"}, "observed.lossless is missing or of another type"),
        ({**EVERYTHING.to_json(), "sent": "a->b"}, "observed.sent is missing or of another type"),
    ],
)
def test_a_header_of_version_2_declares_the_observed_facts(observed: object, reason: str) -> None:
    header = {**version_1(), "version": 2} | ({} if observed is None else {"observed": observed})
    with pytest.raises(NotATraceError, match=reason):
        parse_header(json.dumps(header), "x.ndjson")
