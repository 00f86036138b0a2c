"""The cost of VERIFYs for a node that owns many clients, in a cluster of three members; one member owns all clients.

    python bench/strain.py --json [--quick | --clients N …] [--nacos VERSION]

Each member has a process of its own. The clients have no connections (`bench/node.py` measures those); all calls
between the members are real. The owner is a reference node. The other two are reference nodes, or real servers; then
the owner has the profile of their release.

The measurement begins when the other two hold every client and the owner has sent each client to both. A member that
starts gets the clients with a snapshot. Meanwhile the owner lists it as DOWN and counts a failure for each client that
it cannot send. During the measurement no call may fail. If there are more clients than can be verified in a period,
rounds begin late, and the late rounds are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from processes import Server, cpu_s
from prometheus_client.parser import text_string_to_metric_families

from distro_conformance.targets.jars import jars_of
from distro_conformance.targets.nacos import NacosServer
from distro_conformance.targets.nacos_home import ALL_COMPILERS
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.releases import nacos_release
from distro_conformance.targets.server_process import HOST

CLIENTS, QUICK_CLIENTS = (500, 5_000, 20_000), (200, 1_000)
WINDOW_S, QUICK_WINDOW_S = 30.0, 11.0
HELD_WITHIN_S = 600.0
PEERS = 2

Samples = dict[str, float]


@dataclass(frozen=True, slots=True)
class Members:
    owner: int
    peers: tuple[int, ...]
    """Main ports."""
    pids: tuple[int, ...]
    """Process ids, the owner's first."""


@asynccontextmanager
async def members(clients: int, nacos: str | None) -> AsyncIterator[Members]:
    """Three running members. `nacos`: the release of the peers; None: they are reference nodes."""
    ports = sorted(free_base_ports(1 + PEERS))
    owner, *peers = ports

    def node(port: int, *more: str) -> Coroutine[Any, Any, Server]:
        others = [word for other in ports if other != port for word in ("--member", str(other))]
        return Server.start("nodes", str(port), *others, "--profile", f"nacos-{nacos}" if nacos else "strict", *more)

    async with AsyncExitStack() as stack:
        real = await real_servers(nacos, ports, peers) if nacos else []
        for server in real:
            stack.push_async_callback(server.close)
        nodes = await asyncio.gather(*(node(port) for port in peers if not nacos))
        for each in nodes:
            stack.push_async_callback(each.end)
        # A real server needs the answer of the owner to be loaded; the owner is ready before the real servers are.
        started, *_ = await asyncio.gather(node(owner, "--hold", str(clients)), *(server.start() for server in real))
        stack.push_async_callback(started.end)
        pids = [started.pid, *(each.pid for each in nodes), *(each.pid for each in real)]
        yield Members(owner, tuple(peers), tuple(pid for pid in pids if pid is not None))


async def real_servers(release: str, ports: Sequence[int], own: Sequence[int]) -> list[NacosServer]:
    """The servers of the ports `own`, not started; their member list has all `ports`."""
    found = nacos_release(release)
    jars = await jars_of(found, lambda text: print(text, file=sys.stderr))
    addresses = [f"{HOST}:{port}" for port in ports]
    options = [ALL_COMPILERS]
    return [
        NacosServer(found, jars, port=port, members=addresses, jvm_properties={}, jvm_options=options) for port in own
    ]


async def scraped(port: int) -> Samples:
    """The metrics of the node by name, with the values of their labels appended."""
    url = f"http://127.0.0.1:{port}/nacos/actuator/prometheus"
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        families = text_string_to_metric_families(await reply.text())
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            label = "_".join(sample.labels.values())
            found[f"{sample.name} {label}".strip()] = sample.value
    return found


async def measure(clients: int, window_s: float, nacos: str | None) -> dict[str, float]:
    async with members(clients, nacos) as run:
        async with asyncio.timeout(HELD_WITHIN_S):
            await asyncio.gather(*(until_held(port, clients) for port in run.peers))
            await until_synced(run.owner, PEERS * clients)
        before, began_s = await scraped(run.owner), time.monotonic()
        owner, peers = run.pids[:1], run.pids[1:]
        owner_s, peers_s = cpu_s(owner), cpu_s(peers)
        await asyncio.sleep(window_s)
        owner_s, peers_s = cpu_s(owner) - owner_s, cpu_s(peers) - peers_s
        after, seconds = await scraped(run.owner), time.monotonic() - began_s

    def counted(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    verifies = counted("distrocheck_distro_verifies_total")
    return {
        "verifies": verifies,
        "verify_failures": counted("distrocheck_distro_verify_failures_total"),
        "sync_failures": counted("distrocheck_distro_syncs_total failure"),
        "rounds_late": counted("distrocheck_distro_verify_rounds_late_total"),
        "verifies_per_s": round(verifies / seconds, 1),
        "owner_cpu_us_per_verify": round(owner_s / max(1.0, verifies) * 1e6, 1),
        "peers_cpu_us_per_verify": round(peers_s / max(1.0, verifies) * 1e6, 1),
    }


async def until_held(port: int, clients: int) -> None:
    """Wait until the member holds all clients, by a CHANGE or with a snapshot."""
    url = f"http://127.0.0.1:{port}/nacos/v1/ns/operator/metrics?onlyStatus=false"
    async with aiohttp.ClientSession() as session:
        held = 0
        while held < clients:
            async with session.get(url) as reply:
                held = (await reply.json(content_type=None))["clientCount"]
            await asyncio.sleep(1.0)


async def until_synced(owner: int, changes: int) -> None:
    """Wait until that number of syncs has succeeded. A failed sync is repeated until it succeeds, so then none is
    left."""
    synced = 0.0
    while synced < changes:
        synced = (await scraped(owner)).get("distrocheck_distro_syncs_total success", 0.0)
        await asyncio.sleep(1.0)


async def run(numbers: list[int], window_s: float, nacos: str | None) -> dict[str, float]:
    figures: dict[str, float] = {}
    for clients in numbers:
        for name, value in (await measure(clients, window_s, nacos)).items():
            figures[f"{name}_{clients}"] = value
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument(
        "--clients", type=int, nargs="+", help="the numbers of clients; they are measured one after the other"
    )
    parser.add_argument("--nacos", metavar="VERSION", help="the other two members are real servers of this release")
    arguments = parser.parse_args()
    numbers = arguments.clients or list(QUICK_CLIENTS if arguments.quick else CLIENTS)
    figures = asyncio.run(run(numbers, QUICK_WINDOW_S if arguments.quick else WINDOW_S, arguments.nacos))
    cost = "owner_cpu_us_per_verify"
    most, least = figures[f"{cost}_{numbers[-1]}"], figures[f"{cost}_{numbers[0]}"]
    ratios = {"cpu_per_verify_most_to_least": round(most / least, 2) if least else 0.0}
    print(json.dumps({"bench": "strain", "figures": figures, "ratios": ratios}, indent=2))
    failures = sum(value for name, value in figures.items() if "failures" in name)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
