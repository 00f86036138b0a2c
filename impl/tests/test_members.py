"""Member reports in both directions and their effect on a member's state (docs/protocol #member-report)."""

from __future__ import annotations

from typing import Any, cast

import grpc
import pytest
from impl_lab import NACOS_2_2_4, STRICT, Lab

from distro_impl import PROFILES, NodeConfig, SystemClock
from distro_impl.core import Core
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.member import MemberState
from distro_impl.membership.members import MembersChanged, ServerMemberManager
from distro_impl.membership.report import MemberReportTask
from distro_impl.remote.http_client import HttpClient
from distro_impl.remote.payloads import Node
from distro_impl.remote.peer_connection import CallFailedError, PeerUnreachableError
from distro_protos import Message, Payload

A, B, C, D = "127.0.0.1:8848", "127.0.0.1:8858", "127.0.0.1:8868", "127.0.0.1:8878"
OK = Message("MemberReportResponse", {"resultCode": 200, "node": {"grpcReportEnabled": True}})


class Peers:
    """Stands for the cluster clients: counts the requests to each peer, and ends each as the test sets."""

    def __init__(self, outcome: Message | Exception) -> None:
        self.outcome = outcome
        self.asked: list[str] = []

    async def request(self, member: str, *_: Any) -> Message:
        self.asked.append(member)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Reporting:
    """The members of A, its reports, and the changes that it announces."""

    def __init__(self, outcome: Message | Exception, *others: str) -> None:
        core = Core.of(NodeConfig(port=8848, members=(A, *others), profile=STRICT), SystemClock())
        self.announced: list[MembersChanged] = []
        core.notify_center.subscribe(MembersChanged, self.announced.append)
        self.members = ServerMemberManager(core, others)
        self.peers = Peers(outcome)
        self._task = MemberReportTask(core, self.members, cast("ClusterRpcClientProxy", self.peers), HttpClient())

    async def report(self) -> None:
        await self._task.report_to_next()

    def state(self, member: str) -> MemberState:
        return self.members.others[member].state


async def test_reports_go_to_the_other_members_in_turn() -> None:
    a = Reporting(OK, B, C)
    for _ in range(4):
        await a.report()
    assert a.peers.asked == [B, C, B, C]


async def test_the_fourth_failure_in_a_row_makes_a_member_down() -> None:
    a = Reporting(PeerUnreachableError("connection refused"), B)
    states = []
    for _ in range(4):
        await a.report()
        states.append(a.state(B))
    assert states == [MemberState.SUSPICIOUS] * 3 + [MemberState.DOWN]
    assert not a.members.is_up(B)
    a.peers.outcome = OK
    await a.report()
    assert (a.state(B), a.members.others[B].fail_access_count) == (MemberState.UP, 0)


async def test_each_change_of_state_is_announced_with_the_members_that_count_as_healthy() -> None:
    a = Reporting(PeerUnreachableError("connection refused"), B, C)
    for _ in range(8):
        await a.report()
    assert [event.healthy for event in a.announced] == [(A, B, C), (A, B, C), (A, C), (A,)]
    assert tuple(member.address for member in a.members.all_members()) == (A, B, C)
    assert a.members.healthy_addresses() == (A,)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (OK, MemberState.UP),
        (Message("MemberReportResponse", {"resultCode": 500}), MemberState.SUSPICIOUS),
        (PeerUnreachableError("refused"), MemberState.SUSPICIOUS),
        (CallFailedError("INTERNAL"), MemberState.UP),
        (TimeoutError(), MemberState.UP),
        (Message("ErrorResponse", {"resultCode": 500, "errorCode": 301}), MemberState.UP),
        (Message("MemberReportResponse", {"resultCode": 200}), MemberState.UP),
    ],
    ids=["success", "typed failure", "unreachable", "failed call", "time-out", "ErrorResponse", "success without node"],
)
async def test_the_outcome_of_a_report_sets_the_state_of_a_member_that_was_up(
    outcome: Message | Exception, state: MemberState
) -> None:
    a = Reporting(outcome, B)
    await a.report()
    assert a.state(B) is state


async def test_neither_a_time_out_nor_an_answer_without_node_brings_a_member_back() -> None:
    a = Reporting(PeerUnreachableError("refused"), B)
    await a.report()
    for outcome in (TimeoutError(), Message("MemberReportResponse", {"resultCode": 200})):
        a.peers.outcome = outcome
        await a.report()
        assert a.state(B) is MemberState.SUSPICIOUS


async def test_a_report_from_a_listed_member_brings_it_back() -> None:
    a = Reporting(PeerUnreachableError("refused"), B)
    await a.report()
    a.members.receive_report(Node(address=C))  # not in the list: nothing happens
    assert not a.members.is_up(B)
    a.members.receive_report(Node(address=B, extend_info={"version": "2.2.4"}))
    assert a.members.is_up(B)
    assert a.members.others[B].extend_info == {"version": "2.2.4"}


def test_a_new_list_is_announced_once_and_keeps_the_state_of_members_that_stay() -> None:
    a = Reporting(OK, B, C)
    a.members.report_failed(a.members.others[C])
    a.announced.clear()
    assert a.members.change_list([C, D, A])
    assert a.announced == [MembersChanged((A, C))]
    assert tuple(member.address for member in a.members.all_members()) == (A, C, D)
    assert (a.state(C), a.state(D)) == (MemberState.SUSPICIOUS, MemberState.DOWN)
    assert not a.members.change_list([D, C, A])
    assert len(a.announced) == 1


def test_a_new_member_of_the_list_is_down_until_it_reports_and_up_at_once_in_a_release() -> None:
    for profile, state in ((STRICT, MemberState.DOWN), (PROFILES["nacos-2.2.4"], MemberState.UP)):
        config = NodeConfig(port=8848, members=(A, B), profile=profile)
        members = ServerMemberManager(Core.of(config, SystemClock()), config.other_members)
        members.change_list([A, B, C])
        assert (members.others[B].state, members.others[C].state) == (MemberState.UP, state)
        members.report_failed(members.others[C])
        assert members.others[C].state is (MemberState.DOWN if profile is STRICT else MemberState.SUSPICIOUS)
        members.receive_report(Node(address=C))
        assert members.is_up(C)


def test_a_node_stays_a_member_by_a_list_without_it() -> None:
    a = Reporting(OK, B)
    a.members.change_list([B, C])
    assert a.members.healthy_addresses() == (A, B)
    a.members.receive_report(Node(address=C))
    assert a.members.healthy_addresses() == (A, B, C)


def test_releases_take_an_address_for_a_member_that_is_part_of_another_one() -> None:
    whole, part = "110.0.0.1:8848", "10.0.0.1:8848"
    found = {}
    for name in ("nacos-2.2.4", "strict"):
        config = NodeConfig(port=8848, members=(A, whole), profile=PROFILES[name])
        members = ServerMemberManager(Core.of(config, SystemClock()), config.other_members)
        assert members.has_member(whole)
        assert members.has_member(A)
        assert not members.has_member(B)
        found[name] = members.has_member(part)
    assert found == {"nacos-2.2.4": True, "strict": False}


@pytest.mark.wire
async def test_a_report_is_answered_with_our_own_member(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    peer = await lab.member(run.cluster.nodes[0])
    node = {"ip": "127.0.0.1", "port": 1, "address": run.cluster.addresses[1], "extendInfo": {}, "state": "UP"}
    reply = await peer.ask("MemberReportRequest", {"node": node})
    assert reply.succeeded
    answer = reply.body["node"]
    assert answer["address"] == run.cluster.addresses[0]
    assert answer["extendInfo"]["readyToUpgrade"] is True
    assert answer["abilities"]["remoteAbility"] == {"supportRemoteConnection": True, "grpcReportEnabled": True}


@pytest.mark.wire
async def test_a_report_without_address_is_refused_before_3_0(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    peer = await lab.member(run.cluster.nodes[0])
    reply = await peer.ask("MemberReportRequest", {"node": {"ip": "10.0.0.2", "port": 8848}})
    assert (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == ("MemberReportResponse", 500, 400)


@pytest.mark.wire
@pytest.mark.parametrize(
    ("code", "state"),
    [
        (grpc.StatusCode.UNAVAILABLE, MemberState.SUSPICIOUS),  # the connection is gone
        (grpc.StatusCode.INTERNAL, MemberState.UP),
        (grpc.StatusCode.UNKNOWN, MemberState.UP),
        (grpc.StatusCode.CANCELLED, MemberState.UP),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, MemberState.UP),
    ],
    ids=lambda value: value.name if isinstance(value, grpc.StatusCode) else "",
)
async def test_a_call_that_fails_on_a_connection_that_stands_changes_no_state(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, code: grpc.StatusCode, state: MemberState
) -> None:
    run = await lab.cluster(size=2)
    node, other = run.cluster.nodes[0], run.cluster.addresses[1]
    await run.clock.advance(10_000)

    async def fails(*_: object) -> Payload:
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "broken")

    with monkeypatch.context() as broken:
        broken.setattr(run.link(0, 1), "carry", fails)
        await node.parts.membership.reports.report_to_next()
        assert node.members.others[other].state is state
