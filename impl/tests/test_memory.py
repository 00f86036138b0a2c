"""Memory that a node does not use: libraries that only some nodes need, and the written content of a client."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from impl_lab import Lab

PORT_OF_THIS_TEST = 48_731
OF_SOME_NODES = ("jwt", "cryptography", "javaproperties")
STARTED = f"""
import asyncio, sys
from distro_impl import Cluster

async def start():
    async with Cluster(1, standalone=True):
        print([name for name in {OF_SOME_NODES!r} if name in sys.modules])

asyncio.run(start())
"""


@pytest.mark.wire
def test_a_node_without_configuration_imports_nothing_for_users_and_files() -> None:
    done = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.wire
async def test_a_sync_that_is_not_answered_yet_holds_no_instances_beside_those_of_its_client(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", PORT_OF_THIS_TEST)
    run.events.clear()  # each shows all of its client
    run.link(0, 1).unanswered.add("CHANGE")
    await run.clock.advance(1_100)
    assert run.links.operations(client.id) == ["CHANGE"]
    gc.collect()
    of_this_test = f":{PORT_OF_THIS_TEST}:"  # other tests of the process may keep instances of their own
    held = [each for each in gc.get_objects() if isinstance(each, dict) and of_this_test in str(each.get("metadataId"))]
    assert held == []
