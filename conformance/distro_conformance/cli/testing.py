"""`distrocheck test node`: conformance of one node."""

from __future__ import annotations

from itertools import count
from typing import Annotated

import typer

from distro_conformance.cli import test
from distro_conformance.cli.options import (
    DEFAULT_OUT,
    AllowDisruptionOption,
    DatabaseOption,
    ExpectFailuresOption,
    HtmlOption,
    IdentityOption,
    JsonOption,
    MutantOption,
    OutOption,
    PasswordOption,
    RequirementOption,
    SeedOption,
    SkipOption,
    TargetProfileOption,
    TransportOption,
    UsernameOption,
    WriteExpectedOption,
    chosen_seed,
    echo_profile,
    fresh_file,
    measure,
    require_time_for,
    writable_file,
)
from distro_conformance.cli.output import ResultLine, echo_page, print_judged, progress, summary
from distro_conformance.findings import Judgement
from distro_conformance.findings.expected import Expectations
from distro_conformance.findings.finding import MUST
from distro_conformance.node.run import run_node_conformance
from distro_conformance.plain import plain
from distro_conformance.release import STRICT
from distro_conformance.requirements import all_requirements
from distro_conformance.requirements.requirement import requirements_named
from distro_conformance.targets.credentials import credentials_of
from distro_conformance.targets.registry import FORMS as NODE_FORMS
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import UsageError, Verdict
from distro_conformance.walks import STEPS_PER_RUN


@test.command()
def node(
    target: Annotated[str, typer.Option(help=f"One of {', '.join(NODE_FORMS)}.")] = "embedded",
    profile: TargetProfileOption = None,
    requirement: RequirementOption = None,
    skip: SkipOption = None,
    mutant: MutantOption = None,
    allow_disruption: AllowDisruptionOption = False,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    expect_failures: ExpectFailuresOption = None,
    write_expected: WriteExpectedOption = None,
    machine: Annotated[
        bool, typer.Option("--machine", help="Random actions of three played members and clients, beside the model.")
    ] = False,
    seconds: Annotated[float, measure("How long the machine searches.", least=0.1)] = 20.0,
    examples: Annotated[int | None, typer.Option(min=1, help="At most so many runs of the machine.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="At most so many steps in a run of the machine.")] = STEPS_PER_RUN,
    seed: SeedOption = None,
    database: DatabaseOption = None,
    transport: TransportOption = None,
    out: OutOption = DEFAULT_OUT,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Test one node against the requirements; the kit plays its peer and its clients. With --machine it plays three
    peers, which fail, lie and fall silent at random, and the model decides what the node may do.
    """
    fresh_file(html, "--html")
    credentials = credentials_of(identity, username, password)
    if machine:
        if requirement or skip or expect_failures or write_expected:
            raise UsageError(
                "--machine is a search: it takes no --requirement, --skip, --expect-failures or --write-expected"
            )
        from distro_conformance.cli.searching import search
        from distro_conformance.walks.result import WalkOptions

        options = WalkOptions(
            target=target,
            among_played=True,
            profile=profile or STRICT,
            mutant=mutant,
            credentials=credentials,
            seconds=seconds,
            runs_max=examples,
            steps_per_run=steps,
            seed=chosen_seed(seed),
            database=database,
            transport=transport,
        )
        search("test node", options, profile, out, html, json=json)
    expectations = Expectations.of(target, expect_failures, write_expected, {each.id for each in all_requirements()})
    writable_file(write_expected, "--write-expected")
    parts, ended = len(requirements_named(requirement, skip)), count(1)
    found = resolve_target(target, profile, mutant, allow_disruption=allow_disruption, credentials=credentials)
    require_time_for(target)
    if profile is None:
        echo_profile(found.profile)
    with progress() as on_progress:
        report = run_node_conformance(
            found,
            requirement,
            skip=skip,
            on_progress=on_progress,
            on_finding=lambda _: on_progress.done(next(ended), parts),
        )
    report = expectations.judged(report)
    if html:
        from distro_conformance.report import write_page
        from distro_conformance.report.walks import report_of_requirements

        write_page(report_of_requirements(report, mutant), html)
    if json:
        rows = plain(report.findings)
        violated = report.those(Judgement.VIOLATES) if report.verdict is Verdict.VIOLATES else ()
        failing = min(violated, key=lambda finding: finding.level is not MUST, default=None)
        failure = None
        if failing:
            # The id of a requirement is enough to run its check again.
            failure = {"requirement": failing.about, "steps": len(failing.evidence), "replay": failing.again}
        print_judged("test node", report, mutant=mutant, requirements=rows, failure=failure, steps=len(rows))
    else:
        echo_page(html)
        summary(
            (
                ResultLine(
                    each.judgement, f"{each.about:<20} {each.message or each.text}", each.evidence * each.violates
                )
                for each in report.findings
            ),
            report.verdict,
            f"{report.headline}; profile {report.profile}, {report.seconds:.1f} s",
        )
    raise typer.Exit(report.verdict.exit_code)
