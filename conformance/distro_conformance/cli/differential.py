"""`distrocheck test differential`: the same scripts on a real server and on a reference node, and what differs."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from distro_conformance.cli import test
from distro_conformance.cli.options import JsonOption, MutantOption
from distro_conformance.cli.output import print_json, progress, row, say


@test.command()
def differential(
    target: Annotated[str, typer.Option(help="nacos:VERSION, nacos:DIRECTORY, or embedded (itself).")],
    profile: Annotated[str | None, typer.Option(help="Of the reference node; default: the target's own.")] = None,
    script: Annotated[list[str] | None, typer.Option(help="Only this one; may be given several times.")] = None,
    mutant: MutantOption = None,
    json: JsonOption = False,
) -> None:
    """Play the same scripts on a target and on a reference node; only listed deviations may differ."""
    from distro_conformance.differential.run import run_differential

    with progress() as on_progress:
        report = run_differential(target, profile, script, mutant=mutant, on_progress=on_progress)
    if json:
        print_json("test differential", report.to_json())
    else:
        for difference in report.unexplained:
            row("violates", str(difference))
        for difference in report.unrepeated:
            say(f"    once of twice: {difference}")
        for deviation in report.unused:
            row("violates", f"{deviation.id} explains nothing on {report.profile} any more: remove it, or narrow it")
        for deviation_id, times in sorted(Counter(deviation.id for deviation, _ in report.explained).items()):
            say(f"    {deviation_id:<26} {times} differences")
        counts = f"{report.exchanges} exchanges, {len(report.unexplained)} differences unexplained"
        if report.played_again:
            once = f"{len(report.unrepeated)} differences in one of two runs"
            say(f"    played again on {target}: {len(report.played_again)} scripts, {once}")
        row(report.verdict, f"{target}, profile {report.profile}: {counts}, {report.seconds:.1f} s")
    raise typer.Exit(report.verdict.exit_code)
