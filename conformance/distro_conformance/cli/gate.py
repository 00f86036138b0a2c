"""`distrocheck gate`: the whole pipeline and its report."""

from __future__ import annotations

from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import (
    DEFAULT_OUT,
    DatabaseOption,
    ExpectFailuresOption,
    IdentityOption,
    JobsOption,
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
    chosen_jobs,
    chosen_seed,
    require_extras,
    require_time_for,
    writable_file,
    writable_places,
)
from distro_conformance.cli.output import ResultLine, echo, echo_stderr, print_json, progress, row, schema, summary
from distro_conformance.findings import Finding
from distro_conformance.findings.expected import Expectations
from distro_conformance.gate.options import BUDGETS, GateOptions
from distro_conformance.report import Report, Stage, write_report
from distro_conformance.requirements import all_requirements
from distro_conformance.targets.credentials import credentials_of
from distro_conformance.targets.registry import FORMS as NODE_FORMS
from distro_conformance.verdict import named


@app.command()
def gate(
    budget: Annotated[str, typer.Option(help="quick, ci or nightly.")] = "quick",
    target: Annotated[str, typer.Option(help=f"One of {', '.join(NODE_FORMS)}.")] = "embedded",
    profile: TargetProfileOption = None,
    requirement: RequirementOption = None,
    skip: SkipOption = None,
    stages: Annotated[
        str | None,
        typer.Option(help="Only these stages, with commas: explore, node, lockstep, cluster, check."),
    ] = None,
    mutant: MutantOption = None,
    expect_failures: ExpectFailuresOption = None,
    write_expected: WriteExpectedOption = None,
    seed: SeedOption = None,
    database: DatabaseOption = None,
    transport: TransportOption = None,
    jobs: JobsOption = None,
    out: OutOption = DEFAULT_OUT,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    json: JsonOption = False,
) -> None:
    """Test a target in every way: search of the model, requirements, lockstep, invariants over the recordings."""
    require_extras("explore", "report", "traces")
    chosen_budget = named("budget", BUDGETS, budget)
    writable_places(out, database, None)
    expectations = Expectations.of(target, expect_failures, write_expected, {each.id for each in all_requirements()})
    writable_file(write_expected, "--write-expected")
    # Imported here, since it loads Polars, an extra.
    from distro_conformance.gate.run import Gate

    options = GateOptions(
        target=target,
        profile=profile,
        budget=chosen_budget,
        seed=chosen_seed(seed),
        database=database,
        out=out,
        requirements=requirement,
        skip=skip,
        mutant=mutant,
        expectations=expectations,
        stages=None if stages is None else [name.strip() for name in stages.split(",")],
        credentials=credentials_of(identity, username, password),
        transport=transport,
        jobs=chosen_jobs(jobs, seed),
    )
    prepared = Gate(options)
    require_time_for(target)
    echo_stderr(f"{prepared.scope}; seed {options.seed}")
    with progress() as on_progress:
        left = prepared.expected_seconds()
        on_progress.expect(sum(left.values()))

        def ended(stage: Stage) -> None:
            row(stage.verdict, stage_line(stage), to_stderr=True)
            left.pop(stage.name, None)
            on_progress.expect(sum(left.values()))

        report = prepared.run(on_progress, ended)
    page = write_report(report, out, schema=schema("gate"))
    if json:
        print_json("gate", {**report.to_json(), "report": str(page)})
    else:
        _print(report)
        echo(f"\nReport: {page}")
    raise typer.Exit(report.verdict.exit_code)


def _print(report: Report) -> None:
    for failure in report.failures:
        echo(f"\n{failure.title}\n{failure.scenario}\nreplay: {failure.replay}\ntest:   {failure.pytest}")
    lines = [ResultLine(each.judgement, _named(each), (f"again: {each.again}",)) for each in report.violating]
    for reason, open_ones in report.open_questions.items():
        lines.append(ResultLine("not-judged", f"{', '.join(each.about for each in open_ones)}: {reason}"))
    summary(lines, report.verdict, closing_line(report))


def stage_line(stage: Stage) -> str:
    return f"{stage.name:<18} {stage.seconds:6.1f} s  {stage.summary}"


def closing_line(report: Report) -> str:
    return f"{report.headline}; profile {report.profile}, seed {report.seed}, {report.seconds:.1f} s"


def _named(finding: Finding) -> str:
    return f"{finding.about}{f' run {finding.run}' if finding.run else ''}: {finding.message}"
