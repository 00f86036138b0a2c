"""`distrocheck serve`: reference nodes in the foreground, until interrupted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import ProfileOption
from distro_conformance.event_loop import new_event_loop
from distro_conformance.verdict import UsageError, pair, without_twins
from distro_impl import Cluster, parse_member_list, profile_named
from distro_impl.config import CLUSTER_PORT_OFFSET
from distro_impl.logs import LogFormat, log_to, log_to_directory
from distro_impl.ports import MAX_PORT
from distro_impl.settings import Configured, configured
from distro_impl.settings.properties import read_properties
from distro_protos.addresses import AddressError, parse_address

DEFAULT_PORT = 8848
MEMBER_LIST_VARIABLES = ("nacos.member.list", "NACOS_MEMBER_LIST")
"""The key itself, and in a form that a shell accepts."""

PORT_STEP = 10
"""The distance between the main ports of two nodes, so that the gRPC ports at +1000 and +1001 do not collide."""


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


@app.command()
def serve(
    nodes: Annotated[int, typer.Option(min=1, max=99, help="How many nodes.")] = 1,
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=64_000, help=f"Main port of the first node, else that of the file, else {DEFAULT_PORT}."
        ),
    ] = None,
    profile: ProfileOption = "strict",
    member: Annotated[
        list[str] | None, typer.Option(help="A further member, HOST:PORT, that another process runs.")
    ] = None,
    members_file: Annotated[
        Path | None,
        typer.Option(help="A file like Nacos' cluster.conf with all members, these nodes too; it is watched."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A file like Nacos' application.properties.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A Nacos configuration key, KEY=VALUE; wins over the file.")
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="Logs on stderr as a real server writes them, or JSON.")] = (
        LogFormat.NACOS
    ),
    log_level: Annotated[LogLevel, typer.Option(help="What is logged on stderr.")] = LogLevel.WARNING,
    log_dir: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Write the log files of a real server here; several nodes get one folder each."
        ),
    ] = None,
) -> None:
    """Start reference nodes: SDKs connect to the main port + 1000, other members to + 1001.

    The members come from --member or --members-file, else from the key nacos.member.list, else from the environment
    variable NACOS_MEMBER_LIST, separated by commas. A single node without any member is standalone. Prints one JSON
    line for each node when it is ready. Ends on Ctrl-C or SIGTERM.
    """
    log_to(form=log_format, level=log_level)
    pairs = {} if config is None else read_properties(config, os.environ)
    chosen = configured(profile_named(profile), {**pairs, **dict(pair(text, "--set") for text in setting or ())})
    for notice in chosen.notices:
        sys.stderr.write(f"distrocheck: {notice}\n")
    first = port or chosen.port or DEFAULT_PORT
    ports = tuple(first + PORT_STEP * index for index in range(nodes))
    if ports[-1] + CLUSTER_PORT_OFFSET > MAX_PORT:
        raise UsageError(f"{nodes} nodes from port {first} on need ports above {MAX_PORT}; choose a lower --port")
    if member and members_file:
        raise UsageError("--member and --members-file both name members; give one of them")
    if chosen.is_standalone and (nodes > 1 or member or members_file):
        raise UsageError("'nacos.standalone' is true, but the options make a cluster; drop one of the two")
    further_members = () if members_file else _further_members(member or (), chosen, first)
    cluster = Cluster(
        nodes,
        profile=chosen.profile,
        options=chosen.options,
        ip=chosen.ip or "127.0.0.1",
        ports=ports,
        further_members=further_members,
        member_list_file=members_file,
        standalone=nodes == 1 and not further_members and not members_file,
    )
    if log_dir is not None:
        files_level = LogLevel.DEBUG if log_level is LogLevel.DEBUG else LogLevel.INFO
        try:
            log_to_directory(log_dir, cluster.addresses, level=files_level)
        except OSError as error:
            raise UsageError(f"--log-dir: {error}; name a directory that can be written") from error
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(cluster))


async def _serve(cluster: Cluster) -> None:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    async with cluster:
        for index, address in enumerate(cluster.addresses, start=1):
            sys.stdout.write(json.dumps({"node": f"node{index}", "address": address}) + "\n")
        sys.stdout.flush()
        await interrupted.wait()


def _further_members(options: Sequence[str], chosen: Configured, port: int) -> tuple[str, ...]:
    """The further members. The settings and the environment may also name the nodes of this process."""
    if options or chosen.is_standalone:
        return tuple(without_twins([_member(text) for text in options], "--member"))
    if chosen.members:
        return parse_member_list(",".join(chosen.members), port, "the setting nacos.member.list")
    name = next((name for name in MEMBER_LIST_VARIABLES if os.environ.get(name, "").strip()), None)
    return parse_member_list(os.environ[name], port, f"the environment variable {name}") if name else ()


def _member(text: str) -> str:
    try:
        return str(parse_address(text))
    except AddressError as error:
        raise UsageError(f"--member: {error}") from error
