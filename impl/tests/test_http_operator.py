"""The operator's HTTP API, asked over a real socket."""

from __future__ import annotations

import aiohttp
import pytest
from impl_lab import Lab

pytestmark = pytest.mark.wire


async def test_a_node_that_serves_says_up(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{run.cluster.addresses[0]}/nacos/v1/ns/operator/metrics") as reply,
    ):
        assert reply.status == 200
        assert await reply.json() == {"status": "UP"}
