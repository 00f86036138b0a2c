"""`distrocheck list` and `explain`: the entries of the registries."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer

from distro_conformance.catalogue import CATALOGUE, Entry
from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption
from distro_conformance.cli.output import echo, print_json
from distro_conformance.release import listed_profile
from distro_conformance.verdict import UsageError, named


@app.command("list")
def list_entries(
    what: Annotated[str, typer.Argument(help="requirements, invariants, mutants, profiles, rules or targets.")],
    json: JsonOption = False,
) -> None:
    """List the entries of one registry."""
    show(what, json)


@app.command()
def explain(
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="For example DISTRO-SYNC-001, INV-CONV, B02, confirm.")],
    json: JsonOption = False,
) -> None:
    """Explain one requirement, invariant, mutant, profile, rule or target."""
    found = _called(entry_id) or _called(_like(entry_id))
    if not found:
        near = get_close_matches(entry_id.upper(), [entry.id for read in CATALOGUE.values() for entry in read()])
        similar = f"most like it: {', '.join(near)}; " if near else ""
        lists = "'distrocheck list requirements' and the other lists show the names"
        raise UsageError(f"nothing is called '{entry_id}'; {similar}{lists}")
    if json:
        print_json("explain", {"id": entry_id, "entries": [{"kind": kind, **entry.to_json()} for kind, entry in found]})
        return
    if found[0][1].id != entry_id:
        echo(f"{entry_id} is not listed and behaves like {found[0][1].id}")
    for kind, entry in found:
        echo(f"{entry.id} ({kind.removesuffix('s')})\n  {entry.text}")
        for name, value in entry.details.items():
            echo(f"  {name}: {value}")


def _called(entry_id: str) -> list[tuple[str, Entry]]:
    """The entries of that name with the name of their registry. Names are unique, and the last registries need an
    extra."""
    registries = ([(name, entry) for entry in read() if entry.id == entry_id] for name, read in CATALOGUE.items())
    return next(filter(None, registries), [])


def _like(entry_id: str) -> str:
    """The listed profile whose behaviour an unlisted release has."""
    try:
        return listed_profile(entry_id)
    except UsageError:
        return entry_id


def show(what: str, json: bool) -> None:
    """Prints one registry as a list. Raises UsageError."""
    entries = named("list", CATALOGUE, what)()
    if json:
        verb = "mutants" if what == "mutants" else "list"
        print_json(verb, {what: [entry.to_json() for entry in entries]})
        return
    width = max(len(entry.id) for entry in entries)
    for entry in entries:
        echo(f"{entry.id:<{width}}  {entry.text}")
