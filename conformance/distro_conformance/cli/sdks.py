"""`distrocheck test sdks`: the official SDKs as black boxes on three nodes, as a table."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Annotated

import typer

from distro_conformance.cli import test
from distro_conformance.cli.options import JsonOption
from distro_conformance.cli.output import print_json, progress, row, say


@test.command()
def sdks(
    target: Annotated[str, typer.Option(help="embedded (reference nodes) or nacos:VERSION.")] = "embedded",
    profile: Annotated[str | None, typer.Option(help="Of the reference nodes; default strict.")] = None,
    sdk: Annotated[list[str] | None, typer.Option(help="Only this one; may be given several times.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Only this one; may be given several times.")] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="A Nacos configuration key, KEY=VALUE.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=9, help="So many clusters side by side.")] = 1,
    json: JsonOption = False,
) -> None:
    """Let the official SDKs work with three nodes, each a process; none may notice that they are not Nacos."""
    from distro_conformance.sdks.run import run_sdks

    with progress() as on_progress:
        report = asyncio.run(run_sdks(target, profile, sdk, scenario, on_progress, settings=setting or (), jobs=jobs))
    if json:
        cells = [cell.to_json() for cell in report.cells]
        document = {
            "verdict": report.verdict,
            "target": target,
            "profile": profile,
            "seconds": round(report.seconds, 3),
        }
        print_json("test sdks", {**document, "results": cells})
    else:
        for name, cells_of_sdk in groupby(report.cells, key=lambda cell: cell.sdk):
            for cell in cells_of_sdk:
                timing = f" ({cell.seconds:.1f} s)" if cell.seconds else ""
                row(cell.outcome, f"{name:<12} {cell.scenario:<12} {cell.reason}{timing}".rstrip())
            say()
        row(report.verdict, f"{target}, {report.seconds:.1f} s")
    raise typer.Exit(report.verdict.exit_code)
