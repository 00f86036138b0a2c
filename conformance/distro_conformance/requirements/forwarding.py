"""Requests over HTTP about a client that another member owns: the node passes them on, once (docs/protocol
#owner-filter)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

from distro_conformance.node.http_member import ANSWER, REFUSED
from distro_conformance.node.http_player import HttpReply, PlayedHttpClient, later_api
from distro_conformance.node.kit import Kit, services
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.requirements.requirement import MUST, requirement
from distro_protos import Json

_CLIENTS = 4
"""Clients of each member: enough for hashes of either sign."""
_REFUSED_REQUEST = 2
"""The number of the request that an owner refuses."""
_FORWARD_MS = 2_000
"""A node waits so long for the owner's answer."""


@requirement("DISTRO-IPPORT-003", MUST, "#owner-place, #owner-filter")
async def request_about_a_foreign_client_is_passed_on(kit: Kit) -> None:
    """A request about an instance that another member owns, a beat that names the instance in its body alone too, is
    passed on to the owner with all its parameters, and the owner's answer is returned unchanged, a refusal too."""
    for owner in (peer for peer in kit.peers for _ in range(_CLIENTS)):
        client, service = kit.http_client(owner.address), kit.service()
        metadata = {"zone": "ä b&c"}
        named = {"namespaceId": "elsewhere", "clusterName": "blue", "weight": "2.5", "enabled": "false"}
        requests: Mapping[str, Callable[[str], Awaitable[HttpReply]]] = {
            "register": partial(client.register, metadata=metadata, **named),
            "beat": partial(client.beat, metadata=metadata),
            "beat by its body": partial(client.beat, metadata=metadata, by_body=True),
            "deregister": client.deregister,
        }
        for number, (name, request) in enumerate(requests.items(), 1):
            status = REFUSED if number == _REFUSED_REQUEST else 200
            if status == REFUSED:
                owner.http.refuses.add(client.ip)
            else:
                owner.http.refuses.discard(client.ip)
            asked_ms = kit.target.clock.now_ms()
            reply = await request(service)
            kit.note(f"{client.id}, which {owner.address} owns, asks the node to {name}: {reply}")
            passed_on = [each["method"] for each in _passed_on(client, owner)]
            expected = ["POST", "PUT", "PUT", "DELETE"][:number]
            what = f"every request of {client.id} to be passed on to {owner.address}, once: {expected}"
            kit.require(passed_on == expected, what, passed_on)
            answered = (reply.status, reply.text) == (status, ANSWER)
            if not answered:  # the node waits for the played member, which is of this process
                kit.assume_turns(kit.target.clock.slack_since(asked_ms), _FORWARD_MS, "an answer of the owner")
            kit.require(answered, f"the answer of {owner.address}, {status} {ANSWER!r}", reply)
        registered, *beaten, _ = (each["query"] for each in _passed_on(client, owner))
        kept = {key: registered.get(key) for key in named}
        kit.require(kept == named, f"the parameters {named} in a registration", kept)
        held = [json.loads(registered.get("metadata", "{}"))]
        held += [json.loads(each.get("beat", "{}")).get("metadata") for each in beaten]
        kit.require(held == 3 * [metadata], f"the metadata {metadata} in a registration and in both beats", held)
        copy = await kit.peer.query(client.id)
        kit.require(copy is None, f"the node to hold nothing of {client.id}", copy)


@requirement("DISTRO-IPPORT-009", MUST, "#owner-filter")
async def no_second_hop(kit: Kit) -> None:
    """A registration, a beat or a deregistration that a member has passed on is not passed on again: a node that is not
    the owner refuses it with 400, and does not carry it out."""
    client, copied = kit.http_client(kit.peer.address), kit.service()
    await kit.synced(client=client.id, service=copied)
    for method, service in (("POST", kit.service()), ("PUT", copied), ("DELETE", copied)):
        reply = await client.passed_on(method, service)
        kit.note(f"a member passes on {method} of {service} of {client.id}, which {kit.peer.address} owns: {reply}")
        kit.require(reply.status == 400, f"status 400 for {method}", reply)
        again = _passed_on(client, kit.peer)
        kit.require(not again, f"nothing passed on to {kit.peer.address}", again)
    copy = await kit.peer.query(client.id)
    kit.require(services(copy) == [copied], f"{client.id} with {copied}, as before", copy)


@requirement("DISTRO-IPPORT-012", MUST, "#owner-filter, #http-v2", bug="D7", since="2.2.0")
async def registration_by_v2_reaches_the_owner(kit: Kit) -> None:
    """A registration by version 2 of the HTTP API (3 in 3.x), at a member that does not own the client, reaches the
    owner."""
    api = later_api(kit.target.profile)
    client, service = replace(kit.http_client(kit.peer.address), api=api), kit.service()
    reply = await client.register(service)
    kit.note(f"{client.id}, which {kit.peer.address} owns, registers {service} at the node by {api}: {reply}")
    kit.assume(reply.status == 200, f"a registration of {client.id} that succeeds", reply)
    announced, reader, was_shown = kit.arrival("CHANGE", client.id), await kit.client(), False

    async def reached() -> object:
        nonlocal was_shown  # a client without beats is shown only for a while
        was_shown |= [host.address for host in await reader.query(service)] == [f"{client.ip}:{client.port}"]
        return _passed_on(client, kit.peer) or await announced()

    async def shown_here() -> dict[str, object]:
        return {"shown": was_shown}

    what = f"the registration of {client.id}, or a CHANGE of it, at {kit.peer.address}"
    await kit.eventually(reached, within_ms=2 * kit.timings.sync_ms, what=what, otherwise=shown_here)


def _passed_on(client: PlayedHttpClient, owner: PlayedPeer) -> list[Json]:
    """Requests that the node passed on to the played member; a beat may name its instance in the body alone."""
    return [each for each in owner.http.requests if _named_ip(each["query"]) == client.ip]


def _named_ip(query: Mapping[str, str]) -> object:
    return query.get("ip") or json.loads(query.get("beat", "{}")).get("ip")
