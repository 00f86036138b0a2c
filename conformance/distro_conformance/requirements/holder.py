"""The holder's side of anti-entropy: which copies it confirms, and which clients stay removed (docs/protocol
#receive-change, #verify-round).

A copy is repaired only after a VERIFY of it fails, so a wrong success hides a wrong copy for ever.
"""

from __future__ import annotations

import asyncio
import json

import grpc.aio

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.messages import distro_request, sync_data
from distro_protos import Message

_KEEP_ALIVE_MS = 4_000
_BALLAST = 4_500_000
"""A message is a third longer than its content."""
_ATTEMPTS, _SERVICES = 10, 20
"""Attempts to make the two CHANGEs overlap, and the number of services in them."""


@requirement("DISTRO-HOLDER-001", MUST, "#verify-accept", bug="B02", since="2.1.2")
async def verify_of_another_revision_fails(kit: Kit) -> None:
    """A VERIFY fails if its revision is higher or lower than that of the copy, for a client of either kind, and leaves
    the copy as it is."""
    for client in _of_either_kind(kit):
        _, service = await kit.synced(5, client=client)
        for revision in (6, 4, -5):
            what = f"VERIFY of {client} revision {revision}, whose copy has revision 5"
            _require_typed_failure(kit, await _verified(kit, client, revision), what)
        copy = await kit.peer.query(client)
        found = None if copy is None else (services(copy), copy.revision)
        kit.require(found == ([service], 5), f"{client} with {service} and the revision 5, as before", found)


@requirement("DISTRO-HOLDER-002", MUST, "#verify-accept")
async def verify_of_an_unknown_client_fails(kit: Kit) -> None:
    """A VERIFY of an unknown client of either kind fails, every time."""
    for client in 2 * _of_either_kind(kit):  # the first VERIFY must not create it
        _require_typed_failure(kit, await _verified(kit, client, 0), f"VERIFY of {client}, which was never synced")


@requirement("DISTRO-HOLDER-003", MUST, "#receive-late, #defect-d3", bug="B26")
async def late_change_is_not_applied(kit: Kit) -> None:
    """A CHANGE that arrives after the DELETE of its client, half a lease later too, whatever its revision, and also if
    no CHANGE came before the DELETE, does not restore the client."""
    for is_known, revision, after_ms in (True, 1, 0), (True, 2, 0), (False, 1, 0), (True, 1, kit.timings.lease_ms // 2):
        client = (await kit.synced())[0] if is_known else kit.foreign_client()
        reply = await kit.peer.delete(client)
        kit.note(f"{kit.peer.address} sends DELETE of {client}: {reply}")
        kit.assume(reply.succeeded, f"an acknowledged DELETE of {client}", reply)
        late = kit.service()
        for _ in range(after_ms // _KEEP_ALIVE_MS):
            await kit.keep_alive()
            await kit.sleep(_KEEP_ALIVE_MS)
        reply = await kit.peer.sync(client, revision, (late, "10.0.0.1", 80))
        kit.note(f"{kit.peer.address} sends CHANGE of {client} revision {revision}: {reply}")
        copy = await kit.peer.query(client)
        observed = NOTHING if copy is None else await kit.held_as_copy(client, revision, [late])
        kit.require(
            copy is None,
            f"{client} to stay deleted",
            f"the node answers {reply} and holds {copy}",
            observed={**observed, "acknowledged": reply.succeeded},
        )
        kit.require(not reply.succeeded, "a failure for a CHANGE that is not applied", reply)


@requirement("DISTRO-HOLDER-004", MUST, "#receive-delete")
async def unknown_delete_succeeds(kit: Kit) -> None:
    """A DELETE of an unknown client of either kind succeeds: a failed DELETE would be retried for ever."""
    for client in _of_either_kind(kit):
        reply = await kit.peer.delete(client)
        kit.note(f"{kit.peer.address} sends DELETE of {client}, which was never synced: {reply}")
        kit.require(reply.succeeded, f"success for DELETE of {client}", reply)


@requirement("DISTRO-HOLDER-005", MUST, "#distro-query, #verify-accept")
async def asking_creates_nothing(kit: Kit) -> None:
    """A QUERY or VERIFY of an unknown client of either kind creates nothing."""
    for client in _of_either_kind(kit):
        kit.require(await kit.peer.query(client) is None, f"nothing about {client}", "a client")
        await kit.peer.verify(client, 0)
        kit.require(await kit.peer.query(client) is None, f"nothing about {client} after a VERIFY of it", "a client")
        held = [replica.client for replica in await kit.peer.snapshot()]
        kit.require(client not in held, f"no {client} in a snapshot", held)


@requirement("DISTRO-HOLDER-006", MUST, "#receive-change, #distro-content")
async def change_is_the_whole_client(kit: Kit) -> None:
    """A CHANGE holds everything that a client of either kind publishes: what it does not mention is removed, also from
    lists, and a client that publishes nothing is held too."""
    reader = await kit.client()
    for client in _of_either_kind(kit):
        first, second = kit.service(), kit.service()
        await kit.peer.sync(client, 1, (first, "10.0.0.1", 80), (second, "10.0.0.1", 80))
        await kit.arrange_listed(reader, first, "10.0.0.1:80")
        reply = await kit.peer.sync(client, 2, (second, "10.0.0.1", 80))
        kit.note(f"{kit.peer.address} sends CHANGE of {client} without {first}: {reply}")
        copy = await kit.peer.query(client)
        kit.require(services(copy) == [second], f"{second} alone", copy)
        await kit.eventually_listed(reader, first)
    for client in _of_either_kind(kit):
        reply = await kit.peer.sync(client, 1)
        kit.note(f"{kit.peer.address} sends CHANGE of {client}, which publishes nothing: {reply}")
        copy = await kit.peer.query(client)
        kit.require(services(copy) == [], f"{client}, which publishes nothing", copy)


@requirement("DISTRO-HOLDER-007", MUST, "#receive-delete")
async def delete_ends_a_copy(kit: Kit) -> None:
    """A DELETE removes the copy of a client of either kind, and no list shows what the client published; a client of
    the HTTP API comes back with its next CHANGE."""
    reader = await kit.client()
    for client in _of_either_kind(kit):
        _, service = await kit.synced(client=client)
        await kit.arrange_listed(reader, service, "10.0.0.1:80")
        reply = await kit.peer.delete(client)
        kit.note(f"{kit.peer.address} sends DELETE of {client}: {reply}")
        kit.require(reply.succeeded and await kit.peer.query(client) is None, f"no {client}", reply.body)
        await kit.eventually_listed(reader, service)
        if "#" in client:
            reply = await kit.peer.sync(client, 2, (service, "10.0.0.1", 80))
            kit.note(f"{kit.peer.address} sends CHANGE of {client}, which has come back: {reply}")
            copy = await kit.peer.query(client)
            kit.require(reply.succeeded and services(copy) == [service], f"{client} with {service}", copy or reply)


@requirement("DISTRO-HOLDER-008", MUST, "#receive-equal, #defect-d4")
async def other_cluster_is_applied(kit: Kit) -> None:
    """A CHANGE that differs only in the cluster of an instance is applied."""
    client, service = await kit.synced(1)
    content = sync_data(client, 2, [(service, "10.0.0.1", 80)])
    content["instancePublishInfos"][0]["cluster"] = "blue"
    reply = await kit.peer.send(distro_request("CHANGE", client, target=kit.target.address, content=content))
    kit.note(f"{kit.peer.address} sends CHANGE of {client}, now in the cluster blue: {reply}")
    copy = await kit.peer.query(client)
    clusters = [each.cluster for each in copy.published] if copy else None
    kit.require(
        clusters == ["blue"],
        "the cluster blue",
        clusters,
        observed={"acknowledged": reply.succeeded, "clusters": clusters},
    )


@requirement("DISTRO-HOLDER-009", MUST, "#distro-envelope, #receive-change")
async def add_is_a_change(kit: Kit) -> None:
    """An ADD is applied like a CHANGE, of a client that is known too."""
    client = kit.foreign_client()
    for revision in (1, 2):
        service = kit.service()
        content = sync_data(client, revision, [(service, "10.0.0.1", 80)])
        reply = await kit.peer.send(distro_request("ADD", client, target=kit.target.address, content=content))
        kit.note(f"{kit.peer.address} sends ADD of {client} revision {revision}: {reply}")
        copy = await kit.peer.query(client)
        kit.require(reply.succeeded and services(copy) == [service], f"{client} with {service}", copy)


@requirement("DISTRO-HOLDER-010", MUST, "#receive-change, #receive-equal, #revision-ip-port")
async def every_field_is_applied(kit: Kit) -> None:
    """A CHANGE that differs in only one field is applied, for a client of either kind: the health, metadata or address
    of an instance, or the group or namespace of one of its services; the first one is applied with the cluster that it
    names, and a lower revision makes no difference: the content is its owner's."""
    fields = (("cluster", "blue"), ("healthy", False), ("extendDatum", {"zone": "b"}), ("port", 81))
    for client in _of_either_kind(kit):
        service = kit.service()
        changed: dict[str, object] = {}
        step = -1 if "#" in client else 1
        for number, (field, value) in enumerate(fields, 1):
            content = sync_data(client, step * number, [(service, "10.0.0.1", 80)])
            changed[field] = value  # the only difference from the previous CHANGE
            content["instancePublishInfos"][0] |= changed
            await kit.peer.send(distro_request("CHANGE", client, target=kit.target.address, content=content))
            kit.note(f"{kit.peer.address} sends CHANGE of {client} with {field} {value}")
            copy = await kit.peer.query(client)
            (held,) = copy.published if copy and len(copy.published) == 1 else (None,)
            kit.require(held is not None, f"one instance of {client}", copy)
            assert held is not None
            found = {
                "cluster": held.cluster,
                "healthy": held.healthy,
                "extendDatum": json.loads(held.attributes),
                "port": held.port,
            }[field]
            kit.require(found == value, f"{field} {value}", held)
        named = {"groupNames": ["DEFAULT_GROUP", "green"], "namespaces": ["public", "elsewhere"]}
        content = {**sync_data(client, -5, [(service, "10.0.0.1", port) for port in (80, 81)]), **named}
        await kit.peer.send(distro_request("CHANGE", client, target=kit.target.address, content=content))
        kit.note(f"{kit.peer.address} sends CHANGE of {client} revision -5, which is lower, with {named}")
        copy = await kit.peer.query(client)
        names = {each.port: (each.namespace, each.group) for each in copy.published} if copy else None
        expected = {80: ("public", "DEFAULT_GROUP"), 81: ("elsewhere", "green")}
        kit.require(names == expected, f"{service} twice, by port {expected}", names)


@requirement("DISTRO-HOLDER-011", MUST, "#verify-accept, #defect-d11", since="2.1.2")
async def zero_is_no_wildcard(kit: Kit) -> None:
    """A VERIFY of revision 0 fails if the copy has another revision: 0 is not a wildcard."""
    client, _ = await kit.synced(3)
    reply = await _verified(kit, client, 0)
    right, other = await _verified(kit, client, 3), await _verified(kit, client, 4)
    kit.require(
        not reply.succeeded,
        f"a failure for VERIFY of {client} revision 0",
        reply.body,
        observed={"right": right.succeeded, "other": other.succeeded},
    )


@requirement("DISTRO-HOLDER-012", MUST, "#receive-torn, #receive-change", bug="B05", since="2.3.0")
async def simultaneous_changes_are_not_mixed(kit: Kit) -> None:
    """After two simultaneous CHANGEs of a client the node holds exactly one of them: its content and revision belong
    together."""
    for _ in range(_ATTEMPTS):
        client, older, newer = kit.foreign_client(), *([kit.service() for _ in range(_SERVICES)] for _ in range(2))
        sent = {1: sorted(older), 2: sorted((*older, *newer))}
        changes = (
            kit.peer.sync(client, revision, *((each, "10.0.0.1", 80) for each in sent[revision])) for revision in sent
        )
        replies = await asyncio.gather(*changes)
        kit.assume(all(reply.succeeded for reply in replies), f"two acknowledged CHANGEs of {client}", replies)
        copy = await kit.peer.query(client)
        is_whole = copy is not None and services(copy) == sent.get(copy.revision or 0)
        seen = "nothing" if copy is None else f"revision {copy.revision} with {len(copy.published)} services"
        held = set(services(copy) or ())
        observed = {
            "revision": copy.revision if copy else None,
            "of_both": len(held & set(older)),
            "of_newer": len(held & set(newer)),
            "of_none": len(held - set(sent[2])),
        }
        what = f"{client} as in one of two CHANGEs, {_SERVICES} services under revision 1 or {2 * _SERVICES} under 2"
        kit.require(is_whole, what, seen, observed=observed)


@requirement("DISTRO-HOLDER-013", MUST, "#wire-limits, #receive-change")
async def large_change_is_applied(kit: Kit) -> None:
    """A CHANGE of more than 4 MiB, which gRPC accepts by itself, and less than 10 MiB is applied like any other."""
    client, service = kit.foreign_client(), kit.service()
    try:
        reply: object = await kit.peer.sync(client, 1, (service, "10.0.0.1", 80), ballast="x" * _BALLAST)
    except grpc.aio.AioRpcError as error:
        reply = f"{error.code().name} {error.details()}"
    kit.note(f"{kit.peer.address} sends CHANGE of {client} with {_BALLAST} bytes of metadata: {reply}")
    copy = await kit.peer.query(client)
    kit.require(services(copy) == [service], f"{client} with {service}", None if copy is None else services(copy))
    verified = await kit.peer.verify(client, 1)
    kit.require(verified.succeeded, f"success for VERIFY of {client}", verified)
    await kit.peer.delete(client)  # other checks ask for snapshots


@requirement("DISTRO-HOLDER-014", MUST, "#receive-change, #receive-delete, #verify-accept")
async def sender_makes_no_difference(kit: Kit) -> None:
    """A VERIFY, a CHANGE and a DELETE of a copy count from whichever member they come: another one may have sent the
    copy, in a SNAPSHOT for instance."""
    client, _ = await kit.synced(1)
    reply = await kit.other.verify(client, 1)
    kit.note(f"{kit.other.address} sends VERIFY of {client} revision 1: {reply}")
    kit.require(reply.succeeded, f"success for VERIFY of {client} by {kit.other.address}", reply)
    service = kit.service()
    reply = await kit.other.sync(client, 2, (service, "10.0.0.1", 80))
    kit.note(f"{kit.other.address} sends CHANGE of {client} revision 2 with {service}: {reply}")
    copy = await kit.peer.query(client)
    kit.require(reply.succeeded and services(copy) == [service], f"{client} with {service}", copy)
    reply = await kit.peer.delete(client)
    kit.note(f"{kit.peer.address} sends DELETE of {client}: {reply}")
    copy = await kit.peer.query(client)
    kit.require(reply.succeeded and copy is None, f"no {client}", copy)


@requirement("DISTRO-HOLDER-015", MUST, "#receive-change, #distro-content")
async def change_of_an_older_member_is_applied(kit: Kit) -> None:
    """A CHANGE as members of 2.0.x send it, without batches and without a revision, is applied, and a VERIFY of
    revision 0 succeeds then."""
    for client in _of_either_kind(kit):
        service = kit.service()
        content = sync_data(client, 0, [(service, "10.0.0.1", 80)])
        content["attributes"]["clientAttributes"] = {}
        del content["batchInstanceData"]
        reply = await kit.peer.send(distro_request("CHANGE", client, target=kit.target.address, content=content))
        kit.note(f"{kit.peer.address} sends CHANGE of {client} with {service}, without a revision: {reply}")
        copy = await kit.peer.query(client)
        kit.require(reply.succeeded and services(copy) == [service], f"{client} with {service}", copy)
        verified = await _verified(kit, client, 0)
        kit.require(verified.succeeded, f"success for VERIFY of {client} revision 0", verified)


def _of_either_kind(kit: Kit) -> tuple[str, ...]:
    """A client with a connection to `peer`, and a client of the HTTP API that `peer` owns, which requires `peer` to be
    on the node's list of members."""
    if not kit.target.limits.counts_members:
        return (kit.foreign_client(),)
    return kit.foreign_client(), kit.http_client(kit.peer.address).id


async def _verified(kit: Kit, client: str, revision: int) -> Message:
    reply = await kit.peer.verify(client, revision)
    kit.note(f"{kit.peer.address} sends VERIFY of {client} revision {revision}: {reply}")
    return reply


def _require_typed_failure(kit: Kit, reply: Message, what: str) -> None:
    """Any other failure of a VERIFY leads to no CHANGE (docs/protocol #defect-d10)."""
    is_typed = reply.type == "DistroDataResponse"
    kit.require(is_typed and not reply.succeeded, f"a typed failure for {what}", reply)
