"""What a server of 2.0.x asks a member for while it starts, answered as a running 2.0.4 answers
(docs/protocol #releases-matrix)."""

from __future__ import annotations

import pytest
from http_lab import Web
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, Lab

pytestmark = pytest.mark.wire

DATUMS = "/v1/ns/distro/datums"


async def test_a_node_has_no_data_of_1_x(lab: Lab) -> None:
    node, _ = await lab.node(profile=NACOS_2_0_4)
    async with Web() as web:
        assert (await web.get(node, DATUMS)).json == {}
        assert (await web.ask("PUT", node, "/v1/ns/distro/datum", body=b"{}")).status == 501


async def test_2_2_0_and_later_have_nothing_there(lab: Lab) -> None:
    node, _ = await lab.node(profile=NACOS_2_2_4)
    async with Web() as web:
        assert (await web.get(node, DATUMS)).status == 501
