"""Server logs as a trace: the same events for every arrangement of files, log patterns and time zones.

`data/nacos-2.2.4` holds the records of two clients from the logs of three servers: h1 is registered over HTTP with n0,
which n1 is responsible for; the SDK client is connected to n1; h1 is deregistered; n1 is killed and started again.
"""

import gzip
import json
import re
import shutil
import tarfile
from collections import Counter
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from distro_traces.content import Published, digest
from distro_traces.errors import (
    DamagedTraceError,
    EmptyTraceError,
    NotATraceError,
    TraceError,
    UnreadableTraceError,
)
from distro_traces.event import Event, Kind, Outcome
from distro_traces.header import parse_header, wall_clock
from distro_traces.nacos_logs.facts import PHRASES, fact_of
from distro_traces.nacos_logs.history import NOTHING_WENT
from distro_traces.nacos_logs.importer import Imported, NoLogsError, import_logs
from distro_traces.nacos_logs.records import Record
from distro_traces.nacos_logs.window import NOT_SENT
from distro_traces.ndjson import TraceFile, read_ndjson
from distro_traces.observed import FACTS

DATA = Path(__file__).parent / "data" / "nacos-2.2.4"
A, B, C = "127.0.0.1:12848", "127.0.0.1:12868", "127.0.0.1:12888"
H1, SDK = "10.0.1.1:80#true", "1795229518380_127.0.0.1_53376"
H1_THERE = digest([Published("public", "DEFAULT_GROUP", "logsvc", "10.0.1.1", 80)])
NOTHING = digest([])


def imported(directory: Path, out: Path, **options: object) -> tuple[Imported, TraceFile]:
    result = import_logs(directory, out, **options)  # type: ignore[arg-type]
    trace = read_ndjson(result.path)
    assert trace.rejected == ()
    assert len(trace.events) == result.events
    return result, trace


def states(trace: TraceFile, node: str, client: str) -> list[tuple[Kind, bool | None, int | None, str | None]]:
    """The states of one client on one node in a trace."""
    state = [event for event in trace.events if (event.node, event.client) == (node, client) and event.digest]
    gone = (Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED)
    state += [event for event in trace.events if (event.node, event.client) == (node, client) and event.kind in gone]
    return [(e.kind, e.owned, e.revision, e.digest) for e in sorted(state, key=lambda event: event.seq)]


def events_of(trace: TraceFile) -> list[tuple[object, ...]]:
    """A trace without what depends on how the logs were kept: names of messages."""
    return sorted(
        (e.node, e.seq, e.at_ms, e.kind, e.peer or "", e.client or "", e.digest or "", e.outcome or "")
        for e in trace.events
    )


def test_owner_and_other_nodes_show_the_whole_life_of_a_client(tmp_path: Path) -> None:
    result, trace = imported(DATA, tmp_path)
    assert dict(result.nodes) == {"n0": A, "n1": B, "n2": C}
    assert states(trace, B, H1) == [
        (Kind.CLIENT_CONNECTED, True, None, NOTHING),
        (Kind.CLIENT_CHANGED, True, None, H1_THERE),
        (Kind.CLIENT_CHANGED, True, None, NOTHING),
        (Kind.CLIENT_DISCONNECTED, True, None, None),
    ]
    for node in (A, C):
        assert states(trace, node, H1) == [
            (Kind.REPLICA_APPLIED, False, -2070715886, H1_THERE),
            (Kind.REPLICA_APPLIED, False, -2070715886, NOTHING),
            (Kind.OBSERVED, False, -2070715886, NOTHING),
            (Kind.REPLICA_APPLIED, False, -2070715886, NOTHING),
            (Kind.REPLICA_REMOVED, None, None, None),
        ], node


def without(tmp_path: Path, text: str) -> Path:
    """The logs without the records that have this text."""
    logs = tmp_path / "logs"
    shutil.copytree(DATA, logs)
    for path in logs.glob("*/*.log"):
        path.write_text("\n".join(line for line in path.read_text().splitlines() if text not in line))
    return logs


def test_the_revision_of_a_copy_is_unknown_until_it_is_logged(tmp_path: Path) -> None:
    """Where no record says that the message held no batch, the copy may have taken its revision."""
    _, trace = imported(without(tmp_path, "BatchInstanceData is null"), tmp_path / "out")
    assert states(trace, C, H1) == [
        (Kind.REPLICA_APPLIED, False, -2070715886, H1_THERE),
        (Kind.REPLICA_APPLIED, False, None, NOTHING),
        (Kind.OBSERVED, False, -2070715886, NOTHING),
        (Kind.REPLICA_APPLIED, False, None, NOTHING),
        (Kind.REPLICA_REMOVED, None, None, None),
    ]


@pytest.mark.parametrize(
    ("release", "revision"), [("2.1.2", -2070715886), ("2.3.0", -1865251237), ("3.0.3", -1865251237), ("9", None)]
)
def test_whether_a_copy_takes_a_revision_depends_on_the_release(
    tmp_path: Path, release: str, revision: int | None
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DATA, logs)
    for path in logs.glob("*/*.log"):
        path.write_text(path.read_text().replace("version=2.2.4", "version=?").replace("Nacos 2.2.4", "Nacos ?"))
    _, trace = imported(logs, tmp_path / "out", profile=f"nacos-{release}")
    assert states(trace, C, H1)[1] == (Kind.REPLICA_APPLIED, False, revision, NOTHING)


@pytest.mark.parametrize("level", ["DEBUG", "INFO"])
def test_a_differing_verify_has_both_revisions(tmp_path: Path, level: str) -> None:
    logs = without(tmp_path, "Receive verify data type" if level == "INFO" else "nowhere")
    _, trace = imported(logs, tmp_path / "out")
    of_c = [e for e in trace.events if (e.node, e.client) == (C, H1)]
    place = next(i for i, e in enumerate(of_c) if e.kind is Kind.OBSERVED)
    asked, seen, answered = of_c[place - 1 : place + 2]
    assert [(e.kind, e.operation, e.revision, e.outcome) for e in (asked, seen, answered)] == [
        (Kind.REQUEST_RECEIVED, "VERIFY", -1865251237, None),
        (Kind.OBSERVED, None, -2070715886, None),
        (Kind.REPLY_SENT, "VERIFY", None, Outcome.FAIL),
    ]
    assert asked.message == answered.message
    [read] = [e for e in trace.events if (e.node, e.kind, e.message) == (B, Kind.REPLY_RECEIVED, asked.message)]
    assert (read.operation, read.outcome) == ("VERIFY", Outcome.FAIL)


def test_a_request_has_the_revision_that_it_carries(tmp_path: Path) -> None:
    _, trace = imported(DATA, tmp_path)
    came = [e for e in trace.events if (e.node, e.client, e.kind) == (C, H1, Kind.REQUEST_RECEIVED)]
    assert [e.revision for e in came if e.operation == "CHANGE"] == [-2070715886, -1865251237, -1865251237]


def test_an_expiry_at_its_owner_is_recorded(tmp_path: Path) -> None:
    log = tmp_path / "n0" / "naming-server.log"
    log.parent.mkdir()
    service = "Service{namespace='public', group='DEFAULT_GROUP', name='logsvc', ephemeral=true, revision=7}"
    beat = '{"ip":"10.0.1.1","port":80,"healthy":false,"cluster":"DEFAULT"}'
    stamp = "2026-11-21 02:52:0"
    log.write_text(
        f"{stamp}0,000 INFO Client connection {H1} connect\n"
        f"{stamp}0,001 INFO Client change for service {service}, {H1}\n"
        f"{stamp}1,000 INFO service: DEFAULT_GROUP@@logsvc {{POS}} {{IP-ENABLED}} valid: 10.0.1.1:80@DEFAULT, r\n"
        f"{stamp}2,000 INFO [AUTO-DELETE-IP] service: {service}, ip: {beat}\n"
        f"{stamp}2,001 INFO Client remove for service {service}, {H1}\n"
        f"{stamp}3,000 INFO [AUTO-DELETE-IP] service: {service}, ip: {beat}\n"
    )
    result, trace = imported(tmp_path, tmp_path / "out")
    assert [(e.kind, e.digest, e.detail) for e in trace.events[2:]] == [
        (Kind.CLIENT_CHANGED, H1_THERE, "10.0.1.1:80 in logsvc is healthy"),
        (Kind.CLIENT_CHANGED, NOTHING, "10.0.1.1:80 in logsvc expired"),
    ]
    assert result.skipped[NOTHING_WENT] == 1


@pytest.mark.parametrize(("by_beats", "revision"), [(False, None), (True, 11)])
def test_an_http_request_for_a_copy_gives_it_an_unlogged_revision(
    tmp_path: Path, by_beats: bool, revision: int | None
) -> None:
    """As when a node that has loaded is asked to deregister the instance. An expiry leaves the revision (B06)."""
    directory = tmp_path / "n0"
    directory.mkdir()
    service = "Service{namespace='public', group='DEFAULT_GROUP', name='logsvc', ephemeral=true, revision=7}"
    beat = '{"ip":"10.0.1.1","port":80,"healthy":false,"cluster":"DEFAULT"}'
    stamp = "2026-11-21 02:52:0"
    expiry = f"{stamp}2,000 INFO [AUTO-DELETE-IP] service: {service}, ip: {beat}\n" if by_beats else ""
    (directory / "naming-distro.log").write_text(
        f"{stamp}0,000 INFO [Client-Add] Received distro client sync data {H1}, revision=11\n"
    )
    (directory / "naming-server.log").write_text(
        f"{stamp}0,000 INFO Client connection {H1} connect\n"
        f"{stamp}0,001 INFO Client change for service {service}, {H1}\n"
        f"{expiry}{stamp}2,001 INFO Client remove for service {service}, {H1}\n"
    )
    _, trace = imported(tmp_path, tmp_path / "out")
    assert [(e.kind, e.owned, e.revision, e.digest) for e in trace.events if e.client == H1] == [
        (Kind.REPLICA_APPLIED, False, 11, H1_THERE),
        (Kind.REPLICA_APPLIED, False, revision, NOTHING),
    ]


def test_both_ends_of_a_call_and_its_effect_are_one_message(tmp_path: Path) -> None:
    _, trace = imported(DATA, tmp_path)
    first = next(e for e in trace.events if e.kind is Kind.REQUEST_SENT and (e.client, e.peer) == (H1, C))
    assert [(e.node, e.kind, e.peer) for e in trace.events if e.message == first.message] == [
        (B, Kind.REQUEST_SENT, C),
        (C, Kind.REQUEST_RECEIVED, B),
        (C, Kind.REPLICA_APPLIED, None),
        (B, Kind.REPLY_RECEIVED, C),
    ]


def test_clients_loaded_by_a_started_node_have_the_snapshot_as_cause(tmp_path: Path) -> None:
    _, trace = imported(DATA, tmp_path)
    started = next(e.seq for e in trace.events if (e.node, e.kind) == (B, Kind.NODE_STOPPED))
    again = [e for e in trace.events if e.node == B and e.seq >= started]
    snapshot = next(e.message for e in again if e.operation == "SNAPSHOT")
    assert [(e.kind, e.message == snapshot) for e in again] == [
        (Kind.NODE_STOPPED, False),
        (Kind.NODE_STARTED, False),
        (Kind.MEMBERS_CHANGED, False),
        (Kind.REQUEST_SENT, True),
        (Kind.REPLICA_APPLIED, True),
        (Kind.REPLY_RECEIVED, True),
    ]


def test_a_first_start_is_no_restart_when_members_are_logged_before_it(tmp_path: Path) -> None:
    log = tmp_path / "n0" / "naming-server.log"
    log.parent.mkdir()
    start = "[DISTRO-INIT] waiting distro data storage register..."
    log.write_text(
        f"2026-11-21 02:52:00,000 INFO [NACOS-DISTRO] healthy server list changed, old: [], new: [{A}, {B}]\n"
        f"2026-11-21 02:52:01,000 INFO {start}\n"
        f"2026-11-21 02:52:02,000 INFO {start}\n"
        f"2026-11-21 02:52:03,000 INFO Client connection c1 connect\n"
        f"2026-11-21 02:52:09,000 INFO {start}\n"
    )
    _, trace = imported(tmp_path, tmp_path / "out")
    kinds = [Kind.MEMBERS_CHANGED, Kind.NODE_STARTED, Kind.OBSERVED, Kind.NODE_STOPPED, Kind.NODE_STARTED]
    assert [event.kind for event in trace.events] == kinds


def test_the_header_lists_the_facts_that_the_logs_cannot_show(tmp_path: Path) -> None:
    _, trace = imported(DATA, tmp_path)
    observed = trace.header.observed
    assert not observed.lossless
    assert (observed.state_of(A), observed.sending(A, C), observed.receiving(C, B)) == (True, True, True)
    assert observed.values == ("owned", "revision", "digest")

    poor = tmp_path / "poor"
    shutil.copytree(DATA, poor)
    for log in ("naming-distro", "naming-server"):
        (poor / "n0" / f"{log}.log").unlink()
    shutil.rmtree(poor / "n2")
    _, trace = imported(poor, tmp_path / "out")
    observed = trace.header.observed
    assert (observed.state_of(A), observed.state_of(B), observed.state_of(C)) == (False, True, False)
    assert observed.values == ("owned", "revision")  # n0 logs that no CHANGE came before its clients
    assert any(limit == f"{C}: no logs, nothing is known of what it holds." for limit in observed.limits)
    assert any(limit.startswith(f"{A}: no record of clients received (naming-distro") for limit in observed.limits)
    assert {event.node for event in trace.events if event.digest is not None} == {B}
    assert [observed.covers(A, fact) for fact in FACTS] == [False, True, True, True, True, False, True, False]
    assert [fact for fact in FACTS if not observed.covers(B, fact)] == ["verifies"]  # none at DEBUG
    assert not any(observed.covers(C, fact) for fact in FACTS)


def test_the_header_has_the_begin_of_the_logs_in_their_zone(tmp_path: Path) -> None:
    zone = timezone(timedelta(hours=8))
    result, trace = imported(DATA, tmp_path, zones=dict.fromkeys(("n0", "n1", "n2"), zone))
    assert (trace.header.began, result.began) == ("2026-11-21T02:51:20.019+08:00",) * 2
    assert wall_clock(trace.header.began, 1_500) == "2026-11-21 02:51:21.519+08:00"
    for began in ("2026-11-21T02:51:20", "yesterday", 7):
        with pytest.raises(NotATraceError, match="its began is"):
            parse_header(json.dumps({**trace.header.to_json(), "began": began}), "x")
    without = trace.header.to_json()
    del without["began"]
    assert wall_clock(parse_header(json.dumps(without), "x").began, 0) is None


def all_in_one(logs: Path) -> None:
    for path in sorted(logs.glob("*/*.log")):
        path.rename(logs / f"{path.parent.name}-{path.name}")


def container_logs(logs: Path) -> None:
    """One stream per node, as a container runtime keeps it: no pattern of Nacos, JSON around each line."""
    for node in sorted(logs.iterdir()):
        lines = sorted(
            (line for log in ("protocol-distro", "naming-distro", "naming-server", "nacos-cluster")
             for line in (node / f"{log}.log").read_text().splitlines()),
            key=lambda line: line[:23],
        )  # fmt: skip
        records = [
            json.dumps({"@timestamp": f"{l[:10]}T{l[11:19]}.{l[20:23]}Z", "message": l[24:], "level": "INFO"})
            for l in lines  # noqa: E741
        ]
        shutil.rmtree(node)
        (logs / f"{node.name}.log").write_text("\n".join(records))


def rotated_and_packed(logs: Path) -> None:
    for path in sorted(logs.glob("*/*.log")):
        lines = path.read_text().splitlines(keepends=True)
        older, newer, newest = lines[: len(lines) // 3], lines[len(lines) // 3 : -1], lines[-1:]
        path.with_name(path.name + ".2026-11-21.0.gz").write_bytes(gzip.compress("".join(older).encode()))
        path.with_name(path.name + ".2026-11-21.1").write_text("".join(newer))
        path.write_text("".join(newest))


def another_pattern(logs: Path) -> None:
    for path in sorted(logs.glob("*/*.log")):
        text = re.sub(r"(?m)^(\S+) (\S+),(\d+) (\w+) ", r"\4 [main] o.s.Logger \1T\2.\3+0000 - ", path.read_text())
        path.write_text(text.replace("\n", "\r\n\r\n"))


def in_local_time(logs: Path) -> None:
    """Stamps without an offset, from machines eight hours ahead."""
    for path in sorted(logs.glob("*/*.log")):
        path.write_text(path.read_text().replace("2026-11-21 02:", "2026-11-21 10:"))


@pytest.mark.parametrize(
    "kept", [all_in_one, container_logs, rotated_and_packed, another_pattern, in_local_time], ids=lambda f: f.__name__
)
def test_the_events_do_not_depend_on_how_the_logs_were_kept(tmp_path: Path, kept: object) -> None:
    _, trace = imported(DATA, tmp_path / "as-logged")
    logs = tmp_path / "logs"
    shutil.copytree(DATA, logs)
    kept(logs)  # type: ignore[operator]
    zone = timezone(timedelta(hours=8 if kept is in_local_time else 0))
    _, again = imported(logs, tmp_path / "out", zone=zone)
    one, other = Counter(events_of(trace)), Counter(events_of(again))
    if kept is container_logs:  # records of one millisecond stand in another order there
        one, other = (Counter((e[0], *e[3:]) for e in counted.elements()) for counted in (one, other))
    assert other == one
    assert again.header.observed.values == trace.header.observed.values


def test_one_node_in_another_zone_is_converted(tmp_path: Path) -> None:
    _, trace = imported(DATA, tmp_path / "as-logged")
    logs = tmp_path / "logs"
    shutil.copytree(DATA, logs)
    for path in (logs / "n2").iterdir():
        path.write_text(path.read_text().replace("2026-11-21 02:", "2026-11-20 21:"))
    _, again = imported(logs, tmp_path / "out", zones={"n2": timezone(timedelta(hours=-5))})
    assert events_of(again) == events_of(trace)


def test_logs_that_begin_in_the_middle_claim_nothing_of_older_clients(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DATA, logs)
    for path in logs.glob("*/*.log"):
        kept = [line for line in path.read_text().splitlines() if line >= "2026-11-21 02:52:06"]
        path.write_text("\n".join(kept[: -1 if "n1" in path.parts else None]))
    result, trace = imported(logs, tmp_path / "out", names={"n0": A})
    assert result.skipped["about the content of a client that is older than the logs"] > 0
    assert all(event.seq > 0 for event in trace.events)
    held_before_the_start = [e for e in trace.events if e.digest is not None and e.node != B]
    assert held_before_the_start == []


def test_a_call_to_a_member_that_is_not_up_was_never_sent(tmp_path: Path) -> None:
    key = f"DistroKey{{resourceKey='{H1}', resourceType='Nacos:Naming:v2:ClientData', targetServer='{C}'}}"
    log = tmp_path / "n0" / "protocol-distro.log"
    log.parent.mkdir()
    log.write_text(
        f"2026-11-21 02:52:00,000 INFO [DISTRO-START] DistroSyncChangeTask for {key}\n"
        f"2026-11-21 02:52:00,001 WARN [DISTRO] Cancel distro sync caused by target server {C} unhealthy, key: {key}\n"
        f"2026-11-21 02:52:00,001 INFO [DISTRO-END] {key} result: false\n"
        f"2026-11-21 02:52:03,100 INFO [DISTRO-START] DistroSyncChangeTask for {key}\n"
        f"2026-11-21 02:52:03,109 INFO [DISTRO-END] {key} result: true\n"
    )
    result, trace = imported(tmp_path, tmp_path / "out")
    assert [(e.kind, e.at_ms) for e in trace.events] == [(Kind.REQUEST_SENT, 3100), (Kind.REPLY_RECEIVED, 3109)]
    assert result.skipped[NOT_SENT] == 3


def test_skipped_lines_are_counted_by_reason(tmp_path: Path) -> None:
    log = tmp_path / "n0" / "naming-server.log"
    log.parent.mkdir()
    log.write_bytes(
        b"\xff\xfe no date\n"
        b"2026-11-21 02:52:00,000 INFO Client connection c1 connect\n"
        b"java.lang.Exception: why\n\tat somewhere\n"
        b"2026-02-31 02:52:00,000 INFO no such day\n"
        b"2026-11-21 02:52:01,000 INFO Load instance extension handler []\n"
        b"2026-11-21 02:52:01,500 INFO " + b"x" * 200_000 + b"\n"
        b"2026-11-21 02:52:02,000 INFO Client connection c2 disconnect, remove instances and subscribers\n"
    )
    (log.parent / "start.out").write_text("2026-11-21 02:52:00,000 INFO Client connection c1 connect\n")
    result, trace = imported(tmp_path, tmp_path / "out")
    assert [(e.node, e.kind, e.client) for e in trace.events] == [
        ("n0", Kind.OBSERVED, "c1"),
        ("n0", Kind.OBSERVED, "c2"),
    ]
    assert result.skipped == {
        "no date and time, and nothing before it that it could continue": 1,
        "continues the record before it": 3,
        "says nothing of replication": 2,
        "longer than 64 KiB: the rest of the line": 1,
        "the same record in two files": 1,
    }


def test_a_packed_log_that_was_cut_is_read_up_to_the_cut(tmp_path: Path) -> None:
    log = tmp_path / "n1" / "naming-server.log.gz"
    log.parent.mkdir()
    log.write_bytes(gzip.compress((DATA / "n1" / "naming-server.log").read_bytes())[:-4])
    result, _ = imported(tmp_path, tmp_path / "out")
    assert (result.events > 0, result.skipped["packed file cut in the middle"]) == (True, 1)


def test_files_that_cannot_be_imported_are_refused_in_one_line(tmp_path: Path) -> None:
    def refused(error: type[TraceError], pattern: str, **options: object) -> None:
        with pytest.raises(error, match=pattern):
            import_logs(tmp_path / "logs", tmp_path / "out", **options)  # type: ignore[arg-type]

    refused(EmptyTraceError, "no such directory")
    (tmp_path / "logs").mkdir()
    refused(EmptyTraceError, "no log files below")
    (tmp_path / "logs" / "app.log").write_text("12:00:01 something else\n")
    refused(NoLogsError, "no record of Distro in 1 files; they need dates like")
    (tmp_path / "logs" / "app.log").unlink()
    (tmp_path / "logs" / "app.log").mkdir()
    refused(EmptyTraceError, "no log files below")
    (tmp_path / "logs" / "app.log").rmdir()
    whole = gzip.compress((DATA / "n1" / "naming-server.log").read_bytes())
    garbled = whole[:-200] + bytes(100) + whole[-100:]
    for data in (b"hello", garbled, whole[:-8] + bytes(8), whole[:10] + b"\xff" * 50):
        (tmp_path / "logs" / "naming-server.log.gz").write_bytes(data)
        refused(DamagedTraceError, r"naming-server\.log\.gz: cannot be read to its end \(.*; copy or make it again")
    (tmp_path / "logs" / "naming-server.log.gz").unlink()
    (tmp_path / "logs" / "naming-server.log").symlink_to(tmp_path / "nowhere")
    refused(UnreadableTraceError, r"naming-server\.log: cannot be read \(No such file or directory\)")
    (tmp_path / "logs" / "naming-server.log").unlink()
    shutil.copytree(DATA, tmp_path / "logs" / "prod")
    refused(NoLogsError, r"n7: no such directory .* the logs are of prod/n0, prod/n1, prod/n2", zones={"n7": None})
    refused(NoLogsError, "prod/n0: --node names it .*:12868, and its own logs .*:12848", names={"prod/n0": B})
    assert not (tmp_path / "out").exists()


CASES = Path(__file__).parent / "data" / "cases"


def test_every_phrase_occurs_or_is_listed_as_rare() -> None:
    text = "\n".join(path.read_text() for logs in (DATA, CASES) for path in logs.rglob("*.*") if path.is_file())
    unmet = {what.value for what, phrase in PHRASES.items() if not re.search(phrase, text, re.MULTILINE)}
    assert unmet == {"health", "call cancelled", "register dropped", "new mode", "overloaded"}


def test_every_phrase_has_the_words_by_which_its_records_are_found() -> None:
    """A record is matched with the phrases of the words in it alone, and must not lose one by that."""
    for path in (path for logs in (DATA, CASES) for path in logs.rglob("*.log")):
        for text in path.read_text().splitlines():
            record = Record(0, text, "", "any", path, 1)
            plain = next((what for what, phrase in PHRASES.items() if re.search(phrase, text)), None)
            fact = fact_of(record)
            assert (fact is None) == (plain is None), text


REAL_LOGS = Path(__file__).parents[3] / "shared" / "real-logs"


@pytest.mark.skipif(not REAL_LOGS.is_dir(), reason="the whole logs of real servers are not beside this checkout")
@pytest.mark.parametrize("release", ["2.0.4", "2.2.4", "2.2.4-debug", "2.3.2"])
def test_the_trace_of_whole_logs_confirms_every_line_of_marks_txt(tmp_path: Path, release: str) -> None:
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from 3.11.4 on
    shutil.unpack_archive(REAL_LOGS / f"nacos-{release}.tar.xz", tmp_path, **safely)
    logs = next(path.parent for path in tmp_path.rglob("marks.txt"))
    _, trace = imported(logs, tmp_path / "out")
    marks, began_ms = (logs / "marks.txt").read_text(), _began_ms(logs)
    assert marks_not_in(trace, marks, began_ms) == []
    # Each event left out of the trace makes its lines missing.
    lines = marks.splitlines()
    assert marks_not_in(replace(trace, events=()), marks, began_ms) == lines
    sdk, about_h1 = _publishing(trace.events), "h1\\b|'10\\.0\\.1\\.1'|^.'(seen|gone)'"
    for clients, text in ((sdk, "sdk|10\\.2\\.2\\.2"), ({H1}, about_h1)):
        others = replace(trace, events=tuple(event for event in trace.events if event.client not in clients))
        about = [line for line in lines if re.search(text, line[20:])]
        assert marks_not_in(others, marks, began_ms) == about


def _began_ms(logs: Path) -> int:
    """When the first record was written, in milliseconds of the day."""
    stamps = (
        m for path in logs.rglob("*.log") for m in re.findall(r"(?m)^2026-\S+ ([\d:]{8})[.,](\d{3})", path.read_text())
    )
    return min(_of_day(time) + int(ms) for time, ms in stamps)


def _of_day(time: str) -> int:
    hours, minutes, seconds = map(int, time.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000


def marks_not_in(trace: TraceFile, marks: str, began_ms: int) -> list[str]:
    """The lines of marks.txt that the trace does not confirm, and those that cannot be parsed."""
    lines = marks.splitlines()
    at_ms = [_of_day(line[11:19]) - began_ms for line in lines]
    return [
        line
        for line, before, at in zip(lines, [0, *at_ms], at_ms, strict=False)
        if not _is_confirmed(trace.events, line[20:], before, at)
    ]


SECOND_MS = 1300
"""A mark has the second in which it was set, and what it says was asked for three times a second."""


def _is_confirmed(events: tuple[Event, ...], mark: str, before_ms: int, at_ms: int) -> bool:
    """`before_ms`: when the mark before it was set, from which "seen", "gone" and "expired" count their seconds."""

    def happened(kind: Kind, node: str, client: str | None, first_ms: int, last_ms: int) -> bool:
        return any(
            (e.kind, e.node) == (kind, node) and client in (None, e.client) and first_ms <= e.at_ms <= last_ms
            for e in events
        )

    def turned(clients: set[str], *, held: bool) -> bool:
        """On each node of the mark, in so many seconds, from none of them held to all, or from all to none."""
        at = {address(port): before_ms + int(float(s) * 1000) for port, s in re.findall(r"(\d{5}): (\d+\.\d+)", mark)}
        first = {node: clients & _held_at(events, node, before_ms - 3000) for node in at}
        last = {node: clients & _held_at(events, node, then + SECOND_MS) for node, then in at.items()}
        before, after = (set(), clients) if held else (clients, set())
        return bool(at and clients) and all((first[node], last[node]) == (before, after) for node in at)

    def address(port: str) -> str:
        return f"127.0.0.1:{port}"

    connected = [e for e in events if e.kind is Kind.CLIENT_CONNECTED and e.client]
    sdk = _publishing(events)
    if post := re.search(r"POST on', \d+, '([\d.]+)', (\d+), .*\"responsibleServer\":\"([\d.:]+)\"", mark):
        ip, port, owner = post.groups()
        return happened(Kind.CLIENT_CONNECTED, owner, f"{ip}:{port}#true", at_ms - 1500, at_ms + 1500)
    if "register h1..h6 (2 per node)" in mark:
        new = {(e.node, e.client) for e in connected if e.client in SIX and abs(e.at_ms - at_ms - 1000) <= 3000}
        return Counter(node for node, _ in new) == {A: 2, B: 2, C: 2}
    if mark.startswith("('seen'"):
        return turned(SIX, held=True)
    if on := re.search(r"sdk client on', (\d{5}), 'registered True'", mark):
        return any(happened(Kind.CLIENT_CHANGED, address(on[1]), each, at_ms - 3000, at_ms + 1500) for each in sdk)
    if mark.startswith("('sdk seen'"):
        return turned({each for each in sdk if happened(Kind.CLIENT_CHANGED, B, each, 0, at_ms)}, held=True)
    if "DELETE h1" in mark:
        gone = [e for e in events if e.client == H1 and e.digest == NOTHING and e.owned]
        return any(abs(e.at_ms - at_ms) <= 2000 for e in gone[1:])  # the first is its connection
    if mark.startswith("('gone'"):
        return turned({H1}, held=False)
    if "stop beats of h2" in mark:
        unhealthy = [e for e in events if e.client == H2 and "unhealthy" in (e.detail or "")]
        return any(at_ms + 5_000 <= e.at_ms <= at_ms + 25_000 for e in unhealthy)
    if "h2 expired" in mark:
        return turned({H2}, held=False)
    if "kill -9 node 1" in mark:
        return happened(Kind.NODE_STOPPED, B, None, at_ms - 6000, at_ms + 1000)
    if answers := re.findall(r"(\d{5}): \('(YES|NO)'", mark):  # NO: the survivors hold it on
        return all((word == "NO") == bool(sdk & _held_at(events, address(port), at_ms)) for port, word in answers)
    if states := re.findall(r"'([\d.:]+)', '(UP|DOWN)'", mark):
        up = ",".join(node for node, state in states if state == "UP")
        seen = {e.node: e.detail for e in events if e.kind is Kind.MEMBERS_CHANGED and e.at_ms <= at_ms}
        return all(seen.get(node) == up for node, state in states if state == "UP")
    if "register h9 while node 1 is down" in mark:
        resets = [e.kind for e in events if e.node == B and e.kind in LIVES and e.at_ms <= at_ms]
        came = [happened(Kind.CLIENT_CONNECTED, node, H9, at_ms - 1500, at_ms + 1500) for node in (A, C)]
        return any(came) and resets[-1:] == [Kind.NODE_STOPPED]
    if "restart node 1" in mark:
        return happened(Kind.NODE_STARTED, B, None, at_ms, at_ms + 20_000)
    if "same on all" in mark:
        ports = re.findall(r"(\d{5}): \d", mark)
        first, *rest = (_held_at(events, address(port), at_ms + 1000) for port in ports)
        return len(rest) == 2 and bool(first) and all(other == first for other in rest)
    if lists := re.findall(r"\((\d{5}), (\[.*?\]), (\[.*?\])\)", mark):  # what was read: "h state", "after", "end"
        for port, of_http, of_sdk in lists:
            shown = _held_at(events, address(port), at_ms)
            expected = {f"{ip}:{its}#true" for ip, its in re.findall(r"\('([\d.]+)', (\d+)\)", of_http)}
            if {client for client in shown if "#" in client} != expected or bool(shown & sdk) != (of_sdk != "[]"):
                return False
        return True
    return False


def _publishing(events: tuple[Event, ...]) -> set[str]:
    """The clients of SDKs; the servers' own connections publish nothing."""
    return {e.client for e in events if e.kind is Kind.CLIENT_CHANGED and e.client and "#" not in e.client}


LIVES = (Kind.NODE_STARTED, Kind.NODE_STOPPED)
SIX = {f"10.0.1.{n}:{79 + n}#true" for n in range(1, 7)}
H2, H9 = "10.0.1.2:81#true", "10.0.1.9:89#true"


def _held_at(events: tuple[Event, ...], node: str, at_ms: int) -> set[str]:
    """The clients that publish something there, as the trace has it at that time."""
    held: set[str] = set()
    for event in sorted((e for e in events if e.node == node and e.at_ms <= at_ms), key=lambda e: e.seq):
        if event.kind in LIVES:
            held = set()
        elif event.client and event.digest not in (None, NOTHING):
            held.add(event.client)
        elif event.digest == NOTHING or event.kind in (Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED):
            held.discard(event.client or "")
    return held
