"""`distrocheck replay FILE`: a scenario on any cluster, line by line."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import (
    AllowDisruptionOption,
    IdentityOption,
    JsonOption,
    MutantOption,
    OptionalProfileOption,
    PasswordOption,
    UsernameOption,
    echo_profile,
    require_time_for,
    writable_file,
)
from distro_conformance.cli.output import echo, echo_stderr, print_json, progress, row
from distro_conformance.drivers.registry import FORMS, ClusterOptions, resolve_cluster
from distro_conformance.language.holding import StepResult
from distro_conformance.language.replay import cluster_options, findings_of_replay
from distro_conformance.language.replay import replay as run_replay
from distro_conformance.language.text import parse, read
from distro_conformance.plain import fields_of
from distro_conformance.targets.credentials import credentials_of
from distro_conformance.verdict import UsageError, why_unreadable
from distro_conformance.walks.saved_failures import pytest_file


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="The scenario; - reads it from standard input.")],
    target: Annotated[str, typer.Option(help=f"One of {', '.join(FORMS)}.")] = "embedded",
    profile: OptionalProfileOption = None,
    mutant: MutantOption = None,
    allow_disruption: AllowDisruptionOption = False,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    pytest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="If the scenario is violated, write it as a pytest file that fails."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a scenario: a saved failure, a counterexample, a hand-written one."""
    writable_file(pytest, "--pytest")
    scenario = parse(_standard_input(), "standard input") if str(file) == "-" else read(file)
    if not scenario.lines:
        raise UsageError(f"{'standard input' if str(file) == '-' else file} has no step, so there is nothing to replay")
    credentials = credentials_of(identity, username, password)
    with progress() as on_progress:
        options = ClusterOptions(
            profile=profile,
            mutant=mutant,
            allow_disruption=allow_disruption,
            credentials=credentials,
            on_progress=on_progress,
        )
        resolved = resolve_cluster(target, cluster_options(scenario, options))
        require_time_for(target)
        if profile is None:
            echo_profile(resolved.profile)
        result = run_replay(
            scenario, target=target, options=options, on_step=lambda step: None if json else _print_step(step)
        )
    if pytest is not None and result.reproduced:
        kept = dataclasses.replace(scenario, profile=result.profile, mutant=result.mutant)
        pytest.write_text(pytest_file(kept, pytest.stem.removeprefix("test_"), target), encoding="utf-8")
    elif pytest is not None:
        echo_stderr(f"no violation, so {pytest} is not written")
    steps = [fields_of(step, "is_lost") for step in result.steps]
    if json:
        findings = [
            finding.to_json() for finding in findings_of_replay(result, file, allow_disruption=allow_disruption)
        ]
        document = {"target": target, "profile": result.profile, "mutant": result.mutant, "steps": steps}
        document["findings"] = findings
        print_json("replay", {"verdict": result.verdict, "reproduced": result.reproduced, **document})
    else:
        row(result.verdict, f"{file} on {target}, profile {result.profile}")
    raise typer.Exit(result.verdict.exit_code)


def _print_step(step: StepResult) -> None:
    echo(f"{step.at_ms / 1000:9.1f} s  {step.text:<44} {step.outcome}")
    if step.detail:
        echo(f"{'':13}{step.detail}")


def _standard_input() -> str:
    if sys.stdin is None:  # closed by the parent process
        raise UsageError("standard input is closed; name a file, or pipe the scenario in")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the scenario on standard input: {why_unreadable(error)}") from error
