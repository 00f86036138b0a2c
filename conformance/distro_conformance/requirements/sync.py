"""A change of an owned client reaches the other members (docs/protocol #sync-announce to #sync-only-up)."""

from __future__ import annotations

import asyncio
import itertools

from distro_conformance.node.kit import Kit, services
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.player import PlayedClient
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Poll, first_of
from distro_conformance.wire.messages import RESOURCE_TYPE
from distro_traces.content import Replica

_ATTEMPTS = 20
"""Attempts to be fast enough on a machine that may be busy."""
_LEAVING, _REGISTRATIONS = 10, 5
_QUICK_ATTEMPTS = 5
_CHANGES_EVERY_MS = 400
_GIVEN_UP = 3
"""The number of sync delays without a CHANGE, while the client keeps changing, after which the check stops waiting."""


@requirement("DISTRO-SYNC-001", MUST, "#sync-announce, #sync-merge")
async def registration_arrives_as_change(kit: Kit) -> None:
    """A registration reaches every other member as a CHANGE that holds what the client publishes, and so does another
    one under the same service, which replaces the instance."""
    client, service = await kit.client(), kit.service()
    before: dict[str, Arrival] = {}
    for zone in "ab":
        await client.register(service, "10.0.0.1", 80, zone=zone)
        kit.note(f"it registers {service} at 10.0.0.1:80 with zone={zone}")
        for peer in kit.peers:
            change = await kit.eventually_sent("CHANGE", client.id, after=before.get(peer.address), at=peer)
            kit.require(
                [(p.service, p.ip, p.port) for p in change.published] == [(service, "10.0.0.1", 80)],
                f"the CHANGE to hold {service} at 10.0.0.1:80 and nothing else",
                change,
            )
            sent = f'"zone":"{zone}"'
            attributes = change.published[0].attributes
            kit.require(sent in attributes, f"metadata {{{sent}}}", attributes)
            before[peer.address] = change


@requirement("DISTRO-SYNC-002", MUST, "#client-disconnect, #sync-announce")
async def disconnect_arrives_as_delete(kit: Kit) -> None:
    """The end of a client's connection reaches every other member as a DELETE, also if the client has deregistered
    everything before."""
    for deregisters in (False, True):
        client, service, change = await kit.replicated()
        if deregisters:
            await client.deregister(service, "10.0.0.1", 80)
            kit.note(f"it deregisters {service}")
            await kit.arrange_sent("CHANGE", client.id, after=change)
        await kit.leave(client)
        await kit.eventually_sent("DELETE", client.id)


@requirement("DISTRO-SYNC-003", MUST, "#sync-announce")
async def every_member_is_sent_changes(kit: Kit) -> None:
    """A change and the end of a client reach every other member, not only one."""
    client, _ = await kit.publisher()
    for operation in ("CHANGE", "DELETE"):
        for peer in kit.peers:
            await kit.eventually_sent(operation, client.id, at=peer)
        if operation == "CHANGE":
            await kit.leave(client)


@requirement("DISTRO-SYNC-004", MUST, "#sync-merge, #sync-announce")
async def later_changes_do_not_postpone(kit: Kit) -> None:
    """A client that keeps changing is announced one sync delay after the first change, and again after later changes.

    The check assumes that each change comes within one sync delay of the previous one: a node that restarts the delay
    at each change then announces nothing until the client stops changing for one delay.
    """
    within_ms = kit.timings.sync_ms - _CHANGES_EVERY_MS
    for _ in range(_QUICK_ATTEMPTS):
        client, names, changed_ms = await _goes_on_changing(kit)
        longest_ms = max((later - earlier for earlier, later in itertools.pairwise(changed_ms)), default=0)
        longest_ms += kit.target.clock.slack_since(changed_ms[0])  # an upper limit of the gaps that the node sees
        if longest_ms < within_ms:
            break
    kit.assume_turns(longest_ms, within_ms, "one change after the other")
    arrived = await kit.arrival("CHANGE", client.id)()
    took_ms = (arrived.at_ms if arrived else kit.target.clock.now_ms()) - changed_ms[0]
    what = "a CHANGE although the client goes on changing"
    kit.require_within(took_ms, kit.timings.sync_ms, what, since_ms=changed_ms[0])
    poll = kit.arrival("CHANGE", client.id, carrying=lambda replica: services(replica) == sorted(names))
    await kit.eventually(poll, within_ms=kit.timings.sync_ms, what="a CHANGE with all services")


async def _goes_on_changing(kit: Kit) -> tuple[PlayedClient, list[str], list[int]]:
    """Changes a client until a CHANGE of it arrives or is long overdue. Returns the client, its services, and the times
    of its changes."""
    client, service = await kit.publisher()
    names, changed_ms = [service], [kit.target.clock.now_ms()]
    until_ms = changed_ms[0] + _GIVEN_UP * kit.timings.sync_ms
    arrived = kit.arrival("CHANGE", client.id)
    while not await arrived() and kit.target.clock.now_ms() <= until_ms:
        await kit.sleep(_CHANGES_EVERY_MS)
        names.append(kit.service())
        changed_ms.append(kit.target.clock.now_ms())
        await client.register(names[-1], "10.0.0.1", 80)
        changed_ms.append(kit.target.clock.now_ms())
    return client, names, changed_ms


@requirement("DISTRO-SYNC-005", MUST, "#sync-execute, #sync-merge")
async def changes_are_merged(kit: Kit) -> None:
    """Changes within one sync delay are sent as one CHANGE of the last state."""
    for _ in range(_ATTEMPTS):
        client, service, other = await kit.client(), kit.service(), kit.service()
        began_ms = kit.target.clock.now_ms()
        await client.register(service, "10.0.0.1", 80)
        await client.register(other, "10.0.0.1", 80)
        await client.deregister(service, "10.0.0.1", 80)
        took_ms = kit.target.clock.now_ms() - began_ms
        if took_ms < kit.timings.sync_ms // 2:
            break
    else:
        kit.assume(False, "three requests within half a sync delay", f"{took_ms} ms in the last attempt")
    change = await kit.eventually_sent("CHANGE", client.id)
    kit.require(services(change.replica) == [other], f"{other} alone in the first CHANGE", change)
    more = kit.arrival("CHANGE", client.id, after=change)
    await kit.never(more, for_ms=kit.timings.sync_ms, what="one CHANGE has all three changes")


@requirement("DISTRO-SYNC-006", MUST, "#sync-announce, #notify-queues", bug="B08")
async def brief_client_is_deleted(kit: Kit) -> None:
    """A client that registers and leaves at once is deleted everywhere, and no CHANGE of it follows."""
    client, _ = await kit.publisher()
    for peer in kit.peers:
        await kit.arrange_sent("CHANGE", client.id, at=peer)
    await client.register(kit.service(), "10.0.0.1", 80)
    await kit.leave(client)
    ends = [(peer, await kit.eventually_sent("DELETE", client.id, at=peer)) for peer in kit.peers]
    again = first_of(kit.arrival("CHANGE", client.id, after=deleted, at=peer) for peer, deleted in ends)
    await kit.never(again, for_ms=kit.timings.sync_ms, what=f"{client.id} is gone")


@requirement("DISTRO-SYNC-009", MUST, "#client-request, #sync-null-data, #notify-queues", bug="B25")
async def clients_that_leave_busy_are_deleted(kit: Kit) -> None:
    """Clients that leave while their registrations are handled are deleted everywhere, and no CHANGE follows."""
    clients = [await kit.replicated() for _ in range(_LEAVING)]
    await asyncio.gather(*(_leaves_busy(kit, client) for client, _, _ in clients))
    again: list[Poll[Arrival]] = []
    for (client, _, _), peer in itertools.product(clients, kit.peers):

        async def otherwise(client: PlayedClient = client, peer: PlayedPeer = peer) -> dict[str, object]:
            return {"deletes": sum(each.is_about("DELETE") for each in kit.arrivals(client.id, peer))}

        deleted = await kit.eventually(
            kit.arrival("DELETE", client.id, at=peer),
            within_ms=2 * kit.timings.sync_ms,
            what=f"DELETE of {client.id}, which left while its registrations were handled, at {peer.address}",
            otherwise=otherwise,
        )
        again.append(kit.arrival("CHANGE", client.id, after=deleted, at=peer))
    await kit.never(first_of(again), for_ms=kit.timings.sync_ms, what="all of them are gone")


async def _leaves_busy(kit: Kit, client: PlayedClient) -> None:
    """The client leaves as soon as the first of several registrations is answered."""
    asked = [asyncio.ensure_future(client.register(kit.service(), "10.0.0.1", 80)) for _ in range(_REGISTRATIONS)]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    await kit.leave(client)
    await asyncio.gather(*asked, return_exceptions=True)


@requirement("DISTRO-SYNC-007", MUST, "#distro-envelope")
async def envelope_is_whole(kit: Kit) -> None:
    """A sync names its client, the resource type and its receiver, and holds its operation twice."""
    client, _ = await kit.publisher()
    for operation in ("CHANGE", "DELETE"):
        for peer in kit.peers:
            arrival = await kit.arrange_sent(operation, client.id, at=peer)
            data = arrival.body.get("distroData") or {}
            key = {"resourceKey": client.id, "resourceType": RESOURCE_TYPE, "targetServer": peer.address}
            kit.require(data.get("distroKey") == key, f"the key {key}", data.get("distroKey"))
            kit.require(data.get("type") == operation, f"{operation} inside too", data.get("type"))
        if operation == "CHANGE":
            await kit.leave(client)


@requirement("DISTRO-SYNC-008", MUST, "#sync-announce, #client-change")
async def deregistration_arrives(kit: Kit) -> None:
    """A deregistration reaches every other member as a CHANGE without the service, the last one of a client too."""
    client, service, first = await kit.replicated()
    other = kit.service()
    await client.register(other, "10.0.0.1", 80)
    for gone, left in ((service, [other]), (other, [])):
        await client.deregister(gone, "10.0.0.1", 80)
        kit.note(f"it deregisters {gone}")

        def is_left(replica: Replica, left: list[str] = left) -> bool:
            return services(replica) == left

        for peer in kit.peers:
            after = first if peer is kit.peer else None
            poll = kit.arrival("CHANGE", client.id, at=peer, after=after, carrying=is_left)
            what = f"a CHANGE with {' and '.join(left) or 'no service'} at {peer.address}"
            await kit.eventually(poll, within_ms=kit.timings.sync_ms, what=what)
