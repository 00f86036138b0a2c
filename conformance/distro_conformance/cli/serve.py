"""`distrocheck serve`: reference nodes in the foreground, until interrupted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from distro_conformance.cli import app
from distro_conformance.cli.options import ProfileOption
from distro_conformance.verdict import UsageError
from distro_impl import Cluster, parse_member_list, profile_named, with_settings
from distro_impl.config import CLUSTER_PORT_OFFSET

DEFAULT_PORT = 8848
HIGHEST_PORT = 65_535
MEMBER_LIST_VARIABLES = ("nacos.member.list", "NACOS_MEMBER_LIST")
"""The key as it stands, and as a shell can write it."""

PORT_STEP = 10
"""Between the main ports of neighbours: the gRPC ports at +1000 and +1001 stay apart."""


@app.command()
def serve(
    nodes: Annotated[int, typer.Option(min=1, max=99, help="How many nodes.")] = 1,
    port: Annotated[int, typer.Option(min=1, max=64_000, help="Main port of the first node.")] = DEFAULT_PORT,
    profile: ProfileOption = "strict",
    member: Annotated[
        list[str] | None, typer.Option(help="A further member, HOST:PORT, that somebody else runs.")
    ] = None,
    members_file: Annotated[
        Path | None,
        typer.Option(help="A file like Nacos' cluster.conf with all members, these nodes too; it is watched."),
    ] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="A Nacos configuration key, KEY=VALUE.")] = None,
) -> None:
    """Start reference nodes: SDKs connect to the main port + 1000, other members to + 1001.

    Without --member and --members-file the environment may name the members: NACOS_MEMBER_LIST, separated by commas.
    Prints one JSON line for each node when it is ready. Ends on Ctrl-C or SIGTERM.
    """
    chosen = with_settings(profile_named(profile), dict(_pair(text) for text in setting or ()))
    ports = tuple(port + PORT_STEP * index for index in range(nodes))
    if ports[-1] + CLUSTER_PORT_OFFSET > HIGHEST_PORT:
        raise UsageError(f"{nodes} nodes from port {port} on need ports above {HIGHEST_PORT}; choose a lower --port")
    if member and members_file:
        raise UsageError("--member and --members-file both name members; give one of them")
    cluster = Cluster(
        nodes,
        profile=chosen,
        ports=ports,
        further_members=() if members_file else _further_members(member, port),
        member_list_file=members_file,
    )
    asyncio.run(_serve(cluster))


async def _serve(cluster: Cluster) -> None:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    async with cluster:
        for index, address in enumerate(cluster.addresses, start=1):
            sys.stdout.write(json.dumps({"node": f"node{index}", "address": address}) + "\n")
        sys.stdout.flush()
        await interrupted.wait()


def _further_members(options: list[str] | None, port: int) -> tuple[str, ...]:
    """From the options, else from the environment, where the nodes of this process may be named too."""
    if options:
        return tuple(_member(text) for text in options)
    name = next((name for name in MEMBER_LIST_VARIABLES if os.environ.get(name, "").strip()), None)
    return parse_member_list(os.environ[name], port, f"the environment variable {name}") if name else ()


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set takes KEY=VALUE, not '{text}'")
    return key, value


def _member(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--member takes HOST:PORT with the main port, not '{text}'")
    return text
