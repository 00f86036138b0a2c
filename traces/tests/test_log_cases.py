"""Logs built after public reports: the results of each import, in the trace or in the list of troubles."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from distro_traces.event import Event, Kind, Outcome
from distro_traces.nacos_logs.importer import Imported, import_logs
from distro_traces.nacos_logs.records import DisorderError
from distro_traces.nacos_logs.survey import NoLogsError
from distro_traces.nacos_logs.troubles import FLAPS
from distro_traces.ndjson import TraceFile, read_ndjson
from distro_traces.unreached import unreached

CASES = Path(__file__).parent / "data" / "cases"
OTHER = "10.9.0.2:8848"


def imported(logs: Path, out: Path, **options: object) -> tuple[Imported, TraceFile]:
    result = import_logs(logs, out, **options)  # type: ignore[arg-type]
    return result, read_ndjson(result.path)


def troubles(result: Imported) -> list[tuple[str, str, int]]:
    return [(each.kind, each.subject, each.count) for each in result.troubles]


def rows(trace: TraceFile) -> list[tuple[object, ...]]:
    """The rows without the name of the run."""
    return [
        (
            *(e.node, e.seq, e.at_ms, e.kind, e.peer, e.message, e.operation, e.client),
            *(e.owned, e.revision, e.digest, e.outcome, e.detail),
        )
        for e in trace.events
    ]


def test_a_flapping_copy_names_the_member_that_verifies_it(tmp_path: Path) -> None:
    result, trace = imported(CASES / "01", tmp_path)
    client = "10.0.1.1:5540#true"
    assert troubles(result) == [("flapping", client, 8)]
    refused = [e for e in trace.events if e.kind is Kind.REPLY_SENT]
    assert {(e.operation, e.outcome, e.detail) for e in refused} == {
        ("VERIFY", Outcome.FAIL, "get new client from 10.9.0.2")
    }
    removed = [e for e in trace.events if e.kind is Kind.REPLICA_REMOVED]
    assert (len(removed), {e.detail for e in removed}) == (5, {"a DELETE that is logged where it was applied"})


def test_a_copy_that_flaps_less_often_is_not_reported(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "naming-distro.log"
    log.parent.mkdir()
    lines = (CASES / "01" / "n0" / "naming-distro.log").read_text().splitlines()
    came = [i for i, line in enumerate(lines) if "[Client-Add]" in line]
    log.write_text("\n".join(lines[: came[FLAPS - 1]]))
    assert imported(tmp_path / "logs", tmp_path / "out")[0].troubles == ()


@pytest.mark.parametrize("case", ["02", "02b"])
def test_a_failed_call_has_a_target_also_where_its_record_names_none(tmp_path: Path, case: str) -> None:
    result, trace = imported(CASES / case, tmp_path)
    ends = [(e.peer, e.outcome, e.at_ms) for e in trace.events if e.kind is Kind.REPLY_RECEIVED]
    assert ends == [
        ("10.9.0.3:8848", Outcome.SUCCESS, 1366),
        (OTHER, Outcome.TIMEOUT, 4361),
        (OTHER, Outcome.SUCCESS, 7389),
    ]
    assert troubles(result) == [("link", OTHER, 1)]
    assert result.troubles[0].until_ms == 7389


def test_of_two_failures_without_a_name_the_next_start_shows_the_call(tmp_path: Path) -> None:
    key = "DistroKey{{resourceKey='c{}', resourceType='Nacos:Naming:v2:ClientData', targetServer='10.9.0.2:8848'}}"
    start = "2022-10-23 07:01:{},000 INFO [DISTRO-START] DistroSyncChangeTask for " + key
    failed = (
        "2022-10-23 07:01:{},000 WARN [DISTRO] Sync data change failed.\njava.util.TimeoutException: x after 3000 ms"
    )
    log = tmp_path / "logs" / "protocol-distro.log"
    log.parent.mkdir()
    lines = [start.format(10, 1), start.format(10, 2), failed.format(13), start.format(16, 2)]
    log.write_text("\n".join(lines))
    result, trace = imported(log.parent, tmp_path / "out")
    assert [(e.client, e.outcome) for e in trace.events if e.kind is Kind.REPLY_RECEIVED] == [("c2", Outcome.TIMEOUT)]
    log.write_text("\n".join(lines[2:3] + lines[:1]))
    result, trace = imported(log.parent, tmp_path / "again")
    assert [each.subject for each in result.troubles if each.kind == "link"] == [
        "a member that the record does not name"
    ]


def test_what_grep_prints_over_rotated_files_is_the_trace_of_the_sorted_lines(tmp_path: Path) -> None:
    _, grepped = imported(CASES / "03", tmp_path / "grepped")
    _, ordered = imported(CASES / "03c", tmp_path / "sorted")
    assert rows(grepped) == rows(ordered)
    ended = [e for e in grepped.events if "gone" in (e.detail or "")]
    assert (len(ended), {e.owned for e in ended}) == (8, {None})
    assert ended[0].client == "10.0.3.1:36841#true"
    assert [("older than the logs" in (e.detail or "")) for e in ended] == [False] + [True] * 7


def test_grep_with_folders_and_line_numbers_is_split_by_node(tmp_path: Path) -> None:
    lines = [
        f"n{node}/logs/{path.name}:{number}:{line}"
        for node in (0, 1, 2)
        for path in sorted((CASES / "23" / f"n{node}").iterdir())
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.startswith("2024")
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "out.txt").write_text("\n".join(lines))
    result, trace = imported(tmp_path / "logs", tmp_path / "split")
    _, whole = imported(CASES / "23", tmp_path / "whole")
    assert sorted(result.nodes.values()) == ["10.9.0.1:8848", "10.9.0.2:8848", "10.9.0.3:8848"]
    # grep leaves out the exception, which distinguishes a time-out from another failure
    assert [(e.node, e.at_ms, e.kind, e.client, e.digest) for e in trace.events] == [
        (e.node, e.at_ms, e.kind, e.client, e.digest) for e in whole.events
    ]


def test_joined_files_are_sorted_and_overlapping_ones_are_refused(tmp_path: Path) -> None:
    log = CASES / "23" / "n0" / "protocol-distro.log"
    lines = log.read_text().splitlines(keepends=True)
    joined = tmp_path / "joined" / "n0" / log.name
    shutil.copytree(CASES / "23", tmp_path / "joined")
    cut = next(i for i, line in enumerate(lines) if line.startswith("2024-05-20 10:08"))
    joined.write_text("".join(lines[cut:] + lines[:cut]))
    _, whole = imported(CASES / "23", tmp_path / "a")
    _, again = imported(tmp_path / "joined", tmp_path / "b")
    assert rows(again) == rows(whole)
    late = [i for i, line in enumerate(lines) if line.startswith("2024-05-20 10:09")]
    joined.write_text("".join(lines[: cut - 10] + lines[late[0] :] + lines[cut - 10 : late[0] + 9]))
    with pytest.raises(DisorderError, match=r"protocol-distro\.log line \d+: the time goes back by [\d.]+ s"):
        imported(tmp_path / "joined", tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("case", ["05", "05b"])
def test_a_node_without_a_member_list_never_loads(tmp_path: Path, case: str) -> None:
    result, trace = imported(CASES / case, tmp_path)
    assert troubles(result) == [("not-loaded", "", 33)]
    [trouble] = result.troubles
    assert trouble.text == "never loaded: waits for a member list (28 times), sends no verify (5 times)"
    assert trouble.until_ms is None
    assert [e.kind for e in trace.events] == ([Kind.NODE_STARTED] if case == "05" else [])


def test_a_directory_called_after_a_host_is_the_member_with_that_host(tmp_path: Path) -> None:
    result, trace = imported(CASES / "07b", tmp_path)
    assert dict(result.nodes) == {"nacos-31": "nacos-31:8848", "nacos-40": "nacos-40:8848"}
    [open_call] = unreached(trace.events)
    assert (open_call.member, open_call.failed, open_call.is_there) == ("nacos-31:8848", 2, False)


def test_pushes_that_fail_are_counted_by_subscriber(tmp_path: Path) -> None:
    result, _ = imported(CASES / "08", tmp_path)
    assert troubles(result) == [("push", "10.0.5.6", 2), ("push", "10.0.5.9", 1)]
    assert "svc-b after 20000 ms" in result.troubles[0].text


def test_members_that_see_each_other_unhealthy(tmp_path: Path) -> None:
    result, _ = imported(CASES / "09", tmp_path)
    assert dict(result.nodes) == {"n0": "10.9.0.1:8848"}
    kinds = {(each.kind, each.subject) for each in result.troubles}
    assert kinds == {("member", OTHER), ("member", "10.9.0.3:8848"), ("reports", OTHER)}
    assert [each.until_ms for each in result.troubles if each.subject == OTHER and each.kind == "member"] == [None]
    assert any("TimeoutException: Waited 3000 milliseconds" in each.text for each in result.troubles)


def test_an_ejected_connection_is_named_with_the_reason(tmp_path: Path) -> None:
    result, _ = imported(CASES / "10", tmp_path)
    assert troubles(result) == [("ejected", "1779700000000_10.0.6.6_50111", 1)]
    assert result.troubles[0].place == "remote-digest.log:11"


def test_an_ordinary_disconnect_is_no_removal_by_a_server(tmp_path: Path) -> None:
    result, trace = imported(CASES / "10f", tmp_path)
    assert result.troubles == ()
    assert {(e.kind, e.owned) for e in trace.events} == {(Kind.OBSERVED, None)}


def test_a_server_in_1x_mode_is_reported_first(tmp_path: Path) -> None:
    result, _ = imported(CASES / "19", tmp_path)
    assert [each.kind for each in result.troubles] == ["old-mode", "member", "redirect", "reports"]


def test_a_change_that_never_arrived_is_reported_with_its_calls(tmp_path: Path) -> None:
    result, trace = imported(CASES / "23", tmp_path)
    sentence = (
        "1716170760000_10.0.0.2_40002's change at 10.9.0.1:8848, 360100 ms, never reached 10.9.0.3:8848; 40 calls "
        "failed, the last after 3000 ms; a call sent at 605100 ms is still open; it is still not there at the end of "
        "the logs"
    )
    assert [str(each) for each in unreached(trace.events)] == [sentence]
    assert [each.text for each in result.troubles if each.kind == "unreached"] == [sentence]


@pytest.mark.parametrize("repaired", ["call", "otherwise"])
def test_a_change_that_arrived_in_the_end_is_not_open(tmp_path: Path, repaired: str) -> None:
    _, trace = imported(CASES / "23", tmp_path)
    sent = [e for e in trace.events if e.kind is Kind.REQUEST_SENT][-1]
    here = next(e for e in trace.events if e.client == sent.client and e.digest and e.owned)
    if repaired == "call":
        more = {"node": sent.node, "kind": Kind.REPLY_RECEIVED, "peer": sent.peer, "outcome": Outcome.SUCCESS}
        more |= {"operation": "CHANGE"}
    else:
        last = [e for e in trace.events if e.client == sent.client and e.node == sent.node and e.digest][-1]
        more = {"node": sent.peer, "kind": Kind.REPLICA_APPLIED, "digest": last.digest, "owned": False}
    assert here.node == sent.node
    arrived = Event(run=sent.run, seq=10_000, at_ms=sent.at_ms + 9, client=sent.client, **more)  # type: ignore[arg-type]
    assert unreached([*trace.events, arrived]) == []
    rest = Event(run=sent.run, node="n", seq=1, at_ms=0, kind=Kind.CHECKPOINT)
    assert unreached([rest, *trace.events]) == []  # INV-CONV judges it


def docker(line: str, number: int) -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": f"2023-11-15T09:00:00.{number:06d}Z"})


def logstash(line: str, number: int) -> str:
    return json.dumps({"@timestamp": f"2023-11-15T09:00:{number:02d}.000Z", "message": line, "tags": ["x"]})


def nested(line: str, number: int) -> str:
    return json.dumps({"at": f"2023-11-15T09:00:{number:02d}.000Z", "values": [[str(number), {"entry": line}]]})


def kubectl(line: str, number: int) -> str:
    return f"2023-11-15T09:00:00.{number:09d}Z {line}"


def cri(line: str, number: int) -> str:
    return f"2023-11-15T09:00:00.{number:09d}+08:00 stdout F {line}"


def compose(line: str, number: int) -> str:
    return f"nacos1  | {line}"


def coloured(line: str, number: int) -> str:
    return line.replace("INFO", "\x1b[32mINFO\x1b[0m")


def tomcat(line: str, number: int) -> str:
    return line.replace("2023-11-15 ", "15-Nov-2023 ")


def syslog(line: str, number: int) -> str:
    return f"<14>1 2023-11-15T09:00:00.{number:03d}Z h1 nacos 1234 - - {line}"


@pytest.mark.parametrize("case", ["docker-json", "filebeat-json", "html", "kibana-csv"])
def test_a_wrapping_of_the_same_records_is_the_same_trace(tmp_path: Path, case: str) -> None:
    _, plain = imported(CASES / "fmt" / "default", tmp_path / "plain")
    _, other = imported(CASES / "fmt" / case, tmp_path / "other")
    assert rows(other) == rows(plain)


@pytest.mark.parametrize(
    "wrap", [docker, logstash, kubectl, cri, compose, coloured, tomcat, syslog], ids=lambda wrap: wrap.__name__
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_stamp_of_the_server_overrides_that_of_the_collector(
    tmp_path: Path, wrap: Callable[[str, int], str], packed: bool
) -> None:
    """Exceptions too: their lines are wrapped each by itself."""
    zone = timezone(timedelta(hours=8))
    for path in (CASES / "23").glob("*/*.log"):
        target = tmp_path / "logs" / path.relative_to(CASES / "23")
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = [line.replace("2024-05-20 ", "2023-11-15 ") for line in path.read_text().splitlines() if line]
        text = "\n".join(wrap(line, number % 60) for number, line in enumerate(lines))
        if packed:
            target.with_suffix(".log.gz").write_bytes(gzip.compress(text.encode()))
        else:
            target.write_text(text)
    _, plain = imported(CASES / "23", tmp_path / "plain", zone=zone)
    _, other = imported(tmp_path / "logs", tmp_path / "other", zone=zone)
    assert rows(other) == rows(plain)


def test_stamps_that_are_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoLogsError, match=r"no bare time, no number"):
        imported(CASES / "fmt" / "epoch", tmp_path)


def test_two_directories_of_one_node_are_joined_where_both_name_it(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(CASES / "23", logs)
    (logs / "older").mkdir()
    lines = (logs / "n1" / "protocol-distro.log").read_text().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if "10:06:01" in line)
    (logs / "older" / "protocol-distro.log").write_text("".join(lines[:cut]))
    (logs / "n1" / "protocol-distro.log").write_text("".join(lines[cut:]))
    result, trace = imported(logs, tmp_path / "joined")
    _, whole = imported(CASES / "23", tmp_path / "whole")
    assert (len(result.nodes), rows(trace)) == (3, rows(whole))
    (logs / "older").rename(logs / "10.9.0.2")
    (logs / "10.9.0.2" / "protocol-distro.log").write_text(lines[0])
    with pytest.raises(NoLogsError, match=r"name each with --node"):
        imported(logs, tmp_path / "asked")
    result, _ = imported(logs, tmp_path / "named", names={"10.9.0.2": OTHER})
    assert len(result.nodes) == 3


def test_the_import_does_not_depend_on_the_order_of_the_files(tmp_path: Path) -> None:
    """Rotated files in any names: their own stamps say which is older."""
    lines = (CASES / "23" / "n0" / "protocol-distro.log").read_text().splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if "DISTRO-START" in line][2::8]
    shutil.copytree(CASES / "23", tmp_path / "logs")
    log = tmp_path / "logs" / "n0" / "protocol-distro.log"
    log.unlink()
    names = [f"protocol-distro.log.2024-05-20.{number}" for number in range(len(starts) + 1)]
    random.Random(3).shuffle(names)
    for name, first, end in zip(names, [0, *starts], [*starts, len(lines)], strict=True):
        log.with_name(name).write_text("".join(lines[first:end]))
    _, whole = imported(CASES / "23", tmp_path / "whole")
    _, again = imported(tmp_path / "logs", tmp_path / "again")
    assert rows(again) == rows(whole)


def test_a_record_in_a_field_of_any_name_is_found(tmp_path: Path) -> None:
    """Where exceptions, whose lines have no stamp of their own, are left out."""
    for path in (CASES / "23").glob("*/*.log"):
        lines = [line for line in path.read_text().splitlines() if line.startswith("2024")]
        for kept, text in (("plain", lines), ("nested", [nested(line, i % 60) for i, line in enumerate(lines)])):
            target = tmp_path / kept / path.relative_to(CASES / "23")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(text))
    _, plain = imported(tmp_path / "plain", tmp_path / "a")
    _, other = imported(tmp_path / "nested", tmp_path / "b")
    assert rows(other) == rows(plain)
