"""Nodes as logs show them when something about them differs or changes: clock, address, release, a restart.

The shipped logs of three servers are changed in one respect; the trace stays the same, or the reason is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from distro_traces.event import Kind
from distro_traces.header import UNKNOWN_RELEASE
from distro_traces.nacos_logs.importer import UNSTEADY, Imported, import_logs
from distro_traces.nacos_logs.survey import NoLogsError
from distro_traces.ndjson import TraceFile, read_ndjson

LOGS = Path(__file__).parent / "data" / "nacos-2.2.4"
RESTART = "2026-11-21 02:53:20"
_STAMP = re.compile(r"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(,\d\d\d)")


def changed(to: Path, change: Callable[[str, str], str]) -> Path:
    """The logs, each text as `change` makes it of the name of its node and itself."""
    for path in LOGS.glob("*/*.log"):
        target = to / path.relative_to(LOGS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(change(path.parent.name, path.read_text()))
    return to


def later(text: str, seconds: int) -> str:
    def moved(found: re.Match[str]) -> str:
        return f"{datetime.fromisoformat(found[1]) + timedelta(seconds=seconds)}{found[2]}"

    return _STAMP.sub(moved, text)


def imported(logs: Path, out: Path) -> tuple[Imported, TraceFile]:
    found = import_logs(logs, out)
    return found, read_ndjson(found.path)


def calls(trace: TraceFile) -> set[tuple[object, ...]]:
    """Both ends of each call."""
    sent = {e.message: e for e in trace.events if e.kind is Kind.REQUEST_SENT}
    ends = [e for e in trace.events if e.kind is Kind.REQUEST_RECEIVED and e.message in sent]
    return {(sent[e.message].node, e.node, e.client, e.operation) for e in ends if e.message}


@pytest.mark.parametrize("seconds", [8 * 3600, -8 * 3600, 400, -400, 7, -7])
@pytest.mark.parametrize("node", ["n0", "n1"])
def test_a_clock_that_differs_is_found_by_the_calls_and_corrected(tmp_path: Path, node: str, seconds: int) -> None:
    logs = changed(tmp_path / "logs", lambda name, text: later(text, seconds) if name == node else text)
    plain, whole = imported(LOGS, tmp_path / "plain")
    found, trace = imported(logs, tmp_path / "out")
    notes = {span.node: span.notes for span in found.spans if span.notes}
    assert list(notes) == [plain.nodes[node]]
    [note] = notes[plain.nodes[node]]
    assert f"its clock is {timedelta(seconds=abs(seconds))} h {'ahead of' if seconds > 0 else 'behind'} the" in note
    assert calls(trace) == calls(whole)
    assert [each.kind for each in found.troubles] == [each.kind for each in plain.troubles]
    moved = {(e.node, e.seq): e.at_ms for e in trace.events}
    assert max(abs(moved[e.node, e.seq] - e.at_ms) for e in whole.events) < 1000


@pytest.mark.parametrize(("clock", "seconds"), [("n1", 7), ("n1", 60), ("n0", -4)])
def test_a_clock_that_was_set_meanwhile_leaves_revisions_uncovered(tmp_path: Path, clock: str, seconds: int) -> None:
    def stepped(node: str, text: str) -> str:
        if node != clock:
            return text
        lines = text.splitlines(keepends=True)
        return "".join(later(line, seconds) if line > "2026-11-21 02:52:03" else line for line in lines)

    found, trace = imported(changed(tmp_path / "logs", stepped), tmp_path / "out")
    unsteady = {span.node for span in found.spans if UNSTEADY in span.notes}
    assert found.nodes[clock] in unsteady
    assert not unsteady & {each.node for each in trace.header.observed.covered if each.fact == "revision"}


def test_clocks_that_agree_are_not_corrected(tmp_path: Path) -> None:
    found, _ = imported(LOGS, tmp_path)
    assert [span.notes for span in found.spans] == [(), (), ()]


def test_a_node_that_returns_with_another_address_is_the_same_node(tmp_path: Path) -> None:
    """A pod of Kubernetes has another address after its restart."""
    old, new = "127.0.0.1:12868", "127.0.0.1:12999"
    arrives = (
        "2026-11-21 {},000 INFO [DISTRO] Receive distro data type: CHANGE, key: DistroKey{{resourceKey='c9', "
        "resourceType='Nacos:Naming:v2:ClientData', targetServer='127.0.0.1:12868'}}\n"
    )

    def reached(node: str, text: str) -> str:
        if node != "n1" or "DISTRO-INIT" not in text:
            return text
        more = [arrives.format(time) for time in ("02:52:00", "02:53:36")]
        return "".join(sorted([*text.splitlines(keepends=True), *more]))

    def moved(node: str, text: str) -> str:
        lines = reached(node, text).splitlines(keepends=True)
        renamed = (line.replace(old, new).replace("port=12868", "port=12999") for line in lines)
        return "".join(line if line < RESTART else after for line, after in zip(lines, renamed, strict=True))

    plain, whole = imported(changed(tmp_path / "same", reached), tmp_path / "whole")
    found, trace = imported(changed(tmp_path / "logs", moved), tmp_path / "out")
    assert (plain.nodes["n1"], found.nodes["n1"]) == (old, new)
    assert [span.notes for span in found.spans if span.node == new] == [(f"its address was {old} before",)]
    assert trace.header.nodes == tuple(sorted(node.replace(old, new) for node in whole.header.nodes))
    renamed = [(e.node.replace(old, new), e.at_ms, e.kind, e.client, e.message is None) for e in whole.events]
    events = [(e.node, e.at_ms, e.kind, e.client, e.message is None) for e in trace.events]
    assert sorted(map(str, events)) == sorted(map(str, renamed))
    assert [each.text for each in found.troubles] == [each.text.replace(old, new) for each in plain.troubles]


def test_the_lines_of_several_nodes_in_one_stream_are_refused(tmp_path: Path) -> None:
    """As `kubectl logs -f -l app=nacos` prints them."""
    lines = [line for path in LOGS.glob("*/*.log") for line in path.read_text().splitlines() if _STAMP.match(line)]
    (tmp_path / "all.log").write_text("\n".join(sorted(lines)))
    with pytest.raises(NoLogsError, match=r"arrive in turn.*two nodes.*--prefix.*--node all=HOST:PORT"):
        import_logs(tmp_path / "all.log", tmp_path / "out")


def test_several_releases_are_named_and_not_judged(tmp_path: Path) -> None:
    """A rolling upgrade: the rules of no release hold for the whole of it."""

    def upgraded(node: str, text: str) -> str:
        lines = text.splitlines(keepends=True)
        return "".join(line.replace("=2.2.4", "=2.3.2") if node == "n1" and line > RESTART else line for line in lines)

    found, trace = imported(changed(tmp_path / "logs", upgraded), tmp_path / "out")
    assert (found.profile, trace.header.profile) == (UNKNOWN_RELEASE, UNKNOWN_RELEASE)
    [limit] = [each for each in found.limits if "several releases" in each]
    assert "127.0.0.1:12868 2.2.4, then 2.3.2" in limit
    assert import_logs(tmp_path / "logs", tmp_path / "named", profile="nacos-2.3.2").profile == "nacos-2.3.2"


def test_a_restart_is_reported_from_the_last_record_before(tmp_path: Path) -> None:
    [restart] = [each for each in imported(LOGS, tmp_path)[0].troubles if each.kind == "restart"]
    assert (restart.node, restart.text) == (
        "127.0.0.1:12868",
        "restarted (from its last record to its start); what ended it is not logged",
    )
    assert restart.until_ms is not None
    assert 30_000 < restart.until_ms - restart.from_ms < 60_000


@pytest.mark.parametrize(
    "line",
    [
        "Caused by: java.sql.SQLException: no time in '2026-11-20 00:00:00'",
        "\tat com.alibaba.X.run(X.java:7) since 2026-11-20 00:00:00",
        "com.alibaba.nacos.api.exception.NacosException: since 2026-11-20 00:00:00,000 it is gone",
        "\t... 7 common frames omitted, 2026-11-20 00:00:00",
    ],
)
def test_a_date_in_an_exception_begins_no_record(tmp_path: Path, line: str) -> None:
    def failing(_: str, text: str) -> str:
        return re.sub(r"(?m)^.*\[DISTRO-(?:END|INIT)\].*$", lambda found: f"{found[0]}\n{line}", text)

    assert failing("n0", (LOGS / "n0" / "protocol-distro.log").read_text()).count(line) > 2
    _, whole = imported(LOGS, tmp_path / "plain")
    _, trace = imported(changed(tmp_path / "logs", failing), tmp_path / "out")
    assert [(e.node, e.at_ms, e.kind) for e in trace.events] == [(e.node, e.at_ms, e.kind) for e in whole.events]
