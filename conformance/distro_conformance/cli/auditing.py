"""`distrocheck audit --member HOST:PORT …`: what live members hold, compared."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import JsonOption, measure
from distro_conformance.cli.output import Told, print_json, progress, say, summary
from distro_conformance.plain import fields_of
from distro_conformance.verdict import TargetError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from distro_conformance.audit.compare import Audit, Audited, Held
    from distro_conformance.audit.member import Credentials


@app.command()
def audit(
    member: Annotated[list[str], typer.Option(help="A member, HOST:PORT with the main port; repeat for each.")],
    # Longer than a verify period (5 s) and the change (1 s, 3 s again after a failure) that a failed one asks for.
    interval_s: Annotated[float, measure("Seconds between two readings.", least=0.1)] = 12.0,
    follow: Annotated[bool, typer.Option("--follow", help="Go on, with a live table, until interrupted.")] = False,
    identity: Annotated[
        str | None,
        typer.Option(help="KEY=VALUE of the servers among themselves.", envvar="DISTROCHECK_IDENTITY"),
    ] = None,
    username: Annotated[str | None, typer.Option(help="A user of the console, where HTTP wants one.")] = None,
    password: Annotated[str, typer.Option(help="Better in the environment.", envvar="DISTROCHECK_PASSWORD")] = "",
    json: JsonOption = False,
) -> None:
    """Ask live members what they hold, twice, and name the clients about which they differ. Nothing is changed."""
    from distro_conformance.audit.member import Credentials

    if len(set(member)) < 2:
        raise UsageError("name at least two members with --member, else there is nothing to compare")
    if json and follow:
        raise UsageError("--follow shows a table until it is interrupted; --json is one document; choose one")
    key, equals, value = (identity or "").partition("=")
    if identity is not None and not (key and equals):
        raise UsageError("--identity: write it as KEY=VALUE (nacos.core.auth.server.identity.key and .value)")
    credentials = Credentials((key, value) if identity is not None else None, username, password)
    audited = asyncio.run(_audit(tuple(dict.fromkeys(member)), credentials, interval_s, follow))
    if json:
        print_json("audit", _document(audited))
    else:
        for reading in audited.readings:
            say(f"{reading.member}: {reading.error or f'{len(reading.clients)} clients, {reading.source}'}")
        told = [Told("violates", client.sentence()) for client in audited.diverged]
        nothing = "" if audited.clients else ": none holds anything, so nothing was compared"
        summary(told, audited.verdict, f"{audited.clients} clients on {len(audited.readings)} members{nothing}")
    raise typer.Exit(audited.verdict.exit_code)


async def _audit(members: Sequence[str], credentials: Credentials, interval_s: float, follow: bool) -> Audited:
    from distro_conformance.audit.compare import Audit
    from distro_conformance.audit.member import Member
    from distro_conformance.waiting import RealClock

    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(Member(address, credentials)) for address in members]
        looking = Audit(opened, RealClock())
        if follow:
            return await _follow(looking, interval_s)
        with progress() as on_progress:
            on_progress("first reading")
            await looking.look()
            on_progress("waiting for the second reading")
            on_progress.expect(interval_s)
            await asyncio.sleep(interval_s)
            return await looking.look()


async def _follow(looking: Audit, interval_s: float) -> Audited:
    """Until interrupted; returns what was seen last. A reading that fails is told, and tried again."""
    from rich.live import Live

    from distro_conformance.cli.console import PipedConsole

    screen = PipedConsole(stderr=True, highlight=False)  # the others wrap nothing
    audited, trouble = await looking.look(), ""
    shown = Live(
        get_renderable=lambda: _table(audited, trouble or f"every {interval_s:g} s until Ctrl-C", screen.size.height),
        console=screen,
        auto_refresh=False,
        transient=True,  # the summary says it once more
    )
    following = asyncio.current_task()
    assert following is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, following.cancel)
    with contextlib.suppress(asyncio.CancelledError), shown:
        while True:
            await asyncio.sleep(interval_s)
            try:
                audited, trouble = await looking.look(), ""
            except TargetError as error:
                trouble = str(error)
            shown.refresh()
    return audited


AROUND = 7
"""Lines of the live table that are no client: title, two of head, what is left out, what is next."""


def _table(audited: Audited, next_: str, height: int) -> Table:
    """As many clients as fit, those that differ longest first."""
    from rich.markup import escape
    from rich.table import Table

    differing = sorted(audited.diverged, key=lambda client: -client.seen_for_s)
    agreed = f"members differ about {len(differing)}" if differing else "no two members differ"
    agreed = agreed if audited.rounds > 1 else "the second reading tells"
    title = f"reading {audited.rounds}: {audited.clients} clients, {agreed}"
    table = Table(title=title, caption=escape(next_), title_justify="left", caption_justify="left", box=None)
    for name in ("client", "differs for"):
        table.add_column(name, overflow="fold")
    for reading in audited.readings:
        count = f"{len(reading.clients)} clients" if reading.error is None else "cannot be read"
        table.add_column(f"{escape(reading.member)}\n{count}", overflow="fold")
    room, used = max(1, height - AROUND), 0
    for number, client in enumerate(differing):
        held = {each.member: each for each in client.members}
        cells = [_cell(held.get(reading.member)) for reading in audited.readings]
        used += max(cell.count(",") + 1 for cell in cells) + 1
        if used > room and number:
            table.add_row(f"… {len(differing) - number} more")
            break
        table.add_row(escape(client.client), f"{client.seen_for_s:.0f} s", *map(escape, cells))
    return table


def _cell(held: Held | None) -> str:
    if held is None:
        return "?"
    if held.holding is None:
        return "not there"
    published = (each.removeprefix("DEFAULT_GROUP@@") for each in held.holding.published)
    return ", ".join(published) or "nothing published"


def _document(audited: Audited) -> dict[str, Any]:
    members = [
        fields_of(reading, source=reading.source or None, clients=len(reading.clients)) for reading in audited.readings
    ]
    diverged = [
        fields_of(
            client,
            since=client.since.isoformat(timespec="milliseconds"),
            seen_for_s=round(client.seen_for_s, 3),
            members=list(map(_held, client.members)),
        )
        for client in audited.diverged
    ]
    return {"verdict": audited.verdict, "members": members, **fields_of(audited, "readings", diverged=diverged)}


def _held(held: Held) -> dict[str, Any]:
    nothing: dict[str, Any] = {"revision": None, "digest": None, "published": []}
    content = nothing if held.holding is None else fields_of(held.holding, "addresses")
    return {"member": held.member, "held": held.holding is not None, **content, "stuck": held.is_stuck}
