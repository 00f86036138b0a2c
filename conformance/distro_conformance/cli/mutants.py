"""`distrocheck mutants`: what there is; `mutants run`: which of them the kit kills."""

from __future__ import annotations

from statistics import median
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.listing import show
from distro_conformance.cli.options import JsonOption
from distro_conformance.cli.output import print_json, progress, row, say

mutants = typer.Typer(invoke_without_command=True)
app.add_typer(mutants, name="mutants")


@mutants.callback()
def list_mutants(context: typer.Context, json: JsonOption = False) -> None:
    """List the mutants, named changes that the kit must find; `run` puts them to the test."""
    if context.invoked_subcommand is None:
        show("mutants", json)


@mutants.command()
def run(
    level: Annotated[str, typer.Option(help="Where they are put to the test: model, node or trace.")] = "model",
    mutant: Annotated[
        list[str] | None, typer.Option("--mutant", help="Only this one; may be given several times.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="For each mutant.")] = None,
    json: JsonOption = False,
) -> None:
    """The kill matrix: exit 0 when every mutant is killed, 1 when one lives."""
    from distro_conformance.mutation.kill import Kill
    from distro_conformance.mutation.matrix import run_mutants

    def told(kill: Kill) -> None:
        on_progress(f"mutants: {kill.mutant} {'killed' if kill.killed else 'lives'}")
        if not json:
            row("killed" if kill.killed else "lives", f"{kill.mutant:<34} {kill.seconds:6.1f} s  {kill}")

    with progress() as on_progress:
        matrix = run_mutants(level, mutant or (), max_seconds, told)
    seconds = [kill.seconds for kill in matrix.kills]
    if json:
        rows = [
            {
                "id": kill.mutant,
                "level": kill.level,
                "killed": kill.killed,
                "killed_by": list(kill.killed_by),
                "seconds": round(kill.seconds, 3),
                "steps": kill.steps,
                "reason": kill.reason,
            }
            for kill in matrix.kills
        ]
        print_json("mutants run", {"mutants": rows, "score": matrix.score, "verdict": matrix.verdict})
    else:
        longest, middle = max(seconds), median(seconds)
        say(f"\n{matrix.score:.0%} of {len(seconds)} killed; median {middle:.1f} s, longest {longest:.1f} s")
    raise typer.Exit(matrix.verdict.exit_code)
