"""The start of a connection: the server check, the set-up, and the naming client (docs/protocol
#connection-handshake, #connection-stream, #client-connect)."""

from __future__ import annotations

import re

from distro_conformance.node.errors import Observed
from distro_conformance.node.kit import Kit, services
from distro_conformance.node.player import DETECTION, instance_request
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import poll_local
from distro_conformance.wire.connection import LOOPBACK, SDK_LABELS
from distro_protos import Json, Message

EMPTY: Json = {"headers": {}, "module": "internal"}
ACK = "SetupAckRequest"
_UNKNOWN = "an ability that no server has"
_APART_MS = 100
_ATTEMPTS = 20
"""Attempts to end a connection during its set-up."""
_NOTICED_MS = 2_000
"""Long before a node sends a detection on a silent connection."""


@requirement("DISTRO-SETUP-001", MUST, "#wire-checks, #connection-id")
async def server_check_needs_no_set_up(kit: Kit) -> None:
    """A server check is answered on a transport without set-up, with an id of the time and of the transport's address
    and port, each time the same."""
    first, second = (kit.bare_connection() for _ in range(2))
    ids = []
    for transport in (first, second, first, second):
        reply = await transport.ask("ServerCheckRequest", EMPTY)
        ids.append(str(reply.body.get("connectionId")))
        kit.note(f"a transport without set-up asks ServerCheckRequest, which names it {ids[-1]}: {reply}")
        kit.require(reply.type == "ServerCheckResponse" and reply.succeeded, "a ServerCheckResponse", reply.type)
        await kit.sleep(2 * _APART_MS)
    kit.require(all(re.fullmatch(r"\d{13}_[0-9a-f.:]+_\d+", each) for each in ids), "ids of three parts", ids)
    kit.require(ids[:2] == ids[2:], "the same id for the same transport", ids)
    (time, address, port), (later, another, its_port) = (each.split("_") for each in ids[:2])
    kit.require(int(later) - int(time) >= _APART_MS, f"times at least {_APART_MS} ms apart", ids)
    kit.require(port != its_port, "another port for another transport", ids)
    kit.require(address == another, "the address of one machine", ids)
    if kit.target.address.startswith(LOOPBACK):
        kit.require(address == LOOPBACK, f"the address {LOOPBACK}", ids)


@requirement("DISTRO-SETUP-002", MUST, "#wire-checks, #wire-errors")
async def request_without_set_up_is_refused(kit: Kit) -> None:
    """A request on a transport without set-up is answered with ErrorResponse 301."""
    for type_name in ("HealthCheckRequest", "InstanceRequest"):
        body = EMPTY if type_name == "HealthCheckRequest" else _registration(kit.service())
        reply = await kit.bare_connection().ask(type_name, body)
        kit.note(f"a transport without set-up asks {type_name}: {reply}")
        is_refused = reply.type == "ErrorResponse" and reply.body.get("errorCode") == 301
        kit.require(is_refused, f"ErrorResponse 301 for {type_name}", reply)


@requirement("DISTRO-SETUP-003", MUST, "#connection-internal")
async def health_check_succeeds(kit: Kit) -> None:
    """A health check on a connection that is set up succeeds."""
    reply = await (await kit.client()).ask("HealthCheckRequest", EMPTY)
    kit.require(reply.type == "HealthCheckResponse" and reply.succeeded, "success", reply)


@requirement("DISTRO-SETUP-004", MUST, "#client-connect, #connection-handshake")
async def only_naming_connections_are_clients(kit: Kit) -> None:
    """A connection without the label `module=naming` gets no naming client, and no member is sent anything about it."""
    connection = await kit.connection({"source": "sdk", "module": "config"})
    client = await kit.client()
    for peer in kit.peers:
        await kit.arrange_sent("VERIFY", client.id, at=peer)
        sent = kit.arrivals(connection.id, peer)
        kit.require(not sent, f"nothing about {connection.id} at {peer.address}", sent)
    copy = await kit.peer.query(connection.id)
    kit.require(copy is None, f"no client {connection.id}", copy)


@requirement("DISTRO-SETUP-005", SHOULD, "#verify-pure-subscriber, #client-connect", since="2.1.1")
async def silent_client_is_verified(kit: Kit) -> None:
    """A naming connection that publishes nothing is a client too: it is verified, with revision 0."""
    client = await kit.client()
    verify = await kit.eventually_sent("VERIFY", client.id)
    revision = verify.call.revision if verify.call else None
    kit.require(revision == 0, f"revision 0 in the VERIFY of {client.id}", verify)


@requirement("DISTRO-SETUP-006", MUST, "#connection-handshake", since="2.3.0")
async def abilities_are_pushed(kit: Kit) -> None:
    """A server that reports that it negotiates abilities pushes its own to a client that sent a table of abilities, and
    pushes none to a client without a table, which may not know such a push."""
    reply = await kit.bare_connection().ask("ServerCheckRequest", EMPTY)
    kit.assume(bool(reply.body.get("supportAbilityNegotiation")), "a server that negotiates", reply.body)
    pushes: list[Message] = []
    others: list[Message] = []
    await kit.connection(SDK_LABELS, on_push=pushes.append, abilities={_UNKNOWN: True})
    await kit.connection(SDK_LABELS, on_push=others.append, abilities=None)
    acknowledged = poll_local(lambda: next((push for push in pushes if push.type == ACK), None))
    push = await kit.eventually(acknowledged, within_ms=5_000, what=f"a {ACK}")
    table = push.body.get("abilityTable")
    kit.require(isinstance(table, dict) and _UNKNOWN not in table, f"a table without {_UNKNOWN} in it", push.body)
    unasked = poll_local(lambda: next((push for push in others if push.type == ACK), None))
    await kit.never(unasked, for_ms=_NOTICED_MS, what="the client sent no table of abilities")


@requirement("DISTRO-SETUP-007", MUST, "#connection-stream")
async def strange_stream_messages_are_ignored(kit: Kit) -> None:
    """An unreadable message on the stream, and an answer that no request waits for, change nothing."""
    connection = await kit.connection(SDK_LABELS)
    service = kit.service()
    reply = await connection.ask("InstanceRequest", _registration(service))
    kit.assume(reply.succeeded, "a registration that succeeds", reply)
    answer = {"resultCode": 200, "errorCode": 0, "requestId": "never-asked", "success": True}
    for type_name, body in ((DETECTION.replace("Request", "Response"), answer), ("NobodyKnowsThis", EMPTY)):
        await connection.push(type_name, body)
        kit.note(f"it sends {type_name} on its stream")
    await connection.push_raw("ConnectionSetupRequest", b"{")
    kit.note("it sends half a set-up on its stream")
    await kit.settle(500)
    health = await connection.ask("HealthCheckRequest", EMPTY)
    kit.require(health.succeeded, "a connection that lives", health)
    copy = await kit.holds(connection.id, service)()
    kit.require(copy is not None, f"{connection.id} to publish {service}", await kit.peer.query(connection.id))


@requirement("DISTRO-SETUP-008", MUST, "#connection-stream")
async def second_set_up_does_nothing(kit: Kit) -> None:
    """A second set-up on one transport changes nothing."""
    connection = await kit.connection(SDK_LABELS)
    service = kit.service()
    await connection.ask("InstanceRequest", _registration(service))
    await connection.push("ConnectionSetupRequest", {**EMPTY, "clientVersion": "v", "tenant": "", "labels": SDK_LABELS})
    kit.note("it sends a second set-up")
    await kit.settle(500)
    copy = await kit.holds(connection.id, service)()
    kit.require(copy is not None, f"{connection.id} to publish {service}", await kit.peer.query(connection.id))
    health = await connection.ask("HealthCheckRequest", EMPTY)
    kit.require(health.succeeded, "a connection that lives", health)


@requirement("DISTRO-SETUP-009", MUST, "#connection-setup, #client-disconnect", bug="B40")
async def brief_connection_leaves_no_client(kit: Kit) -> None:
    """A connection that ends while it is set up leaves no client behind."""
    ids = [await _brief_connection(kit, number % 3) for number in range(_ATTEMPTS)]
    kit.note(f"{len(ids)} connections begin to be set up and are dropped, the last one {ids[-1]}")
    await kit.settle(_NOTICED_MS)
    left = [each for each in ids if await kit.peer.query(each) is not None]
    kit.require(not left, "no trace of any of them", left, observed={"left": len(left)})


@requirement("DISTRO-SETUP-010", MUST, "#client-connect, #client-unknown", bug="native-connect-onto-synced")
async def connection_takes_the_place_of_a_copy(kit: Kit) -> None:
    """A connection that is set up under the id of a copy becomes a client of the node and publishes only what it
    registers."""
    connection, since_ms = await kit.named_connection(), kit.target.clock.now_ms()
    kit.note(f"a transport without set-up is called {connection.id} by the node")
    client, copied = await kit.synced(client=connection.id)
    await kit.arrange(kit.holds(client, copied), within_ms=0, what=f"a copy of {client} with {copied}")
    await connection.set_up(SDK_LABELS)
    kit.note(f"{client} is set up with the labels {SDK_LABELS}")
    await kit.settle(500)  # requests on a connection are accepted before its naming client exists
    own = kit.service()
    reply = await connection.ask("InstanceRequest", _registration(own))
    kit.note(f"it registers {own} at 10.0.0.1:80: {reply}")
    held = services(await kit.peer.query(client))
    took_ms = kit.target.clock.now_ms() - since_ms  # after that the copy may expire, or the node may send a detection
    kit.assume_turns(took_ms, kit.timings.idle_ms, "a registration after the copy")
    own_alone = kit.arrival("CHANGE", client, carrying=lambda copy: services(copy) == [own])

    async def otherwise() -> Observed:
        sent = [str(each) for each in kit.arrivals(client)]
        seen: Observed = {"both": held == sorted((copied, own)), "published": held, "sent": sent}
        return {**seen, "reply": str(reply), "took_ms": took_ms}

    what = f"a CHANGE of {client} with {own} and nothing else"
    await kit.eventually(own_alone, within_ms=kit.timings.sync_ms, what=what, otherwise=otherwise)


async def _brief_connection(kit: Kit, questions: int) -> str:
    """The id of a connection that an SDK begins to set up and drops, after so many round trips."""
    connection = await kit.named_connection()
    await connection.set_up(SDK_LABELS, until_registered=False)
    for _ in range(questions):
        await connection.ask("ServerCheckRequest", EMPTY)
    await connection.close()
    return connection.id


def _registration(service: str) -> Json:
    return instance_request("registerInstance", service, "10.0.0.1", 80, {})
