"""Logs as they are handed over: collected, prefixed, packed, cut. Each gives the trace of the servers' own files, or is
refused with the reason."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from distro_traces.errors import TraceError
from distro_traces.nacos_logs.files import ArchiveError
from distro_traces.nacos_logs.importer import Imported, import_logs
from distro_traces.nacos_logs.lines import OneDocumentError
from distro_traces.ndjson import TraceFile, read_ndjson

LOGS = Path(__file__).parent / "data" / "cases" / "23"
Wrap = Callable[[str, str, int], str]
"""The node's number, a line, the line's number."""


def lines() -> Iterator[tuple[Path, list[str]]]:
    for path in sorted(LOGS.glob("*/*.log")):
        yield path.relative_to(LOGS), path.read_text().splitlines()


def imported(logs: Path, out: Path) -> tuple[Imported, TraceFile]:
    found = import_logs(logs, out)
    return found, read_ndjson(found.path)


def rows(trace: TraceFile) -> list[tuple[object, ...]]:
    return [(e.node, e.at_ms, e.kind, e.peer, e.message, e.client, e.digest, e.outcome, e.detail) for e in trace.events]


def written(directory: Path, wrap: Wrap) -> Path:
    for name, text in lines():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(wrap(name.parts[0][1], line, number) + "\n" for number, line in enumerate(text)))
    return directory


def at(number: int) -> str:
    """When a line was collected: long after the server wrote it, and in no order."""
    return f"2024-05-20T18:00:{number % 60:02d}"


WRAPPINGS: dict[str, Wrap] = {
    "journald": lambda node, line, i: f"{at(i)}+0800 host{node} java[1234]: {line}",
    "journald json": lambda node, line, _: json.dumps({"_HOSTNAME": f"host{node}", "MESSAGE": line, "PRIORITY": "6"}),
    "syslog": lambda node, line, i: f"<14>May 20 18:00:{i % 60:02d} host{node} nacos: {line}",
    "kubectl": lambda node, line, i: f"[pod/nacos-{node}/nacos] {at(i)}.{i:09d}Z {line}",
    "stern": lambda node, line, _: f"nacos-{node} server {line}",
    "compose": lambda node, line, _: f"server{node}_1  | {line}",
    "logcli": lambda node, line, i: f'{at(i)}+08:00 {{filename="/logs/all.log", pod="server-{node}"}} {line}',
    "loki": lambda node, line, i: json.dumps(
        {"labels": {"pod": f"server-{node}"}, "line": line, "timestamp": f"{at(i)}.{i:09d}+08:00"}
    ),
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_lines_of_one_node_that_were_collected_are_its_trace(tmp_path: Path, name: str) -> None:
    _, plain = imported(LOGS, tmp_path / "plain")
    _, found = imported(written(tmp_path / "logs", WRAPPINGS[name]), tmp_path / "out")
    assert rows(found) == rows(plain)


@pytest.mark.parametrize("name", WRAPPINGS)
def test_a_file_with_the_lines_of_all_nodes_is_split_by_writer(tmp_path: Path, name: str) -> None:
    stream, last = [], ""
    for path, text in lines():
        for number, line in enumerate(text):
            last = line[:23] if line.startswith("2024") else last
            if line:
                stream.append((last, len(stream), WRAPPINGS[name](path.parts[0][1], line, number)))
    (tmp_path / "all.txt").write_text("\n".join(line for _, _, line in sorted(stream)))
    plain, _ = imported(LOGS, tmp_path / "plain")
    found, _ = imported(tmp_path / "all.txt", tmp_path / "out")
    assert sorted(found.nodes.values()) == sorted(plain.nodes.values())
    assert [(each.kind, each.node, each.text) for each in found.troubles] == [
        (each.kind, each.node, each.text) for each in plain.troubles
    ]


DATES: dict[str, Callable[[str], str]] = {
    "20.05.2024": lambda line: f"20.05.2024 {line[11:]}",
    "2024年05月20日": lambda line: f"2024年05月20日 {line[11:]}",
    "May 20, 2024, 1:00:00.000 PM": lambda line: f"May 20, 2024, {line[11:19]}.{line[20:23]} AM{line[23:]}",
}


@pytest.mark.parametrize("form", DATES)
def test_dates_of_other_places_are_read(tmp_path: Path, form: str) -> None:
    def dated(node: str, line: str, number: int) -> str:
        return DATES[form](line) if line.startswith("2024") else line

    _, plain = imported(LOGS, tmp_path / "plain")
    _, found = imported(written(tmp_path / "logs", dated), tmp_path / "out")
    assert rows(found) == rows(plain)


def test_an_afternoon_is_no_morning(tmp_path: Path) -> None:
    (tmp_path / "naming-server.log").write_text(
        "May 20, 2024 11:59:59 AM INFO Client connection c1 connect\n"
        "May 20, 2024 12:00:01 PM INFO Client connection c2 connect\n"
        "May 20, 2024 1:00:00 PM INFO Client connection c3 connect\n"
    )
    _, found = imported(tmp_path, tmp_path / "out")
    assert [e.at_ms for e in found.events] == [0, 2000, 3_601_000]


@pytest.mark.parametrize(
    ("suffix", "packed"),
    [(".1", gzip.compress), (".bz2", bz2.compress), (".1.xz", lzma.compress)],
    ids=["gzip", "bzip2", "xz"],
)
def test_a_packed_file_is_known_by_its_first_bytes(
    tmp_path: Path, suffix: str, packed: Callable[[bytes], bytes]
) -> None:
    for name, text in lines():
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(path.name + suffix).write_bytes(packed("\n".join(text).encode() + b"\n"))
    _, plain = imported(LOGS, tmp_path / "plain")
    _, found = imported(tmp_path / "logs", tmp_path / "out")
    assert rows(found) == rows(plain)


@pytest.mark.parametrize(
    ("name", "content", "error", "reason"),
    [
        ("logs.zip", b"PK\x03\x04", ArchiveError, "an archive; unpack it first"),
        ("logs.tar.gz", b"\x1f\x8b", ArchiveError, "an archive; unpack it first"),
        ("naming-server.log.zst", b"\x28\xb5\x2f\xfd1234", ArchiveError, r"unpack it first \(unzstd\)"),
    ],
)
def test_a_file_that_cannot_be_unpacked_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes, error: type[TraceError], reason: str
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(content)
    with pytest.raises(error, match=reason):
        import_logs(tmp_path / "logs", tmp_path / "out")


@pytest.mark.parametrize("times", [1, 200])
def test_a_document_with_many_records_in_it_is_refused_with_the_reason(tmp_path: Path, times: int) -> None:
    """An answer of the HTTP API of Loki; a line longer than 64 KiB is not read to its end."""
    text = (LOGS / "n0" / "protocol-distro.log").read_text().splitlines() * times
    values = [[str(number), line] for number, line in enumerate(text)]
    (tmp_path / "loki.log").write_text(
        json.dumps({"data": {"result": [{"stream": {"job": "nacos"}, "values": values}]}})
    )
    with pytest.raises(OneDocumentError, match=r"loki\.log line 1: many records in one JSON value; write one record a"):
        import_logs(tmp_path / "loki.log", tmp_path / "out")


def test_half_a_line_at_the_end_of_a_file_makes_no_client(tmp_path: Path) -> None:
    service = "Service{namespace='public', group='DEFAULT_GROUP', name='web', ephemeral=true, revision=0}"
    text = (
        "2024-05-20 10:00:00,000 INFO Client connection 17_10.0.0.2_40002 connect\n"
        f"2024-05-20 10:00:01,000 INFO Client change for service {service}, 17_10.0.0.2_40002"
    )
    (tmp_path / "naming-server.log").write_text(text)
    _, whole = imported(tmp_path, tmp_path / "a")
    (tmp_path / "naming-server.log").write_text(text[:-3])
    cut, found = imported(tmp_path, tmp_path / "b")
    assert [{e.client for e in trace.events} for trace in (whole, found)] == [{"17_10.0.0.2_40002"}] * 2
    assert (len(whole.events), len(found.events)) == (2, 1)
    assert any("half of a name" in reason for reason in cut.skipped)
