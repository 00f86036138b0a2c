"""Reports over HTTP, as the releases up to 2.2.0 send them, and when newer ones fall back on them
(docs/protocol #member-report)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp import ClientSession, web
from impl_lab import Lab

from distro_impl import PROFILES, NodeConfig, Profile, VirtualClock, free_main_ports
from distro_impl.core import Core
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.member import Member, MemberState
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import REPORT_PATH, MemberReportTask
from distro_impl.remote.http_client import HttpClient
from distro_impl.remote.payloads import Abilities, Node
from distro_impl.remote.peer_connection import PeerUnreachableError
from distro_protos import Json, Message

pytestmark = pytest.mark.wire

NACOS_2_0_4, NACOS_2_2_0 = PROFILES["nacos-2.0.4"], PROFILES["nacos-2.2.0"]
NACOS_2_2_4, NACOS_2_3_2 = PROFILES["nacos-2.2.4"], PROFILES["nacos-2.3.2"]
A = "127.0.0.1:8848"
NO_HANDLER = Message("ErrorResponse", {"resultCode": 500, "errorCode": 302})
ABLE: Json = {"supportRemoteConnection": True, "grpcReportEnabled": True}


class Peer:
    """A member that listens on HTTP; its calls over gRPC end as the test sets."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.status, self.answer = 200, json.dumps({"code": 200, "message": None, "data": "true"})
        self.reports: list[Json] = []
        self.versions: list[str | None] = []
        self.over_grpc: Message | Exception = NO_HANDLER
        self.asked_over_grpc = 0

    async def request(self, *_: Any) -> Message:
        self.asked_over_grpc += 1
        if isinstance(self.over_grpc, Exception):
            raise self.over_grpc
        return self.over_grpc

    async def report(self, request: web.Request) -> web.Response:
        self.versions.append(request.headers.get("Nacos-Server"))
        self.reports.append(await request.json())
        return web.Response(status=self.status, text=self.answer, content_type="application/json")


class Reporting:
    """The node A of some release, and its reports to one peer."""

    def __init__(self, profile: Profile, peer: Peer, http: HttpClient) -> None:
        config = NodeConfig(port=8848, members=(A, peer.address), profile=profile)
        self._clock = VirtualClock()
        core = Core.of(config, self._clock)
        self.members = ServerMemberManager(core, [peer.address])
        self._task = MemberReportTask(core, self.members, cast("ClusterRpcClientProxy", peer), http)
        self._peer = peer

    @property
    def peer(self) -> Member:
        return self.members.others[self._peer.address]

    async def report(self) -> MemberState:
        await self._task.report_to_next()
        return self.peer.state

    async def report_to_those_not_up(self) -> None:
        self._task.report_to_those_not_up()
        await self._clock.settle()


@asynccontextmanager
async def reporting(profile: Profile) -> AsyncIterator[tuple[Reporting, Peer]]:
    (port,) = free_main_ports(1)
    peer, http, app = Peer(f"127.0.0.1:{port}"), HttpClient(), web.Application()
    app.router.add_post(REPORT_PATH, peer.report)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield Reporting(profile, peer, http), peer
    finally:
        await http.close()
        await runner.cleanup()


async def test_a_report_is_our_member_as_json_with_our_release_in_a_header() -> None:
    async with reporting(NACOS_2_0_4) as (a, peer):
        assert await a.report() is MemberState.UP
    (report,) = peer.reports
    assert (report["ip"], report["port"], report["address"], report["state"]) == ("127.0.0.1", 8848, A, "UP")
    assert (report["extendInfo"]["version"], report["extendInfo"]["readyToUpgrade"]) == ("2.0.4", True)
    assert report["abilities"]["remoteAbility"]["supportRemoteConnection"] is True
    assert peer.versions == ["2.0.4"]
    assert peer.asked_over_grpc == 0


async def test_the_member_in_an_answer_is_taken_over() -> None:
    async with reporting(NACOS_2_2_0) as (a, peer):
        own = {"address": peer.address, "extendInfo": {"version": "2.2.0"}, "abilities": {"remoteAbility": ABLE}}
        peer.answer = json.dumps({"code": 200, "data": json.dumps(own)})
        assert a.members.connectable_addresses() == ()
        await a.report()
        assert a.peer.extend_info == {"version": "2.2.0"}
        assert a.members.connectable_addresses() == (peer.address,)


@pytest.mark.parametrize(
    ("status", "answer"),
    [(500, ""), (200, "no JSON"), (200, '{"code": 500}'), (200, "[]"), (403, '{"code": 200}')],
)
async def test_any_other_answer_is_a_failure(status: int, answer: str) -> None:
    async with reporting(NACOS_2_0_4) as (a, peer):
        peer.status, peer.answer = status, answer
        assert await a.report() is MemberState.SUSPICIOUS
        peer.status, peer.answer = 200, '{"code": 200, "data": "true"}'
        assert await a.report() is MemberState.UP


async def test_a_refused_connection_makes_a_member_down_at_once() -> None:
    async with reporting(NACOS_2_0_4) as (a, _):
        pass  # the port is closed again
    assert await a.report() is MemberState.DOWN


@pytest.mark.parametrize(("status", "answer"), [(404, ""), (501, ""), (200, '{"code": 501}')])
async def test_a_member_of_an_old_version_keeps_its_state_and_loses_its_cluster_client(
    status: int, answer: str
) -> None:
    async with reporting(NACOS_2_0_4) as (a, peer):
        a.members.receive_report(Node(address=peer.address, abilities=Abilities(remote_ability=ABLE)))
        assert a.members.connectable_addresses() == (peer.address,)
        peer.status, peer.answer = status, answer
        assert await a.report() is MemberState.UP
        assert a.members.connectable_addresses() == ()


async def test_a_member_without_handler_for_reports_is_reported_to_over_http() -> None:
    async with reporting(NACOS_2_2_4) as (a, peer):
        await a.report()
        assert (peer.asked_over_grpc, len(peer.reports)) == (1, 0)
        await a.report()
        await a.report()
        assert (peer.asked_over_grpc, len(peer.reports)) == (1, 2)


async def test_from_2_3_0_on_a_failure_over_http_leads_back_to_grpc() -> None:
    async with reporting(NACOS_2_3_2) as (a, peer):
        await a.report()
        await a.report()
        assert (peer.asked_over_grpc, len(peer.reports)) == (1, 1)
        peer.status = 500
        await a.report()
        await a.report()
        assert (peer.asked_over_grpc, len(peer.reports)) == (2, 2)


@pytest.mark.parametrize(
    ("profile", "own_flag", "ability", "over_grpc"),
    [
        (NACOS_2_2_4, True, False, False),
        (NACOS_2_2_4, False, True, True),
        (NACOS_2_3_2, True, False, True),
        (NACOS_2_3_2, False, True, True),
        (NACOS_2_3_2, False, False, False),
        (NACOS_2_2_0, True, True, False),
    ],
)
async def test_the_description_of_a_member_decides_the_transport_of_reports_to_it(
    profile: Profile, own_flag: bool, ability: bool, over_grpc: bool
) -> None:
    async with reporting(profile) as (a, peer):
        remote = {"supportRemoteConnection": True, "grpcReportEnabled": ability}
        peer.over_grpc = PeerUnreachableError("closed")
        a.members.receive_report(
            Node(address=peer.address, abilities=Abilities(remote_ability=remote), grpc_report_enabled=own_flag)
        )
        await a.report()
        assert (peer.asked_over_grpc, len(peer.reports)) == ((1, 0) if over_grpc else (0, 1))


async def test_only_those_that_are_not_up_are_reported_to_in_the_second_task() -> None:
    async with reporting(NACOS_2_3_2) as (a, peer):
        await a.report_to_those_not_up()
        assert peer.asked_over_grpc == 0
        a.members.report_failed(a.peer)
        await a.report_to_those_not_up()
        assert peer.asked_over_grpc == 1


@pytest.mark.parametrize(("profile", "has_member"), [(NACOS_2_0_4, False), (NACOS_2_2_0, True)])
async def test_our_answer_to_a_report(lab: Lab, profile: Profile, has_member: bool) -> None:
    run = await lab.cluster(profile, size=2)
    own, other = run.cluster.addresses
    async with ClientSession() as session:
        url = f"http://{own}{REPORT_PATH}"
        async with session.post(url, json={"ip": "127.0.0.1", "address": other, "extendInfo": {}}) as answer:
            body = await answer.json()
        assert (answer.status, body["code"]) == (200, 200)
        data = json.loads(body["data"])
        assert data["address"] == own if has_member else data is True
        for nonsense in ("{", "[]", '{"ip": "10.0.0.1"}', '{"address": {}}'):
            async with session.post(url, data=nonsense) as answer:
                assert (await answer.json())["code"] == 400


async def test_members_of_2_0_4_meet_over_http_and_load_a_minute_later(lab: Lab) -> None:
    """The first load finds no cluster client yet (B32), and SDKs are refused until all members are known to be 2.x."""
    run = await lab.cluster(NACOS_2_0_4, strangers=True)
    client = await lab.naming(run.cluster.nodes[0])
    observer = await lab.naming(run.cluster.nodes[2])
    await run.clock.advance(4_900)
    for refusal in (await client.register("orders", 8000), await observer.subscribe("orders")):
        assert (refusal.body["resultCode"], refusal.body["errorCode"]) == (500, 500)
        assert "running with 1.X mode" in refusal.body["message"]
    await run.clock.advance(200)  # at 5 s both others report to the first node, to the last one only at 7 s
    assert (await client.register("orders", 8000)).succeeded
    assert not (await observer.subscribe("orders")).succeeded
    await run.clock.advance(2_000)
    assert (await observer.subscribe("orders")).succeeded
    await run.clock.advance(5_100)
    assert set(run.links.set_ups) == {(run.cluster.addresses[0], peer) for peer in run.cluster.addresses[1:]}
    assert await observer.ports("orders") == [8000]
    assert "SNAPSHOT" not in {sent.operation for sent in run.links.sent}
    await run.clock.advance(48_000)
    assert "SNAPSHOT" in {sent.operation for sent in run.links.sent}
