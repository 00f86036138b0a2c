"""Several instances of one service, registered by one client at once (docs/protocol #naming-requests, #distro-content
and #receive-change)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import Arrival
from distro_conformance.node.player import Host, Instance, PlayedClient, batch_request, query_request, read_hosts
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.messages import batch_data, distro_request
from distro_protos import Json, Message
from distro_traces.content import Published, Replica

PORTS, OTHER_PORTS = (80, 81), (80, 82)


@requirement("DISTRO-BATCH-001", MUST, "#naming-requests, #distro-content", since="2.1.1")
async def batch_arrives_whole(kit: Kit) -> None:
    """The CHANGE of a client with a batch holds all instances of the batch, none of an empty one, and none of the
    previous single instance or batch, and VERIFYs follow it; a single instance replaces a batch too."""
    client, service = await kit.publisher()
    change: Arrival | None = await kit.arrange_sent("CHANGE", client.id)
    for ports in (PORTS, (), PORTS[1:]):
        await client.register_batch(service, _at(ports))
        kit.note(f"it registers the batch {service} at 10.0.0.1, ports {ports}")
        change = await kit.eventually_sent("CHANGE", client.id, after=change)
        held = [(each.service, each.ip, each.port) for each in change.published]
        kit.require(
            held == [(service, "10.0.0.1", port) for port in ports],
            f"the CHANGE to hold {service} at 10.0.0.1, ports {ports}, and nothing else",
            held,
        )
    await kit.eventually_sent("VERIFY", client.id, after=change)
    await client.register(service, "10.0.0.1", 79)
    kit.note(f"it registers {service} at 10.0.0.1:79")
    change = await kit.eventually_sent("CHANGE", client.id, after=change)
    held = [(each.service, each.ip, each.port) for each in change.published]
    kit.require(held == [(service, "10.0.0.1", 79)], f"{service} at 10.0.0.1:79 and nothing else", held)


@requirement("DISTRO-BATCH-002", MUST, "#revision-connection", bug="B18", since="2.1.2")
async def batch_raises_the_revision(kit: Kit) -> None:
    """A batch raises the revision of its client; otherwise a member that missed the batch would not notice."""
    client, service = await kit.client(), kit.service()
    await client.register(kit.service(), "10.0.0.1", 79)
    revisions = [await kit.revision_of(client.id)]
    kit.assume(bool(revisions[0]), f"a revision of {client.id} that a registration raises", revisions[0])
    for ports in (PORTS, PORTS[1:]):
        await client.register_batch(service, _at(ports))
        revisions.append(await kit.revision_of(client.id))
        kit.note(f"it registers the batch {service}, ports {ports}; the node holds revision {revisions[-1]}")
    copy = await kit.peer.query(client.id)
    held = sorted(each.port for each in copy.published if each.service == service) if copy else None
    kit.require(
        len(set(revisions)) == len(revisions),
        "another revision after each batch",
        revisions,
        observed={"revisions": revisions, "ports": held},
    )


@requirement("DISTRO-BATCH-003", MUST, "#receive-batch-over-single", bug="B19", since="2.1.1")
async def batch_replaces_a_single_instance(kit: Kit) -> None:
    """A CHANGE in which a batch replaces a single instance or another batch, or a single instance a batch, is applied,
    and lists show every instance of the batch."""
    reader, synced, service = await kit.client(), kit.foreign_client(), kit.service()
    until_ms = kit.target.clock.now_ms() + kit.timings.lease_ms  # after that a copy that is not verified may end
    for revision, port in ((1, 78), (2, 79)):
        reply = await kit.peer.sync(synced, revision, (service, "10.0.0.1", port))
        kit.note(f"{kit.peer.address} sends CHANGE of {synced} with {service} at port {port}: {reply}")
        kit.assume(reply.succeeded, f"an acknowledged CHANGE of {synced}", reply)
    ports: list[int] = []
    for revision, batch in ((3, PORTS), (4, OTHER_PORTS)):
        reply = await kit.peer.sync_batches(synced, revision, "10.0.0.1", {service: batch})
        kit.note(f"{kit.peer.address} sends CHANGE of {synced} with the batch {service}, ports {batch}: {reply}")
        kit.require(reply.succeeded, f"success for the CHANGE of {synced}", reply)

        async def shown(batch: tuple[int, ...] = batch) -> tuple[Host, ...] | None:
            nonlocal ports
            hosts = await reader.query(service)
            there = sorted(host.port for host in hosts)
            ports = there if kit.target.clock.now_ms() < until_ms else ports
            return hosts if there == list(batch) else None

        async def otherwise(reply: Message = reply) -> dict[str, object]:
            return {"ports": ports, "error_code": reply.body.get("errorCode")}

        what = f"{service} at ports {batch} and no other"
        await kit.eventually(shown, within_ms=kit.timings.view_ms, what=what, otherwise=otherwise)
    reply = await kit.peer.sync(synced, 5, (service, "10.0.0.1", 79))
    kit.note(f"{kit.peer.address} sends CHANGE of {synced} with {service} at port 79 alone: {reply}")
    await kit.eventually_listed(reader, service, "10.0.0.1:79")


@requirement("DISTRO-BATCH-004", MUST, "#client-batch, #distro-content, #receive-change", since="2.1.1")
async def batches_of_several_services(kit: Kit) -> None:
    """A client may publish several batches, each under its own service, and single instances beside them: CHANGE,
    SNAPSHOT, lists and pushes show each of them, removing one leaves the others, and none is left in lists and pushes
    when the client ends."""
    client, reader = await kit.client(), await kit.client()
    first, second, single = (kit.service() for _ in range(3))
    for service in (first, second):
        await reader.subscribe(service)
    await client.register_batch(second, _at(OTHER_PORTS))  # before the others: no CHANGE has those alone
    await client.register_batch(first, _at(PORTS))
    await client.register(single, "10.0.0.1", 79)
    kit.note(f"it registers the batches {first}, ports {PORTS}, and {second}, ports {OTHER_PORTS}, and {single} at 79")
    published = {first: PORTS, second: OTHER_PORTS, single: (79,)}
    await _is_announced(kit, client.id, published)
    held = next((replica for replica in await kit.peer.snapshot() if replica.client == client.id), None)
    kit.require(_ports(held) == published, f"{published} in a SNAPSHOT", held)
    await _is_shown(kit, reader, published, first, second)
    await client.deregister(second, "10.0.0.1", OTHER_PORTS[0])
    kit.note(f"it deregisters {second}")
    left: dict[str, tuple[int, ...]] = {first: PORTS, single: (79,)}
    await _is_announced(kit, client.id, left)
    await _is_shown(kit, reader, {**left, second: ()}, first, second)
    await kit.leave(client)
    await _is_shown(kit, reader, {first: ()}, first)


@requirement("DISTRO-BATCH-006", MUST, "#receive-change, #distro-content", since="2.1.1")
async def received_batches_are_each_applied(kit: Kit) -> None:
    """Each batch of a CHANGE with several batches is applied: a new or different batch, in the metadata of an instance
    alone too, replaces the previous content of its service, an equal batch stays, and a missing or empty batch is
    removed; a VERIFY of its revision succeeds then."""
    reader, synced = await kit.client(), kit.foreign_client()
    first, second = services = [kit.service() for _ in range(2)]
    for service in services:
        await reader.subscribe(service)
    contents: tuple[dict[str, tuple[int, ...]], ...] = (
        {first: PORTS, second: OTHER_PORTS},
        {first: PORTS, second: PORTS},
        {second: PORTS},
    )
    for revision, batches in enumerate(contents, 1):
        reply = await kit.peer.sync_batches(synced, revision, "10.0.0.1", batches)
        kit.note(f"{kit.peer.address} sends CHANGE of {synced} with the batches {batches}: {reply}")
        kit.require(reply.succeeded, f"success for the CHANGE of {synced}", reply)
        copy = await kit.peer.query(synced)
        kit.require(_ports(copy) == batches, f"{synced} with {batches}", copy)
        verified = await kit.peer.verify(synced, revision)
        kit.require(verified.succeeded, f"success for VERIFY of {synced} revision {revision}", verified)
        await _is_shown(kit, reader, {first: (), **batches}, *services)
    content = batch_data(synced, len(contents) + 1, {second: [("10.0.0.1", port) for port in PORTS]})
    changed = content["batchInstanceData"]["batchInstancePublishInfos"][0]["instancePublishInfos"][-1]
    changed["extendDatum"] = {"zone": "b"}
    await kit.peer.send(distro_request("CHANGE", synced, target=kit.target.address, content=content))
    kit.note(f"{kit.peer.address} sends CHANGE of {synced} with zone b at port {PORTS[-1]}")

    async def zones() -> bool:
        return [each.metadata.get("zone") for each in _by_port(await reader.query(second))] == [None, "b"]

    await kit.eventually(zones, within_ms=kit.timings.view_ms, what=f"{second} with zone b at port {PORTS[-1]} alone")
    reply = await kit.peer.sync_batches(synced, len(contents) + 2, "10.0.0.1", {second: ()})
    kit.note(f"{kit.peer.address} sends CHANGE of {synced} with an empty batch {second}: {reply}")
    await kit.eventually_listed(reader, second)


def _by_port(hosts: Sequence[Host]) -> list[Host]:
    return sorted(hosts, key=lambda host: host.port)


@requirement("DISTRO-BATCH-005", MUST, "#client-batch, #distro-content, #naming-requests", since="2.1.1")
async def each_instance_of_a_batch_is_whole(kit: Kit) -> None:
    """Each instance of a batch is handled like a single instance: its cluster, health, metadata and weight reach
    members and lists, selectors apply to it, and a disabled instance is in no list."""
    client, reader, service = await kit.client(), await kit.client(), kit.service()
    await reader.subscribe(service)
    parts: Sequence[Json] = ({"weight": 2.5}, {"clusterName": "blue"}, {"healthy": False}, {"enabled": False})
    body = batch_request(service, [("10.0.0.1", port, {"zone": f"z{port}"}) for port in range(80, 84)])
    body["instances"] = [{**instance, **part} for instance, part in zip(body["instances"], parts, strict=True)]
    reply = await client.ask("BatchInstanceRequest", body)
    kit.note(f"it registers the batch {body['instances']}: {reply}")
    kit.assume(reply.succeeded, "a batch that is taken", reply)
    change = await kit.arrange_sent("CHANGE", client.id)
    held = {each.port: (each.cluster, each.healthy, _attributes(each)) for each in change.published}
    kit.require(
        held
        == {
            80: ("DEFAULT", True, {"zone": "z80", "publishInstanceWeight": 2.5}),
            81: ("blue", True, {"zone": "z81"}),
            82: ("DEFAULT", False, {"zone": "z82"}),
            83: ("DEFAULT", True, {"zone": "z83", "publishInstanceEnable": False}),
        },
        "each instance with its own cluster, health, metadata, weight and whether it is enabled",
        held,
    )
    addresses = [f"10.0.0.1:{port}" for port in (80, 81, 82)]
    await kit.eventually_listed(reader, service, *addresses)
    shown = {each.port: (each.weight, dict(each.metadata)) for each in await reader.query(service)}
    kit.require(
        shown == {80: (2.5, {"zone": "z80"}), 81: (1.0, {"zone": "z81"}), 82: (1.0, {"zone": "z82"})},
        "each instance that is enabled in a list, with its own weight and metadata",
        shown,
    )
    for selector, ports in ({"healthyOnly": True}, [80, 81]), ({"cluster": "blue"}, [81]):
        hosts = read_hosts(await reader.ask("ServiceQueryRequest", {**query_request(service), **selector}))
        kit.require(sorted(each.port for each in hosts) == ports, f"ports {ports} for {selector}", hosts)
    await kit.eventually_pushed(reader, service, *addresses)


def _attributes(published: Published) -> dict[str, object]:
    """The attributes without the id, which releases write from 2.3.2 on."""
    return {key: value for key, value in json.loads(published.attributes).items() if key != "customInstanceId"}


async def _is_announced(kit: Kit, client: str, published: Mapping[str, Sequence[int]]) -> None:
    for peer in kit.peers:
        announced = kit.arrival("CHANGE", client, at=peer, carrying=lambda replica: _ports(replica) == published)
        what = f"a CHANGE of {client} with {published} and nothing else at {peer.address}"
        await kit.eventually(announced, within_ms=2 * kit.timings.sync_ms, what=what)


async def _is_shown(kit: Kit, reader: PlayedClient, published: Mapping[str, Sequence[int]], *services: str) -> None:
    """Expects the ports in lists and in pushes."""
    for service in services:
        addresses = [f"10.0.0.1:{port}" for port in published[service]]
        await kit.eventually_listed(reader, service, *addresses)
        await kit.eventually_pushed(reader, service, *addresses)


def _ports(copy: Replica | None) -> dict[str, tuple[int, ...]] | None:
    """The ports of each service."""
    if copy is None:
        return None
    found = {each.service: () for each in copy.published}
    return {name: tuple(each.port for each in copy.published if each.service == name) for name in found}


def _at(ports: Sequence[int]) -> list[Instance]:
    return [("10.0.0.1", port, {}) for port in ports]
