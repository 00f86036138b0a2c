"""`distrocheck test differential`: the same scripts on a real server and on a reference node, and what differs."""

from __future__ import annotations

from typing import Annotated

import typer

from distro_conformance.cli import test
from distro_conformance.cli.options import JsonOption, MutantOption, only, profile_option, require_time_for
from distro_conformance.cli.output import ResultLine, echo, print_judged, progress, summary
from distro_conformance.findings import Judgement
from distro_conformance.targets.registry import require_own, resolve_target


@test.command()
def differential(
    target: Annotated[str, typer.Option(help="nacos:VERSION, nacos:DIRECTORY, or embedded (itself).")],
    profile: Annotated[str | None, profile_option("Of the reference node; default: the target's own.")] = None,
    script: Annotated[list[str] | None, only("--script")] = None,
    mutant: MutantOption = None,
    accept: Annotated[
        str | None, typer.Option(help="List what differs under this deviation; the listed rows are then rewritten.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Play the same scripts on a target and on a reference node; only listed deviations may differ."""
    from distro_interop.differential.run import run_differential

    require_own(resolve_target(target))
    require_time_for(target)
    with progress() as on_progress:
        judged = run_differential(target, profile, script, mutant=mutant, accept_as=accept, on_progress=on_progress)
    different, once = judged.those(Judgement.VIOLATES), judged.those(Judgement.NOT_JUDGED)
    if json:
        known = judged.those(Judgement.KNOWN)
        more = {
            "differences": [dict(each.details) for each in different],
            "unrepeated": [dict(each.details) for each in once],
            "deviations": [{"id": each.about, "differences": each.times} for each in known],
        }
        print_judged("test differential", judged, **more)
    else:
        lines = [ResultLine(each.judgement, f"{each.about}: {each.message}") for each in judged.findings]
        counts = f"{judged.figures['exchanges']} exchanges, {len(different)} differences unexplained"
        if again := judged.figures["played_again"]:
            echo(f"    played again on {target}: {len(again)} scripts, {len(once)} differences in one of two runs")
        summary(
            (each for each in lines if each.verdict != Judgement.CONFORMS),
            judged.verdict,
            f"{target}, profile {judged.profile}: {counts}, {judged.seconds:.1f} s",
        )
    raise typer.Exit(judged.verdict.exit_code)
