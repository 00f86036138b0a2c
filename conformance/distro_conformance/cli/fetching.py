"""`distrocheck fetch-nacos VERSION`: fetches the jars of a real server into the cache, so that a later run starts at
once."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption
from distro_conformance.cli.output import echo, print_json, progress
from distro_conformance.targets.jars import jars_of
from distro_conformance.targets.releases import nacos_release


@app.command("fetch-nacos")
def fetch_nacos(
    version: Annotated[str, typer.Argument(help="A release that is also published for Maven, for instance 2.2.4.")],
    json: JsonOption = False,
) -> None:
    """Fetch the jars of a Nacos release with Maven, unless the cache has them, and print their directory.

    Exit code 2 with advice for a release that Maven does not have; 4 when Maven cannot resolve it.
    """
    release = nacos_release(version)
    with progress() as on_progress:
        directory = asyncio.run(jars_of(release, on_progress))
    if json:
        found = {"version": release.version, "coordinates": release.coordinates, "directory": str(directory)}
        print_json("fetch-nacos", found)
    else:
        echo(str(directory))
    raise typer.Exit(0)
