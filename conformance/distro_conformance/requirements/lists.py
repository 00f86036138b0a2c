"""Answers to queries (docs/protocol #index-push, #index-entries, #naming-requests)."""

from __future__ import annotations

import json
from http import HTTPStatus

from distro_conformance.node.kit import Kit
from distro_conformance.node.player import (
    CACHE_MS,
    CLUSTER,
    GROUP,
    NAMESPACE,
    PlayedClient,
    instance_request,
    query_request,
    read_hosts,
    service_request,
)
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import poll_local
from distro_conformance.wire.messages import distro_request, sync_data
from distro_protos import Json, Message

_TIME_OUTS = {
    "preserved.heart.beat.interval": "3000",
    "preserved.heart.beat.timeout": "9000",
    "preserved.ip.delete.timeout": "18000",
}
_TIMES = ("instanceHeartBeatInterval", "instanceHeartBeatTimeOut", "ipDeleteTimeout")
_NAMES = "address billing cart catalogue discount invoice payment refund stock tax"
_EMPTY_MS = 60_000 + 60_000 + 5_000
"""How long a service has to be empty, and the time between two checks of that."""
_SAID_OF_A_LIST = {"valid": True, "reachProtectionThreshold": False}
_ID_OF_THE_COPY = "an-id-of-its-own"
_APART_MS = 100
"""Between two queries."""
_OWN_TIMES, _USUAL_TIMES = [3_000, 9_000, 18_000], [5_000, 15_000, 30_000]


@requirement("DISTRO-LIST-001", MUST, "#index-push", bug="B12")
async def registration_shows(kit: Kit) -> None:
    """An acknowledged registration is in the answers to queries of any client until it is deregistered."""
    reader = await kit.client()
    client, service = await kit.publisher()
    await kit.eventually_listed(reader, service, "10.0.0.1:80")
    await client.deregister(service, "10.0.0.1", 80)
    kit.note(f"it deregisters {service}")
    await kit.eventually_listed(reader, service)


@requirement("DISTRO-LIST-002", MUST, "#naming-requests")
async def unknown_service_is_empty(kit: Kit) -> None:
    """A query of a service that no client publishes succeeds and shows the service, without hosts."""
    service = kit.service()
    reply = await (await kit.client()).ask("ServiceQueryRequest", query_request(service))
    kit.require(reply.type == "QueryServiceResponse" and reply.succeeded, "success", reply)
    kit.require(read_hosts(reply) == (), "no hosts", reply.body)
    listed = reply.body.get("serviceInfo") or {}
    named = (listed.get("name"), listed.get("groupName"))
    kit.require(named == (service, GROUP), f"{service} of the group {GROUP}", listed)


@requirement("DISTRO-LIST-003", MUST, "#naming-requests")
async def disabled_instance_is_hidden(kit: Kit) -> None:
    """A disabled instance is in no list, and is in every list again as soon as it is enabled."""
    service, reader, client = kit.service(), await kit.client(), await kit.client()
    await _register(client, service, 80, enabled=False)
    await _register(await kit.client(), service, 81)
    await kit.eventually_listed(reader, service, "10.0.0.1:81")
    for enabled in (True, False):
        await _register(client, service, 80, enabled=enabled)
        kit.note(f"{client.id} registers {service} at 10.0.0.1:80 again, {'' if enabled else 'not '}enabled")
        await kit.eventually_listed(reader, service, *(["10.0.0.1:80"] if enabled else []), "10.0.0.1:81")


@requirement("DISTRO-LIST-004", MUST, "#naming-requests")
async def selectors_select(kit: Kit) -> None:
    """A query for healthy instances leaves out unhealthy ones, and a query for one or several clusters shows the
    instances of each and no others, healthy ones if it says so too, and names the clusters: SDKs keep lists by service
    and clusters; null stands for all clusters."""
    service, reader = kit.service(), await kit.client()
    await _register(await kit.client(), service, 80, healthy=False)
    await _register(await kit.client(), service, 81, clusterName="blue")
    await _register(await kit.client(), service, 82, clusterName="green")
    await kit.arrange_listed(reader, service, *(f"10.0.0.1:{port}" for port in (80, 81, 82)))
    selectors: tuple[tuple[Json, list[int]], ...] = (
        ({"healthyOnly": True}, [81, 82]),
        ({"cluster": None}, [80, 81, 82]),
        ({"cluster": "blue"}, [81]),
        ({"cluster": "DEFAULT"}, [80]),
        ({"cluster": "DEFAULT,green"}, [80, 82]),
        ({"cluster": "DEFAULT,green", "healthyOnly": True}, [82]),
    )
    for selector, ports in selectors:
        reply = await reader.ask("ServiceQueryRequest", {**query_request(service), **selector})
        hosts = read_hosts(reply)
        kit.note(f"a query with {selector}: {hosts}")
        kit.require(sorted(each.port for each in hosts) == ports, f"ports {ports} alone for {selector}", hosts)
        clusters, named = selector.get("cluster") or "", (reply.body.get("serviceInfo") or {}).get("clusters")
        kit.require(named == clusters, f"the clusters {clusters!r} in the list", named)


@requirement("DISTRO-LIST-005", MUST, "#index-entries")
async def list_is_the_union(kit: Kit) -> None:
    """A list is the union of what all clients publish, own and synced, each with its published values, a weight of 0
    too, its id, metadata as text, the time-outs in them, and the service and group that it belongs to; what two clients
    publish differently at one address is shown twice, and what they publish alike once; it says that it may be kept for
    ten seconds, that it is valid, and that no unhealthy instance is shown as healthy; a later list has a later time."""
    service, reader, synced = kit.service(), await kit.client(), kit.foreign_client()
    metadata = {"zone": "a", **_TIME_OUTS}
    await _register(await kit.client(), service, 80, weight=2.5, metadata=metadata)
    await _register(await kit.client(), service, 81)
    await _register(await kit.client(), service, 83, weight=0)
    content = sync_data(synced, 1, [(service, "10.0.0.1", 82)])
    content["instancePublishInfos"][0]["extendDatum"] = {**metadata, "publishInstanceWeight": 2.5, "size": 3}
    content["instancePublishInfos"][0]["extendDatum"]["customInstanceId"] = _ID_OF_THE_COPY
    change = distro_request("CHANGE", synced, target=kit.target.address, content=content)
    reply = await kit.peer.send(change)
    kit.assume(reply.succeeded, "an acknowledged CHANGE", reply)
    await kit.eventually_listed(reader, service, *(f"10.0.0.1:{port}" for port in range(80, 84)))
    listed = (await reader.ask("ServiceQueryRequest", query_request(service))).body["serviceInfo"]
    named = (listed.get("name"), listed.get("groupName"))
    kit.require(named == (service, GROUP), f"{service} of the group {GROUP}", listed)
    kit.require(listed.get("cacheMillis") == CACHE_MS, f"that it may be kept for {CACHE_MS} ms", listed)
    said = {key: listed.get(key) for key in _SAID_OF_A_LIST}
    kit.require(said == _SAID_OF_A_LIST, f"{_SAID_OF_A_LIST} in the list", said)
    await kit.sleep(_APART_MS)
    later = (await reader.ask("ServiceQueryRequest", query_request(service))).body["serviceInfo"]
    stamps = [each.get("lastRefTime") for each in (listed, later)]
    kit.require(stamps[0] < stamps[1], "a later lastRefTime in the later list", stamps)
    hosts = {host["port"]: host for host in listed["hosts"]}
    kept = ("healthy", "enabled", "ephemeral", "clusterName", "serviceName")
    for port, weight, held, times in (
        (80, 2.5, metadata, _OWN_TIMES),
        (81, 1.0, {}, _USUAL_TIMES),
        (82, 2.5, {**metadata, "size": "3"}, _OWN_TIMES),
        (83, 0.0, {}, _USUAL_TIMES),
    ):
        host = hosts[port]
        shown = (host.get("weight"), host.get("metadata"))
        kit.require(shown == (weight, held), "its weight and metadata", host)
        found = [host.get(key) for key in kept]
        expected = [True, True, True, CLUSTER, f"{GROUP}@@{service}"]
        kit.require(found == expected, f"{dict(zip(kept, expected, strict=True))}", host)
        found = [host.get(key) for key in _TIMES]
        kit.require(found == times, f"{dict(zip(_TIMES, times, strict=True))}", host)
    shown_id = hosts[82].get("instanceId")
    kit.require(shown_id == _ID_OF_THE_COPY, f"the id {_ID_OF_THE_COPY} of the copy", shown_id)
    for _ in range(2):
        await _register(await kit.client(), service, 81, metadata={"zone": "b"})
    await kit.settle(kit.timings.view_ms)
    await kit.eventually_listed(reader, service, *(f"10.0.0.1:{port}" for port in (80, 81, 81, 82, 83)))


@requirement("DISTRO-LIST-006", MUST, "#naming-requests")
async def services_are_listed(kit: Kit) -> None:
    """A list of the services of a group shows their names without the group, and their number, each name on one
    page, and none of another namespace; page 0 is page 1."""
    client, names, group = await kit.client(), sorted(kit.service() for _ in range(3)), kit.service()
    # Releases sort the names of a page by a hash table as large as the namespace: pages of a namespace agree only while
    # no service comes.
    here, there, foreign = f"{group}-here", f"{group}-there", kit.service()
    for name, namespace in (*((name, here) for name in names), (foreign, there)):
        await _register_in(client, namespace, group, name)
    for page_size, sizes in (10, [3]), (2, [2, 1, 0]):
        pages = []
        for page_no in range(1, len(sizes) + 1):
            reply = await _page(client, here, group, page_no, page_size)
            kit.note(f"page {page_no} of {page_size} services of {group}: {reply.body}")
            kit.require(reply.body.get("count") == len(names), f"the number {len(names)}", reply.body)
            pages.append(reply.body.get("serviceNames") or [])
        listed = sorted(name for page in pages for name in page)
        kit.require(listed == names, f"each of {names} on one page", pages)
        kit.require([len(page) for page in pages] == sizes, f"pages of {sizes} services", pages)
    before = (await _page(client, here, group, 0, page_size)).body.get("serviceNames")
    kit.require(before == pages[0], f"{pages[0]} on page 0 too", before)
    reply = await _page(client, there, group, 1, 10)
    found = (reply.body.get("count"), reply.body.get("serviceNames"))
    kit.require(found == (1, [foreign]), f"{foreign} alone in the namespace {there}", reply.body)


@requirement("DISTRO-LIST-007", MUST, "#client-disconnect, #index-entries", bug="B13")
async def gone_client_is_in_no_list(kit: Kit) -> None:
    """Once the connection of a client has ended no list shows anything that the client published, under however many
    services."""
    reader = await kit.client()
    client, service = await kit.publisher()
    names = [service, kit.service()]
    await client.register(names[1], "10.0.0.1", 80)
    for name in names:
        await kit.arrange_listed(reader, name, "10.0.0.1:80")
    await kit.leave(client)
    for name in names:
        await kit.eventually_listed(reader, name)
    kit.require(await kit.peer.query(client.id) is None, f"no client {client.id}", "it is still held")


@requirement("DISTRO-LIST-008", MUST, "#index-entries, #index-push, #client-disconnect, #receive-delete")
async def other_publishers_stay(kit: Kit) -> None:
    """When one of several publishers of a service leaves, in any way, the others stay in every list and push."""
    reader, service = await kit.client(), kit.service()
    await reader.subscribe(service)
    _, disconnecting, deregistering = clients = [await kit.client() for _ in range(3)]
    for port, client in enumerate(clients, 80):
        await client.register(service, "10.0.0.1", port)
    deleted, changed = copies = [kit.foreign_client() for _ in range(2)]
    for port, copy in enumerate(copies, 83):
        await kit.peer.sync(copy, 1, (service, "10.0.0.1", port))
    left = [f"10.0.0.1:{port}" for port in range(80, 85)]
    await kit.arrange_listed(reader, service, *left)
    departures = (
        (f"{disconnecting.id} closes its connection", 81, lambda: kit.leave(disconnecting)),
        (f"{deregistering.id} deregisters", 82, lambda: deregistering.deregister(service, "10.0.0.1", 82)),
        (f"{kit.peer.address} sends DELETE of {deleted}", 83, lambda: kit.peer.delete(deleted)),
        (f"{kit.peer.address} sends an empty CHANGE of {changed}", 84, lambda: kit.peer.sync(changed, 2)),
    )
    for what, port, leave in departures:
        await leave()
        kit.note(what)
        left.remove(f"10.0.0.1:{port}")
        await kit.eventually_listed(reader, service, *left)
        await kit.eventually_pushed(reader, service, *left)


@requirement("DISTRO-LIST-009", SHOULD, "#naming-requests", bug="services-change-places")
async def pages_stay_while_other_services_come(kit: Kit) -> None:
    """The pages of a list of services stay as they are until a service of this list comes or goes, however many come to
    other groups of the namespace."""
    client, group, namespace = await kit.client(), kit.service(), f"{kit.service()}-here"

    async def pages() -> list[object]:
        replies = [await _page(client, namespace, group, page_no, 5) for page_no in (1, 2)]
        return [name for reply in replies for name in reply.body.get("serviceNames") or []]

    for name in _NAMES.split():
        await _register_in(client, namespace, group, name)
    before = await pages()
    for _ in range(23):
        await _register_in(client, namespace, f"{group}-other", kit.service())
    after = await pages()
    kit.note(f"two pages of {group}: {before}; when another group has got 23 services: {after}")
    observed = {"same_services": sorted(map(str, before)) == sorted(map(str, after))}
    kit.require(before == after, f"the pages {before}", after, observed=observed)


@requirement("DISTRO-LIST-010", MUST, "#naming-requests, #http-v1")
async def services_are_listed_over_http(kit: Kit) -> None:
    """A list of the services of a group over HTTP, of the default group where it names none, shows what one over gRPC
    does: the same names, page by page, and their number."""
    client, operator, group = await kit.client(), kit.http_client(kit.peer.address), kit.service()
    names, here = sorted(kit.service() for _ in range(3)), f"{group}-here"  # for itself, as in DISTRO-LIST-006
    for name in names:
        await _register_in(client, here, group, name)
    listed: list[str] = []
    for page_no, size in (1, 2), (2, 1), (3, 0):
        reply = await operator.services(here, group, page_no, 2)
        kit.note(f"page {page_no} of 2 services of {group} over HTTP: {reply}")
        kit.require(reply.status == HTTPStatus.OK, "status 200", reply)
        found = json.loads(reply.text)
        kit.require(found.get("count") == len(names), f"the number {len(names)}", found)
        kit.require(len(found.get("doms") or ()) == size, f"{size} of {names}", found)
        listed += found.get("doms") or []
    kit.require(sorted(listed) == names, f"each of {names} on one page", listed)
    await _register_in(client, here, GROUP, usual := kit.service())
    reply = await operator.services(here, None, 1, 10)
    kit.note(f"services of no named group over HTTP: {reply}")
    kit.require(json.loads(reply.text).get("doms") == [usual], f"{usual} of {GROUP} alone", reply)


@requirement("DISTRO-LIST-011", SHOULD, "#naming-names")
async def empty_service_goes(kit: Kit) -> None:
    """A service without publishers leaves the list of services after a minute or two, while one with publishers stays;
    when it is published again it is in the list, and a client that subscribed to it before is pushed it."""
    client, subscriber, group = await kit.client(), await kit.client(), kit.service()
    empty, kept = names = [kit.service() for _ in range(2)]
    body = {**service_request(empty), "groupName": group, "subscribe": True, "clusters": ""}
    await subscriber.ask("SubscribeServiceRequest", body)

    async def listed() -> object:
        return sorted((await _page(client, NAMESPACE, group, 1, 10)).body.get("serviceNames") or [])

    async def is_alone() -> bool:
        return await listed() == [kept]

    for name in names:
        await _register_in(client, NAMESPACE, group, name)
    kit.require(await listed() == sorted(names), f"{empty} and {kept} in the list of {group}", await listed())
    body = instance_request("deregisterInstance", empty, "10.0.0.1", 80, {})
    await client.ask("InstanceRequest", {**body, "groupName": group})
    kit.note(f"{client.id} deregisters {empty}")
    await kit.eventually(is_alone, within_ms=_EMPTY_MS, what=f"{kept} alone in the list of services of {group}")
    before = len(subscriber.pushed(empty))
    await _register_in(client, NAMESPACE, group, empty)
    kit.note(f"{client.id} registers {empty} again")
    kit.require(await listed() == sorted(names), f"{empty} and {kept} in the list of {group}", await listed())
    pushed = poll_local(lambda: any(map(read_hosts, subscriber.pushed(empty)[before:])))
    await kit.eventually(pushed, within_ms=kit.timings.push_ms, what=f"a push of {empty} to {subscriber.id}")


async def _register(client: PlayedClient, service: str, port: int, **instance: object) -> None:
    body = instance_request("registerInstance", service, "10.0.0.1", port, {})
    body["instance"] |= instance
    await client.ask("InstanceRequest", body)


async def _register_in(client: PlayedClient, namespace: str, group: str, service: str) -> None:
    body = instance_request("registerInstance", service, "10.0.0.1", 80, {})
    await client.ask("InstanceRequest", {**body, "groupName": group, "namespace": namespace})


async def _page(client: PlayedClient, namespace: str, group: str, page_no: int, page_size: int) -> Message:
    """The list of the services of that group, from page 1 on."""
    of = {"headers": {}, "namespace": namespace, "serviceName": "", "groupName": group, "module": "naming"}
    return await client.ask("ServiceListRequest", {**of, "pageNo": page_no, "pageSize": page_size})
