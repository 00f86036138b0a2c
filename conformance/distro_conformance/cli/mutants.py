"""`distrocheck mutants`: lists the mutants; `mutants run`: tests which of them the kit kills."""

from __future__ import annotations

from itertools import count
from statistics import median
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.listing import show
from distro_conformance.cli.options import HtmlOption, JsonOption, fresh_file, measure, only, require_extras
from distro_conformance.cli.output import ResultLine, echo_page, print_judged, progress, row, summary
from distro_conformance.findings import Finding, Judgement

mutants = typer.Typer(invoke_without_command=True)
app.add_typer(mutants, name="mutants")


_LIMITS = (
    "For each mutant, of its search (model), its walks if no requirement fails (node), or its random simulations "
    "(trace). Requirements and scenarios end by themselves."
)


@mutants.callback()
def list_mutants(context: typer.Context, json: JsonOption = False) -> None:
    """List the mutants, deliberate bugs that the kit must find; `run` tests whether it does."""
    if context.invoked_subcommand is None:
        show("mutants", json)


@mutants.command()
def run(
    level: Annotated[str, typer.Option(help="Where the mutants are tested: model, node, trace or real.")] = "model",
    mutant: Annotated[list[str] | None, only("--mutant")] = None,
    target: Annotated[
        str | None, typer.Option(help="At the level real: nacos:VERSION or nacos:DIRECTORY.  [default: nacos:2.2.4]")
    ] = None,
    max_seconds: Annotated[float | None, measure(_LIMITS, least=0)] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """The kill matrix: exit 0 when every mutant is killed, 1 when one lives."""
    require_extras("explore", "traces", *(("report",) if html else ()))
    from distro_conformance.mutation.matrix import mutants_of, run_mutants

    fresh_file(html, "--html")

    parts, ended = len(mutant or mutants_of(level)), count(1)

    def on_finding(finding: Finding) -> None:
        word = _WORDS.get(finding.judgement, finding.judgement)
        on_progress(f"mutants: {finding.about} {word}")
        on_progress.done(next(ended), parts)
        if not json:
            row(word, f"{finding.about:<34} {finding.seconds:6.1f} s  {finding.message}")

    with progress() as on_progress:
        judged = run_mutants(level, mutant or (), max_seconds, on_finding, target)
    if html:
        from distro_conformance.mutation.page import report_of
        from distro_conformance.report import write_page

        write_page(report_of(judged), html, score=judged.figures["score"])
    if json:
        rows = [
            {
                "id": each.about,
                "level": each.by,
                "killed": each.judgement is Judgement.CONFORMS,
                "killed_by": each.observed["killed_by"],
                "seconds": round(each.seconds, 3),
                "steps": each.details.get("steps"),
                "fired": each.details.get("fired"),
                "reason": "" if each.judgement is Judgement.CONFORMS else each.message,
            }
            for each in judged.findings
        ]
        print_judged("mutants run", judged, mutants=rows)
    else:
        echo_page(html)
        seconds = [each.seconds for each in judged.findings]
        longest, middle, score = max(seconds), median(seconds), judged.figures["score"]
        figures = f"{score:.0%} of {len(seconds)} killed; median {middle:.1f} s, longest {longest:.1f} s"
        alive = judged.those(Judgement.VIOLATES)
        summary(
            [ResultLine(_WORDS[each.judgement], f"{each.about}: {each.message}") for each in alive],
            judged.verdict,
            figures,
        )
    raise typer.Exit(judged.verdict.exit_code)


_WORDS = {Judgement.CONFORMS: "killed", Judgement.VIOLATES: "lives"}
