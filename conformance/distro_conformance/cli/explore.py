"""`distrocheck explore`: every reachable state of a bounded cluster of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption, MutantOption, ProfileOption
from distro_conformance.cli.output import print_json, progress, row, say
from distro_conformance.scenario.exploration import Explored, explore_profile
from distro_conformance.scenario.text import Scenario
from distro_conformance.verdict import UsageError
from distro_model.bounded.bounds import Bounds


@app.command()
def explore(
    profile: ProfileOption = "strict",
    mutant: MutantOption = None,
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 2,
    clients: Annotated[int, typer.Option(help="How many clients.")] = 1,
    changes: Annotated[int, typer.Option(help="Changes that each client may make.")] = 2,
    crashes: Annotated[int, typer.Option(help="Crashes in the whole run.")] = 0,
    drops: Annotated[int, typer.Option(help="Requests that may be lost.")] = 1,
    swallows: Annotated[int, typer.Option(help="Requests that may be acknowledged and not delivered.")] = 1,
    in_flight: Annotated[int, typer.Option(help="Unfinished calls on each link.")] = 2,
    max_states: Annotated[int, typer.Option(min=1, help="Stop after so many states.")] = 1_000_000,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after so long.")] = None,
    scenario: Annotated[Path | None, typer.Option(help="Write the first counterexample here.")] = None,
    json: JsonOption = False,
) -> None:
    """Search all that can happen; print the shortest run that breaks a property, as a scenario."""
    try:
        bounds = Bounds(
            nodes=nodes,
            clients=clients,
            changes=changes,
            crashes=crashes,
            drops=drops,
            swallows=swallows,
            in_flight=in_flight,
            max_states=max_states,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    with progress() as on_progress:
        on_progress(f"exploring {profile}")
        found = explore_profile(profile, bounds, mutant=mutant, seconds_max=max_seconds)
    if scenario:
        _write_first(found, scenario)
    if json:
        print_json("explore", _document(found))
    else:
        _print(found)
    raise typer.Exit(found.verdict.exit_code)


def _document(found: Explored) -> dict[str, object]:
    return {
        "profile": found.profile,
        "mutant": found.mutant,
        "verdict": found.verdict,
        "complete": found.exploration.complete,
        "distinct_states": found.exploration.distinct_states,
        "transitions": found.exploration.transitions,
        "seconds": round(found.seconds, 3),
        "properties": [
            {
                "name": judged.result.name,
                "kind": judged.result.kind,
                "holds": judged.result.holds,
                "steps": len(judged.result.counterexample.steps) if judged.result.counterexample else None,
                "verdict": judged.verdict,
                "message": judged.message,
                "known": judged.known,
            }
            for judged in found.judged
        ],
        "scenarios": {name: _text(scenario) for name, scenario in found.scenarios.items()},
    }


def _print(found: Explored) -> None:
    for judged in found.judged:
        row(judged.verdict, f"{judged.result.name:<22} {judged.result.kind:<10} {judged.message}")
    for scenario in found.scenarios.values():
        say(f"\n{_text(scenario).rstrip()}")
    size = f"{found.exploration.distinct_states} states, {found.exploration.transitions} transitions"
    how = "complete within the bounds" if found.exploration.complete else "stopped before everything was seen"
    say()
    row(found.verdict, f"{found.profile}: {size}, {found.seconds:.1f} s, {how}")


def _text(scenario: Scenario | str) -> str:
    return scenario if isinstance(scenario, str) else scenario.render()


def _write_first(found: Explored, path: Path) -> None:
    for scenario in found.scenarios.values():
        if isinstance(scenario, Scenario):
            path.write_text(scenario.render(), encoding="utf-8")
            return
    raise UsageError(f"no counterexample of {found.profile} within these bounds can be written to {path}")
