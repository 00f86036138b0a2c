"""Recording and reading during a run: written rows are read back; cut or invalid rows are reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distro_traces.content import NOTHING_PUBLISHED, Published, digest, shortened
from distro_traces.errors import (
    EmptyTraceError,
    NewerTraceError,
    NotATraceError,
    RunExistsError,
    TraceError,
    UnreadableTraceError,
)
from distro_traces.event import SCHEMA_VERSION, Event, Kind, Outcome
from distro_traces.ndjson import CALLED, DIGEST_CHARS, Recorder, TraceFile, parse_event, read_header, read_ndjson

ROW = {"run": "r1", "node": "a", "seq": 1, "at_ms": 0, "kind": "checkpoint"}


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path, "r1", profile="strict", target="embedded", nodes=["a", "b"])


def test_recorded_rows_are_read_back(recorder: Recorder) -> None:
    with recorder:
        written = [
            recorder.record("a", Kind.RUN_STARTED, at_ms=0, detail="strict"),
            recorder.record("a", Kind.CLIENT_CHANGED, at_ms=1, client="c1", owned=True, revision=1, digest="d1"),
            recorder.record(
                "b", Kind.REPLY_SENT, at_ms=2, message=recorder.new_message_id(), client="c1", outcome=Outcome.FAIL
            ),
        ]
    assert read_ndjson(recorder.path) == TraceFile(recorder.header, tuple(written), None, ())
    assert read_header(recorder.path) == recorder.header


def test_each_node_counts_its_own_rows_from_one(recorder: Recorder) -> None:
    with recorder:
        rows = [recorder.record(node, Kind.CHECKPOINT, at_ms=0) for node in "abaab"]
    assert [(row.node, row.seq) for row in rows] == [("a", 1), ("b", 1), ("a", 2), ("a", 3), ("b", 2)]


def test_message_ids_are_unique_in_the_run(recorder: Recorder) -> None:
    with recorder:
        assert len({recorder.new_message_id() for _ in range(1000)}) == 1000


def test_a_row_is_in_the_file_before_the_recorder_goes_on(recorder: Recorder) -> None:
    with recorder:
        event = recorder.record("a", Kind.CHECKPOINT, at_ms=0)
        assert read_ndjson(recorder.path).events == (event,)


def test_a_killed_process_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    program = """
import os, sys
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
recorder = Recorder(sys.argv[1], "r1", profile="strict", target="embedded")
for at_ms in range(50):
    recorder.record("a", Kind.CHECKPOINT, at_ms=at_ms)
os._exit(9)  # no clean-up, no flush
"""
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, env=os.environ)
    assert ended.returncode == 9
    assert len(read_ndjson(tmp_path / "r1.ndjson").events) == 50


def test_a_recording_is_never_overwritten(recorder: Recorder, tmp_path: Path) -> None:
    recorder.close()
    with pytest.raises(RunExistsError, match="holds a recording already"):
        Recorder(tmp_path, "r1", profile="strict", target="embedded")


@pytest.mark.parametrize("run", ["nacos:2.2.4/3 nodes", "../escape", "ünïcode", "a=b"])
def test_a_run_may_have_any_name(tmp_path: Path, run: str) -> None:
    with Recorder(tmp_path / "out", run, profile="strict", target="embedded") as recorder:
        pass
    assert recorder.path.parent == tmp_path / "out"
    assert read_ndjson(recorder.path).header.run == run


def test_a_trace_cut_at_any_byte_of_its_last_line_is_read_up_to_the_cut(recorder: Recorder, tmp_path: Path) -> None:
    with recorder:
        kept = recorder.record("a", Kind.CHECKPOINT, at_ms=0)
        whole_lines = recorder.path.stat().st_size
        last = recorder.record("b", Kind.CLIENT_CHANGED, at_ms=1, client="ü{}", detail='quoted "}')
    content = recorder.path.read_bytes()
    cut = tmp_path / "cut.ndjson"
    for end in range(whole_lines + 1, len(content) - 1):
        cut.write_bytes(content[:end])
        trace = read_ndjson(cut)
        assert trace.events == (kept,), end
        assert trace.cut is not None, end
        assert (trace.cut.line, trace.cut.text.encode()) == (3, content[whole_lines:end])
        assert trace.rejected == ()
    cut.write_bytes(content[:-1])  # only the line feed is missing: nothing is lost
    assert read_ndjson(cut) == TraceFile(recorder.header, (kept, last), None, ())
    cut.write_bytes(content[:whole_lines])
    assert read_ndjson(cut) == TraceFile(recorder.header, (kept,), None, ())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "not JSON"),
        (json.dumps(ROW) + json.dumps(ROW), "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        (json.dumps({**ROW, "seq": None}), "missing field seq"),
        (json.dumps({name: value for name, value in ROW.items() if name != "kind"}), "missing field kind"),
        (json.dumps({**ROW, "seq": "1"}), "wrong type for seq"),
        (json.dumps({**ROW, "seq": 1.0}), "wrong type for seq"),
        (json.dumps({**ROW, "seq": True}), "wrong type for seq"),
        (json.dumps({**ROW, "revision": 2**63}), "wrong type for revision"),
        (json.dumps({**ROW, "client": 5}), "wrong type for client"),
        (json.dumps({**ROW, "owned": "true"}), "wrong type for owned"),
        (json.dumps({**ROW, "kind": "exploded"}), "unknown kind exploded"),
        (json.dumps({**ROW, "outcome": "maybe"}), "unknown outcome maybe"),
        (json.dumps({**ROW, "operation": "Snapshot"}), "unknown operation Snapshot"),
        (json.dumps({**ROW, "digest": "4F53CDA18C2BAA0C"}), "digest in capital letters"),
        (json.dumps({**ROW, "digest": "4f53cda18c2baA0c" * 4}), "digest in capital letters"),
        (json.dumps({**ROW, "seq": 0}), "seq below 1"),
        (json.dumps({**ROW, "run": "r2"}), "run r2 has no header"),
    ],
)
def test_a_line_that_does_not_fit_is_set_aside_with_its_reason(recorder: Recorder, line: str, reason: str) -> None:
    recorder.close()
    with recorder.path.open("a") as file:
        file.write(line + "\n" + json.dumps(ROW) + "\n")
    trace = read_ndjson(recorder.path)
    assert trace.rejected == ((2, reason, line),)
    assert len(trace.events) == 1
    assert trace.cut is None


def test_a_line_that_is_no_text_is_set_aside(recorder: Recorder) -> None:
    recorder.close()
    recorder.path.write_bytes(recorder.path.read_bytes() + b"\xff\xfe\n" + json.dumps(ROW).encode() + b"\n")
    assert [(row.line, row.reason) for row in read_ndjson(recorder.path).rejected] == [(2, "not JSON")]


def test_a_newer_schema_is_refused_with_both_versions(recorder: Recorder) -> None:
    recorder.close()
    recorder.path.write_text(recorder.path.read_text().replace('"version":2', f'"version":{SCHEMA_VERSION + 5}'))
    with pytest.raises(NewerTraceError, match=r"version 7 .* up to version 2; upgrade distrocheck"):
        read_ndjson(recorder.path)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", EmptyTraceError),
        ("\n\n", NotATraceError),
        ("hello\n", NotATraceError),
        ('{"schema":"distroch', NotATraceError),
        ('{"schema":"distrocheck-trace","version":1}\n', NotATraceError),
        ('{"schema":"distrocheck-trace","version":"new"}\n', NotATraceError),
        (json.dumps(ROW) + "\n", NotATraceError),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, content: str, error: type[TraceError]) -> None:
    path = tmp_path / "other.ndjson"
    path.write_text(content)
    with pytest.raises(error) as refused:
        read_ndjson(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_path_that_is_not_there_or_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmptyTraceError, match="no such file"):
        read_ndjson(tmp_path / "nowhere.ndjson")
    with pytest.raises(UnreadableTraceError, match="cannot be read"):
        read_ndjson(tmp_path)


texts = st.none() | st.text(st.characters(codec="utf-8"), max_size=20)
events = st.builds(
    Event,
    run=st.just("r1"),
    node=st.text(st.characters(codec="utf-8"), max_size=5),
    seq=st.integers(1, 2**63 - 1),
    at_ms=st.integers(-(2**63), 2**63 - 1),
    kind=st.sampled_from(Kind),
    peer=texts,
    message=texts,
    operation=st.none() | st.sampled_from(sorted(CALLED)),
    client=texts,
    owned=st.none() | st.booleans(),
    revision=st.none() | st.integers(-(2**31), 2**31 - 1),
    digest=texts.filter(lambda text: text is None or len(text) not in DIGEST_CHARS or text == text.lower()),
    outcome=st.none() | st.sampled_from(Outcome),
    detail=texts,
)


@given(events)
def test_every_event_survives_its_json(event: Event) -> None:
    assert parse_event(json.dumps(event.to_json()), ["r1"]) == event


def test_a_digest_has_all_256_bits_but_where_nothing_is_published() -> None:
    """Verdicts compare digests. That of nothing is the same as in traces that have the first 64 bits."""
    full = digest([Published("public", "DEFAULT_GROUP", "web", "10.0.0.1", 80)])
    assert len(full) == 64
    assert shortened(f"a holds {full}, b {NOTHING_PUBLISHED}") == f"a holds {full[:16]}, b {NOTHING_PUBLISHED}"
    assert digest(iter(())) == NOTHING_PUBLISHED == "4f53cda18c2baa0c"
