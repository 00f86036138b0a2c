"""Logs with missing files, levels or nodes: less can be judged, and no violation is added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from engines import in_process

from distro_traces.errors import EmptyTraceError
from distro_traces.nacos_logs.importer import NoLogsError, import_logs

DATA = Path(__file__).parents[2] / "traces" / "tests" / "data"
LOGS = ("protocol-distro", "naming-distro", "naming-server", "nacos-cluster")
LEVELS = {"all": None, "without-debug": re.compile("DEBUG"), "warnings-only": re.compile("DEBUG|INFO")}


def files_removed() -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Each subset of the logs, on all nodes and on one alone; each subset of whole nodes."""
    nodes = ("n0", "n1", "n2")
    for size in range(1, len(LOGS) + 1):
        for logs in combinations(LOGS, size):
            for where in (nodes, ("n0",), ("n1",), ("n2",)):
                yield f"{'+'.join(where)} without {'+'.join(logs)}", {(node, log) for node in where for log in logs}
    for size in (1, 2):
        for gone in combinations(nodes, size):
            yield f"without {'+'.join(gone)}", {(node, log) for node in gone for log in LOGS}


def copied(to: Path, removed: set[tuple[str, str]], level: re.Pattern[str] | None) -> None:
    """The shipped logs without the `removed` files, or without their records of `level` where it is given."""
    for path in sorted((DATA / "nacos-2.2.4").glob("*/*.log")):
        text = path.read_text()
        if (path.parent.name, path.stem) in removed:
            if level is None:
                continue
            records = re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", text)
            text = "".join(each for each in records if not re.match(rf"\S+ \S+ ({level.pattern})\b", each))
        target = to / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


@pytest.mark.slow
def test_no_subset_of_files_and_levels_raises_an_alarm(tmp_path: Path) -> None:
    runs = 0
    for name, removed in files_removed():
        for level, pattern in LEVELS.items():
            run = f"{name} {level}".replace(" ", "-")
            copied(tmp_path / run, removed, pattern)
            try:
                import_logs(tmp_path / run, tmp_path / "traces", run=run)
            except (NoLogsError, EmptyTraceError):
                continue
            runs += 1
    assert runs > 150
    result = in_process(tmp_path / "traces")
    news = [f"{each.run}: {each.message}" for each in result.violations if each.known is None]
    assert (news, result.verdict) == ([], "inconclusive")


def rotated(to: Path, gone: set[tuple[str, str]]) -> None:
    """The shipped logs, each in three files; of those that are `gone` the one in the middle is missing."""
    for path in sorted((DATA / "nacos-2.2.4").glob("*/*.log")):
        records = re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", path.read_text())[1:]
        third = (len(records) + 2) // 3
        for number in range(3):
            if number == 1 and (path.parent.name, path.stem) in gone:
                continue
            target = to / path.parent.name / f"{path.name}.{3 - number}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("".join(records[number * third : (number + 1) * third]))


@pytest.mark.slow
def test_no_rotated_file_that_is_missing_raises_an_alarm(tmp_path: Path) -> None:
    nodes = ("n0", "n1", "n2")
    for size in range(1, len(LOGS) + 1):
        for logs in combinations(LOGS, size):
            for where in (nodes, ("n0",), ("n1",), ("n2",)):
                run = f"{'-'.join(where)}-without-{'-'.join(logs)}"
                rotated(tmp_path / run, {(node, log) for node in where for log in logs})
                import_logs(tmp_path / run, tmp_path / "traces", run=run)
    result = in_process(tmp_path / "traces")
    news = [f"{each.run}: {each.message}" for each in result.violations if each.known is None]
    assert (news, result.verdict) == ([], "inconclusive")


MEANWHILE = "2026-11-21 02:52:03"
"""A time in the middle of the logs, at which a clock is set."""


@pytest.mark.slow
@pytest.mark.parametrize("node", ["n0", "n1"])
def test_no_clock_that_differs_raises_an_alarm(tmp_path: Path, node: str) -> None:
    """Before clocks were compared, 7 s were enough to take B10 for an unknown failure."""
    shifts = [(8 * 3600, ""), (-400, ""), (7, ""), (-7, ""), (7, MEANWHILE), (-4, MEANWHILE)]
    for number, (seconds, since) in enumerate(shifts):
        run = f"{node}-{number}"
        copied(tmp_path / run, set(), None)
        for path in (tmp_path / run / node).glob("*.log"):
            path.write_text("".join(later(line, seconds, since) for line in path.read_text().splitlines(keepends=True)))
        import_logs(tmp_path / run, tmp_path / "traces", run=run)
    result = in_process(tmp_path / "traces")
    news = [f"{each.run}: {each.message}" for each in result.violations if each.known is None]
    assert (news, result.verdict) == ([], "inconclusive")


def later(line: str, seconds: int, since: str) -> str:
    if line < since or not line[:4].isdigit():
        return line
    return f"{datetime.fromisoformat(line[:19]) + timedelta(seconds=seconds)}{line[19:]}"


CLIENT = "1716170760000_10.0.0.1_40001"
REMOVED = {
    # n0 is the client's own node until 100 s; at 400 s a DELETE for it arrives
    "naming-server": (
        f"10:00:05,000 INFO Client connection {CLIENT} connect",
        "10:01:40,000 INFO all is well",
        f"10:03:00,000 INFO Client connection {CLIENT} disconnect, remove instances and subscribers",
        "10:06:41,000 INFO all is well",
        "10:09:59,000 INFO all is well",
    ),
    "naming-distro": (
        "10:00:00,000 INFO all is well",
        "10:01:40,000 INFO all is well",
        "10:03:00,000 INFO all is well",
        f"10:06:40,000 INFO [Client-Delete] Received distro client sync data {CLIENT}",
        "10:09:59,000 INFO all is well",
    ),
}


@pytest.mark.parametrize(("missing", "verdicts"), [((), ("conforms", 0)), ((2,), ("not-judged", 0))])
def test_an_end_that_a_missing_file_may_have_is_no_alarm(
    tmp_path: Path, missing: tuple[int, ...], verdicts: tuple[str, int]
) -> None:
    """Without the third line in any file, and with no sign that one is missing, it is an alarm: see the next test."""
    for log, lines in REMOVED.items():
        for number, line in enumerate(lines):
            if number not in missing:
                path = tmp_path / "logs" / "n0" / f"{log}.log.{9 - number}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"2024-05-20 {line}\n")
    import_logs(tmp_path / "logs", tmp_path / "traces", profile="nacos-2.3.2")
    result = in_process(tmp_path / "traces")
    [native] = [each for each in result.invariants if each.name == "INV-NATIVE"]
    assert (native.verdict, native.violations) == verdicts
    said = [reason for reason in result.reasons if "INV-NATIVE" in reason]
    assert bool(said) == bool(missing)


def test_the_same_in_one_whole_file_is_an_alarm(tmp_path: Path) -> None:
    for log, lines in REMOVED.items():
        path = tmp_path / "logs" / "n0" / f"{log}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"2024-05-20 {line}\n" for number, line in enumerate(lines) if number != 2))
    import_logs(tmp_path / "logs", tmp_path / "traces", profile="nacos-2.3.2")
    [violation] = in_process(tmp_path / "traces").violations
    assert violation.invariant == "INV-NATIVE"


@pytest.mark.parametrize("case", ["01", "02", "02b", "03", "10f"])
def test_an_ordinary_disconnect_is_no_alarm(tmp_path: Path, case: str) -> None:
    import_logs(DATA / "cases" / case, tmp_path)
    result = in_process(tmp_path)
    assert ([each.message for each in result.violations], result.verdict) == ([], "inconclusive")
