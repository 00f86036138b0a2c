"""`distrocheck compact TRACE --out DIR`: recordings into Parquet with a manifest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption, readable, writable_directory
from distro_conformance.cli.output import echo, print_json, progress
from distro_conformance.findings.finding import command


@app.command()
def compact(
    trace: Annotated[Path, typer.Argument(help="A recording (NDJSON, all its segments), or a directory of them.")],
    out: Annotated[Path, typer.Option(help="Directory for the Parquet files.")],
    json: JsonOption = False,
) -> None:
    """Write recordings as Parquet by run, sorted and packed, with a manifest."""
    from distro_traces.compact import MANIFEST, read_manifest, recordings_at
    from distro_traces.compact import compact as run_compaction

    recordings = recordings_at(readable(trace, "recording"))
    writable_directory(out)
    began = time.perf_counter()
    with progress() as on_progress:
        on_progress(f"reading {trace}")
        files = run_compaction(recordings, out)
    made = {path.relative_to(out).as_posix() for path in files}
    events = sum(file["events"] for run in read_manifest(out) for file in run["files"] if file["path"] in made)
    seconds = time.perf_counter() - began
    if json:
        document = {"events": events, "files": len(files), "seconds": round(seconds, 3)}
        print_json("compact", {**document, "path": str(out), "manifest": str(out / MANIFEST)})
        return
    echo(f"{events} events in {len(files)} files, {seconds:.1f} s")
    echo(command("check", out))
