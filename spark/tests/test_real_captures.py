"""Messages that proxies recorded on the links of three real servers, checked against the models of releases.

`data/captures` holds what was sent about one client of each capture. The state of the servers was not
read; their answers are compared with what the model concludes from the requests that they received. A server is
accepted by the model of its release, and rejected by the model of the release before or after it, which treats the
revision of a CHANGE differently (B10).
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from distro_model.profiles import profile_named
from distro_traces.event import Kind, Outcome
from distro_traces.ndjson import Recorder, TraceFile
from distro_traces.observed import Observed
from distro_traces.reading import read_run
from distro_validation.validate import Validated, validate

DATA = Path(__file__).parent / "data" / "captures"
WHOLE = Path(__file__).parents[3] / "shared" / "real-captures"
OUTCOMES = {"DistroDataResponse": {200: Outcome.SUCCESS, 500: Outcome.FAIL}, "ErrorResponse": {500: Outcome.ERROR}}
NODES = ("A", "B", "C")


def as_trace(lines: list[str], directory: Path) -> TraceFile:
    """A capture has one line for each call: link, operation, client, when it began and ended, and how."""
    parsed: list[Any] = [json.loads(line) for line in lines]
    calls = [row for row in parsed if isinstance(row, dict) and row.get("ev") == "link" and row.get("op")]
    rows: list[tuple[float, int, int, str, Kind, dict[str, Any]]] = []
    for number, call in enumerate(calls):
        source, target = call["link"]
        asked = {"message": f"m{number}", "operation": call["op"], "client": call["key"]}
        services = None if call["op"] == "VERIFY" or call["svcs"] is None else "services " + " ".join(call["svcs"])
        content = {**asked, "revision": call["rev"], "digest": services}
        outcome = OUTCOMES.get(call["rt"], {}).get(call["rc"], Outcome.UNREACHABLE)
        began, ended = call["t0"], call["t"]
        rows.append((began, 0, number, source, Kind.REQUEST_SENT, {"peer": target, **content}))
        if outcome is not Outcome.UNREACHABLE:
            rows.append((began, 1, number, target, Kind.REQUEST_RECEIVED, {"peer": source, **content}))
            rows.append((ended, 2, number, target, Kind.REPLY_SENT, {"peer": source, "outcome": outcome, **asked}))
        rows.append((ended, 3, number, source, Kind.REPLY_RECEIVED, {"peer": target, "outcome": outcome, **asked}))
    observed = Observed(reported=(), limits=("what the servers hold was not looked at",))
    with Recorder(
        directory, "capture", profile="nacos-unknown", target="capture", clock="wall", nodes=NODES, observed=observed
    ) as recorder:
        for at, _, _, node, kind, fields in sorted(rows, key=lambda row: row[:3]):
            recorder.record(node, kind, at_ms=round(at * 1000), **fields)
    return read_run(recorder.path)


def judged(lines: list[str], directory: Path, profile: str) -> Validated:
    trace = as_trace(lines, directory)
    return validate(trace.header, trace.events, profile_named(profile))


def excerpt(release: str) -> list[str]:
    return (DATA / f"t8-{release}.ndjson").read_text().splitlines()


@pytest.mark.parametrize("release", ["2.2.4", "2.3.2"])
def test_a_real_server_is_accepted_by_the_model_of_its_release(tmp_path: Path, release: str) -> None:
    result = judged(excerpt(release), tmp_path, f"nacos-{release}")
    assert (result.accepted, result.rejection) == (True, None)


@pytest.mark.parametrize(
    ("release", "profile", "answer"), [("2.2.4", "strict", Outcome.FAIL), ("2.3.2", "nacos-2.2.4", Outcome.SUCCESS)]
)
def test_another_release_is_rejected_by_the_revision_of_a_change(
    tmp_path: Path, release: str, profile: str, answer: Outcome
) -> None:
    rejection = judged(excerpt(release), tmp_path, profile).rejection
    assert rejection is not None
    assert (rejection.event.operation, rejection.event.outcome) == ("VERIFY", answer)
    assert {guard for _, guard in rejection.guards} == {"it is what the model answers"}
    assert "CHANGE" in {event.operation for event in rejection.minimal} or answer is Outcome.SUCCESS
    assert len(rejection.minimal) < 10


@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole captures of real servers are not beside this checkout")
@pytest.mark.parametrize("release", ["2.0.4", "2.2.4", "2.3.2"])
def test_whole_captures_are_accepted_by_their_release(tmp_path: Path, release: str) -> None:
    with lzma.open(WHOLE / f"t8-{release}.ndjson.xz", "rt") as file:
        result = judged(file.readlines(), tmp_path, f"nacos-{release}")
    assert result.rejection is None
