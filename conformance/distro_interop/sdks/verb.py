"""`distrocheck test sdks`: the official SDKs as black boxes on three nodes, as a table."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from distro_conformance.cli import test
from distro_conformance.cli.options import JsonOption, only, profile_option
from distro_conformance.cli.output import ResultLine, print_judged, progress, summary
from distro_conformance.findings import Finding, Judgement
from distro_conformance.slack import require_free_machine


@test.command()
def sdks(
    target: Annotated[str, typer.Option(help="embedded (reference nodes) or nacos:VERSION.")] = "embedded",
    profile: Annotated[str | None, profile_option("Of the reference nodes; default strict.")] = None,
    sdk: Annotated[list[str] | None, only("--sdk")] = None,
    scenario: Annotated[list[str] | None, only("--scenario")] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="A Nacos configuration key, KEY=VALUE.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=9, help="So many clusters side by side.")] = 1,
    json: JsonOption = False,
) -> None:
    """Let the official SDKs work with three nodes, each a process; none may notice that they are not Nacos."""
    from distro_interop.sdks.run import run_sdks

    require_free_machine()  # reference nodes are processes in real time too
    with progress() as on_progress:
        judged = asyncio.run(run_sdks(target, profile, sdk, scenario, on_progress, settings=setting or (), jobs=jobs))
    if json:
        rows = [
            {
                "sdk": each.client,
                "scenario": each.about,
                "outcome": _OUTCOMES[each.judgement],
                "seconds": round(each.seconds, 3),
                "reason": each.message,
            }
            for each in judged.findings
        ]
        print_judged("test sdks", judged, results=rows)
    else:
        summary(map(_line, judged.findings), judged.verdict, f"{judged.headline}, {judged.seconds:.1f} s")
    raise typer.Exit(judged.verdict.exit_code)


def _line(finding: Finding) -> ResultLine:
    timing = f" ({finding.seconds:.1f} s)" if finding.seconds else ""
    return ResultLine(finding.judgement, f"{finding.client:<12} {finding.about:<12} {finding.message}{timing}".rstrip())


_OUTCOMES = {
    Judgement.CONFORMS: "pass",
    Judgement.VIOLATES: "fail",
    Judgement.NOT_APPLICABLE: "not offered",
    Judgement.NOT_JUDGED: "missing",
}
"""The words that scripts rely on."""
