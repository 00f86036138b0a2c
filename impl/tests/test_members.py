"""Member reports in both directions and what they make of a member's state (wire-protocol.md section 4.3)."""

from __future__ import annotations

from typing import Any

import pytest
from impl_lab import Lab

from distro_impl import PROFILES, NodeConfig
from distro_impl.membership.members import MemberState, ServerMemberManager
from distro_impl.remote.cluster_client import PeerUnreachableError
from distro_protos import Message

A, B, C = "127.0.0.1:8848", "127.0.0.1:8858", "127.0.0.1:8868"
OK = Message("MemberReportResponse", {"resultCode": 200, "node": {}})


class Peer:
    """Stands for the cluster client of one peer: counts requests, and ends each with what it was told to."""

    def __init__(self, outcome: Message | Exception) -> None:
        self.outcome, self.requests = outcome, 0

    async def request(self, *_: Any) -> Message:
        self.requests += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def members_with(b: Peer, c: Peer | None = None) -> ServerMemberManager:
    peers: dict[str, Any] = {B: b, C: c} if c else {B: b}
    config = NodeConfig(port=8848, members=(A, *peers), profile=PROFILES["strict"])
    return ServerMemberManager(config, peers)


async def test_reports_go_to_the_other_members_in_turn() -> None:
    b, c = Peer(OK), Peer(OK)
    members = members_with(b, c)
    for expected in ((1, 0), (1, 1), (2, 1), (2, 2)):
        await members.report_to_next()
        assert (b.requests, c.requests) == expected


async def test_the_fourth_failure_in_a_row_makes_a_member_down() -> None:
    b = Peer(PeerUnreachableError("connection refused"))
    members = members_with(b)
    states = []
    for _ in range(4):
        await members.report_to_next()
        states.append(members.others[B].state)
    assert states == [MemberState.SUSPICIOUS] * 3 + [MemberState.DOWN]
    assert not members.is_up(B)
    b.outcome = OK
    await members.report_to_next()
    assert (members.others[B].state, members.others[B].fail_access_count) == (MemberState.UP, 0)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (OK, MemberState.UP),
        (Message("MemberReportResponse", {"resultCode": 500}), MemberState.SUSPICIOUS),
        (PeerUnreachableError("refused"), MemberState.SUSPICIOUS),
        (TimeoutError(), MemberState.UP),
        (Message("ErrorResponse", {"resultCode": 500, "errorCode": 301}), MemberState.UP),
        (Message("MemberReportResponse", {"resultCode": 200}), MemberState.UP),
    ],
    ids=["success", "typed failure", "unreachable", "time-out", "ErrorResponse", "success without node"],
)
async def test_what_a_report_makes_of_a_member_that_was_up(outcome: Message | Exception, state: MemberState) -> None:
    members = members_with(Peer(outcome))
    await members.report_to_next()
    assert members.others[B].state is state


async def test_neither_a_time_out_nor_an_answer_without_node_brings_a_member_back() -> None:
    b = Peer(PeerUnreachableError("refused"))
    members = members_with(b)
    await members.report_to_next()
    for outcome in (TimeoutError(), Message("MemberReportResponse", {"resultCode": 200})):
        b.outcome = outcome
        await members.report_to_next()
        assert members.others[B].state is MemberState.SUSPICIOUS


async def test_a_report_from_a_listed_member_brings_it_back() -> None:
    members = members_with(Peer(PeerUnreachableError("refused")))
    await members.report_to_next()
    members.receive_report({"address": C})  # not in the list: nothing happens
    assert not members.is_up(B)
    members.receive_report({"address": B, "extendInfo": {"version": "2.2.4"}})
    assert members.is_up(B)


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
async def test_a_report_without_address_is_refused(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    reply = await peer.ask("MemberReportRequest", {"node": {"ip": "10.0.0.2", "port": 8848}})
    assert (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == ("MemberReportResponse", 500, 400)
