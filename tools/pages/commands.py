"""The page of verbs in docs/reference, generated from the command line, so that it agrees with `--help`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from distro_conformance.cli import COMMAND, app
from pages.markdown import page, table

EXIT_CODES = {
    0: "it conforms, everything holds",
    1: "a violation",
    2: "usage or configuration: the request is not valid, or something is not installed",
    3: "inconclusive: something could not be judged, or a budget ran out",
    4: "the target could not be started or reached",
    70: "a defect of distrocheck; the message names what to report",
    130: "interrupted",
    141: "broken pipe",
}


def commands_page() -> str:
    """The verbs with their options, and the rules for all of them."""
    codes = ((str(code), text) for code, text in EXIT_CODES.items())
    return page(
        "Commands",
        "With `--json` a verb prints one JSON document on standard output, all else on standard error.\n"
        "The documents have schemas in `docs/schemas`; an error is one too. Fields may be added, never renamed.\n"
        "`--install-completion` completes verbs and options in your shell.",
        table("exit code |", codes, rule="---:|---"),
        *_of_group(typer.main.get_group(app), COMMAND),
    )


def _of_group(group: Any, path: str) -> Iterator[str]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _of_command(command, f"{path} {name}") if command.invoke_without_command else ()
            yield from _of_group(command, f"{path} {name}")
        else:
            yield from _of_command(command, f"{path} {name}")


def _of_command(command: Any, path: str) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([path, *map(_place, arguments)])
    rows = [(f"`{_place(each)}`", _cell(each.help)) for each in arguments]
    rows += [
        (", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts)), _cell(each.help)) for each in options
    ]
    yield from (f"## {path.removeprefix(COMMAND + ' ')}", f"`{usage}`", command.help.strip())
    yield from [table("|", rows)] if rows else []


def _place(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")
