"""Members: which nodes count as members, which of them receive syncs, and who owns the clients of DOWN members
(docs/protocol #member-report, #member-reported, #member-report-end, #sync-only-up, #owner-place). A check that changes
the state of a member starts a node of its own."""

from __future__ import annotations

from distro_conformance.node.http_member import ANSWER
from distro_conformance.node.http_player import HttpReply, PlayedHttpClient
from distro_conformance.node.kit import Kit, services
from distro_conformance.node.peer import REPORT_REQUEST, Arrival, PlayedPeer
from distro_conformance.node.player import PlayedClient
from distro_conformance.node.replies import FAILURE, REPORT_FAILURE, AnswerRule
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import Poll, first_of, poll_local
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_protos import Json, Message

_ROUND_MS = 4_000
"""Reports go to one member every 2 s, and there are two."""
_DOWN_MS = 6 * _ROUND_MS
_READ_MS = 6_000
"""Until a server that reads the file every five seconds has read a change, and earlier messages have arrived."""
_LOOK_MS = 500
"""Between polls for what lasts until the next report, which comes within 2 s."""
_TAKEN_MS = 1_000
"""Until a report would have taken effect."""
_MUTE_MS = 45_000
"""Until three detections on a connection that was idle for 5 s have failed, another connection is set up, and a member
that was DOWN meanwhile is UP again."""
_ATTEMPTS = 5
"""Reports of a member that refuses those of the node: the next refusal after each makes it DOWN again."""
_LAST_OF_2 = "2.99.99"
_CLIENTS = 8
"""One more member would change the owner of three of four clients."""
_REPORTED_MS = 5_000 + _ROUND_MS
"""A new member that no node has received a report from may be DOWN at first, and gets a report every five seconds
then."""


@requirement("DISTRO-MEMBER-001", MUST, "#member-report", since="2.2.1")
async def node_reports_itself(kit: Kit) -> None:
    """A node reports itself to every member in turn, with its address, its version, its state, and that it supports
    connections of members."""
    for peer in kit.peers:
        before = len(_reports(peer))
        await kit.eventually(_report(peer, before + 2), within_ms=3 * _ROUND_MS, what=f"reports at {peer.address}")
        node = _reports(peer)[-1].body.get("node") or {}
        kit.require(node.get("address") == kit.target.address, f"the address {kit.target.address}", node)
        version = (node.get("extendInfo") or {}).get("version")
        kit.require(bool(version), "a version", node)
        _require_able(kit, node)


@requirement("DISTRO-MEMBER-002", MUST, "#member-report", since="2.2.1")
async def report_is_answered_with_the_node(kit: Kit) -> None:
    """The answer to a report holds success and the answering node itself, with its state and abilities, without which
    the sender learns nothing from it."""
    connection = await kit.connection(CLUSTER_LABELS)
    reply = await connection.ask(REPORT_REQUEST, _report_of(kit.peer))
    kit.note(f"{kit.peer.address} reports itself: {reply}")
    kit.require(reply.type == "MemberReportResponse" and reply.succeeded, "success", reply)
    node = reply.body.get("node") or {}
    kit.require(node.get("address") == kit.target.address, f"the node {kit.target.address}", reply.body)
    _require_able(kit, node)


@requirement("DISTRO-MEMBER-003", MUST, "#member-reported", since="2.2.1", until=_LAST_OF_2)
async def report_without_address_is_refused(kit: Kit) -> None:
    """A report without an address is refused, and the connection survives."""
    reply, connection = await _report_without_address(kit)
    kit.require(not reply.succeeded, "a refusal", reply)
    again = await connection.ask(REPORT_REQUEST, _report_of(kit.peer))
    kit.require(again.succeeded, "a connection that survives", again)


@requirement("DISTRO-MEMBER-004", MUST, "#member-report-end, #sync-only-up", since="2.2.1", own_node=True)
async def who_is_not_up_is_not_sent_to(kit: Kit) -> None:
    """A member that refuses reports is sent no Distro request from the first refusal on, while other members, those
    after it in the list too, are sent requests and reports as before, and it catches up once it accepts reports again:
    it is sent the changes and the ends of clients."""
    await kit.start_node()
    refusing, after = sorted((kit.peer, kit.other), key=lambda member: member.address)  # the order of a node's list
    clients = client, leaving = [(await kit.publisher())[0] for _ in range(2)]
    for each in clients:
        await kit.arrange_sent("CHANGE", each.id, at=refusing, within_ms=2 * kit.timings.sync_ms)
    refusal = await _goes_down(kit, refusing, refused=1)
    sent, reports = _further(kit, *clients, at=refusing), len(_reports(after))
    service = kit.service()
    await client.register(service, "10.0.0.1", 80)
    kit.note(f"{client.id} registers {service}")
    await kit.leave(leaving)

    def reached(peer: PlayedPeer) -> Poll[Arrival]:
        return kit.arrival("CHANGE", client.id, at=peer, carrying=lambda copy: service in (services(copy) or ()))

    change = await kit.eventually(reached(after), within_ms=kit.timings.sync_ms, what=f"{service} at {after.address}")
    await kit.never(sent, for_ms=kit.timings.verify_ms + 500, what=f"{refusing.address} is not UP")
    await kit.eventually_sent("VERIFY", client.id, at=after, after=change, within_ms=kit.timings.verify_ms)
    await kit.eventually(_report(after, reports + 2), within_ms=2 * _ROUND_MS, what=f"reports at {after.address}")
    refusing.forget(refusal)
    kit.note(f"{refusing.address} takes reports again")
    within_ms = _ROUND_MS + kit.timings.retry_ms + kit.timings.verify_ms
    await kit.eventually(reached(refusing), within_ms=within_ms, what=f"{service} at {refusing.address}")
    await kit.eventually_sent("DELETE", leaving.id, at=refusing, within_ms=kit.timings.retry_ms)


@requirement("DISTRO-MEMBER-005", MUST, "#owner-place, #member-alive, #member-report-end", since="2.2.1", own_node=True)
async def ownership_follows_the_living(kit: Kit) -> None:
    """The clients of a DOWN member get another owner, and the member owns them again when it is back: who reports is
    UP, whatever state the report names, and though it names nothing new."""
    await kit.start_node()
    reported = await kit.other.report()
    kit.assume(reported.succeeded, "a report that is taken", reported)
    await _goes_down(kit, kit.other)
    client = kit.http_client(kit.other.address)
    reply, passed_on = await _registers(kit, client, kit.other)
    kit.require(not passed_on, f"nothing passed on to {kit.other.address}, which is DOWN", reply)
    kit.require(reply.text in ("ok", ANSWER), f"that the node or {kit.peer.address} serves it", reply)
    connection, body = await kit.connection(CLUSTER_LABELS), _report_of(kit.other)
    body["node"]["state"] = "DOWN"
    for _ in range(_ATTEMPTS):
        report = await connection.ask(REPORT_REQUEST, body)
        kit.assume(report.succeeded, "a report that is taken", report)
        kit.note(f"{kit.other.address} has reported itself, as DOWN")
        await kit.settle(500)
        reply, passed_on = await _registers(kit, client, kit.other)
        if passed_on:
            break
    kit.require(passed_on, f"that it is passed on to {kit.other.address}", reply)


@requirement("DISTRO-MEMBER-006", MUST, "#member-report-end, #member-alive", since="2.2.1", own_node=True)
async def success_clears_the_failures(kit: Kit) -> None:
    """A report that succeeds resets the count of failures: only the fourth failure in a row makes a member DOWN."""
    await kit.start_node()
    await kit.arrange(_report(kit.other, 1), within_ms=_DOWN_MS, what=f"a report at {kit.other.address}")
    began_ms = kit.target.clock.now_ms()
    await _refuses(kit, kit.other, 3)
    answered = len(_reports(kit.other)) + 1
    await kit.arrange(_report(kit.other, answered), within_ms=_DOWN_MS, what="a report that is answered")
    await _refuses(kit, kit.other, 3)
    await kit.settle(300)
    reply, passed_on = await _registers(kit, kit.http_client(kit.other.address), kit.other)
    kit.assume_answers(began_ms)  # a report without an answer in time counts as a failure
    kit.require(
        passed_on, f"that it is passed on to {kit.other.address}, of which no four reports in a row failed", reply
    )


@requirement("DISTRO-MEMBER-007", SHOULD, "#owner-place, #member-alive", bug="B15", since="2.2.1", own_node=True)
async def who_lives_keeps_its_clients(kit: Kit) -> None:
    """While a member is DOWN only its clients change owner: all other clients keep their owner."""
    await kit.start_node()
    await _goes_down(kit, kit.other)
    client = kit.http_client(kit.peer.address, node_owns_without=kit.other.address)
    reply, passed_on = await _registers(kit, client, kit.peer)
    observed = {"reply": reply.text, "held": await kit.peer.query(client.id) is not None}
    kit.require(passed_on, f"that it is passed on to {kit.peer.address}, which is UP", reply, observed=observed)


@requirement("DISTRO-MEMBER-008", SHOULD, "#member-list, #sync-execute", since="2.2.1", own_node=True)
async def list_is_read_again(kit: Kit) -> None:
    """A member that leaves the member list is sent nothing more, no report either, its connection ends, and it gets
    VERIFYs again once it is back, in the place of another member too; who is DOWN while another member joins stays
    DOWN."""
    await kit.start_node()
    client, _ = await kit.publisher()
    await kit.arrange_sent("CHANGE", client.id, at=kit.other, within_ms=2 * kit.timings.sync_ms)
    await kit.change_members(kit.peer)
    await kit.settle(_READ_MS)
    sent, reports = _further(kit, client, at=kit.other), len(_reports(kit.other))
    before = kit.arrivals(client.id, kit.other)[-1]
    announced = kit.arrival("CHANGE", client.id, after=kit.arrivals(client.id)[-1])
    service = kit.service()
    await client.register(service, "10.0.0.1", 80)
    kit.note(f"it registers {service}")
    await kit.eventually(announced, within_ms=kit.timings.sync_ms, what=f"{service} at {kit.peer.address}")
    more = first_of((sent, _report(kit.other, reports + 1)))
    await kit.never(more, for_ms=kit.timings.verify_ms + _ROUND_MS, what=f"{kit.other.address} is not on the list")
    kit.require(not kit.other.is_connected, f"no connection to {kit.other.address}, which has left", "one is open")
    await kit.change_members(kit.other)
    within_ms = _READ_MS + _REPORTED_MS + 2 * kit.timings.verify_ms
    verify = kit.arrival("VERIFY", client.id, after=before, at=kit.other)
    await kit.eventually(verify, within_ms=within_ms, what=f"a VERIFY of {client.id} at {kit.other.address}")
    await _goes_down(kit, kit.other)
    await kit.change_members(kit.peer, kit.other)
    clients, began_ms = [kit.http_client(kit.other.address) for _ in range(_CLIENTS)], kit.target.clock.now_ms()
    while kit.target.clock.now_ms() < began_ms + _READ_MS:
        for each in clients:
            reply, passed_on = await _registers(kit, each, kit.other)
            kit.require(not passed_on, f"nothing passed on to {kit.other.address}, which is DOWN", reply)
        await kit.sleep(_LOOK_MS)


@requirement("DISTRO-MEMBER-009", MUST, "#connection-client-check", bug="B35", since="2.2.1", own_node=True)
async def mute_connection_is_replaced(kit: Kit) -> None:
    """A node replaces a connection on which a member no longer answers, however much is sent on it."""
    await kit.start_node()
    client, _ = await kit.publisher()
    await kit.arrange_sent("CHANGE", client.id, at=kit.other, within_ms=2 * kit.timings.sync_ms)
    kit.other.fall_silent()
    kit.note(f"{kit.other.address} neither reads nor answers anything more on the open connections")
    service = kit.service()
    await client.register(service, "10.0.0.1", 80)
    kit.note(f"it registers {service}")
    announced = kit.arrival("CHANGE", client.id, at=kit.other, carrying=lambda copy: service in (services(copy) or ()))
    await kit.eventually(announced, within_ms=_MUTE_MS, what=f"{service} at {kit.other.address}, on another connection")


@requirement("DISTRO-MEMBER-010", MUST, "#sync-execute, #member-list", bug="B37", since="2.2.1", own_node=True)
async def nothing_is_retried_at_who_left(kit: Kit) -> None:
    """A sync that waits for a retry to a member, a DELETE too, is not sent once the member has left the list."""
    await kit.start_node()
    clients = client, leaving = [(await kit.publisher())[0] for _ in range(2)]
    for each in clients:
        await kit.arrange_sent("CHANGE", each.id, at=kit.other, within_ms=2 * kit.timings.sync_ms)
    for operation in ("CHANGE", "DELETE"):
        kit.other.answer(operation, FAILURE)
    await client.register(kit.service(), "10.0.0.1", 80)
    await kit.leave(leaving)
    within_ms = kit.timings.sync_ms + 2 * kit.timings.retry_ms
    for operation, each in (("CHANGE", client), ("DELETE", leaving)):
        what = f"a retry of the {operation} of {each.id} at {kit.other.address}"
        await kit.arrange(_retried(kit, operation, each), within_ms=within_ms, what=what)
    await kit.change_members(kit.peer)
    await kit.settle(_READ_MS)
    further = _further(kit, *clients, at=kit.other)
    await kit.never(further, for_ms=2 * kit.timings.retry_ms, what=f"{kit.other.address} is not on the list")


@requirement("DISTRO-MEMBER-011", MUST, "#member-reported, #member-list", since="2.2.1", own_node=True)
async def strangers_do_not_join(kit: Kit) -> None:
    """A node that is not on the list does not become a member by reporting itself, so the owners of clients stay the
    same."""
    await kit.start_node()
    ip, port = "127.0.0.1", 1
    stranger = {**kit.peer.as_member(), "ip": ip, "port": port, "address": f"{ip}:{port}"}
    body = {"headers": {}, "node": stranger, "module": "cluster"}
    answer = await (await kit.connection(CLUSTER_LABELS)).ask(REPORT_REQUEST, body)
    kit.note(f"{ip}:{port}, which is on no list, reports itself: {answer}")
    await kit.settle(_TAKEN_MS)
    for _ in range(_CLIENTS):
        reply, passed_on = await _registers(kit, kit.http_client(kit.peer.address), kit.peer)
        kit.require(passed_on, f"that it is passed on to {kit.peer.address}, as before", reply)


@requirement("DISTRO-MEMBER-012", MUST, "#connection-client-check, #wire-checks", since="2.2.1", own_node=True)
async def forgotten_connection_is_replaced(kit: Kit) -> None:
    """A node replaces a connection that a member no longer knows and answers with ErrorResponse 301, or that the member
    has closed, and sends again what found no connection."""
    await kit.start_node()
    client, _ = await kit.publisher()
    await kit.arrange_sent("CHANGE", client.id, at=kit.other, within_ms=2 * kit.timings.sync_ms)
    kit.other.forget_connections()
    kit.note(f"{kit.other.address} answers 301 to whatever comes on the connections that are open")
    service = kit.service()
    await client.register(service, "10.0.0.1", 80)
    kit.note(f"it registers {service}")
    announced = kit.arrival("CHANGE", client.id, at=kit.other, carrying=lambda copy: service in (services(copy) or ()))
    await kit.eventually(announced, within_ms=_MUTE_MS, what=f"{service} at {kit.other.address}, on another connection")
    await kit.other.stop()
    kit.note(f"{kit.other.address} closes its connections and its port")
    service = kit.service()
    await client.register(service, "10.0.0.1", 80)
    kit.note(f"it registers {service}")
    await kit.sleep(2 * kit.timings.sync_ms)
    await kit.other.start()
    kit.note(f"{kit.other.address} listens again")
    await kit.eventually(announced, within_ms=_MUTE_MS, what=f"{service} at {kit.other.address}, which was closed")


async def _registers(kit: Kit, client: PlayedHttpClient, owner: PlayedPeer) -> tuple[HttpReply, bool]:
    """The node's answer to the client, and whether the node passed the request on to `owner`."""
    before = len(owner.http.requests)
    reply = await client.register(kit.service())
    kit.note(f"{client.id}, which {owner.address} owns while it is UP, registers at the node: {reply}")
    return reply, len(owner.http.requests) > before


def _further(kit: Kit, *clients: PlayedClient, at: PlayedPeer) -> Poll[list[Arrival]]:
    """Polls for requests about these clients at a member from now on."""
    seen = {each.id: len(kit.arrivals(each.id, at)) for each in clients}
    return poll_local(lambda: [late for each in seen for late in kit.arrivals(each, at)[seen[each] :]] or None)


def _retried(kit: Kit, operation: str, client: PlayedClient) -> Poll[list[Arrival]]:
    """Polls for a second request that `other` answered with failure."""

    def failed() -> list[Arrival]:
        return [each for each in kit.arrivals(client.id, kit.other) if each.is_about(operation) and not each.answered]

    return poll_local(lambda: failed()[1:] or None)


async def _refuses(kit: Kit, peer: PlayedPeer, count: int) -> None:
    """Refuses the next `count` reports; the report after them is answered."""
    before = len(_reports(peer))
    for _ in range(count):
        peer.answer("REPORT", REPORT_FAILURE, once=True)
    kit.note(f"{peer.address} refuses {count} member reports")
    await kit.arrange(_report(peer, before + count), within_ms=_DOWN_MS, what=f"{count} reports at {peer.address}")


async def _goes_down(kit: Kit, peer: PlayedPeer, *, refused: int = 4) -> AnswerRule:
    """The member refuses reports from now on; `refused` of them before this returns. It is DOWN after four."""
    refusal = peer.answer("REPORT", REPORT_FAILURE)
    before = len(_reports(peer))
    kit.note(f"{peer.address} refuses member reports from now on")
    await kit.arrange(_report(peer, before + refused), within_ms=_DOWN_MS, what=f"{refused} reports at {peer.address}")
    await kit.settle(300)
    return refusal


def _require_able(kit: Kit, node: Json) -> None:
    """Expects a member that is UP and supports connections: others connect only to such members."""
    kit.require(node.get("state") == "UP", "the state UP", node)
    remote = (node.get("abilities") or {}).get("remoteAbility") or {}
    kit.require(remote.get("supportRemoteConnection") is True, "the ability supportRemoteConnection", node)


def _reports(peer: PlayedPeer) -> list[Arrival]:
    return [arrival for arrival in peer.arrivals if arrival.type == REPORT_REQUEST]


def _report(peer: PlayedPeer, count: int) -> Poll[Arrival]:
    return poll_local(lambda: next(iter(_reports(peer)[count - 1 :]), None))


@requirement("DISTRO-MEMBER-013", SHOULD, "#member-reported", since="3.0.0")
async def report_without_address_is_of_its_ip_and_port(kit: Kit) -> None:
    """A report without an address counts as a report of the member at its ip and port."""
    reply, _ = await _report_without_address(kit)
    kit.require(reply.succeeded, "success", reply)


@requirement("DISTRO-MEMBER-014", MUST, "#member-auth", since="3.0.0")
async def members_are_sent_the_identity(kit: Kit) -> None:
    """Each request to a member, of whatever operation of Distro or a report, carries the identity of the cluster:
    members refuse a request without it."""
    identity = kit.identity()
    client, _, _ = await kit.replicated()
    await kit.arrange_sent("VERIFY", client.id)
    await kit.leave(client)
    for peer in kit.peers:
        await kit.arrange_sent("DELETE", client.id, at=peer)
        what = f"a report at {peer.address}"
        await kit.arrange(_report(peer, len(_reports(peer)) + 1), within_ms=3 * _ROUND_MS, what=what)
    sent = [each for peer in kit.peers for each in peer.arrivals if each.call or each.type == REPORT_REQUEST]
    kinds = {each.call.operation for each in sent if each.call}
    kit.assume(kinds >= {"CHANGE", "DELETE", "SNAPSHOT", "VERIFY"}, "a request of each operation", sorted(kinds))
    for arrival in sent:
        missing = [key for key, value in identity.items() if arrival.headers.get(key) != value]
        kit.require(not missing, f"the identity in {arrival}", f"headers {sorted(arrival.headers)}")


async def _report_without_address(kit: Kit) -> tuple[Message, Connection]:
    connection = await kit.connection(CLUSTER_LABELS)
    body = _report_of(kit.peer)
    del body["node"]["address"]
    reply = await connection.ask(REPORT_REQUEST, body)
    kit.note(f"{kit.peer.address} reports itself without an address: {reply}")
    return reply, connection


def _report_of(peer: PlayedPeer) -> Json:
    return {"headers": {}, "node": dict(peer.as_member()), "module": "cluster"}
