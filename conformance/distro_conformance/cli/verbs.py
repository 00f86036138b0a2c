"""The table of verbs: the module and the help text of each.

A verb's module is imported when the verb is called, so that `--help`, `--version` and a mistyped name take no longer
than starting Python; some verbs load NumPy, gRPC and Spark. Adding a verb is one module and one row here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

COMMAND = "distrocheck"

VERBS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    COMMAND: {
        "gate": ("gate", "Test a target in every way: model, requirements, lockstep, invariants."),
        "test": ("", "Conformance of a target: one node, a cluster, beside a real server, under the SDKs."),
        "replay": ("replay", "Run a scenario: a saved failure, a counterexample, a hand-written one."),
        "explore": ("explore", "Search all that can happen in a bounded cluster of the model."),
        "simulate": ("simulate", "Simulate a cluster, driven at random by a seed, and write its trace."),
        "check": ("check", "Evaluate the invariants over recorded traces."),
        "validate": ("validating", "Compare every row of a trace with the model."),
        "audit": ("auditing", "Ask live members what they hold, and name the clients about which they differ."),
        "compact": ("compacting", "Write recordings as Parquet by run, sorted and packed, with a manifest."),
        "query": ("querying", "Query traces and violations in SQL."),
        "export": ("exporting", "Write a run for a viewer (ITF, ShiViz, Perfetto, Mermaid) or as a scenario."),
        "import": ("", "Convert the logs of real servers into a trace."),
        "mutants": (
            "mutants",
            "List the mutants, deliberate bugs that the kit must find, or test whether it does.",
        ),
        "serve": ("serve", "Start reference nodes in the foreground."),
        "ui": ("ui", "Explore a bounded cluster in the browser, choice by choice."),
        "fetch-nacos": ("fetching", "Fetch a real server with Maven, or say how to get it."),
        "doctor": ("doctor", "Check what this machine has and what it lacks."),
        "list": ("listing", "List the entries of one registry."),
        "explain": ("listing", "Explain one requirement, invariant, mutant, profile, rule or target."),
    },
    "import": {
        "nacos-logs": ("importing", "Read the logs of real servers into a trace."),
    },
    "test": {
        "node": ("testing", "Test one node against the requirements; the kit plays its peer and its clients."),
        "cluster": ("searching", "Drive nodes with random actions and faults, beside the model."),
        "differential": (
            "distro_interop.differential.verb",
            "Play the same scripts on a target and a reference node.",
        ),
        "sdks": ("distro_interop.sdks.verb", "Let the official SDKs work with three nodes."),
    },
}
"""By the name of the group: verb -> its module and its help.

A name without dots is a module of `distro_conformance.cli`, and "" a group of its own. `distro_interop` checks the
reference node of this repository and is not packaged (extras.py)."""


class LazyGroup(TyperGroup):
    """A group with the verbs of `VERBS`, which are imported when they are called."""

    registry: Callable[[str], typer.Typer]
    """The Typer application by the name of its group, where the imported module registers its verb."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - Typer's signature
        return list(VERBS[self.name or COMMAND])

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        module, _ = VERBS[self.name or COMMAND].get(cmd_name, (None, ""))
        if module is None:
            return None
        if module:
            importlib.import_module(module if "." in module else f"distro_conformance.cli.{module}")
        return typer.main.get_group(type(self).registry(self.name or COMMAND)).commands[cmd_name]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS[self.name or COMMAND].items()])
