"""What verifying costs a node that owns many clients: three nodes, each in a process of its own, one owns them all.

    python bench/strain.py --json [--quick | --clients N …]

The clients have no connections of their own (`bench/node.py` measures those); everything between the nodes is real. A
window begins when the other two nodes hold every client. In it nothing may fail: where there are more clients than can
be verified in a period, rounds are late instead, and are counted as such.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

import aiohttp
from node import Server
from prometheus_client.parser import text_string_to_metric_families

from distro_impl import free_main_ports

CLIENTS, QUICK_CLIENTS = (500, 5_000, 20_000), (200, 1_000)
WINDOW_S, QUICK_WINDOW_S = 30.0, 11.0
HELD_WITHIN_S = 600.0
PEERS = 2

Samples = dict[str, float]


async def scraped(port: int) -> Samples:
    """Totals, whatever their labels."""
    url = f"http://127.0.0.1:{port}/nacos/actuator/prometheus"
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        families = text_string_to_metric_families(await reply.text())
    found: Samples = {}
    for family in families:
        for sample in family.samples:
            label = "_".join(sample.labels.values())
            found[f"{sample.name} {label}".strip()] = sample.value
    return found


def cpu_s(pid: int) -> float:
    """That a process has spent so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(clients: int, window_s: float) -> dict[str, float]:
    owner, *peers = free_main_ports(1 + PEERS)
    servers = []
    try:
        for port in (*peers, owner):
            members = [word for other in (owner, *peers) if other != port for word in ("--member", str(other))]
            held = ["--hold", str(clients)] if port == owner else []
            servers.append(await Server.start("nodes", str(port), *members, *held))
        await asyncio.gather(*(until_held(port, clients) for port in peers))
        before, began_s = await scraped(owner), time.monotonic()
        spent_s = [cpu_s(server.pid) for server in servers]
        await asyncio.sleep(window_s)
        spent_s = [cpu_s(server.pid) - spent for server, spent in zip(servers, spent_s, strict=True)]
        after, seconds = await scraped(owner), time.monotonic() - began_s
    finally:
        for server in servers:
            await server.end()

    def counted(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    verifies = counted("distrocheck_distro_verifies_total")
    return {
        "verifies": verifies,
        "verify_failures": counted("distrocheck_distro_verify_failures_total"),
        "sync_failures": counted("distrocheck_distro_syncs_total failure"),
        "rounds_late": counted("distrocheck_distro_verify_rounds_late_total"),
        "verifies_per_s": round(verifies / seconds, 1),
        "owner_cpu_us_per_verify": round(spent_s[-1] / max(1.0, verifies) * 1e6, 1),
    }


async def until_held(port: int, clients: int) -> None:
    """However they came there: as a CHANGE, or with a snapshot. Raises TimeoutError."""
    async with asyncio.timeout(HELD_WITHIN_S):
        while (await scraped(port)).get("nacos_monitor naming_ipCount", 0) < clients:  # noqa: ASYNC110
            await asyncio.sleep(1.0)


async def run(numbers: list[int], window_s: float) -> dict[str, float]:
    figures: dict[str, float] = {}
    for clients in numbers:
        for name, value in (await measure(clients, window_s)).items():
            figures[f"{name}_{clients}"] = value
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--clients", type=int, nargs="+", help="how many; several are measured one after the other")
    arguments = parser.parse_args()
    numbers = arguments.clients or list(QUICK_CLIENTS if arguments.quick else CLIENTS)
    figures = asyncio.run(run(numbers, QUICK_WINDOW_S if arguments.quick else WINDOW_S))
    cost = "owner_cpu_us_per_verify"
    most, least = figures[f"{cost}_{numbers[-1]}"], figures[f"{cost}_{numbers[0]}"]
    ratios = {"cpu_per_verify_most_to_least": round(most / least, 2) if least else 0.0}
    print(json.dumps({"bench": "strain", "figures": figures, "ratios": ratios}, indent=2))
    failures = sum(value for name, value in figures.items() if "failures" in name)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
