"""Lines without a fact of replication are skipped in blocks; the import equals that of reading each line."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC
from pathlib import Path

import pytest

from distro_traces.nacos_logs.blocks import CUT, blocks
from distro_traces.nacos_logs.facts import MARKS
from distro_traces.nacos_logs.importer import SAYS_NOTHING, import_logs
from distro_traces.nacos_logs.records import Quiet, read_file
from distro_traces.ndjson import TraceFile, read_ndjson

DATA = Path(__file__).parent / "data"
STACK = ["java.lang.IllegalStateException: late", *["\tat com.alibaba.nacos.Some.call(Some.java:17)"] * 9]


def imported(logs: Path, out: Path) -> TraceFile:
    return read_ndjson(import_logs(logs, out).path)


def rows(trace: TraceFile) -> list[tuple[object, ...]]:
    return [(e.node, e.at_ms, e.kind, e.peer, e.message, e.client, e.digest, e.detail) for e in trace.events]


def with_noise(lines: Iterable[str], seed: int) -> list[str]:
    """Some records of other things after every record, with the same stamp; after some a stack trace."""
    draw, found = random.Random(seed), list[str]()
    for line in lines:
        found.append(line)
        if line[:4].isdigit() and draw.random() < 0.8:
            for number in range(draw.randrange(60)):
                found.append(f"{line[:23]} INFO request {number} of 10.0.7.7 was answered in 3 ms, nothing else to say")
            found += STACK * (draw.random() < 0.2)
    return found


@pytest.mark.parametrize("logs", ["cases/23", "nacos-2.2.4"])
def test_noise_between_the_records_changes_no_row(tmp_path: Path, logs: str) -> None:
    noisy = tmp_path / "noisy"
    for number, path in enumerate(sorted((DATA / logs).glob("*/*.log"))):
        target = noisy / path.relative_to(DATA / logs)
        target.parent.mkdir(parents=True, exist_ok=True)
        # an exception that continues a record comes before the noise
        target.write_text("\n".join(with_noise(path.read_text().replace("\nj", " j").splitlines(), number)))
    plain = tmp_path / "plain"
    shutil.copytree(DATA / logs, plain)
    for path in plain.glob("*/*.log"):
        path.write_text(path.read_text().replace("\nj", " j"))
    assert rows(imported(noisy, tmp_path / "b")) == rows(imported(plain, tmp_path / "a"))


def docker(line: str, number: int) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": f"2026-11-23T09:00:{number % 60:02d}.000001Z"})


def cri(line: str, number: int) -> str:
    return f"2026-11-23T09:00:{number % 60:02d}.000000001+08:00 stdout F {line}"


def filebeat(line: str, number: int) -> str:
    return json.dumps({"@timestamp": f"2026-11-23T09:00:{number % 60:02d}.001Z", "message": line, "tags": ["x"]})


def of_one_host(line: str, number: int) -> str:
    where = {"host": {"name": "h1"}, "log": {"file": {"path": "/home/nacos/logs/x.log"}}}
    return json.dumps({"@timestamp": f"2026-11-23T09:00:{number % 60:02d}.001Z", "message": line, **where})


def of_two_hosts(line: str, number: int) -> str:
    host = {"host": f"h{int(number % 50 == 49)}"}
    return json.dumps({"time": f"2026-11-23T09:00:{number % 60:02d}.001Z", "log": line, **host})


@pytest.mark.parametrize("wrap", [docker, cri, filebeat, of_one_host], ids=lambda wrap: wrap.__name__)
@pytest.mark.parametrize("logs", ["cases/23", "nacos-2.2.4"])
def test_wrapped_lines_are_skipped_in_blocks_too(tmp_path: Path, wrap: Callable[[str, int], str], logs: str) -> None:
    for number, path in enumerate(sorted((DATA / logs).glob("*/*.log"))):
        lines = [line for line in with_noise(path.read_text().splitlines(), number) if line]
        for directory, text in (("plain", lines), ("wrapped", [wrap(line, i) for i, line in enumerate(lines)])):
            target = tmp_path / directory / path.relative_to(DATA / logs)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(text) + "\n")
    plain, wrapped = (import_logs(tmp_path / each, tmp_path / f"{each}-out") for each in ("plain", "wrapped"))
    assert rows(read_ndjson(wrapped.path)) == rows(read_ndjson(plain.path))
    assert (wrapped.spans, wrapped.skipped[SAYS_NOTHING]) == (plain.spans, plain.skipped[SAYS_NOTHING])


@pytest.mark.parametrize(
    ("wrap", "skips"), [(docker, True), (cri, True), (filebeat, True), (of_one_host, True), (of_two_hosts, False)]
)
def test_wrapped_lines_of_several_hosts_are_read_one_by_one(
    tmp_path: Path, wrap: Callable[[str, int], str], skips: bool
) -> None:
    lines = [f"2026-11-21 02:00:0{n // 900},{n % 900:03d} INFO nothing of interest" for n in range(1800)]
    path = tmp_path / "all.log"
    path.write_text("".join(wrap(line, number) + "\n" for number, line in enumerate(lines)))
    with path.open("a") as log:
        log.write(wrap("2026-11-21 02:00:02,000 INFO Client connection c1 connect", 1) + "\n")
    read = list(read_file("all", path, UTC, Counter(), MARKS))
    assert sum(record.amount for _, record in read) == 1801
    assert (len(read) < 100) == skips
    amounts = Counter[str]()
    for source, record in read:
        amounts[source] += record.amount
    assert sorted(amounts.values()) == ([1801] if skips else [36, 1765])


def test_a_stopped_node_is_seen_last_in_the_log_that_wrote_last(tmp_path: Path) -> None:
    """Also where that log has no fact of replication, and continues after the start."""
    logs = tmp_path / "logs" / "n0"
    logs.mkdir(parents=True)
    start = "INFO [DISTRO-INIT] waiting distro data storage register..."
    (logs / "protocol-distro.log").write_text(
        f"2026-11-21 02:00:00,000 {start}\n2026-11-21 02:20:00,000 {start}\n"
        "2026-11-21 02:30:00,000 INFO [DISTRO-INIT] load snapshot data success\n"
    )
    minutes = [*range(1, 15), *range(21, 30)]
    (logs / "naming-push.log").write_text(
        "".join(f"2026-11-21 02:{minute:02d}:00,500 INFO [PUSH-SUCC] all is well\n" for minute in minutes)
    )
    stopped = [e for e in imported(tmp_path / "logs", tmp_path / "out").events if e.kind == "node_stopped"]
    assert [(e.at_ms) for e in stopped] == [14 * 60_000 + 500]


def test_most_of_a_log_is_not_read_record_by_record(tmp_path: Path) -> None:
    path = tmp_path / "naming-server.log"
    quiet = "2026-11-21 02:00:00,000 INFO nothing of interest\n"
    path.write_text(quiet * 5000 + "2026-11-21 02:00:00,000 INFO Client connection c1 connect\n" + quiet * 5000)
    found = [record for _, record in read_file("naming-server", path, UTC, Counter(), MARKS)]
    assert len(found) < 10
    assert sum(record.amount for record in found) == 10_001
    assert [record.first_line for record in found if not isinstance(record, Quiet)] == [5001]


@pytest.mark.slow
def test_a_packed_file_that_was_cut_gives_what_is_whole(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "n0"
    logs.mkdir(parents=True)
    draw = random.Random(5)
    written = [f"17_10.0.0.{draw.randrange(256)}_{number}" for number in range(20_000)]
    lines = (f"2026-11-21 02:00:00,000 INFO Client connection {client} connect\n" for client in written)
    packed = gzip.compress("".join(lines).encode())
    (logs / "naming-server.log.gz").write_bytes(packed[: len(packed) // 2])
    found = import_logs(tmp_path / "logs", tmp_path / "out")
    assert found.skipped[CUT] == 1
    clients = [e.client for e in read_ndjson(found.path).events]
    assert 5000 < len(clients) < 15_000
    assert set(clients) <= set(written)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_the_encodings_of_a_shell_of_windows_are_read(tmp_path: Path, encoding: str) -> None:
    for path in sorted((DATA / "cases" / "23").glob("*/*.log")):
        target = tmp_path / "logs" / path.relative_to(DATA / "cases" / "23")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_text().replace("\n", "\r\n").encode(encoding))
    assert rows(imported(tmp_path / "logs", tmp_path / "b")) == rows(imported(DATA / "cases" / "23", tmp_path / "a"))


def test_a_line_without_end_is_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "naming-server.log"
    path.write_bytes(b"one\n" + b"x" * 3_000_000 + b"\nthree")
    found = list(blocks(path, skipped := Counter[str]()))
    assert [line[:5] for block in found for line in block.lines] == [b"one", b"xxxxx", b"three"]
    assert max(len(line) for block in found for line in block.lines) == 64 * 1024
    assert skipped == {"longer than 64 KiB: the rest of the line": 1}
