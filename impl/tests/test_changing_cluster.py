"""Members that come and go: the targets of loads, syncs and verifies after the list has changed (4.1, 4.2 and 6.3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from impl_lab import NACOS_2_2_4, STRICT, Lab, RawClient, Run

from distro_impl import Cluster, Node, Profile, VirtualClock, free_main_ports

pytestmark = pytest.mark.wire

ALL = range(5)


async def ports_at(lab: Lab, node: Node) -> list[int]:
    """The list of the service `orders` that a node shows to a new client."""
    return await (await lab.naming(node)).ports("orders")


async def client_of(lab: Lab, run: Run, node: int) -> RawClient:
    """A client at that node with an instance of `orders`, whose port is the node's number."""
    client = await lab.naming(run.cluster.nodes[node])
    await client.register("orders", 8000 + node)
    return client


@pytest.mark.parametrize("profile", [STRICT, NACOS_2_2_4], ids=lambda profile: profile.name)
async def test_five_members_become_three_and_five_again(lab: Lab, profile: Profile) -> None:
    run = await lab.cluster(profile, size=5)
    clients = [await client_of(lab, run, node) for node in ALL]
    await run.clock.advance(2_000)
    for node in run.cluster.nodes:
        assert await ports_at(lab, node) == [8000, 8001, 8002, 8003, 8004]

    # Nodes 3 and 4 leave with their clients; the three others get a list of three.
    for gone in (3, 4):
        await clients[gone].close()
        await run.cluster.nodes[gone].stop()
    run.cluster.change_members(run.cluster.addresses[:3])
    left_ms = run.clock.now_ms()
    await clients[0].register("orders", 8100)
    await run.clock.advance(200_000)
    assert {sent.peer for sent in run.links.sent if sent.at_ms > left_ms} <= set(run.cluster.addresses[:3])
    for node in run.cluster.nodes[:3]:
        assert await ports_at(lab, node) == [8001, 8002, 8100]

    # They come back, empty; all nodes get a list of five.
    run.cluster.change_members(run.cluster.addresses)
    for back in (3, 4):
        await run.cluster.restart(back)
    await run.clock.settle()
    assert await ports_at(lab, run.cluster.nodes[4]) == [8001, 8002, 8100]  # loaded, before anything was synced
    clients[3] = await client_of(lab, run, 3)
    await run.clock.advance(8_000)
    for node in run.cluster.nodes:
        assert await ports_at(lab, node) == [8001, 8002, 8003, 8100]
    verified = {(sent.sender, sent.peer) for sent in run.links.sent if sent.operation == "VERIFY"}
    assert (run.cluster.addresses[0], run.cluster.addresses[4]) in verified


async def test_requests_waiting_for_a_member_that_left_end_silently(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    run.link(0, 2).unanswered = {"CHANGE"}
    client = await client_of(lab, run, 0)
    await run.clock.advance(4_500)  # sent at 1 s, given up at 4 s, to be tried again at 7 s
    run.cluster.nodes[0].change_members(run.cluster.addresses[:2])
    await run.clock.advance(60_600)
    run.cluster.nodes[0].change_members(run.cluster.addresses)
    await run.clock.advance(3_500)  # a retry that was alive would come round now, the next verify later
    assert run.links.operations(client.id, peer=run.cluster.addresses[2]) == ["CHANGE"]


async def test_a_member_that_joins_is_verified_and_reported_to_at_once(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    alone, other, joins = run.cluster.addresses
    run.cluster.nodes[0].change_members([alone, other])
    client = await client_of(lab, run, 0)
    await run.clock.advance(10_000)
    assert joins not in {sent.peer for sent in run.links.sent if sent.client == client.id}
    run.cluster.nodes[0].change_members(run.cluster.addresses)
    await run.clock.advance(5_100)  # one verify round: it fails there, and the client is sent
    assert run.links.operations(client.id, sender=alone, peer=joins) == ["VERIFY", "CHANGE"]
    assert await ports_at(lab, run.cluster.nodes[2]) == [8000]


async def test_a_cluster_client_ends_with_the_membership_and_begins_again_with_it(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    own, peer = run.cluster.addresses
    assert run.links.set_ups.count((own, peer)) == 1
    run.cluster.nodes[0].change_members([own])
    await run.clock.settle()
    await run.clock.advance(20_000)
    assert run.links.set_ups.count((own, peer)) == 1
    run.cluster.nodes[0].change_members([own, peer])
    await run.clock.advance(10_000)
    assert run.links.set_ups.count((own, peer)) == 2


async def test_the_first_member_of_a_cluster_loads_when_it_gets_company(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    first, second = run.cluster.addresses
    await run.cluster.crash(0)
    run.cluster.nodes[1].change_members([second])
    run.cluster.change_members([first])
    await run.cluster.restart(0)
    await client_of(lab, run, 1)
    await run.clock.advance(10_000)
    assert await ports_at(lab, run.cluster.nodes[0]) == []
    run.cluster.nodes[0].change_members([first, second])
    await run.clock.advance(1_000)
    assert await ports_at(lab, run.cluster.nodes[0]) == [8001]


async def test_a_strict_member_without_others_sends_its_clients_to_the_first_that_joins(lab: Lab) -> None:
    run = await lab.cluster(STRICT, size=2)
    members = run.cluster.addresses
    await run.cluster.crash(0)
    await run.cluster.crash(1)
    run.cluster.change_members(members[:1])
    await run.cluster.restart(0)
    await client_of(lab, run, 0)
    run.cluster.change_members(members)
    await run.cluster.restart(1)
    await run.clock.settle()
    assert await ports_at(lab, run.cluster.nodes[1]) == [8000]


async def test_a_node_follows_the_file_with_its_members(lab: Lab, tmp_path: Path) -> None:
    path, clock = tmp_path / "cluster.conf", VirtualClock()
    ports = free_main_ports(3)
    a, b, c = (f"127.0.0.1:{port}" for port in ports)
    path.write_text(f"{a}\n{b}\n")
    async with Cluster(2, ports=ports[:2], member_list_file=path, clock=clock) as cluster:
        client = await lab.naming(cluster.nodes[0])
        await client.register("orders", 8000)
        await clock.advance(2_000)
        path.write_text(f"# one more\n{a}\n{b}\n{c}\n")
        async with Cluster(1, ports=ports[2:], member_list_file=path, clock=clock) as joining:
            await clock.advance(11_000)  # the file is read every 5 s, then verified within 5 s
            assert await ports_at(lab, joining.nodes[0]) == [8000]
            await client.register("orders", 8001)
            await clock.advance(2_000)
            assert await ports_at(lab, joining.nodes[0]) == [8001]


async def test_a_node_serves_at_once_while_its_peers_are_down(lab: Lab) -> None:
    own, *down = free_main_ports(3)
    clock = VirtualClock()
    start_ms = clock.now_ms()
    async with Cluster(1, ports=[own], further_members=[f"127.0.0.1:{port}" for port in down], clock=clock) as cluster:
        client = await lab.naming(cluster.nodes[0])
        await client.register("orders", 8000)
        assert await client.ports("orders") == [8000]
        assert clock.now_ms() == start_ms
        await clock.advance(20_000)  # reports fail over gRPC, where nothing is DOWN before the fourth time
        members = cluster.nodes[0].members
        assert members.healthy_addresses() == (cluster.addresses[0],)
