"""The command `distrocheck`: one file per verb, each a thin layer over the library (docs/reference/commands.md is the
contract).

A verb's module is imported when the verb is called, so that `--help`, `--version` and a mistyped name take no longer
than starting Python; some verbs load NumPy, gRPC and Spark. A new verb is one module and one row of `VERBS`.

`main` turns every error that ends a run early into one line and an exit code; a user's mistake never ends in a
traceback. With `--json` the line is also printed as a document.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer
from typer.core import TyperGroup

from distro_conformance import interruption
from distro_conformance.cli.output import print_json
from distro_conformance.errors import USAGE_EXIT_CODE, exit_code_of
from distro_conformance.extras import missing_extra
from distro_conformance.version import tool_version

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer.models import CommandInfo

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

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - Typer's signature
        return list(VERBS[self.name or COMMAND])

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        group = self.name or COMMAND
        return _verb(group, cmd_name) if cmd_name in VERBS[group] else None

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS[self.name or COMMAND].items()])


app = typer.Typer(
    name=COMMAND,
    cls=LazyGroup,
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
test = typer.Typer(name="test", cls=LazyGroup, help="Conformance of a target.", no_args_is_help=True)
app.add_typer(test)
import_app = typer.Typer(name="import", cls=LazyGroup, help="What others recorded, as a trace.", no_args_is_help=True)
app.add_typer(import_app)
_GROUPS = {COMMAND: app, "test": test, "import": import_app}
"""Where an imported module registers its verb, by the name of the group."""


@cache
def _verb(group: str, name: str) -> Command:
    """Imports the module of the verb, and builds that verb alone: Typer builds all that are imported by now."""
    module, _ = VERBS[group][name]
    if module:
        importlib.import_module(module if "." in module else f"distro_conformance.cli.{module}")
    registered = _GROUPS[group]
    for each in registered.registered_commands:
        if _name_of(each) == name:
            return typer.main.get_command_from_info(
                each,
                pretty_exceptions_short=registered.pretty_exceptions_short,
                rich_markup_mode=registered.rich_markup_mode,
            )
    return typer.main.get_group(registered).commands[name]  # a group of verbs


def _name_of(registered: CommandInfo) -> str:
    assert registered.callback is not None
    return registered.name or typer.main.get_command_name(registered.callback.__name__)


@cache
def whole() -> TyperGroup:
    """The command, which takes the arguments of a call."""
    return cast(TyperGroup, typer.main.get_command(app))


BROKEN_PIPE_EXIT_CODE = 141
DEFECT_EXIT_CODE = 70
"""For defects of distrocheck itself: 1, Python's own exit code, would mean that a node violates something."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{COMMAND} {tool_version()}")
        raise typer.Exit


@app.callback()
def distrocheck(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tests implementations of Distro, the AP protocol of Nacos, against an executable specification."""


def main() -> None:
    """Entry point. Exit codes: 0 conforms, 1 violation, 2 usage, 3 inconclusive, 4 target; see also above."""
    with interruption.interruptible():
        _main()


def _main() -> NoReturn:
    try:
        result = whole()(prog_name=COMMAND, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except typer.TyperException as error:
        _fail(error.format_message(), error.exit_code)
    except typer.Abort:
        interruption.end()
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            _fail_by_defect(error)
        _fail(missing, USAGE_EXIT_CODE)
    except BrokenPipeError:
        _end_unread()
    except Exception as error:  # noqa: BLE001 - errors of the user get an exit code, all others are defects
        exit_code = exit_code_of(error)
        if exit_code is None:
            _fail_by_defect(error)
        _fail(_line(error), exit_code)
    if interruption.is_interrupted() or result == interruption.EXIT_CODE:  # Typer turns an interruption into this code
        interruption.end()
    sys.exit(result if isinstance(result, int) else 0)


def _line(error: Exception) -> str:
    """The message of the error; for an unknown mutant with a hint where it exists, since the libraries do not know each
    other."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}; name another file"
    if not hasattr(error, "mutant_id"):
        return str(error)
    from distro_conformance.targets.mutants import with_hint

    return str(with_hint(error))


def _fail_by_defect(error: Exception) -> NoReturn:
    if interruption.is_interrupted():
        interruption.end()
    traceback.print_exc()
    _fail(
        f"this is a defect of distrocheck, and says nothing about the target ({type(error).__name__}: {error}); "
        f"please report the lines above with 'distrocheck --version', which is {tool_version()}",
        DEFECT_EXIT_CODE,
    )


def _fail(text: str, exit_code: int) -> NoReturn:
    if interruption.is_interrupted():
        interruption.end()
    is_help = text.startswith("Usage:")
    sys.stderr.write((text if is_help else f"{COMMAND}: {text}").rstrip() + "\n")
    if "--json" in sys.argv[1:] and not is_help:
        try:
            print_json("error", {"error": text, "exit_code": exit_code})
            sys.stdout.flush()
        except BrokenPipeError:
            _end_unread()
    sys.exit(exit_code)


def _end_unread() -> NoReturn:
    """Ends when the reader of stdout has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(BROKEN_PIPE_EXIT_CODE)
