"""`distrocheck ui`: the explorer in the browser."""

from __future__ import annotations

import asyncio
import os
import signal
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from aiohttp import web

from distro_conformance.cli import app
from distro_conformance.cli.options import MutantOption, ProfileOption
from distro_conformance.cli.output import echo
from distro_conformance.verdict import UsageError

if TYPE_CHECKING:
    from distro_conformance.ui.app import Explorer


@app.command()
def ui(
    file: Annotated[Path | None, typer.Argument(help="A scenario, a counterexample, or a trace to begin with.")] = None,
    profile: ProfileOption = "strict",
    mutant: MutantOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On loopback; 0: any free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")] = False,
) -> None:
    """Explore a bounded cluster in the browser, choice by choice; on loopback only, until interrupted."""
    from distro_conformance.ui.app import Explorer
    from distro_conformance.ui.walk import Setting

    asyncio.run(_serve(Explorer(Setting(profile, mutant), file), port, open_browser=open_browser))


async def _serve(explorer: Explorer, port: int, *, open_browser: bool) -> None:
    runner = web.AppRunner(explorer.application(), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        try:
            await site.start()
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise UsageError(f"--port {port}: {why}; choose another one, or 0 for any that is free") from error
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/?token={explorer.token}"
        echo(address)
        if open_browser:
            webbrowser.open(address)
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        await ended.wait()
    finally:
        await runner.cleanup()
