"""The time to write and to open a page about a trace of a million rows, and its size.

`open_s` is from the start of navigation to the end of loading in headless Chromium, cold; `window_s` is the time to
show another window of the same trace. Timings depend on the machine; the size of the page does not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import duckdb
from playwright.sync_api import sync_playwright

from distro_conformance.findings import Finding, Judgement
from distro_conformance.report import Report, Stage, write_page
from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_conformance.verdict import Verdict
from distro_model.simulation.faults import faults_named
from distro_traces.event import COLUMNS
from distro_traces.parquet import parts_of
from distro_traces.windows import Windows

WINDOW_ROWS = 60


def long_trace(directory: Path, rows: int) -> Path:
    """A simulated run, repeated one after the other until it has so many rows. Sequence numbers and times go on."""
    made = simulate(SimulationOptions(out=directory / "short", duration_s=600, seed=5, faults=faults_named("all")))
    part = next(part for file in (directory / "short").rglob("*.parquet") for part in parts_of(file.parent))
    repeats = -(-rows // made.events)
    out = directory / "long" / part.parent.name
    out.mkdir(parents=True)
    columns = ", ".join(
        {
            "seq": "seq + i * (SELECT max(seq) FROM short) AS seq",
            "at_ms": "at_ms + i * (SELECT max(at_ms) + 1 FROM short) AS at_ms",
            "message": "message || '-' || i AS message",
        }.get(name, name)
        for name in COLUMNS
    )
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE short AS SELECT * FROM read_parquet('{part}', hive_partitioning=false)")
        metadata = database.execute(
            f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('{part}') WHERE decode(key) <> 'ARROW:schema'"
        ).fetchall()
        kept = ", ".join("'{}': '{}'".format(key, value.replace("'", "''")) for key, value in metadata)
        database.execute(
            f"COPY (SELECT {columns} FROM short, range({repeats}) AS repeated(i) ORDER BY node, seq) "
            f"TO '{out / part.name}' (FORMAT parquet, KV_METADATA {{{kept}}})"
        )
    return directory / "long"


def a_finding(trace: Path) -> tuple[Finding, int]:
    """About a replica in the middle of the run, and how many rows there are."""
    with Windows(trace) as windows:
        rows = windows.at(windows.total // 2, 20_000)  # a long calm has nothing but verifies
        row = next(event for event in rows if event.kind == "replica_applied")
        return Finding(
            about="INV-CONV",
            by="trace",
            judgement=Judgement.VIOLATES,
            text="At rest every member's view of every service is the same set of instances.",
            message="as if it had been found",
            run=windows.run,
            node=row.node,
            client=row.client,
            since=f"{row.kind} of {row.node} at {row.at_ms} ms (seq {row.seq})",
        ), windows.total


def opened_s(page: Path) -> float:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="load")
        seconds = time.perf_counter() - began
        browser.close()
        return seconds


def measure(rows: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        trace = long_trace(Path(directory), rows)
        finding, total = a_finding(trace)
        page = Path(directory) / "report.html"
        report = Report(
            target="a long trace",
            profile="strict",
            scope="one finding in the middle of it",
            verdict=Verdict.VIOLATES,
            seconds=0,
            stages=(Stage("check", Verdict.VIOLATES, 0, f"{total} rows"),),
            findings=(finding,),
            traces=str(trace),
        )
        began = time.perf_counter()
        write_page(report, page)
        written_s = time.perf_counter() - began
        with Windows(trace) as windows:
            began = time.perf_counter()
            windows.at(total // 3, WINDOW_ROWS)
            windows.held_at(total // 3)
            window_s = time.perf_counter() - began
        return {
            "rows": total,
            "written_s": round(written_s, 2),
            "page_bytes": page.stat().st_size,
            "open_s": round(opened_s(page), 3),
            "window_s": round(window_s, 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    figures = measure(100_000 if parser.parse_args().quick else 1_000_000)
    print(json.dumps({"bench": "page", "figures": figures, "ratios": {}}, indent=2))


if __name__ == "__main__":
    main()
