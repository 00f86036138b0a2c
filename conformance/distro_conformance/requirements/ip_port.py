"""Clients of the HTTP API, which have no connection, one owner by hash, and beats (docs/protocol #owner-place,
#lease-copies and #http-v1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from distro_conformance.node.http_member import ANSWER, REFUSED
from distro_conformance.node.http_player import HttpReply, PlayedHttpClient, later_api
from distro_conformance.node.kit import Kit
from distro_conformance.node.kit import services as services_of
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.player import answer_over_http, instance_request, read_host
from distro_conformance.release import Span
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Look, known
from distro_conformance.wire.messages import content_of
from distro_protos import Json
from distro_traces.content import Replica

_UNHEALTHY_MS, _GONE_MS, _CHECK_MS, _BEAT_MS = 15_000, 30_000, 5_000, 5_000
_OWN_BEAT_MS = 3_000
"""An interval of beats in the metadata of an instance."""
_ATTEMPTS = 10
"""Attempts to make two requests overlap."""
_CLIENTS = 4
"""Clients of each member: enough for hashes of either sign."""
_HAS_REVISIONS = Span(since="2.1.2")
_HAS_LATER_API = Span(since="2.2.0")
_REFUSED_REQUEST = 2
"""The number of the request that an owner refuses."""
_FORWARD_MS = 2_000
"""A node waits so long for the owner's answer."""
_SHORT_MS = 6_000
"""A time-out in the metadata of an instance, less than the default."""


@requirement("DISTRO-IPPORT-001", MUST, "#sync-announce, #http-v1")
async def registration_over_http_arrives_as_change(kit: Kit) -> None:
    """An instance that is registered over HTTP at its owner is in a SNAPSHOT and in a push, and every other member
    receives all of it in a CHANGE of `ip:port#true`, with the namespace and the group that the request named."""
    client, service = await _registered(kit, cluster="blue", zone="a")
    subscriber = await kit.client()
    await subscriber.subscribe(service)
    for peer in kit.peers:
        change = await kit.eventually_sent("CHANGE", client.id, at=peer, within_ms=2 * kit.timings.sync_ms)
        published = change.call.replica.published if change.call and change.call.replica else ()
        found = [(each.service, each.ip, each.port, each.cluster) for each in published]
        registered = (service, client.ip, client.port, "blue")
        kit.require(found == [registered], f"the CHANGE to hold {registered} and nothing else", found)
        zone = json.loads(published[0].attributes).get("zone")
        kit.require(zone == "a", "the instance's metadata zone a", published[0].attributes)
    snapshot = {replica.client: services_of(replica) for replica in await kit.peer.snapshot()}
    kit.require(snapshot.get(client.id) == [service], f"{client.id} in a SNAPSHOT", snapshot.get(client.id))
    neighbour = kit.http_client(kit.target.address)
    await neighbour.register(service)
    kit.note(f"{neighbour.id} registers {service} too")
    await kit.eventually_pushed(subscriber, service, *(f"{each.ip}:{each.port}" for each in (client, neighbour)))
    elsewhere = kit.http_client(kit.target.address)
    reply = await elsewhere.register(f"OTHER_GROUP@@{service}", namespaceId="elsewhere")
    kit.note(f"{elsewhere.id} registers {service} in the group OTHER_GROUP of the namespace elsewhere: {reply}")
    kit.assume(reply.status == 200, f"a registration of {elsewhere.id} that succeeds", reply)
    change = await kit.eventually_sent("CHANGE", elsewhere.id, within_ms=2 * kit.timings.sync_ms)
    content = content_of(change.body.get("distroData") or {}) or {}
    named = [content.get(key) for key in ("namespaces", "groupNames", "serviceNames")]
    kit.require(named == [["elsewhere"], ["OTHER_GROUP"], [service]], "that namespace, group and name", named)
    hosts = json.loads((await client.list(service)).text)["hosts"]
    kit.require(len(hosts) == 2, f"{client.id} and {neighbour.id} alone in the list of {service}", hosts)
    reply = await client.list(f"OTHER_GROUP@@{service}", namespaceId="elsewhere")
    ports = [f"{each['ip']}:{each['port']}" for each in json.loads(reply.text)["hosts"]]
    kit.require(ports == [f"{elsewhere.ip}:{elsewhere.port}"], f"{elsewhere.id} in the list of its own", reply)


@requirement("DISTRO-IPPORT-002", MUST, "#lease-beats")
async def beats_that_stay_out_end_the_instance(kit: Kit) -> None:
    """An instance without beats is unhealthy after 15 s and removed after 30 s, each at the next check; the members
    receive its removal, and subscribers a push of it."""
    began_ms = kit.target.clock.now_ms()
    client, service = await _registered(kit)
    reader = await kit.client()
    await reader.subscribe(service)

    def shown(*states: str) -> Look[str]:
        async def look() -> str | None:
            hosts = await reader.query(service)
            state = "gone" if not hosts else "healthy" if hosts[0].healthy else "unhealthy"
            return state if state in states else None

        return look

    def left_of(after_ms: int) -> int:
        return max(0, began_ms + after_ms - kit.target.clock.now_ms())

    await kit.never(shown("unhealthy", "gone"), for_ms=left_of(_UNHEALTHY_MS - 1), what=f"{client.id} may yet beat")
    seen = await kit.eventually(
        shown("unhealthy", "gone"),
        within_ms=left_of(_UNHEALTHY_MS + _CHECK_MS + kit.timings.view_ms),
        what=f"{client.id} shown as unhealthy",
    )
    # A reader on a busy machine may miss the ten seconds in between; the CHANGE still reached the member.
    changes = [each.call.replica for each in kit.arrivals(client.id) if each.call and each.call.replica]
    announced = any(not published.healthy for replica in changes for published in replica.published)
    if seen != "unhealthy" and not announced:
        _assume_checks(kit, began_ms)
    kit.require(seen == "unhealthy" or announced, f"{client.id} to be unhealthy before it is gone", seen)
    await kit.never(shown("gone"), for_ms=left_of(_GONE_MS - 1), what=f"{client.id} may yet beat")
    await kit.eventually(
        shown("gone"), within_ms=left_of(_GONE_MS + _CHECK_MS + kit.timings.view_ms), what=f"the end of {client.id}"
    )
    for peer in kit.peers if kit.target.limits.counts_members else ():
        what = f"a CHANGE of {client.id} without {service} at {peer.address}"
        await kit.eventually(_ended(kit, client.id, at=peer), within_ms=2 * kit.timings.sync_ms, what=what)
    await kit.eventually_pushed(reader, service)


@requirement("DISTRO-IPPORT-013", MUST, "#ip-port-creation, #lease-beats", bug="B30", since="2.0.3")
async def client_is_created_once(kit: Kit) -> None:
    """Instances without beats are removed even if the first two requests of their client arrived at the same time."""
    clients = [kit.http_client(kit.target.address) for _ in range(_ATTEMPTS)]
    services = [kit.service() for _ in range(2)]
    replies = await asyncio.gather(*(client.register(service) for client in clients for service in services))
    kit.note(f"{len(clients)} clients register {services[0]} and {services[1]} at once, and never beat")
    kit.assume(all(reply.status == 200 for reply in replies), "registrations that succeed", replies)
    reader, within_ms = await kit.client(), _GONE_MS + 2 * _CHECK_MS + kit.timings.view_ms
    for service in services:
        await kit.eventually(kit.shows(reader, service), within_ms=within_ms, what=f"{service} without instances")


@requirement("DISTRO-IPPORT-003", MUST, "#owner-place, #owner-filter")
async def request_about_a_foreign_client_is_passed_on(kit: Kit) -> None:
    """A request about an instance that another member owns, a beat that names the instance in its body alone too, is
    passed on to the owner with all its parameters, and the owner's answer is returned unchanged, a refusal too."""
    for owner in (peer for peer in kit.peers for _ in range(_CLIENTS)):
        client, service = kit.http_client(owner.address), kit.service()
        metadata = {"zone": "a"}
        requests: Mapping[str, Callable[[str], Awaitable[HttpReply]]] = {
            "register": partial(client.register, metadata=metadata),
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
        held = [json.loads(registered.get("metadata", "{}"))]
        held += [json.loads(each.get("beat", "{}")).get("metadata") for each in beaten]
        kit.require(held == 3 * [metadata], f"the metadata {metadata} in a registration and in both beats", held)
        copy = await kit.peer.query(client.id)
        kit.require(copy is None, f"the node to hold nothing of {client.id}", copy)


@requirement("DISTRO-IPPORT-004", MUST, "#lease-beats, #http-v1")
async def beats_keep_an_instance(kit: Kit) -> None:
    """Beats keep their own instance healthy, and no other instance of its client."""
    client, service = await _registered(kit)
    other = kit.service()
    await client.register(other)
    kit.note(f"it registers {other} too, and does not beat there")
    beaten_ms = kit.target.clock.now_ms()
    end_ms = beaten_ms + _UNHEALTHY_MS + _CHECK_MS

    async def beats() -> Mapping[str, bool]:
        """The healthy instances after half a minute of beats."""
        nonlocal beaten_ms
        await client.beat(service)
        last_ms, beaten_ms = beaten_ms, kit.target.clock.now_ms()
        await kit.sleep(_BEAT_MS)
        copy = await kit.peer.query(client.id)
        healthy = {each.service: each.healthy for each in copy.published} if copy else {}
        if healthy.get(service) is not True:
            kit.assume_turns(kit.target.clock.now_ms() - last_ms, _UNHEALTHY_MS, "one beat after the other")
        kit.require(healthy.get(service) is True, f"a healthy {service} of {client.id}", copy)
        return healthy

    async def other_ends() -> bool:
        return not (await beats()).get(other)

    while kit.target.clock.now_ms() < end_ms:
        await beats()
    await kit.eventually(other_ends, within_ms=_CHECK_MS, what=f"no healthy {other}, which gets no beats")


@requirement("DISTRO-IPPORT-005", MUST, "#http-v1")
async def beat_registers(kit: Kit) -> None:
    """A whole beat of an unknown instance, also if only its body has the address, registers the instance with its
    cluster, weight and metadata, and a light beat is answered with the code for an unknown instance, by the later
    version of the HTTP API too."""
    client, service = kit.http_client(kit.target.address), kit.service()
    light = await client.light_beat(service)
    kit.note(f"a light beat of {client.id}: {light}")
    kit.require(light.status == 200 and "20404" in light.text, "code 20404 for a light beat", light)
    if kit.target.profile in _HAS_LATER_API:
        api = later_api(kit.target.profile)
        light = await replace(client, api=api).light_beat(service)
        kit.note(f"a light beat of {client.id} by {api}: {light}")
        code = {"v2": "20404", "v3": "21003"}[api]
        kit.require(code in light.text, f"code {code} for a light beat by {api}", light)
    for beating, by_body in ((client, False), (kit.http_client(kit.target.address), True)):
        whole = await beating.beat(service, {"zone": "a", "weight": "2.5", "cluster": "blue"}, by_body=by_body)
        where = "its body alone" if by_body else "its parameters too"
        kit.note(f"a whole beat in the cluster blue, with weight 2.5 and zone a, and {beating.id} in {where}: {whole}")
        kit.require(whole.status == 200 and "10200" in whole.text, "code 10200 for a whole beat", whole)
        copy = await kit.peer.query(beating.id)
        kit.require(services_of(copy) == [service], f"{beating.id} with {service}", copy)
        beaten = [(each.cluster, json.loads(each.attributes)) for each in copy.published] if copy else []
        found = [(cluster, held.get("zone"), held.get("publishInstanceWeight")) for cluster, held in beaten]
        kit.require(found == [("blue", "a", 2.5)], "the cluster, zone and weight of the beat", found)


@requirement("DISTRO-IPPORT-006", MUST, "#http-v1, #sync-announce")
async def deregistration_over_http_arrives(kit: Kit) -> None:
    """A deregistration over HTTP removes the instance, and 30 s later the client, and both changes are sent to every
    member, and the first is pushed to subscribers; one of an unknown instance succeeds, and an instance that is
    registered again at the same address is unhealthy without beats, like the first."""
    client, service = await _registered(kit)
    subscriber = await kit.client()
    await subscriber.subscribe(service)
    unknown = await kit.http_client(kit.target.address).deregister(service)
    kit.require((unknown.status, unknown.text) == (200, "ok"), "ok for another client, which is unknown", unknown)
    first = [
        await kit.arrange_sent("CHANGE", client.id, at=peer, within_ms=2 * kit.timings.sync_ms) for peer in kit.peers
    ]
    reply = await client.deregister(service)
    kit.note(f"it deregisters: {reply}")
    kit.require((reply.status, reply.text) == (200, "ok"), "ok", reply)
    for peer, change in zip(kit.peers, first, strict=True):
        what = f"a CHANGE of {client.id} without {service}, or its DELETE, at {peer.address}"
        emptied = _ended(kit, client.id, change, at=peer)
        await kit.eventually(emptied, within_ms=2 * kit.timings.sync_ms, what=what)
    await kit.eventually_listed(subscriber, service)
    await kit.eventually_pushed(subscriber, service)
    within_ms = _GONE_MS + kit.timings.clean_ms + 2 * kit.timings.sync_ms  # less than a lease
    for peer in kit.peers:
        deleted = await kit.eventually_sent("DELETE", client.id, at=peer, within_ms=within_ms)
    reply = await client.register(service)
    kit.note(f"it registers {service} again: {reply}")
    kit.assume(reply.status == 200, f"a registration of {client.id} that succeeds", reply)
    within_ms = _UNHEALTHY_MS + _CHECK_MS + 2 * kit.timings.sync_ms
    dead = _sent_health(kit, client.id, False, after=deleted, at=kit.peers[-1])
    await kit.eventually(dead, within_ms=within_ms, what=f"a CHANGE of {client.id}, unhealthy, after its return")


@requirement("DISTRO-IPPORT-007", MUST, "#lease-beats, #revision-ip-port", bug="B06", since="2.1.2")
async def health_has_a_revision(kit: Kit) -> None:
    """An instance that becomes unhealthy because it gets no beats reaches every member as a CHANGE with another
    revision.

    If a check of beats is so late that it removes the instance, the instance never was unhealthy.
    """
    began_ms = kit.target.clock.now_ms()
    client, _ = await _registered(kit)
    healthy = await kit.arrange(
        _sent_health(kit, client.id, True), within_ms=2 * kit.timings.sync_ms, what="the first CHANGE"
    )
    within_ms = _UNHEALTHY_MS + _CHECK_MS + 2 * kit.timings.sync_ms
    shown, ended = _sent_health(kit, client.id, False), _ended(kit, client.id, healthy)

    async def announced() -> Arrival | None:
        found = await shown()
        if found is None and await ended() is not None:
            _assume_checks(kit, began_ms)
        return found

    unhealthy = await kit.eventually(announced, within_ms=within_ms, what=f"a CHANGE of {client.id}, unhealthy")
    also, what = _sent_health(kit, client.id, False, at=kit.other), f"the same CHANGE at {kit.other.address}"
    await kit.eventually(also, within_ms=2 * kit.timings.sync_ms, what=what)
    assert healthy.call is not None
    assert unhealthy.call is not None
    kit.require(
        healthy.call.revision != unhealthy.call.revision,
        "another revision for other content",
        f"{healthy}; {unhealthy}",
        observed={"revision": healthy.call.revision},
    )


@requirement("DISTRO-IPPORT-008", MUST, "#lease-beats")
async def beat_heals(kit: Kit) -> None:
    """A beat, whole or light, makes an unhealthy instance healthy again: every member receives a CHANGE and
    subscribers a push, as they did when it became unhealthy."""
    client, service = await _registered(kit)
    other, its = await _registered(kit)
    subscriber = await kit.client()
    await subscriber.subscribe(service)

    def pushed(healthy: bool) -> Look[bool]:
        return known(lambda: [each.healthy for each in subscriber.last_pushed(service) or ()] == [healthy])

    within_ms = _UNHEALTHY_MS + _CHECK_MS + 2 * kit.timings.sync_ms
    what = f"an unhealthy {client.id}"
    dead = [_sent_health(kit, client.id, False, at=peer) for peer in kit.peers]
    unhealthy = [await kit.arrange(look, within_ms=within_ms, what=what) for look in dead]
    within_ms = kit.timings.push_ms
    await kit.eventually(pushed(False), within_ms=within_ms, what=f"a push of an unhealthy {client.id}")
    look = _sent_health(kit, other.id, False)
    also = await kit.arrange(look, within_ms=_CHECK_MS, what=f"an unhealthy {other.id}")
    await client.beat(service)
    await other.light_beat(its)
    kit.note(f"{client.id} sends a whole beat, and {other.id} a light one")
    for peer, before in zip(kit.peers, unhealthy, strict=True):
        look = _sent_health(kit, client.id, True, after=before, at=peer)
        what = f"a CHANGE of {client.id}, healthy again, at {peer.address}"
        await kit.eventually(look, within_ms=2 * kit.timings.sync_ms, what=what)
    await kit.eventually(pushed(True), within_ms=within_ms, what=f"a push of {client.id}, healthy again")
    look, what = _sent_health(kit, other.id, True, after=also), f"a CHANGE of {other.id}, healthy again"
    await kit.eventually(look, within_ms=2 * kit.timings.sync_ms, what=what)


@requirement("DISTRO-IPPORT-009", MUST, "#owner-filter")
async def no_second_hop(kit: Kit) -> None:
    """A request that a member has passed on is not passed on again: a node that is not the owner refuses it with
    400."""
    client = kit.http_client(kit.peer.address)
    reply = await client.passed_on(kit.service())
    kit.note(f"a member passes on a registration of {client.id}, which {kit.peer.address} owns: {reply}")
    kit.require(reply.status == 400, "status 400", reply)
    again = _passed_on(client, kit.peer)
    kit.require(not again, f"nothing passed on to {kit.peer.address}", again)


@requirement("DISTRO-IPPORT-010", MUST, "#http-v1")
async def list_over_http(kit: Kit) -> None:
    """A list over HTTP, from any member, shows all published and enabled instances under the grouped name, each with
    its metadata and weight; a list of one cluster, by the later version of the HTTP API too, or of healthy instances,
    leaves out all others."""
    service, reader = kit.service(), kit.http_client(kit.peer.address)
    blue = {"clusterName": "blue", "metadata": {"zone": "a"}, "weight": 2.5}
    parts: Sequence[Json] = ({"healthy": False}, blue, {"enabled": False})
    for port, part in enumerate(parts, 80):
        body = instance_request("registerInstance", service, "10.0.0.1", port, {})
        body["instance"] |= part
        await (await kit.client()).ask("InstanceRequest", body)

    async def listed(**selector: str) -> list[int]:
        reply = await reader.list(service, **selector)
        kit.note(f"the list of {service} over HTTP, {selector or 'whole'}: {reply}")
        kit.require(reply.status == 200, "status 200", reply)
        found = json.loads(reply.text)
        kit.require(found.get("name") == f"DEFAULT_GROUP@@{service}", "the grouped name", found)
        return sorted(each["port"] for each in found["hosts"])

    async def shown() -> bool:
        return await listed() == [80, 81]

    await kit.eventually(shown, within_ms=kit.timings.view_ms, what=f"ports 80 and 81 of {service} in a list over HTTP")
    for selector, port in ({"healthyOnly": "true"}, 81), ({"clusters": "blue"}, 81), ({"clusters": "DEFAULT"}, 80):
        ports = await listed(**selector)
        kit.require(ports == [port], f"port {port} alone for {selector}", ports)
    reply = await reader.list(service, clusters="DEFAULT,blue")
    kit.require(reply.status == 200, "status 200", reply)
    hosts = [read_host(each) for each in json.loads(reply.text)["hosts"]]
    values = {each.port: (each.healthy, each.cluster, dict(each.metadata), each.weight) for each in hosts}
    expected = {80: (False, "DEFAULT", {}, 1.0), 81: (True, "blue", {"zone": "a"}, 2.5)}
    kit.require(values == expected, "each instance of two clusters with its own values", values)
    if kit.target.profile in _HAS_LATER_API:
        api = later_api(kit.target.profile)
        reply = await replace(reader, api=api).list(service, clusterName="blue")
        kit.note(f"the list of {service} in the cluster blue by {api}: {reply}")
        kit.require(reply.status == 200, f"status 200 by {api}", reply)
        data = json.loads(reply.text)["data"]
        ports = [each["port"] for each in (data if isinstance(data, list) else data["hosts"])]
        kit.require(ports == [81], f"port 81 alone for the cluster blue by {api}", ports)


@requirement("DISTRO-IPPORT-011", MUST, "#owner-responsible, #verify-round")
async def owner_verifies_ip_port_clients(kit: Kit) -> None:
    """The owner verifies its clients of the HTTP API at every other member, with their revision."""
    client, _ = await _registered(kit)
    for peer in kit.peers:
        change = await kit.arrange_sent("CHANGE", client.id, at=peer, within_ms=2 * kit.timings.sync_ms)
        verify = await kit.eventually_sent("VERIFY", client.id, after=change, at=peer)
        revisions = [each.call.revision for each in (change, verify) if each.call]
        kit.assume_turns(verify.at_ms - change.at_ms, _UNHEALTHY_MS, "a VERIFY of what is still healthy")
        if kit.target.profile in _HAS_REVISIONS:
            kit.require(revisions[0] == revisions[1] != 0, "the revision of the CHANGE", revisions)


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


@requirement("DISTRO-IPPORT-014", MUST, "#revision-ip-port", since="2.1.2")
async def each_part_has_a_revision(kit: Kit) -> None:
    """A change of any single part of what a client of the HTTP API publishes changes the client's revision: metadata,
    weight, enabled, health, cluster, and the set of services."""
    apis = ("v1", later_api(kit.target.profile)) if kit.target.profile in _HAS_LATER_API else ("v1",)
    for api in apis:
        client, service = replace(kit.http_client(kit.target.address), api=api), kit.service()
        parts: dict[str, tuple[dict[str, str], dict[str, str]]] = {
            "nothing": ({}, {}),
            "metadata": ({"zone": "a"}, {}),
            "a value in the metadata": ({"zone": "b"}, {}),
            "a key in the metadata": ({"room": "b"}, {}),
            "the weight": ({}, {"weight": "2.5"}),
            "enabled": ({}, {"enabled": "false"}),
            "the health": ({}, {"healthy": "false"}),
            "the cluster": ({"cluster": "blue"}, {}),
        }
        revisions: dict[str, int | None] = {}
        for what, (metadata, parameters) in parts.items():
            reply = await client.register(service, metadata, **parameters)
            kit.assume(reply.status == 200, f"a registration of {client.id} by {api} that succeeds", reply)
            revisions[what] = await kit.revision_of(client.id)
        await client.register(service)
        again = await kit.revision_of(client.id)
        await client.register(kit.service())
        revisions["a second service"] = await kit.revision_of(client.id)
        await client.deregister(service)
        revisions["the first service deregistered"] = await kit.revision_of(client.id)
        kit.note(f"revisions of {client.id}, which registers {service} by {api}: {revisions}")
        kit.require(len(set(revisions.values())) == len(revisions), "another revision for each", revisions)
        kit.require(again == revisions["nothing"], f"the first revision, {revisions['nothing']}, restored", again)


@requirement("DISTRO-IPPORT-015", MUST, "#lease-beats")
async def time_outs_in_the_metadata_count(kit: Kit) -> None:
    """Time-outs in the metadata of an instance decide when it is unhealthy and when it is removed, and affect no other
    instance of its client."""
    began_ms = kit.target.clock.now_ms()
    short, long = _timeouts(_SHORT_MS, 2 * _SHORT_MS), _timeouts(2 * _GONE_MS, 3 * _GONE_MS)
    client, brief = await _registered(kit, **short)
    patient, beating = kit.service(), kit.service()
    for service in (patient, beating):
        await client.register(service, long)
    kit.note(f"it registers {patient} and {beating} too; the metadata of the first hold {short}, those of both {long}")

    async def healthy() -> Mapping[str, bool]:
        copy = await kit.peer.query(client.id)
        return {each.service: each.healthy for each in copy.published} if copy else {}

    async def unhealthy() -> bool:
        return not (await healthy()).get(brief)

    async def removed() -> bool:
        return brief not in await healthy()

    for look, after_ms, what in ((unhealthy, _SHORT_MS, "unhealthy"), (removed, 2 * _SHORT_MS, "without")):
        left_ms = max(0, began_ms + after_ms - kit.target.clock.now_ms())
        await kit.never(look, for_ms=max(0, left_ms - 1), what=f"{brief} of {client.id} may yet beat")
        await kit.eventually(look, within_ms=1 + _CHECK_MS + _CHECK_MS // 2, what=f"{client.id} {what} {brief}")
    end_ms = began_ms + _GONE_MS + 2 * _CHECK_MS
    while (left_ms := end_ms - kit.target.clock.now_ms()) > 0:
        await client.beat(beating)  # renews the client, whose lease may be shorter than this check
        await kit.settle(min(left_ms, _BEAT_MS))
    found = await healthy()
    kit.assume_turns(kit.target.clock.now_ms() - began_ms, 2 * _GONE_MS, "a look")
    kit.require(found == {patient: True, beating: True}, f"healthy {patient} and {beating} alone", found)


@requirement("DISTRO-IPPORT-016", MUST, "#lease-beats, #http-beat")
async def whole_beat_is_for_the_service_of_its_body(kit: Kit) -> None:
    """A whole beat of a registered instance counts for the service that its body names, whatever service the request
    parameter names."""
    client, named = await _registered(kit)
    in_body = kit.service()
    await client.register(in_body)
    beaten_ms = kit.target.clock.now_ms()
    end_ms = beaten_ms + _UNHEALTHY_MS + _CHECK_MS
    kit.note(f"it registers {in_body} too; its beats name {in_body} in the body and {named} as the parameter")

    async def health() -> Mapping[str, bool]:
        nonlocal beaten_ms
        last_ms, beaten_ms = beaten_ms, kit.target.clock.now_ms()
        reply = await client.beat(in_body, parameter=named)
        kit.require(reply.status == 200 and "10200" in reply.text, "code 10200 for a whole beat", reply)
        await kit.sleep(_BEAT_MS)
        copy = await kit.peer.query(client.id)
        kit.assume_turns(kit.target.clock.now_ms() - last_ms, _UNHEALTHY_MS, "one beat after the other")
        return {each.service: each.healthy for each in copy.published} if copy else {}

    async def other_ends() -> bool:
        found = await health()
        kit.require(found.get(in_body) is True, f"a healthy {in_body} of {client.id}, for which it beats", found)
        return not found.get(named)

    while kit.target.clock.now_ms() < end_ms:
        await other_ends()
    await kit.eventually(other_ends, within_ms=_CHECK_MS, what=f"no healthy {named}, which no body names")


@requirement("DISTRO-IPPORT-017", MUST, "#http-v1, #index-entries")
async def deregistration_over_http_ends_one_instance(kit: Kit) -> None:
    """A deregistration over HTTP removes one instance: instances of other clients of the service, and of the same
    client under other services, stay in the CHANGE and in lists over gRPC and HTTP."""
    client, service = await _registered(kit)
    other = kit.service()
    await client.register(other)
    neighbour = kit.http_client(kit.target.address)
    await neighbour.register(service)
    await (await kit.client()).register(service, "10.0.0.1", 80)
    reader = await kit.client()
    addresses = [f"{neighbour.ip}:{neighbour.port}", "10.0.0.1:80"]
    await kit.arrange_listed(reader, service, f"{client.ip}:{client.port}", *addresses)
    await client.deregister(service)
    kit.note(f"it deregisters {service}, which {neighbour.id} publishes too, and keeps {other}")
    changed = kit.arrival("CHANGE", client.id, carrying=lambda replica: services_of(replica) == [other])
    await kit.eventually(changed, within_ms=2 * kit.timings.sync_ms, what=f"a CHANGE of {client.id} with {other} alone")
    await kit.eventually_listed(reader, service, *addresses)
    await kit.eventually_listed(reader, other, f"{client.ip}:{client.port}")
    over_http = [f"{each['ip']}:{each['port']}" for each in json.loads((await neighbour.list(service)).text)["hosts"]]
    kit.require(sorted(over_http) == sorted(addresses), f"{addresses} in the list over HTTP", over_http)


@requirement("DISTRO-IPPORT-018", MUST, "#http-beat")
async def answer_to_a_beat_names_the_interval(kit: Kit) -> None:
    """The answer to a beat names the time until the next one, which is the interval in the metadata of the instance,
    else five seconds, and allows light beats."""
    for metadata, interval in (({}, _BEAT_MS), ({"preserved.heart.beat.interval": str(_OWN_BEAT_MS)}, _OWN_BEAT_MS)):
        client, service = await _registered(kit, **metadata)
        for beat in ("whole", "light"):
            reply = await (client.beat(service, metadata) if beat == "whole" else client.light_beat(service))
            kit.note(f"a {beat} beat of {client.id}, whose metadata are {metadata}: {reply}")
            kit.require(reply.status == 200, f"a {beat} beat of {client.id} that succeeds", reply)
            named = [json.loads(reply.text).get(key) for key in ("clientBeatInterval", "lightBeatEnabled")]
            kit.require(named == [interval, True], f"clientBeatInterval {interval} and lightBeatEnabled", named)


@requirement("DISTRO-IPPORT-019", MUST, "#http-refusals", since="2.1.1")
async def illegal_instance_over_http_is_refused(kit: Kit) -> None:
    """An instance over HTTP with a weight out of bounds, a beat interval longer than one of its time-outs, or an
    illegal cluster name is refused and registers nothing; weights at the bounds and legal cluster names are taken."""
    slow = {"preserved.heart.beat.interval": "20000"}
    illegal: Sequence[Mapping[str, str]] = (
        {"weight": "-0.1"},
        {"weight": "10000.1"},
        {**slow, "preserved.heart.beat.timeout": "10000", "preserved.ip.delete.timeout": "30000"},
        {**slow, "preserved.heart.beat.timeout": "30000", "preserved.ip.delete.timeout": "10000"},
        {"cluster": "no,name"},
    )
    legal = ({"weight": "0"}, {"weight": "10000"}, {"cluster": "Blue-1"})
    apis = ("v1", later_api(kit.target.profile)) if kit.target.profile in _HAS_LATER_API else ("v1",)
    for api in apis:
        for metadata in (*illegal, *legal):
            client, service = replace(kit.http_client(kit.target.address), api=api), kit.service()
            reply = await client.register(service, metadata)
            kit.note(f"{client.id} registers {service} by {api} with {metadata}: {reply}")
            answer = answer_over_http(reply.status, reply.text)
            what = "a refusal" if metadata in illegal else "success"
            kit.require(answer.is_refused is (metadata in illegal), f"{what} for {metadata} by {api}", reply)
            copy = await kit.peer.query(client.id)
            kit.require((copy is None) is (metadata in illegal), f"what {what} for {metadata} by {api} says", copy)


def _timeouts(unhealthy_ms: int, gone_ms: int) -> dict[str, str]:
    """Metadata of an instance. The beat interval must not exceed the time-outs."""
    return {
        "preserved.heart.beat.interval": str(min(unhealthy_ms, _BEAT_MS)),
        "preserved.heart.beat.timeout": str(unhealthy_ms),
        "preserved.ip.delete.timeout": str(gone_ms),
    }


def _passed_on(client: PlayedHttpClient, owner: PlayedPeer) -> list[Json]:
    """Requests that the node passed on to the played member; a beat may name its instance in the body alone."""
    return [each for each in owner.http.requests if _named_ip(each["query"]) == client.ip]


def _named_ip(query: Mapping[str, str]) -> object:
    return query.get("ip") or json.loads(query.get("beat", "{}")).get("ip")


def _sent_health(
    kit: Kit, client: str, healthy: bool, *, after: Arrival | None = None, at: PlayedPeer | None = None
) -> Look[Arrival]:
    """Looks for a CHANGE that shows the client's one instance with this health."""

    def shows(replica: Replica) -> bool:
        return [each.healthy for each in replica.published] == [healthy]

    return kit.arrival("CHANGE", client, after=after, at=at, carrying=shows)


def _ended(kit: Kit, client: str, after: Arrival | None = None, *, at: PlayedPeer | None = None) -> Look[Arrival]:
    """Looks for a CHANGE or a DELETE that removes the client's instance."""

    async def look() -> Arrival | None:
        emptied = kit.arrival("CHANGE", client, after=after, at=at, carrying=lambda replica: not replica.published)
        return await emptied() or await kit.arrival("DELETE", client, after=after, at=at)()

    return look


def _assume_checks(kit: Kit, since_ms: int) -> None:
    """Beats are checked every five seconds. An instance is removed without having been unhealthy only if a check is
    late by five seconds: the ten seconds in between, less the five that a check may regularly come after the
    time-out."""
    taken_ms = kit.target.clock.slack_since(since_ms)
    kit.assume(taken_ms < _CHECK_MS, "checks of beats in time", f"this machine took {taken_ms} ms")


async def _registered(kit: Kit, **metadata: str) -> tuple[PlayedHttpClient, str]:
    """A client that the node owns."""
    client, service = kit.http_client(kit.target.address), kit.service()
    reply = await client.register(service, metadata)
    kit.note(f"{client.id}, which the node owns, registers {service} there: {reply}")
    kit.assume((reply.status, reply.text) == (200, "ok"), f"a registration of {client.id} that succeeds", reply)
    return client, service
