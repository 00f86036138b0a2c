"""Clients of the HTTP API, which have no connection and one owner by hash: how they register, deregister and are listed
at their owner, and what members receive of them (docs/protocol #owner-place, #sync-announce and #http-v1). Their beats
are in beats.py, their requests at other members in forwarding.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from distro_conformance.node.http_player import PlayedHttpClient, apis_of
from distro_conformance.node.kit import Kit
from distro_conformance.node.kit import services as services_of
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.player import CACHE_MS, answer_over_http, instance_request, read_host
from distro_conformance.node.replies import FAILURE
from distro_conformance.release import Span
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Poll, first_of
from distro_conformance.wire.messages import content_of
from distro_protos import Json
from distro_traces.content import Published, Replica

_HAS_REVISIONS = Span(since="2.1.2")
_CLOSES_ADMINISTRATION, _CLOSED = Span(since="3.0.0"), 410


@requirement("DISTRO-IPPORT-001", MUST, "#sync-announce, #http-v1")
async def registration_over_http_arrives_as_change(kit: Kit) -> None:
    """An instance that is registered over HTTP at its owner is in a SNAPSHOT and in a push, and every other member
    receives all of it in a CHANGE of `ip:port#true`, with the namespace and the group that the request named; and so
    with another registration at the same address, which replaces the instance."""
    client, service = await registered_here(kit, cluster="blue", zone="a")
    subscriber = await kit.client()
    await subscriber.subscribe(service)
    before = await _arrives(kit, client, service, "a", {})
    reply = await client.register(service, {"cluster": "blue", "zone": "b"})
    kit.note(f"it registers {service} again, with zone b: {reply}")
    await _arrives(kit, client, service, "b", before)
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


async def _arrives(
    kit: Kit, client: PlayedHttpClient, service: str, zone: str, after: Mapping[str, Arrival]
) -> dict[str, Arrival]:
    """The CHANGE of that instance and zone at each member, by address, after that one."""
    found = {}
    for peer in kit.peers:
        change = found[peer.address] = await kit.eventually_sent(
            "CHANGE", client.id, after=after.get(peer.address), at=peer, within_ms=2 * kit.timings.sync_ms
        )
        instances = [(each.service, each.ip, each.port, each.cluster) for each in change.published]
        registered = (service, client.ip, client.port, "blue")
        kit.require(instances == [registered], f"the CHANGE to hold {registered} and nothing else", instances)
        attributes = change.published[0].attributes
        seen = json.loads(attributes).get("zone")
        kit.require(seen == zone, f"the instance's metadata zone {zone}", attributes)
    return found


@requirement("DISTRO-IPPORT-006", MUST, "#http-v1, #sync-announce")
async def deregistration_over_http_arrives(kit: Kit) -> None:
    """A deregistration over HTTP removes the instance, and 30 s later the client, and both changes are sent to every
    member, and the first is pushed to subscribers; one of an unknown instance succeeds, and an instance that is
    registered again at the same address is unhealthy without beats, like the first."""
    client, service = await registered_here(kit)
    subscriber = await kit.client()
    await subscriber.subscribe(service)
    unknown = await kit.http_client(kit.target.address).deregister(service)
    kit.require((unknown.status, unknown.text) == (200, "ok"), "ok for another client, which is unknown", unknown)
    first = [
        await kit.arrange_sent("CHANGE", client.id, at=peer, within_ms=2 * kit.timings.sync_ms) for peer in kit.peers
    ]
    deregistered_ms = kit.target.clock.now_ms()
    reply = await client.deregister(service)
    kit.note(f"it deregisters: {reply}")
    kit.require((reply.status, reply.text) == (200, "ok"), "ok", reply)
    for peer, change in zip(kit.peers, first, strict=True):
        what = f"a CHANGE of {client.id} without {service}, or its DELETE, at {peer.address}"
        emptied = removal(kit, client.id, change, at=peer)
        await kit.eventually(emptied, within_ms=2 * kit.timings.sync_ms, what=what)
    await kit.eventually_listed(subscriber, service)
    await kit.eventually_pushed(subscriber, service)
    within_ms = kit.timings.gone_ms + kit.timings.clean_ms + 2 * kit.timings.sync_ms  # less than a lease
    for peer in kit.peers:
        deleted = await kit.eventually_sent("DELETE", client.id, at=peer, within_ms=within_ms)
        what = f"the deregistration and the DELETE at {peer.address}"
        kit.require_apart(deregistered_ms, deleted.at_ms, kit.timings.gone_ms, what)
    reply = await client.register(service)
    kit.note(f"it registers {service} again: {reply}")
    kit.assume(reply.status == 200, f"a registration of {client.id} that succeeds", reply)
    within_ms = kit.timings.unhealthy_ms + kit.timings.beat_check_ms + 2 * kit.timings.sync_ms
    dead = sent_health(kit, client.id, False, after=deleted, at=kit.peers[-1])
    await kit.eventually(dead, within_ms=within_ms, what=f"a CHANGE of {client.id}, unhealthy, after its return")


@requirement("DISTRO-IPPORT-010", MUST, "#http-v1")
async def list_over_http(kit: Kit) -> None:
    """A list over HTTP, from any member, shows all published and enabled instances under the grouped name, each with
    its metadata and weight; a list of one cluster, by the later version of the HTTP API too, or of healthy instances,
    leaves out all others; a query of one instance shows the one of the cluster that it names, or of the cluster
    DEFAULT, and fails if there is none."""
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
        kit.require(found.get("cacheMillis") == CACHE_MS, f"that it may be kept for {CACHE_MS} ms", found)
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
    await _one_over_http(kit, replace(reader, ip="10.0.0.1", port=81), service)
    for api in apis_of(kit.target.profile)[1:]:
        reply = await replace(reader, api=api).list(service, clusterName="blue")
        kit.note(f"the list of {service} in the cluster blue by {api}: {reply}")
        kit.require(reply.status == 200, f"status 200 by {api}", reply)
        data = json.loads(reply.text)["data"]
        ports = [each["port"] for each in (data if isinstance(data, list) else data["hosts"])]
        kit.require(ports == [81], f"port 81 alone for the cluster blue by {api}", ports)


async def _one_over_http(kit: Kit, one: PlayedHttpClient, service: str) -> None:
    """3.x answers 410 unless `nacos.core.api.compatibility.admin.enabled` is set: then the query is not judged."""
    reply = await one.query(service, clusterName="blue")
    kit.note(f"a query of 10.0.0.1:81 of {service} in the cluster blue: {reply}")
    if reply.status == _CLOSED and kit.target.profile in _CLOSES_ADMINISTRATION:
        return
    kit.require(reply.status == 200, "status 200", reply)
    instance = json.loads(reply.text)
    found = [instance.get(key) for key in ("weight", "healthy", "metadata")]
    kit.require(found == [2.5, True, {"zone": "a"}], "the instance with its own values", instance)
    for selector in ({"clusterName": "DEFAULT"}, {}):
        reply = await one.query(service, **selector)
        kit.require(reply.status >= 400, "no instance at 10.0.0.1:81 in the cluster DEFAULT", reply)
    reply = await replace(one, port=80).query(service)
    kit.note(f"a query of 10.0.0.1:80 of {service} in no named cluster: {reply}")
    kit.require(reply.status == 200, "status 200", reply)
    kit.require(json.loads(reply.text).get("healthy") is False, "the unhealthy instance", reply)


@requirement("DISTRO-IPPORT-011", MUST, "#owner-responsible, #verify-round")
async def owner_verifies_ip_port_clients(kit: Kit) -> None:
    """The owner verifies its clients of the HTTP API at every other member, with their revision, and sends a member
    that answers with failure a CHANGE at once."""
    client, _ = await registered_here(kit)
    for peer in kit.peers:
        change = await kit.arrange_sent("CHANGE", client.id, at=peer, within_ms=2 * kit.timings.sync_ms)
        verify = await kit.eventually_sent("VERIFY", client.id, after=change, at=peer)
        revisions = [each.call.revision for each in (change, verify) if each.call]
        kit.assume_turns(verify.at_ms - change.at_ms, kit.timings.unhealthy_ms, "a VERIFY of what is still healthy")
        if kit.target.profile in _HAS_REVISIONS:
            kit.require(revisions[0] == revisions[1] != 0, "the revision of the CHANGE", revisions)
    kit.answer("VERIFY", FAILURE, client=client.id, at=peer)
    failed = await kit.arrange_sent("VERIFY", client.id, after=verify, at=peer)
    await kit.eventually_sent("CHANGE", client.id, after=failed, at=peer, within_ms=kit.timings.resync_ms)


@requirement("DISTRO-IPPORT-014", MUST, "#revision-ip-port", since="2.1.2")
async def each_part_has_a_revision(kit: Kit) -> None:
    """A change of any single part of what a client of the HTTP API publishes changes the client's revision: metadata,
    weight, enabled, health, cluster, and the set of services."""
    for api in apis_of(kit.target.profile):
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


@requirement("DISTRO-IPPORT-017", MUST, "#http-v1, #index-entries")
async def deregistration_over_http_ends_one_instance(kit: Kit) -> None:
    """A deregistration over HTTP removes one instance: instances of other clients of the service, and of the same
    client under other services, stay in the CHANGE and in lists over gRPC and HTTP."""
    client, service = await registered_here(kit)
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
    for api in apis_of(kit.target.profile):
        for metadata in (*illegal, *legal):
            client, service = replace(kit.http_client(kit.target.address), api=api), kit.service()
            reply = await client.register(service, metadata)
            kit.note(f"{client.id} registers {service} by {api} with {metadata}: {reply}")
            answer = answer_over_http(reply.status, reply.text)
            what = "a refusal" if metadata in illegal else "success"
            kit.require(answer.is_refused is (metadata in illegal), f"{what} for {metadata} by {api}", reply)
            copy = await kit.peer.query(client.id)
            kit.require((copy is None) is (metadata in illegal), f"what {what} for {metadata} by {api} says", copy)


@requirement("DISTRO-IPPORT-020", MUST, "#http-v1")
async def parameters_count_in_each_spelling(kit: Kit) -> None:
    """A registration over HTTP whose parameters are in a form, with the group apart from the name, the older names
    `cluster` and `enable`, and metadata as pairs, reaches every member as any other; lists take the group apart from
    the name too."""
    client, service, away = kit.http_client(kit.target.address), kit.service(), kit.service()
    group = {"groupName": "OTHER_GROUP"}
    spelled = {"cluster": "blue", "metadata": "zone=a,room=b"}
    for name, more in (away, {"enable": "false"}), (service, {}):
        reply = await client.register_with(name, **group, **spelled, **more)
        kit.note(f"{client.id} registers {name} with {group | spelled | more} in a form: {reply}")
        kit.require((reply.status, reply.text) == (200, "ok"), "ok", reply)
    for peer in kit.peers:
        both = kit.arrival("CHANGE", client.id, at=peer, carrying=lambda replica: len(replica.published) == 2)
        what = f"a CHANGE of {client.id} with {away} and {service} at {peer.address}"
        change = await kit.eventually(both, within_ms=2 * kit.timings.sync_ms, what=what)
        held = {each.service: (each.group, each.cluster, _datum(each)) for each in change.published}
        datum = {"zone": "a", "room": "b"}
        expected = {
            away: ("OTHER_GROUP", "blue", datum | {"publishInstanceEnable": False}),
            service: ("OTHER_GROUP", "blue", datum),
        }
        kit.require(held == expected, f"{expected}", held)
    reply = await client.list(service, **group)
    ports = [f"{each['ip']}:{each['port']}" for each in json.loads(reply.text)["hosts"]]
    kit.require(ports == [f"{client.ip}:{client.port}"], f"{client.id} in the list of {service} of OTHER_GROUP", reply)


def _datum(published: Published) -> Json:
    """The attributes without the generated id."""
    return {key: value for key, value in json.loads(published.attributes).items() if key != "customInstanceId"}


def sent_health(
    kit: Kit, client: str, healthy: bool, *, after: Arrival | None = None, at: PlayedPeer | None = None
) -> Poll[Arrival]:
    """Polls for a CHANGE that shows the client's one instance with this health."""

    def shows(replica: Replica) -> bool:
        return [each.healthy for each in replica.published] == [healthy]

    return kit.arrival("CHANGE", client, after=after, at=at, carrying=shows)


def removal(kit: Kit, client: str, after: Arrival | None = None, *, at: PlayedPeer | None = None) -> Poll[Arrival]:
    """Polls for a CHANGE or a DELETE that removes the client's instance."""

    emptied = kit.arrival("CHANGE", client, after=after, at=at, carrying=lambda replica: not replica.published)
    return first_of((emptied, kit.arrival("DELETE", client, after=after, at=at)))


async def registered_here(kit: Kit, **metadata: str) -> tuple[PlayedHttpClient, str]:
    """A client that the node owns."""
    client, service = kit.http_client(kit.target.address), kit.service()
    reply = await client.register(service, metadata)
    kit.note(f"{client.id}, which the node owns, registers {service} there: {reply}")
    kit.assume((reply.status, reply.text) == (200, "ok"), f"a registration of {client.id} that succeeds", reply)
    return client, service
