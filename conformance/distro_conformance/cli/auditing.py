"""`distrocheck audit --member HOST:PORT …`: compares the state of running members."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import (
    IdentityOption,
    JsonOption,
    PasswordOption,
    UsernameOption,
    measure,
    writable_file,
)
from distro_conformance.cli.output import ResultLine, echo, print_json, progress, schema, summary
from distro_conformance.plain import fields_of
from distro_conformance.verdict import TargetError, UsageError
from distro_protos.addresses import one_name

if TYPE_CHECKING:
    from rich.table import Table

    from distro_conformance.audit.cluster_view import Disagreement
    from distro_conformance.audit.compare import Audit, Audited, Diverged, DivergedList, Held
    from distro_conformance.targets.credentials import Credentials


@app.command()
def audit(
    member: Annotated[list[str], typer.Option(help="A member, HOST:PORT with the main port; repeat for each.")],
    # Longer than a verify period (5 s) plus the CHANGE after a failed VERIFY (1 s, 3 s more after a failure).
    interval_s: Annotated[float, measure("Seconds between two readings.", least=0.1)] = 12.0,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on until interrupted: a live table; with --json, a line for each change."),
    ] = False,
    for_s: Annotated[float | None, measure("With --follow: end after this number of seconds.", least=0.0)] = None,
    metrics: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the state for Prometheus (text file) after each reading.")
    ] = None,
    identity: IdentityOption = None,
    username: UsernameOption = None,
    password: PasswordOption = "",
    tls: Annotated[
        list[str] | None,
        typer.Option("--tls", help="A port with TLS: grpc (the cluster port) or http; may be repeated."),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option("--ca", help="Certificates in PEM to trust; default: those that the system trusts."),
    ] = None,
    cert: Annotated[
        Path | None,
        typer.Option("--cert", help="The kit's own certificate in PEM, for ports that require one; with --key."),
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="The private key of --cert, in PEM, not encrypted.")] = None,
    json: JsonOption = False,
) -> None:
    """Read the state of running members twice and print the differences: in member lists, lists of services, clients.
    Nothing is changed."""
    from distro_conformance.targets.credentials import credentials_of, tls_of

    if len(_different(member)) < 2:
        raise UsageError("name at least two members with --member, else there is nothing to compare")
    if for_s is not None and not follow:
        raise UsageError("--for-s limits --follow; give both")
    writable_file(metrics, "--metrics")
    credentials = replace(credentials_of(identity, username, password), tls=tls_of(tls or (), ca, cert, key))
    options = AuditOptions(interval_s, follow=follow, lines=follow and json, for_s=for_s, metrics=metrics)
    audited = asyncio.run(_audit(_different(member), credentials, options))
    if json and not follow:
        print_json("audit", _document(audited))
    elif not json:
        _say(audited)
    raise typer.Exit(audited.verdict.exit_code)


def _different(members: Sequence[str]) -> tuple[str, ...]:
    """The members without those that an earlier one names too: a server that is compared with itself always agrees."""
    found: dict[str, str] = {}
    for name in members:
        found.setdefault(_reached(name), name)
    return tuple(found.values())


def _reached(name: str) -> str:
    """The address that the name stands for; the name itself if no address is known."""
    host, _, port = (known := one_name(name)).rpartition(":")
    try:
        return f"{socket.getaddrinfo(host.strip('[]'), port, type=socket.SOCK_STREAM)[0][4]}"
    except (OSError, UnicodeError):
        return known


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """`lines`: print each change as a line of JSON on stdout, instead of the table."""

    interval_s: float
    follow: bool = False
    lines: bool = False
    for_s: float | None = None
    metrics: Path | None = None


async def _audit(members: Sequence[str], credentials: Credentials, options: AuditOptions) -> Audited:
    from distro_conformance.audit.compare import Audit
    from distro_conformance.audit.member import Member
    from distro_conformance.waiting import RealClock

    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(Member(address, credentials)) for address in members]
        audit = Audit(opened, RealClock())
        if options.follow:
            return await (_follow_in_lines if options.lines else _follow)(audit, options)
        with progress() as on_progress:
            on_progress("first reading")
            await audit.compare()
            on_progress("waiting for the second reading")
            on_progress.expect(options.interval_s)
            await asyncio.sleep(options.interval_s)
            return await _noted(audit, options)


async def _noted(audit: Audit, options: AuditOptions) -> Audited:
    """Read the members once and write the metrics for Prometheus. Raises TargetError."""
    from distro_conformance.audit.following import exit_code_of, metrics, now, write_metrics

    audited, code = None, TargetError.exit_code
    try:
        audited = await audit.compare()
        code = exit_code_of(audited)
    finally:
        if options.metrics is not None:
            try:
                write_metrics(options.metrics, metrics(audited, code, now()))
            except OSError as error:
                raise UsageError(f"--metrics {options.metrics}: cannot be written ({error.strerror})") from error
    return audited


async def _follow_in_lines(audit: Audit, options: AuditOptions) -> Audited:
    """Print a line for each change until interrupted; returns the last reading.

    That a member can no longer be read is a change, too; it is tried again. Raises Exit if fewer than two members can
    be read in the end.
    """
    from distro_conformance.audit.following import changes

    seen: Audited | None = None
    trouble = ""
    with contextlib.suppress(asyncio.CancelledError):
        async for audited, failure in _readings(audit, options):
            if bool(failure) != bool(trouble):  # the text of a failure changes from one try to the next
                _line({"change": "began" if failure else "ended", "what": "audit", "text": failure or trouble})
            trouble = failure
            if audited is not None and audited.rounds > 1:
                for change in changes(seen, audited):
                    _line(change)
            seen = audited if audited is not None else seen
    if seen is None or trouble:  # a line has reported it already; an error document takes more than one line
        raise typer.Exit(TargetError.exit_code)
    return seen


def _line(change: Mapping[str, Any]) -> None:
    from distro_conformance.audit.following import now

    head = {"schema": schema("audit-change"), "at": now().isoformat(timespec="milliseconds")}
    sys.stdout.write(
        dumps({**head, "subject": "", "since": None, "seen_for_s": None, **change}, ensure_ascii=False) + "\n"
    )
    sys.stdout.flush()


async def _readings(audit: Audit, options: AuditOptions) -> AsyncIterator[tuple[Audited | None, str]]:
    """Yield each reading, or the reason why it failed. Ends after `for_s`, and on SIGINT or SIGTERM."""
    following = asyncio.current_task()
    assert following is not None
    for number in (signal.SIGINT, signal.SIGTERM):  # containers are stopped with SIGTERM
        asyncio.get_running_loop().add_signal_handler(number, following.cancel)
    ends_s = None if options.for_s is None else time.monotonic() + options.for_s
    while True:
        audited, failure = None, ""
        try:
            audited = await _noted(audit, options)
        except TargetError as error:
            failure = str(error)
        yield audited, failure
        if ends_s is not None and time.monotonic() + options.interval_s > ends_s:
            return
        await asyncio.sleep(options.interval_s)


async def _follow(audit: Audit, options: AuditOptions) -> Audited:
    """Show a live table until interrupted; returns the last reading. After a failed reading it shows the error and goes
    on."""
    from rich.live import Live

    from distro_conformance.cli.console import PipedConsole

    screen = PipedConsole(stderr=True, highlight=False)  # the other consoles do not wrap lines
    audited, trouble = await audit.compare(), ""
    shown = Live(
        get_renderable=lambda: _table(
            audited, trouble or f"every {options.interval_s:g} s until Ctrl-C", screen.size.height
        ),
        console=screen,
        auto_refresh=False,
        transient=True,  # the summary repeats it
    )
    await asyncio.sleep(options.interval_s)
    with contextlib.suppress(asyncio.CancelledError), shown:
        async for seen, trouble in _readings(audit, options):  # noqa: B007 - the table shows it
            audited = seen or audited
            shown.refresh()
    if trouble:
        raise TargetError(trouble)
    return audited


def _say(audited: Audited) -> None:
    for reading in audited.readings:
        release = f", {reading.release}" if reading.release else ""
        echo(f"{reading.member}: {reading.error or f'{len(reading.clients)} clients, {reading.source}{release}'}")
    for each in audited.disagreements:
        if not each.is_violation:
            echo(f"note: {each.sentence()}")
    lines = [ResultLine("violates", each.sentence()) for each in audited.violations]
    why = f": {'; '.join(audited.reasons)}" if audited.reasons else ""
    lists = f", {audited.lists} of {audited.services} service lists" if audited.services else ""
    summary(lines, audited.verdict, f"{audited.clients} clients{lists} on {len(audited.readings)} members{why}")


AROUND = 7
"""The lines of the live table beside those of clients: title, two of the head, number left out, next reading."""


CAUSES_SHOWN = 3
"""The number of disagreements about members and lists in the title."""


def _table(audited: Audited, next_: str, height: int) -> Table:
    """A table of as many clients as fit, beginning with those that have differed for the longest time."""
    from rich.markup import escape
    from rich.table import Table

    differing = sorted(audited.diverged, key=lambda client: -client.seen_for_s)
    causes = [each for each in audited.violations if each not in audited.diverged]
    agreed = f"members differ about {len(differing)}" if differing else "no two members differ"
    agreed += "".join(f"\n{each.sentence()}" for each in causes[:CAUSES_SHOWN])
    agreed = agreed if audited.rounds > 1 else "compared after the second reading"
    title = f"reading {audited.rounds}: {audited.clients} clients, {agreed}"
    table = Table(title=title, caption=escape(next_), title_justify="left", caption_justify="left", box=None)
    for name in ("client", "differs for"):
        table.add_column(name, overflow="fold")
    for reading in audited.readings:
        count = f"{len(reading.clients)} clients" if reading.error is None else "cannot be read"
        table.add_column(f"{escape(reading.member)}\n{count}", overflow="fold")
    room, used = max(1, height - AROUND - len(causes[:CAUSES_SHOWN])), 0
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
        fields_of(reading, source=reading.source or None, clients=len(reading.clients), lists=len(reading.lists))
        for reading in audited.readings
    ]
    diverged = [{**_timed(client), "members": list(map(_held, client.members))} for client in audited.diverged]
    causes = {
        "disagreements": [
            {**_timed(each), "matter": str(each.matter), "is_violation": each.is_violation, "text": each.sentence()}
            for each in audited.disagreements
        ],
        "diverged_lists": [{**_timed(each), "text": each.sentence()} for each in audited.diverged_lists],
    }
    more = fields_of(audited, "readings", "once", diverged=diverged, **causes)
    return {"verdict": audited.verdict, "reasons": list(audited.reasons), "members": members, **more}


def _timed(found: Disagreement | DivergedList | Diverged) -> dict[str, Any]:
    since = found.since.isoformat(timespec="milliseconds")
    return fields_of(found, since=since, seen_for_s=round(found.seen_for_s, 3))


def _held(held: Held) -> dict[str, Any]:
    nothing: dict[str, Any] = {"revision": None, "digest": None, "published": []}
    content = nothing if held.holding is None else fields_of(held.holding, "addresses", "services")
    return {"member": held.member, "held": held.holding is not None, **content, "stuck": held.is_stuck}
