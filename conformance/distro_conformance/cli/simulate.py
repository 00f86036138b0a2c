"""`distrocheck simulate`: random timed runs of the model, written as traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import DEFAULT_OUT, JsonOption, MutantOption, ProfileOption
from distro_conformance.cli.output import echo, print_json, progress
from distro_conformance.findings.finding import command
from distro_conformance.plain import fields_of


@app.command()
def simulate(
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 3,
    clients: Annotated[int, typer.Option(help="The number of clients at a time.")] = 10,
    duration_s: Annotated[
        float, typer.Option(help="Simulated seconds of all runs together; each run ends at a checkpoint.")
    ] = 3600,
    seed: Annotated[int, typer.Option(help="The same seed and options give the same traces.")] = 0,
    faults: Annotated[
        str, typer.Option(help="Comma list: drop, swallow, swallow-delete, cut, isolate, slow, crash; all; none.")
    ] = "none",
    profile: ProfileOption = "strict",
    mutant: MutantOption = None,
    out: Annotated[Path, typer.Option(help="Directory for the traces, new or empty.")] = (DEFAULT_OUT / "simulated"),
    json: JsonOption = False,
) -> None:
    """Simulate a cluster of the model with random events, which follow from the seed, and write the trace for
    `check`."""
    from distro_conformance.simulation.run import SimulationOptions
    from distro_conformance.simulation.run import simulate as run_simulation
    from distro_model.simulation.faults import faults_named

    options = SimulationOptions(
        out=out,
        nodes=nodes,
        clients=clients,
        duration_s=duration_s,
        seed=seed,
        faults=faults_named(faults),
        profile=profile,
        mutant=mutant,
    )
    with progress() as on_progress:
        made = run_simulation(options, on_progress)
    if json:
        of_options = fields_of(options, "out", "duration_s", faults=[fault.name for fault in options.faults])
        print_json("simulate", {**fields_of(made, path=str(out)), **of_options})
        return
    pace = f"{made.simulated_s:.0f} s simulated in {made.seconds:.1f} s, {made.events / made.seconds:.0f} events/s"
    echo(f"{made.events} events of {made.runs} runs, {pace}")
    echo(command("check", out))
