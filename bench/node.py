"""The reference node under load, beside a bare gRPC echo and, on request, beside other servers in the same run.

    python bench/node.py --json [--quick] [--nacos VERSION] [--rnacos PROGRAM]

Every server runs in a process of its own, the load in this one; both use uvloop. Five measurements:

* ready: from the start of a process to three nodes that serve, and the memory of that process then (imports included);
* calls: registrations and queries of one node, a member of three, beside an echo of the same requests by the same
  client. A query's reply is ten times as long as the request that the echo returns. Heartbeats over HTTP, where the
  node serves them;
* held: the memory of the processes of three nodes with all instances at each of them;
* lag: from a change at its owner to each other member, by the observers of three processes, at 500 changes a second;
* others: `--nacos 2.2.4` starts three real servers, `--rnacos` one server of that name. `nacos.*` and `rnacos.*` are
  their figures, the ratios are node to them: above 1 the node is faster, for memory and time to ready it is below 1.

The load uses one core: with fewer than two, node and load share one and the echo ratio is less exact.
"""

from __future__ import annotations

# ruff: noqa: I001 - distro_conformance first: it sets what gRPC core reads when it is imported
import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median, quantiles

import distro_conformance  # noqa: F401
import uvloop

from distro_impl import free_main_ports
from distro_impl.config import SDK_PORT_OFFSET
from distro_impl.profiles import PROFILES

from node_load import (
    beats_per_s,
    calls_per_s,
    change_steadily,
    connected,
    query,
    register_all,
    registration,
    until_shown,
)
from processes import Server, cpu_s, resident_mib

NODES = 3
CONNECTIONS = 8
ROUNDS = 3
TURN_S = 0.5
CHANGING_CLIENTS = 250
CHANGES_PER_S = 500
PATIENCE_S = 60.0
RNACOS_PORTS = (21848, 22848)
"""HTTP and gRPC."""

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The amounts of each measurement."""

    seconds: float
    held_clients: int
    instances_per_client: int
    lag_s: float


FULL = Effort(seconds=6.0, held_clients=500, instances_per_client=100, lag_s=20.0)
QUICK = Effort(seconds=1.0, held_clients=100, instances_per_client=100, lag_s=5.0)


@asynccontextmanager
async def three_processes(*options: str) -> AsyncIterator[tuple[list[Server], tuple[int, ...]]]:
    """Three nodes of one cluster, each in a process of its own; their main ports."""
    ports = free_main_ports(NODES)
    async with AsyncExitStack() as stack:
        starts = []
        for port in ports:
            others = [word for other in ports if other != port for word in ("--member", str(other))]
            starts.append(Server.start("nodes", str(port), *others, *options))
        servers = await asyncio.gather(*starts)
        for server in servers:
            stack.push_async_callback(server.end)
        await asyncio.sleep(1.0)  # each asks the others for a snapshot
        yield list(servers), ports


def sdk_target(port: int) -> str:
    return f"127.0.0.1:{port + SDK_PORT_OFFSET}"


async def measure_ready() -> Figures:
    """Three nodes in one process, as a test fixture has them."""
    seconds, starts, held = [], [], []
    for _ in range(ROUNDS):
        ports = ",".join(str(port) for port in free_main_ports(NODES))
        server = await Server.start("nodes", ports)
        seconds.append(server.ready_s)
        starts.append(server.reported["start_s"])
        held.append(server.mib)
        await server.end()
    return {
        "ready_s": round(median(seconds), 3),
        "ready_without_imports_s": round(median(starts), 4),
        "ready_mib": round(max(held), 1),
    }


async def measure_calls(target: str, pid: int | None, seconds: float) -> Figures:
    """Registrations and queries of one server; `echo_…` is the echo of the same requests, in turns with it.

    The processor time is that of the server's process, so it is the same however busy the machine is.
    """
    echo = await Server.start("echo")
    registrations = [registration(number, number, number) for number in range(100)]
    queries = [query(number) for number in range(100)]
    counted: defaultdict[str, list[float]] = defaultdict(list)
    try:
        numbers = range(CONNECTIONS)
        async with (
            connected(target, numbers) as clients,
            connected(f"127.0.0.1:{int(echo.reported['port'])}", numbers, is_server=False) as echoed,
        ):
            for _ in range(round(seconds / TURN_S)):
                for name, requests in {"registrations": registrations, "queries": queries}.items():
                    for whose, server, asked in (("echo_", echo.pid, echoed), ("", pid, clients)):
                        spent_s = cpu_s([server]) if server else 0.0
                        per_s = await calls_per_s(asked, requests, TURN_S)
                        counted[f"{whose}{name}_per_s"].append(per_s)
                        if server:
                            spent_us = (cpu_s([server]) - spent_s) * 1e6
                            counted[f"{whose}{name}_cpu_us"].append(spent_us / (per_s * TURN_S))
    finally:
        await echo.end()
    return {name: round(median(values)) for name, values in counted.items()}


async def measure_held(effort: Effort) -> Figures:
    """Instances at all three nodes: published at one of them, held by each."""
    expected = effort.held_clients * effort.instances_per_client
    async with three_processes() as (servers, ports), AsyncExitStack() as stack:
        empty_mib = sum(server.mib for server in servers)
        groups = [
            await stack.enter_async_context(connected(sdk_target(port), range(index, effort.held_clients, NODES)))
            for index, port in enumerate(ports)
        ]
        await register_all([client for group in groups for client in group], effort.instances_per_client)
        for group in groups:
            await until_shown(group[0], expected)
        held_mib = sum(server.mib for server in servers)
    return {
        "held_instances": expected,
        "held_mib": round(held_mib, 1),
        "held_bytes_per_instance_and_node": round((held_mib - empty_mib) * 2**20 / expected / NODES),
    }


async def measure_lag(effort: Effort) -> Figures:
    """Changes spread over all three nodes; each is over when a member has that revision or a later one."""
    async with three_processes("--watch") as (servers, ports):
        async with AsyncExitStack() as stack:
            clients = []
            for index, port in enumerate(ports):
                numbers = range(index, CHANGING_CLIENTS, NODES)
                clients += await stack.enter_async_context(connected(sdk_target(port), numbers))
            await change_steadily(sorted(clients, key=lambda client: client.number), CHANGES_PER_S, effort.lag_s)
            await asyncio.sleep(PROFILES["strict"].sync_delay_ms / 1000 + 2.0)
        watched = await asyncio.gather(*(server.end() for server in servers))
    lags = replication_lags(watched)
    percentiles = quantiles(lags, n=100)
    return {
        "lag_p50_ms": round(percentiles[49]),
        "lag_p99_ms": round(percentiles[98]),
        "lag_sync_delay_ms": PROFILES["strict"].sync_delay_ms,
        "lag_changes_seen": len(lags) // (NODES - 1),
    }


def replication_lags(watched: Sequence[Sequence[Sequence[object]]]) -> list[int]:
    """Milliseconds from each change of a client to its arrival at each other node; SystemExit when one is missing."""
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    arrivals: list[dict[str, list[tuple[int, int]]]] = []
    for events in watched:
        applied: dict[str, list[tuple[int, int]]] = defaultdict(list)
        arrivals.append(applied)
        for kind, client, revision, at_ms in events:
            assert isinstance(client, str)
            assert isinstance(at_ms, int)
            if kind in ("client_changed", "replica_applied") and isinstance(revision, int):
                (changes if kind == "client_changed" else applied)[client].append((revision, at_ms))
    lags = []
    for client, changed in changes.items():
        holders = [applied[client] for applied in arrivals if client in applied]
        if len(holders) != NODES - 1:
            raise SystemExit(f"{client} arrived at {len(holders)} of {NODES - 1} other nodes; nothing was measured")
        for revision, at_ms in changed:
            for holder in holders:
                came_ms = [when for seen, when in holder if seen >= revision]
                if not came_ms:
                    raise SystemExit(f"revision {revision} of {client} did not arrive everywhere; nothing was measured")
                lags.append(min(came_ms) - at_ms)
    return lags


async def measure_nacos(version: str, seconds: float) -> Figures:
    """Three real servers."""
    from distro_conformance.targets.jars import jars_of  # noqa: PLC0415 - only here
    from distro_conformance.targets.nacos import NacosServer  # noqa: PLC0415
    from distro_conformance.targets.nacos_home import ALL_COMPILERS  # noqa: PLC0415
    from distro_conformance.targets.ports import free_base_ports  # noqa: PLC0415
    from distro_conformance.targets.releases import nacos_release  # noqa: PLC0415
    from distro_conformance.targets.server_process import HOST, running  # noqa: PLC0415

    def on_progress(text: str) -> None:
        print(text, file=sys.stderr)

    release, ports = nacos_release(version), sorted(free_base_ports(NODES))
    jars, members = await jars_of(release, on_progress), [f"{HOST}:{port}" for port in ports]
    servers = [
        NacosServer(release, jars, port=port, members=members, jvm_properties={}, jvm_options=[ALL_COMPILERS])
        for port in ports
    ]
    began_s = time.perf_counter()
    async with running(servers):
        ready_s = time.perf_counter() - began_s
        mib = resident_mib([server.pid for server in servers if server.pid is not None])
        return await _as_other("nacos", ready_s, mib, servers[0].sdk_address, seconds)


async def measure_rnacos(program: str, seconds: float) -> Figures:
    """One server: its cluster speaks a protocol of its own."""
    http, grpc_port = RNACOS_PORTS
    with tempfile.TemporaryDirectory() as directory:
        settings = {"RNACOS_HTTP_PORT": str(http), "RNACOS_GRPC_PORT": str(grpc_port), "RNACOS_DATA_DIR": directory}
        began_s = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            program, cwd=directory, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            await _until_open(grpc_port, process)
            ready_s = time.perf_counter() - began_s
            mib = resident_mib([process.pid])
            return await _as_other("rnacos", ready_s, mib, f"127.0.0.1:{grpc_port}", seconds)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _as_other(name: str, ready_s: float, mib: float, target: str, seconds: float) -> Figures:
    calls = await measure_calls(
        target, None, seconds
    )  # with the echo at the same time, which shows the load of the machine
    figures = {"ready_s": round(ready_s, 3), "ready_mib": round(mib, 1), **calls}
    return {f"{name}.{key}": value for key, value in figures.items()}


async def _until_open(port: int, process: asyncio.subprocess.Process) -> None:
    end_s = time.perf_counter() + PATIENCE_S
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if process.returncode is not None or time.perf_counter() > end_s:
                raise SystemExit(f"nothing listens on port {port}: did the server start?") from None
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


async def measure(effort: Effort, nacos: str | None, rnacos: str | None) -> Figures:
    figures = await measure_ready()
    async with three_processes() as (servers, ports):
        figures["processes_ready_mib"] = round(sum(server.mib for server in servers), 1)
        figures["processes_ready_s"] = round(max(server.ready_s for server in servers), 3)
        figures |= await measure_calls(sdk_target(ports[0]), servers[0].pid, effort.seconds)
        beats = await beats_per_s(f"127.0.0.1:{ports[0]}", CONNECTIONS, effort.seconds / ROUNDS)
        figures["beats_per_s"] = beats and round(beats)
    figures |= await measure_held(effort)
    figures |= await measure_lag(effort)
    if nacos:
        figures |= await measure_nacos(nacos, effort.seconds)
    if rnacos:
        figures |= await measure_rnacos(rnacos, effort.seconds)
    return figures


def ratios(figures: Figures) -> dict[str, float]:
    pairs = {
        "registrations_to_echo": ("registrations_per_s", "echo_registrations_per_s"),
        "queries_to_echo": ("queries_per_s", "echo_queries_per_s"),
        "registrations_to_echo_cpu": ("echo_registrations_cpu_us", "registrations_cpu_us"),
        "queries_to_echo_cpu": ("echo_queries_cpu_us", "queries_cpu_us"),
    }
    for other in ("nacos", "rnacos"):
        pairs |= {f"{key}_to_{other}": (key, f"{other}.{key}") for key in ("registrations_per_s", "queries_per_s")}
    pairs |= {
        "ready_s_to_nacos": ("processes_ready_s", "nacos.ready_s"),
        "ready_mib_to_nacos": ("processes_ready_mib", "nacos.ready_mib"),
        "ready_s_to_rnacos": ("processes_ready_s", "rnacos.ready_s"),
    }
    found = {name: (figures.get(node), figures.get(other)) for name, (node, other) in pairs.items()}
    return {name: round(node / other, 3) for name, (node, other) in found.items() if node and other}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute: 10,000 instances, short loads")
    parser.add_argument("--nacos", metavar="VERSION", help="measure three real servers of this release as well")
    parser.add_argument("--rnacos", metavar="PROGRAM", help="measure this rnacos server as well")
    arguments = parser.parse_args()
    figures = uvloop.run(measure(QUICK if arguments.quick else FULL, arguments.nacos, arguments.rnacos))
    print(json.dumps({"bench": "node", "figures": figures, "ratios": ratios(figures)}, indent=2))


if __name__ == "__main__":
    main()
