"""The command `distrocheck`: one file per verb, each a thin door to the library (cli.md is the contract).

`main` turns whatever ends a run early into one line and an exit code; a user's mistake never ends in a traceback.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import NoReturn

import typer

from distro_conformance.cli.errors import USAGE_EXIT_CODE, exit_code_of

app = typer.Typer(
    name="distrocheck",
    help="Holds implementations of Distro, the AP protocol of Nacos, against an executable specification.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
test = typer.Typer(help="Conformance of a target.", no_args_is_help=True)
app.add_typer(test, name="test")

VERBS = (
    "check",
    "differential",
    "explore",
    "gate",
    "listing",
    "mutants",
    "replay",
    "sdks",
    "serve",
    "simulate",
    "testing",
)
"""The modules that register verbs on `app`; the order is that of the help text."""

INTERRUPTED_EXIT_CODE = 130
BROKEN_PIPE_EXIT_CODE = 141
DEFECT_EXIT_CODE = 70
"""Ours, not the target's: 1, which Python would give, says that a node violates something."""


def main() -> None:
    """Entry point. Exit codes: 0 conforms, 1 violation, 2 usage, 3 inconclusive, 4 target; see also above."""
    for verb in VERBS:
        importlib.import_module(f"distro_conformance.cli.{verb}")
    try:
        result = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except typer.TyperException as error:
        text = error.format_message()
        _fail(text if text.startswith("Usage:") else f"distrocheck: {text}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("distrocheck: interrupted", INTERRUPTED_EXIT_CODE)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("pyspark"):
            _fail_by_defect()
        _fail("distrocheck: this needs Spark; install it with: pip install 'distrocheck[spark]'", USAGE_EXIT_CODE)
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(BROKEN_PIPE_EXIT_CODE)
    except Exception as error:  # noqa: BLE001 - sorted into what the user can mend and what only we can
        exit_code = exit_code_of(error)
        if exit_code is None:
            _fail_by_defect()
        _fail(f"distrocheck: {error}", exit_code)
    else:
        sys.exit(result if isinstance(result, int) else 0)


def _fail_by_defect() -> NoReturn:
    traceback.print_exc()
    _fail("distrocheck: this is a defect of distrocheck, and says nothing about the target", DEFECT_EXIT_CODE)


def _fail(text: str, exit_code: int) -> NoReturn:
    sys.stderr.write(text.rstrip() + "\n")
    sys.exit(exit_code)
