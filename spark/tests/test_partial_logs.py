"""Logs of which files, levels or nodes are missing: less can be judged, and nothing turns red for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from engines import on_both
from pyspark.sql import SparkSession

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
    """The shipped logs; what is `removed` is gone, or only its records of `level` where that is given."""
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


@pytest.mark.spark
def test_no_subset_of_files_and_levels_raises_an_alarm(spark: SparkSession, tmp_path: Path) -> None:
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
    result = on_both(spark, tmp_path / "traces")
    news = [f"{each.run}: {each.message}" for each in result.violations if each.known is None]
    assert (news, result.verdict) == ([], "inconclusive")


@pytest.mark.spark
@pytest.mark.parametrize("case", ["01", "02", "02b", "03", "10f"])
def test_an_ordinary_disconnect_is_no_alarm(spark: SparkSession, tmp_path: Path, case: str) -> None:
    import_logs(DATA / "cases" / case, tmp_path)
    result = on_both(spark, tmp_path)
    assert ([each.message for each in result.violations], result.verdict) == ([], "inconclusive")
