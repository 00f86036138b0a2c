"""`distrocheck import nacos-logs DIR`: the logs of real servers as a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from distro_conformance.cli import import_app
from distro_conformance.cli.options import (
    DEFAULT_OUT,
    HtmlOption,
    JsonOption,
    fresh_file,
    profile_option,
    readable,
    require_extras,
    writable_directory,
)
from distro_conformance.cli.output import Progress, echo, echo_page, print_json, progress
from distro_conformance.findings.finding import command
from distro_conformance.plain import plain
from distro_conformance.verdict import UsageError


@import_app.command("nacos-logs")
def nacos_logs(
    directory: Annotated[Path, typer.Argument(help="The logs: one directory per node, or all in one; also .gz.")],
    out: Annotated[Path, typer.Option(help="Directory for the trace.")] = DEFAULT_OUT / "imported",
    run: Annotated[str, typer.Option(help="Name of the run in the trace.")] = "nacos-logs",
    zone: Annotated[
        list[str] | None,
        typer.Option(
            help="Zone of time stamps without one: Asia/Shanghai, or DIRECTORY=ZONE for one node; default: UTC."
        ),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option(help="DIRECTORY=HOST:PORT, if the logs do not name their node.")
    ] = None,
    profile: Annotated[
        str | None, profile_option("Such as nacos-2.2.4; default: the release that the logs name.")
    ] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
) -> None:
    """Read the logs of real servers into a trace for `check` and `export`, and report what went wrong."""
    from distro_traces.nacos_logs.importer import import_logs

    if html:
        require_extras("report")
    fresh_file(html, "--html")
    zones = {label: _zone(name) for label, name in _pairs(zone or (), "--zone", alone="")}
    with progress() as on_progress:
        on_progress(f"reading {directory}")
        imported = import_logs(
            readable(directory, "directory of logs"),
            writable_directory(out),
            run=run,
            zone=zones.pop("", _zone("UTC")),
            zones=zones,
            names=dict(_pairs(node or (), "--node")),
            profile=profile,
            on_part=reading(on_progress),
        )
    if html:
        from distro_conformance.report.logs import write_logs_page

        write_logs_page(imported, html)
    if json:
        print_json("import nacos-logs", plain(imported))
        return
    from distro_conformance.cli.log_summary import log_summary

    for line in log_summary(imported):
        echo(line)
    echo_page(html)
    echo(f"{imported.events} events of {imported.profile}, in ms since {imported.began}")
    echo(command("check", imported.path))


def reading(on_progress: Progress) -> Callable[[Path | None, int, int], None]:
    """Report once a second how much of the pass is done and how long the rest will take."""
    began_s = printed_s = time.monotonic()
    passed: Path | None = Path()

    def on_part(path: Path | None, done_bytes: int, total_bytes: int) -> None:
        nonlocal began_s, printed_s, passed
        now_s = time.monotonic()
        if path is None and passed is not None:
            began_s = now_s
        passed = path
        if now_s - printed_s < 1 or not done_bytes:
            return
        printed_s = now_s
        left_s = (now_s - began_s) * max(0, total_bytes - done_bytes) / done_bytes
        which = "second pass of two" if path is None else "first pass of two"
        name = "" if path is None else f", {path.name}"
        on_progress(f"{which}: {done_bytes >> 20} of {total_bytes >> 20} MB, {left_s:.0f} s left{name}")

    return on_part


def _pairs(texts: Sequence[str], option: str, alone: str | None = None) -> list[tuple[str, str]]:
    """Texts of the form `KEY=VALUE`. A text without a key gets the key `alone`; if that is None, the key is
    required."""
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals and alone is None:
            raise UsageError(f"{option} {text}: write it as DIRECTORY=VALUE")
        pairs.append((key, value) if equals else (alone or "", text))
    return pairs


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"there is no time zone {name!r}; write it as Asia/Shanghai or Etc/GMT-8") from None
