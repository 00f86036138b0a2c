"""Registrations and deregistrations at the node (docs/protocol #client-change, #naming-requests, #client-unknown)."""

from __future__ import annotations

import itertools
import json

import grpc.aio

from distro_conformance.node.kit import Kit, services
from distro_conformance.node.player import CLUSTER, GROUP, batch_request, instance_request, query_request, read_hosts
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.wire.messages import content_of
from distro_protos import Json

_LETTERS = "ä b&c"
_MANY, _METADATA = 5_000, 900
"""Instances, and the bytes of metadata of each, fewer than a server accepts (docs/protocol #naming-names)."""


@requirement("DISTRO-REGISTER-001", MUST, "#client-change")
async def registration_replaces(kit: Kit) -> None:
    """A second registration of a service by the same client replaces the first."""
    client, service = await kit.publisher()
    await client.register(service, "10.0.0.2", 81)
    kit.note(f"it registers {service} at 10.0.0.2:81")
    copy = await kit.peer.query(client.id)
    found = [f"{each.ip}:{each.port}" for each in copy.published] if copy else None
    kit.require(found == ["10.0.0.2:81"], f"{service} at 10.0.0.2:81 alone", found)


@requirement("DISTRO-REGISTER-002", MUST, "#client-change, #client-deregister-sdk")
async def deregistration_matches_the_service_alone(kit: Kit) -> None:
    """A deregistration removes the client's instance of the service, whatever address and cluster the request names."""
    client, service = await kit.publisher()
    body = instance_request("deregisterInstance", service, "10.9.9.9", 99, {})
    body["instance"]["clusterName"] = ""
    reply = await client.ask("InstanceRequest", body)
    kit.note(f"it deregisters {service} at 10.9.9.9:99 in no cluster: {reply}")
    copy = await kit.peer.query(client.id)
    kit.require(reply.succeeded and services(copy) == [], f"nothing published by {client.id}", copy)


@requirement("DISTRO-REGISTER-003", MUST, "#client-change")
async def idle_deregistration_succeeds(kit: Kit) -> None:
    """A deregistration of a service that the client does not publish succeeds and changes nothing."""
    client, service = await kit.publisher()
    other = kit.service()
    reply = await client.ask("InstanceRequest", instance_request("deregisterInstance", other, "10.0.0.1", 80, {}))
    kit.note(f"it deregisters {other}, which it never registered: {reply}")
    copy = await kit.peer.query(client.id)
    kit.require(reply.succeeded and services(copy) == [service], f"success, and {service} still there", copy)


@requirement("DISTRO-REGISTER-004", MUST, "#distro-content, #defect-d9")
async def instance_travels_whole(kit: Kit) -> None:
    """Every field of a client's instance reaches the members, the weight as a fraction, and metadata with any letters
    or none."""
    client, service, metadata = await kit.client(), kit.service(), {"zone": _LETTERS, "nothing": ""}
    body = instance_request("registerInstance", service, "10.0.0.1", 80, metadata)
    body["instance"] |= {"weight": 2.0, "enabled": False, "clusterName": "blue", "healthy": False}
    reply = await client.ask("InstanceRequest", body)
    kit.assume(reply.succeeded, "a registration that succeeds", reply)
    change = await kit.arrange_sent("CHANGE", client.id)
    infos = (content_of(change.body.get("distroData") or {}) or {}).get("instancePublishInfos") or [{}]
    info, extended = infos[0], infos[0].get("extendDatum") or {}
    kit.require(info.get("cluster") == "blue" and info.get("healthy") is False, "cluster blue, unhealthy", info)
    found = {key: extended.get(key) for key in metadata}
    kit.require(found == metadata, f"its metadata {metadata}", extended)
    kit.require(json.dumps(extended.get("publishInstanceWeight")) == "2.0", "the weight 2.0, a fraction", extended)
    kit.require(extended.get("publishInstanceEnable") is False, "that it is not enabled", extended)


@requirement("DISTRO-REGISTER-005", MUST, "#client-unknown", bug="B12")
async def registration_without_a_client_is_refused(kit: Kit) -> None:
    """A registration, of a single instance or of a batch, on a connection that has no naming client is refused: a
    success would mean that the node holds it."""
    connection, reader = await kit.connection({"source": "sdk", "module": "config"}), await kit.client()
    service = kit.service()
    single = instance_request("registerInstance", service, "10.0.0.1", 80, {})
    requests = {"InstanceRequest": single}
    if kit.has_batches:
        requests["BatchInstanceRequest"] = batch_request(service, [("10.0.0.1", 80, {})])
    for type_name, body in requests.items():
        reply = await connection.ask(type_name, body)
        kit.note(f"it registers {service} by {type_name}: {reply}")
        if reply.succeeded:  # whatever it registered is shown by then
            await kit.settle(kit.timings.view_ms)
        hosts = await reader.query(service)
        kit.require(
            not reply.succeeded,
            f"a refusal of {type_name}",
            f"{reply}; {service} is shown at {hosts}",
            observed={"shown": len(hosts)},
        )


@requirement("DISTRO-REGISTER-006", MUST, "#naming-names", since="2.3.0")
async def blank_service_is_refused(kit: Kit) -> None:
    """A service without a name is refused, and the connection survives."""
    client, service = await kit.publisher()
    reply = await client.ask("InstanceRequest", instance_request("registerInstance", "", "10.0.0.1", 80, {}))
    kit.note(f"it registers a service without a name: {reply}")
    kit.require(not reply.succeeded, "a refusal", reply)
    copy = await kit.peer.query(client.id)
    kit.require(services(copy) == [service], f"{client.id} to publish {service} and nothing else", copy)


@requirement("DISTRO-REGISTER-007", MUST, "#client-change, #revision-connection", since="2.1.2")
async def every_request_counts(kit: Kit) -> None:
    """Every registration and deregistration raises the client's revision, even if nothing changes; a subscription does
    not."""
    client, service = await kit.publisher()
    revisions = [await kit.revision_of(client.id)]
    await client.register(service, "10.0.0.1", 80)
    revisions.append(await kit.revision_of(client.id))
    for _ in range(2):
        await client.deregister(service, "10.0.0.1", 80)
        revisions.append(await kit.revision_of(client.id))
    kit.require(revisions == [1, 2, 3, 4], "1 to 4 after two registrations and two deregistrations", revisions)
    for wanted in (True, False):
        await client.subscribe(service, wanted=wanted)
        revision = await kit.revision_of(client.id)
        kit.note(f"it {'subscribes to' if wanted else 'unsubscribes from'} {service}")
        kit.require(revision == 4, "the revision 4 as before", revision)


@requirement("DISTRO-REGISTER-008", MUST, "#naming-names")
async def services_of_one_name_stay_apart(kit: Kit) -> None:
    """A service is identified by namespace, an empty one too, group and name: services that only share the name are
    separate, and lists and the client's content show each under its own, and a deregistration of one leaves the
    others."""
    client, service = await kit.publisher()
    others = ({"namespace": "elsewhere"}, {"groupName": "OTHER_GROUP"}, {"namespace": ""})
    for port, more in enumerate(others, 90):
        body = {**instance_request("registerInstance", service, "10.0.0.9", port, {}), **more}
        reply = await client.ask("InstanceRequest", body)
        kit.assume(reply.succeeded, "a registration that succeeds", reply)
    kit.note(f"it registers {service} also with each of {others}, at 10.0.0.9:90, 91 and 92")
    copy = await kit.peer.query(client.id)
    found = {each.port: (each.namespace, each.group) for each in copy.published} if copy else {}
    expected = {
        80: (client.namespace, GROUP),
        90: ("elsewhere", GROUP),
        91: (client.namespace, "OTHER_GROUP"),
        92: ("", GROUP),
    }
    kit.require(found == expected, f"four services, by port {expected}", copy)
    await kit.eventually_listed(client, service, "10.0.0.1:80")
    for port, more in enumerate(others, 90):
        body = {**query_request(service), **more}

        async def listed(body: Json = body, port: int = port) -> bool:
            hosts = read_hosts(await client.ask("ServiceQueryRequest", body))
            return [host.port for host in hosts] == [port]

        await kit.eventually(listed, within_ms=kit.timings.view_ms, what=f"{service} at port {port} alone for {more}")
    query = {**query_request(service), "namespace": "nowhere"}
    reply = await client.ask("ServiceQueryRequest", query)
    kit.require(not (reply.body.get("serviceInfo") or {}).get("hosts"), "nothing in a third namespace", reply.body)
    await client.deregister(service, "10.0.0.1", 80)
    kit.note(f"it deregisters {service} of the namespace {client.namespace} and the group {GROUP}")
    copy = await kit.peer.query(client.id)
    left = sorted(each.port for each in copy.published) if copy else None
    kit.require(left == [90, 91, 92], f"{service} in the other namespaces and in the other group", copy)


@requirement("DISTRO-REGISTER-009", SHOULD, "#naming-names", since="2.3.0")
async def instance_without_id_gets_one(kit: Kit) -> None:
    """An instance that is registered without an id, alone or in a batch, gets one of its address, cluster and service,
    and one with an id keeps it; the CHANGE and lists show the id."""
    for own, in_batch in itertools.product((None, "an-id-of-its-own"), (False, True)):
        client, service = await kit.client(), kit.service()
        single = instance_request("registerInstance", service, "10.0.0.1", 80, {})
        single["instance"] |= {} if own is None else {"instanceId": own}
        batch = {**batch_request(service, ()), "instances": [single["instance"]]}
        reply = await client.ask(*(("BatchInstanceRequest", batch) if in_batch else ("InstanceRequest", single)))
        kit.note(f"it registers {service} at 10.0.0.1:80{' in a batch' * in_batch} with the id {own}: {reply}")
        kit.assume(reply.succeeded, "a registration that succeeds", reply)
        change = await kit.arrange_sent("CHANGE", client.id)
        await kit.arrange_listed(client, service, "10.0.0.1:80")
        listed = await client.ask("ServiceQueryRequest", query_request(service))
        hosts = (listed.body.get("serviceInfo") or {}).get("hosts") or [{}]
        content = content_of(change.body.get("distroData") or {}) or {}
        if in_batch:
            content = ((content.get("batchInstanceData") or {}).get("batchInstancePublishInfos") or [{}])[0]
        infos = content.get("instancePublishInfos") or [{}]
        ids = [hosts[0].get("instanceId"), (infos[0].get("extendDatum") or {}).get("customInstanceId")]
        expected = own or f"10.0.0.1#80#DEFAULT#{service}"
        kit.require(ids == 2 * [expected], f"the id {expected} in the list and in the CHANGE", ids)


@requirement("DISTRO-REGISTER-012", MUST, "#naming-names, #naming-requests")
async def address_alone_is_enough(kit: Kit) -> None:
    """An instance of which a client names the address alone is healthy and enabled, has the weight 1 and no metadata,
    and is in the cluster DEFAULT."""
    client, service = await kit.client(), kit.service()
    body = instance_request("registerInstance", service, "10.0.0.1", 80, {})
    body["instance"] = {"ip": "10.0.0.1", "port": 80}
    reply = await client.ask("InstanceRequest", body)
    kit.note(f"it registers {service} with {body['instance']}: {reply}")
    kit.require(reply.succeeded, "success", reply)
    await kit.eventually_listed(client, service, "10.0.0.1:80")
    listed = await client.ask("ServiceQueryRequest", query_request(service))
    (host,) = listed.body["serviceInfo"]["hosts"]
    expected = {"healthy": True, "enabled": True, "weight": 1.0, "metadata": {}, "clusterName": CLUSTER}
    found = {key: host.get(key) for key in expected}
    kit.require(found == expected, f"{expected}", found)


@requirement("DISTRO-REGISTER-011", MUST, "#wire-limits, #naming-requests", since="2.1.1")
async def large_batch_arrives_whole(kit: Kit) -> None:
    """A registration of more than 4 MiB, which gRPC accepts by itself, and less than 10 MiB is taken, and its CHANGE
    holds all of it at every member."""
    client, service, ports = await kit.client(), kit.service(), range(1, 1 + _MANY)
    instances = [("10.0.0.1", port, {"ballast": "x" * _METADATA}) for port in ports]
    try:
        reply: object = await client.register_batch(service, instances)
    except grpc.aio.AioRpcError as error:
        reply = f"{error.code().name} {error.details()}"
    kit.note(f"it registers {service} at {_MANY} ports of 10.0.0.1, with {_METADATA} bytes of metadata each: {reply}")
    for peer in kit.peers:
        sent = kit.arrival("CHANGE", client.id, at=peer, carrying=lambda replica: len(replica.published) == _MANY)
        what = f"a CHANGE of {client.id} with {_MANY} instances at {peer.address}"
        await kit.eventually(sent, within_ms=2 * kit.timings.sync_ms, what=what)
    await client.deregister(service, "10.0.0.1", 80)  # other checks ask for snapshots


@requirement("DISTRO-REGISTER-010", MUST, "#naming-requests", since="2.1.1")
async def illegal_instance_is_refused(kit: Kit) -> None:
    """An instance with a beat interval longer than one of its time-outs, or with an illegal cluster name, and a request
    of an unknown type are refused, and the connection survives."""
    client, service = await kit.publisher()
    slow, short = {"preserved.heart.beat.interval": "20000"}, "10000"
    for metadata in (
        {**slow, "preserved.heart.beat.timeout": short, "preserved.ip.delete.timeout": "30000"},
        {**slow, "preserved.heart.beat.timeout": "30000", "preserved.ip.delete.timeout": short},
        {"cluster": "no,name"},
    ):
        body = instance_request("registerInstance", kit.service(), "10.0.0.1", 80, metadata)
        reply = await client.ask("InstanceRequest", body)
        kit.note(f"it registers an instance with {metadata}: {reply}")
        kit.require(not reply.succeeded, f"a refusal of an instance with {metadata}", reply)
    reply = await client.ask("InstanceRequest", instance_request("explode", kit.service(), "10.0.0.1", 80, {}))
    kit.note(f"it sends an InstanceRequest of the type explode: {reply}")
    kit.require(not reply.succeeded, "a refusal of the type explode", reply)
    copy = await kit.peer.query(client.id)
    kit.require(services(copy) == [service], f"{client.id} to publish {service} and nothing else", copy)
