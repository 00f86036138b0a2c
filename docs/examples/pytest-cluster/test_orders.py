"""The application against a cluster without Java: `distro_cluster` comes with distrocheck, nothing is configured.

In an async test what the fixture does is awaited, elsewhere it is done when the method returns.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from orders import Orders


async def see(orders: Orders, wanted: list[str], within_s: float = 10.0) -> None:
    async with asyncio.timeout(within_s):
        while await orders.found() != wanted:  # noqa: ASYNC110 - the SDK is asked
            await asyncio.sleep(0.1)


def test_what_is_published_at_one_member_is_found_at_another(distro_cluster, tmp_path: Path) -> None:
    first, second, _ = distro_cluster.addresses

    async def run() -> None:
        async with Orders(first, tmp_path / "first") as publisher, Orders(second, tmp_path / "second") as reader:
            await publisher.publish("10.0.0.1", 8080)
            await see(reader, ["10.0.0.1:8080"])

    asyncio.run(run())


def test_while_a_link_is_cut_the_member_behind_it_is_late_and_then_it_is_not(distro_cluster, tmp_path: Path) -> None:
    first, second, _ = distro_cluster.addresses

    async def run() -> None:
        async with Orders(first, tmp_path / "first") as publisher, Orders(second, tmp_path / "second") as cut_off:
            await distro_cluster.cut("a", "b")
            await publisher.publish("10.0.0.1", 8080)
            await distro_cluster.do("expect within 5s: query orders at c shows 10.0.0.1:8080")
            assert await cut_off.found() == []
            await distro_cluster.heal("a", "b")
            await see(cut_off, ["10.0.0.1:8080"], within_s=20)

    asyncio.run(run())


@pytest.mark.distro(time="virtual")
def test_in_virtual_time_ten_minutes_cost_nothing(distro_cluster) -> None:
    distro_cluster.do("connect c1 a")
    distro_cluster.do("register c1 orders 10.0.0.1:8080")
    distro_cluster.crash("b")
    distro_cluster.advance("10m")
    distro_cluster.restart("b")
    distro_cluster.do("expect within 5s: query orders at b shows 10.0.0.1:8080")
