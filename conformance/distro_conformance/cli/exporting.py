"""`distrocheck export TRACE --to FORMAT`: a trace for another viewer, or as a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.console import errors
from distro_conformance.cli.options import JsonOption, readable, writable_file
from distro_conformance.cli.output import print_json
from distro_conformance.verdict import UsageError, named


@app.command()
def export(
    trace: Annotated[Path, typer.Argument(help="A trace (NDJSON or Parquet), or a directory.")],
    to: Annotated[str, typer.Option(help="itf, shiviz, perfetto, mermaid or scenario.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; else standard output.")] = None,
    run: Annotated[str | None, typer.Option(help="Which run, where there are several.")] = None,
    client: Annotated[
        list[str] | None, typer.Option(help="Only rows about this client, and those about none; repeat.")
    ] = None,
    without_verify: Annotated[bool, typer.Option("--without-verify", help="Leave out what only renews.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a run for a viewer (ITF, ShiViz, Perfetto, Mermaid), or as a scenario to replay."""
    from distro_traces.exports import EXPORTS
    from distro_traces.exports import export as write_as
    from distro_traces.reading import read_run

    named("format", EXPORTS, to)
    if json and out is None:
        raise UsageError("--json prints a document about what was written; name the file with --out")
    writable_file(out, "--out")
    found = read_run(readable(trace, "trace"), run)
    known = {event.client for event in found.events if event.client is not None}
    for name in client or ():
        if name not in known:
            there_are = f"there are {', '.join(sorted(known)[:5])}" if known else "there are none"
            raise UsageError(f"{trace}: no client {name} in the run {found.header.run}; {there_are}")
    events = [
        event
        for event in found.events
        if (not client or event.client is None or event.client in client)
        and not (without_verify and event.operation == "VERIFY")
    ]
    text = write_as(to, found.header, events)
    if found.rejected:
        errors.print(f"{len(found.rejected)} lines that are no events were left out; `distrocheck check` lists them")
    if out is None:
        sys.stdout.write(text)
        return
    out.write_text(text)
    if json:
        print_json("export", {"format": to, "run": found.header.run, "events": len(events), "path": str(out)})
