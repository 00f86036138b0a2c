"""The member that the kit plays, seen from the side of a node that connects to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from distro_conformance.node.http_player import address_owned_by
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.replies import FAILURE, SUCCESS, snapshot_reply
from distro_conformance.targets.ports import CLUSTER_OFFSET, free_base_ports
from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_conformance.wire.messages import DISTRO_REQUEST, distro_request, read_snapshot, sync_data
from distro_protos import Message

pytestmark = pytest.mark.wire


@asynccontextmanager
async def a_peer_and_a_node() -> AsyncIterator[tuple[PlayedPeer, Connection]]:
    """A played member, and the connection that a node would have to it."""
    (port,) = free_base_ports()
    peer = PlayedPeer(port, lambda: 7)
    await peer.start()
    node = await Connection.open(f"127.0.0.1:{port + CLUSTER_OFFSET}", labels=CLUSTER_LABELS)
    try:
        yield peer, node
    finally:
        await node.close()
        await peer.stop()


async def verify(node: Connection, client: str, revision: int = 1) -> Message:
    content = {"clientId": client, "revision": revision}
    return await node.ask(DISTRO_REQUEST, distro_request("VERIFY", client, content=content))


def distro_arrivals(peer: PlayedPeer) -> list[Arrival]:
    return [arrival for arrival in peer.arrivals if arrival.call is not None]


async def test_it_counts_as_connected_once_a_cluster_client_is_set_up() -> None:
    async with a_peer_and_a_node() as (peer, node):
        assert peer.is_connected
        await node.close()
        async with asyncio.timeout(20):
            while peer.is_connected:  # noqa: ASYNC110 - the member reports it to no listener
                await asyncio.sleep(0.01)


async def test_a_member_report_is_answered_with_a_node_since_only_that_keeps_it_up() -> None:
    async with a_peer_and_a_node() as (peer, node):
        reply = await node.ask("MemberReportRequest", {"node": {"address": "127.0.0.1:1"}})

        assert reply.succeeded
        assert reply.body["node"]["address"] == peer.address
        assert reply.body["node"]["extendInfo"]["version"] == "2.2.4"


async def test_it_acknowledges_by_default_and_records_arrivals_with_their_time() -> None:
    async with a_peer_and_a_node() as (peer, node):
        content = sync_data("c", 3, [("web", "10.0.0.1", 80)])
        reply = await node.ask(DISTRO_REQUEST, distro_request("CHANGE", "c", target="x", content=content))

        assert reply.succeeded
        (arrival,) = distro_arrivals(peer)
        assert arrival.at_ms == 7
        assert str(arrival) == "CHANGE of c revision 3 with web, answered with success"


async def test_answers_can_be_given_per_client_and_taken_back() -> None:
    async with a_peer_and_a_node() as (peer, node):
        peer.answer("VERIFY", FAILURE, client="mine")
        answers = [(await verify(node, client)).succeeded for client in ("mine", "other")]
        assert answers == [False, True]
        assert [arrival.answered for arrival in distro_arrivals(peer)] == [False, True]

        peer.answer("VERIFY", lambda call: SUCCESS if call.revision == 2 else FAILURE)
        answers = [(await verify(node, "mine", revision)).succeeded for revision in (1, 2)]
        assert answers == [False, True]

        peer.answer_normally()
        assert (await verify(node, "mine")).succeeded


async def test_its_snapshot_is_empty_until_one_is_set() -> None:
    async with a_peer_and_a_node() as (peer, node):
        assert read_snapshot(await node.ask(DISTRO_REQUEST, distro_request("SNAPSHOT"))) == ()

        peer.answer("SNAPSHOT", snapshot_reply(sync_data("c", 1, [])))
        (replica,) = read_snapshot(await node.ask(DISTRO_REQUEST, distro_request("SNAPSHOT")))
        assert replica.client == "c"


async def test_a_transport_without_a_set_up_is_sent_an_error() -> None:
    async with a_peer_and_a_node() as (peer, node):
        address = f"127.0.0.1:{peer.port + CLUSTER_OFFSET}"
        stranger = Connection.bare(address)
        reply = await stranger.ask("HealthCheckRequest", {})
        await stranger.close()

        assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 301)
        assert (await node.ask("HealthCheckRequest", {})).succeeded


async def test_two_members_at_one_port_are_refused() -> None:
    async with a_peer_and_a_node() as (peer, _):
        with pytest.raises(TargetError, match="the port is in use"):
            await PlayedPeer(peer.port, lambda: 0).start()


async def test_a_start_that_was_broken_off_is_made_again() -> None:
    """The first start left the member listening, and no caller can stop it."""
    peer = PlayedPeer(*free_base_ports(), lambda: 0)
    await peer.start()
    await peer.start()
    await peer.stop()


async def test_its_answers_are_received_although_it_stops_meanwhile() -> None:
    """Else its record has an answer that the node did not receive, and the node asks again."""
    for number in range(0, 20, 3):
        async with a_peer_and_a_node() as (peer, node):
            asked = [asyncio.create_task(verify(node, f"c{each}")) for each in range(40)]
            while len(peer.arrivals) <= number:  # noqa: ASYNC110 - listeners are called within the handler
                await asyncio.sleep(0)
            await peer.stop()
            replies = await asyncio.gather(*asked, return_exceptions=True)
            received = [reply for reply in replies if isinstance(reply, Message) and reply.succeeded]
            assert len(received) == len(distro_arrivals(peer))


async def test_a_restart_waits_until_it_has_stopped() -> None:
    async with a_peer_and_a_node() as (peer, node):
        asked = [asyncio.create_task(verify(node, f"c{each}")) for each in range(40)]
        while not peer.arrivals:  # noqa: ASYNC110 - listeners are called within the handler
            await asyncio.sleep(0)
        await asyncio.gather(peer.stop(), peer.start())
        await asyncio.gather(*asked, return_exceptions=True)
        again = await Connection.open(f"127.0.0.1:{peer.port + CLUSTER_OFFSET}", labels=CLUSTER_LABELS)
        assert (await verify(again, "c1")).succeeded
        await again.close()


async def test_it_says_nothing_before_it_has_dialled() -> None:
    with pytest.raises(TargetError, match="has not dialled"):
        await PlayedPeer(1, lambda: 0).verify("c", 1)


def test_an_arrival_that_is_no_distro_request_is_about_nothing() -> None:
    assert not Arrival(0, "MemberReportRequest").is_about("VERIFY")


async def test_it_checks_its_connection_when_it_has_said_nothing_for_five_seconds() -> None:
    def checks(node: PlayedPeer) -> int:
        """Beyond those with which a connection is opened."""
        kinds = [arrival.type for arrival in node.arrivals]
        return kinds[kinds.index(DISTRO_REQUEST) :].count("HealthCheckRequest")

    async with a_peer_and_a_node() as (node, _):
        now_ms = 0
        (port,) = free_base_ports()
        peer = PlayedPeer(port, lambda: now_ms)
        await peer.dial(node.address)
        try:
            await peer.verify("c", 1)
            now_ms = 4_999
            await peer.keep_alive()
            assert checks(node) == 0
            now_ms = 5_000
            await peer.keep_alive()
            await peer.keep_alive()
            assert checks(node) == 1
        finally:
            await peer.disconnect_from_node()


async def test_an_old_member_reports_itself_when_it_joins() -> None:
    async with a_peer_and_a_node() as (node, _):
        for version in ("2.2.0", "2.2.1"):
            (port,) = free_base_ports()
            peer = PlayedPeer(port, lambda: 0, version=version)
            await peer.join(node.address)
            await peer.disconnect_from_node()
        assert [report["extendInfo"]["version"] for report in node.http.reports] == ["2.2.0"]


def test_an_address_is_chosen_by_the_member_that_owns_it() -> None:
    members = ("127.0.0.1:8848", "127.0.0.1:9848")
    chosen = {owner: [address_owned_by(owner, members, number) for number in range(20)] for owner in members}
    # By docs/protocol #owner-place: 10.1.0.0:80 falls to place 0 of two, 10.1.0.1:80 to place 1.
    assert [chosen[owner][0] for owner in members] == [("10.1.0.0", 80), ("10.1.0.1", 80)]
    assert set(chosen[members[0]]).isdisjoint(chosen[members[1]])
    assert all(len(set(addresses)) == len(addresses) for addresses in chosen.values())


def test_the_clients_of_a_whole_run_have_different_addresses() -> None:
    """Two requirements with one client would remove each other's instances."""
    members = ("127.0.0.1:8848", "127.0.0.1:9848")
    chosen = [address_owned_by(members[0], members, number) for number in range(1_000)]
    assert len(set(chosen)) == len(chosen)
