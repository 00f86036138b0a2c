"""`distrocheck explore`: every reachable state of a bounded cluster of the model."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption, MutantOption, ProfileOption, fresh_file, measure, only
from distro_conformance.cli.output import ResultLine, echo, echo_stderr, print_json, progress, summary
from distro_conformance.exploration.explored import BOUND_OPTIONS, ENGINES, Explored, SearchOptions, explore_profile
from distro_conformance.findings import Finding
from distro_conformance.language.text import Scenario
from distro_conformance.plain import fields_of, plain
from distro_conformance.verdict import UsageError
from distro_model.bounded.bounds import Bounds
from distro_model.defects import breaking
from distro_model.explorer import VACUOUS, Counterexample, Engine
from distro_model.search.results import Progress, Stopped

GIB = 1 << 30


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
    bound: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Any other bound, for example late_replies=1; may be given several times."),
    ] = None,
    property_: Annotated[list[str] | None, only("--property")] = None,
    engine: Annotated[str, typer.Option(help=f"One of {', '.join(ENGINES)}.")] = next(iter(ENGINES)),
    max_states: Annotated[int, typer.Option(min=1, help="Stop after this number of states.")] = Bounds().max_states,
    max_seconds: Annotated[float | None, measure("Stop after this number of seconds.", least=0)] = None,
    max_memory_gib: Annotated[float, measure("Stop before the tables need more memory.", least=0.1)] = 6.0,
    scenario: Annotated[Path | None, typer.Option(help="Write the first counterexample here, for `replay`.")] = None,
    itf: Annotated[Path | None, typer.Option(help="Write the first counterexample here, as ITF.")] = None,
    graph: Annotated[Path | None, typer.Option(help="Write the state graph here: FILE.graphml or FILE.dot.")] = None,
    json: JsonOption = False,
) -> None:
    """Search every reachable state; print the shortest run that breaks a property, as a scenario."""
    # Loads NumPy and networkx, so it comes after the check of the options.
    from distro_conformance.exploration.export import GRAPH_FORMS, graph_text, itf_text

    if graph and graph.suffix not in GRAPH_FORMS:
        raise UsageError(f"--graph {graph}: name a file that ends in {' or '.join(GRAPH_FORMS)}")
    for path, option in ((scenario, "--scenario"), (itf, "--itf"), (graph, "--graph")):
        fresh_file(path, option)
    named = (nodes, clients, changes, crashes, drops, swallows, in_flight, max_states)
    bounds = _bounds(dict(zip(BOUND_OPTIONS, named, strict=True)), bound or [])
    chosen = _engine(engine)
    options = SearchOptions(chosen, tuple(property_ or ()), int(max_memory_gib * GIB))
    with progress() as on_progress:
        on_progress(f"exploring {profile}")
        found = explore_profile(
            profile,
            bounds,
            mutant=mutant,
            seconds_max=max_seconds,
            search=options,
            on_progress=lambda so_far, seconds: on_progress(
                _progress_line(profile, so_far, seconds, max_states, max_seconds)
            ),
        )
    if scenario:
        _write(_first_scenario(found), scenario)
    if itf:
        _write(itf_text(found), itf)
    if graph:
        graph.write_text(graph_text(found, graph.suffix), encoding="utf-8")
    if json:
        print_json("explore", _document(found))
    else:
        _print(found)
    raise typer.Exit(found.verdict.exit_code)


def _limit(stopped: Stopped) -> str:
    """The option that ended the search; all but the time limit are limits of the search itself."""
    return {Stopped.MAX_STATES: "--max-states", Stopped.MEMORY: "--max-memory-gib", Stopped.ASKED: "--max-seconds"}[
        stopped
    ]


def _engine(name: str) -> Engine:
    if name not in ENGINES:
        raise UsageError(f"there is no engine '{name}'; there are {', '.join(ENGINES)}")
    return ENGINES[name]


def _bounds(named: dict[str, int], others: list[str]) -> Bounds:
    """The bounds of the options. Raises UsageError for unknown names and for contradictions."""
    settable = [each.name for each in fields(Bounds) if each.name not in BOUND_OPTIONS]
    values = dict(named)
    for text in others:
        name, _, number = text.partition("=")
        if name not in settable or not number.removeprefix("-").isdigit():
            raise UsageError(f"--bound {text}: give NAME=N, with NAME one of {', '.join(settable)}")
        values[name] = int(number)
    try:
        return Bounds(**values)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _progress_line(profile: str, so_far: Progress, seconds: float, states_max: int, seconds_max: float | None) -> str:
    """The total number of states is unknown, so the line has the time until the search stops at the latest."""
    rate = so_far.distinct_states / seconds if seconds else 0.0
    left = (states_max - so_far.distinct_states) / rate if rate else float("inf")
    left = max(0.0, min(left, float("inf") if seconds_max is None else seconds_max - seconds))
    memory = f", {so_far.memory_bytes / GIB:.1f} GiB" if so_far.memory_bytes else ""
    return (
        f"{profile}: level {so_far.level}, {so_far.distinct_states:,} states, {rate:,.0f}/s,"
        f" frontier {so_far.frontier:,}{memory}, at most {left:,.0f} s more"
    )


def _document(found: Explored) -> dict[str, object]:
    search = found.exploration.search
    return {
        "profile": found.profile,
        "mutant": found.mutant,
        "bounds": str(found.bounds),
        "verdict": found.verdict,
        "complete": search.complete,
        "stopped": search.stopped,
        "vacuous": found.exploration.vacuous,
        "distinct_states": search.distinct_states,
        "transitions": search.transitions,
        "levels": len(search.levels) - 1,
        "collision_probability": search.collision_probability,
        "seconds": round(found.seconds, 3),
        "properties": [
            {
                "name": result.name,
                "kind": result.kind,
                "holds": result.holds,
                "steps": len(result.counterexample.steps) if result.counterexample else None,
                "run": _run(result.counterexample),
                "verdict": finding.judgement,
                "message": finding.message,
                "known": _known(found, finding),
            }
            for finding in found.findings
            for result in (found.result(finding),)
        ],
        "findings": plain(found.findings),
        "coverage": dict(found.taken),
        "guards": found.guards,
        "never_taken": _never_taken(found),
        "scenarios": {name: _text(scenario) for name, scenario in found.scenarios.items()},
    }


def _print(found: Explored) -> None:
    for finding in found.findings:
        counterexample = found.result(finding).counterexample
        if counterexample is not None:
            echo(f"{counterexample}\n\n{_text(found.scenarios[finding.about])}")
    search = found.exploration.search
    echo("transitions taken: " + ", ".join(f"{kind} {count}" for kind, count in found.taken.most_common()))
    if never := _never_taken(found):
        echo(f"never taken: {', '.join(never)}")
    echo()
    size = f"{search.distinct_states} states, {search.transitions} transitions, {len(search.levels) - 1} levels"
    how = (
        f"stopped before every state was reached: {_limit(search.stopped)}"
        if search.stopped
        else "complete within the bounds"
    )
    how = VACUOUS if found.exploration.vacuous else how
    named = f"{found.profile} with {found.mutant}" if found.mutant else found.profile
    closing = f"{named}: {size}, {found.seconds:.1f} s, {how} ({found.bounds})"
    summary((_line(found, finding) for finding in found.findings), found.verdict, closing)


def _line(found: Explored, finding: Finding) -> ResultLine:
    known = _known(found, finding)
    text = f"{finding.about:<22} {found.result(finding).kind:<10} {finding.message}"
    return ResultLine(finding.judgement, text + (f" (known of this release: {known})" if known else ""))


def _never_taken(found: Explored) -> list[str]:
    """The kinds of transitions that the bounds allow but no state took. One cause is a guard that is always false."""
    return [kind for kind, count in found.taken.items() if not count]


def _known(found: Explored, finding: Finding) -> str | None:
    """The listed bugs of the release that break the property. None with a mutant, since then the mutant may be the
    cause."""
    if found.mutant or not finding.violates:
        return None
    return ", ".join(defect.id for defect in breaking(finding.about, found.profile, found.bounds)) or None


def _run(counterexample: Counterexample | None) -> dict[str, object] | None:
    """Each transition, with the lines of the state that it removes and adds. `loop_from`: the step at which a loop
    begins."""
    if counterexample is None:
        return None
    steps = [fields_of(step, transition=str(step.transition)) for step in counterexample.steps]
    return {"steps": steps, "loop_from": counterexample.run.loop_from}


def _text(scenario: Scenario | str) -> str:
    return scenario if isinstance(scenario, str) else scenario.render()


def _first_scenario(found: Explored) -> str | None:
    return next((each.render() for each in found.scenarios.values() if isinstance(each, Scenario)), None)


def _write(text: str | None, path: Path) -> None:
    """Write the text; without a counterexample there is none, and a note on stderr reports it."""
    if text is None:
        echo_stderr(f"{path} is not written, since there is no counterexample")
    else:
        path.write_text(text, encoding="utf-8")
