"""Leases of copies: when a copy expires, what renews its lease, and what must not (docs/protocol #lease-copies,
#verify-accept, #receive-lease).

Both directions are checked: a copy that ends too soon is an outage, and one that stays too long lists a dead instance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import poll_local
from distro_conformance.wire.messages import distro_request, sync_data

_KEEP_ALIVE_MS = 4_000
_MORE = 3
"""Copies that end with another one: if each check ended one of them, the last would be late."""
_LAST_LOOK_MS = 500
"""The last poll comes this long before the end of the lease; a server takes a few ms to answer."""


@requirement("DISTRO-LEASE-001", MUST, "#lease-copies", bug="B31")
async def copy_ends_with_its_lease(kit: Kit) -> None:
    """Each copy that is not verified, one with batches alone too, stays for its lease and ends at the next check after
    it, however many copies end then; subscribers receive a push, and members nothing."""
    reader = await kit.client()
    since_ms = kit.target.clock.now_ms()
    client, service = await kit.synced()
    others = [(await kit.synced())[0] for _ in range(_MORE)]
    if kit.has_batches:
        others.append(kit.foreign_client())
        reply = await kit.peer.sync_batches(others[-1], 1, "10.0.0.1", {kit.service(): (80, 81)})
        kit.assume(reply.succeeded, f"an acknowledged CHANGE of {others[-1]} with a batch", reply)
    await reader.subscribe(service)
    await _end_with_their_lease(kit, since_ms, (client, *others))
    await kit.eventually_listed(reader, service)
    await kit.eventually_pushed(reader, service)
    await _members_receive_nothing(kit, (client, *others))


@requirement("DISTRO-LEASE-002", MUST, "#verify-accept, #lease-copies")
async def verify_renews(kit: Kit) -> None:
    """A VERIFY that succeeds renews the lease."""
    since_ms = kit.target.clock.now_ms()
    client, _ = await kit.synced()
    await _is_kept_by_verifies(kit, since_ms, client)


@requirement("DISTRO-LEASE-003", MUST, "#verify-accept", since="2.1.2")
async def failed_verify_renews_nothing(kit: Kit) -> None:
    """A failed VERIFY does not renew the lease, for a client of either kind."""
    clients = [(await kit.synced(client=each))[0] for each in (None, kit.http_client(kit.peer.address).id)]
    until_ms = kit.target.clock.now_ms() + kit.timings.lease_ms
    while kit.target.clock.now_ms() < until_ms:
        for client in clients:
            await kit.peer.verify(client, 7)
        await kit.sleep(_KEEP_ALIVE_MS)
    for client in clients:
        within_ms, what = 2 * kit.timings.clean_ms, f"the end of {client}, of which every VERIFY fails"
        await kit.eventually(kit.lacks(client), within_ms=within_ms, what=what)


@requirement("DISTRO-LEASE-004", MUST, "#receive-lease", bug="B17")
async def change_renews(kit: Kit) -> None:
    """Each CHANGE renews the lease of a client of either kind."""
    began_ms = kit.target.clock.now_ms()
    copies = [await kit.synced(client=each) for each in (None, kit.http_client(kit.peer.address).id)]
    revision, sent_ms = 1, dict.fromkeys((client for client, _ in copies), kit.target.clock.now_ms())
    until_ms = began_ms + kit.timings.lease_ms + 2 * kit.timings.clean_ms
    while kit.target.clock.now_ms() < until_ms + kit.target.clock.slack_since(began_ms):  # the cleaner may be late
        revision += 1
        for client, service in copies:  # half a turn apart: an end between a poll and the next CHANGE is not observed
            copy = await kit.peer.query(client)
            if copy is None:
                kit.assume_turns(kit.target.clock.now_ms() - sent_ms[client], kit.timings.lease_ms, "renewals")
            sent_ms[client] = kit.target.clock.now_ms()
            kit.require(
                copy is not None,
                f"{client} to stay",
                f"the node lost it, {_KEEP_ALIVE_MS} ms after its last CHANGE",
                observed={"lasted_ms": kit.target.clock.now_ms() - began_ms, "lease_ms": kit.timings.lease_ms},
            )
            await kit.peer.sync(client, revision, (service, "10.0.0.1", 80), round=str(revision))
            await kit.sleep(_KEEP_ALIVE_MS // len(copies))


@requirement("DISTRO-LEASE-005", MUST, "#lease-copies")
async def connected_client_needs_no_lease(kit: Kit) -> None:
    """A client that is connected to the node never expires, however long it changes nothing."""
    client, _ = await kit.publisher()
    until_ms = kit.target.clock.now_ms() + kit.timings.lease_ms + 2 * kit.timings.clean_ms
    await _keep_until(kit, until_ms, [client.id], "it is connected and answers")


@requirement("DISTRO-LEASE-006", MUST, "#lease-ip-port-copies", since="2.0.3")
async def ip_port_copy_ends_with_its_lease(kit: Kit) -> None:
    """Each copy of a client of the HTTP API ends with its lease too, and not before, however many copies end then, and
    also if it came again after a DELETE; subscribers receive a push, and members nothing."""
    reader, since_ms = await kit.client(), kit.target.clock.now_ms()
    copies = [await kit.synced(client=kit.http_client(kit.peer.address).id) for _ in range(1 + _MORE)]
    again, service = copies[0]
    reply = await kit.peer.delete(again)
    kit.note(f"{kit.peer.address} sends DELETE of {again}, which comes again: {reply}")
    await kit.synced(client=again, service=service)
    await reader.subscribe(service)
    clients = [client for client, _ in copies]
    await _end_with_their_lease(kit, since_ms, clients)
    await kit.eventually_listed(reader, service)
    await kit.eventually_pushed(reader, service)
    await _members_receive_nothing(kit, clients)


@requirement("DISTRO-LEASE-007", MUST, "#verify-accept")
async def verify_renews_beats(kit: Kit) -> None:
    """A VERIFY that succeeds keeps a copy of a client of the HTTP API, and its instance healthy, or unhealthy if it was
    so."""
    ill = kit.http_client(kit.peer.address)
    content = sync_data(ill.id, 1, [(kit.service(), ill.ip, ill.port)])
    content["instancePublishInfos"][0]["healthy"] = False
    reply = await kit.peer.send(distro_request("CHANGE", ill.id, target=kit.target.address, content=content))
    kit.note(f"{kit.peer.address} sends CHANGE of {ill.id}, unhealthy: {reply}")
    verified = await kit.peer.verify(ill.id, 1)
    kit.assume(verified.succeeded, f"a VERIFY of {ill.id} that succeeds", verified)
    copy = await kit.peer.query(ill.id)
    kit.require(copy is not None and not copy.published[0].healthy, "an unhealthy instance, as it was sent", copy)
    http, since_ms = kit.http_client(kit.peer.address), kit.target.clock.now_ms()
    client, _ = await kit.synced(client=http.id)
    longest_ms = await _is_kept_by_verifies(kit, since_ms, client)
    copy = await kit.peer.query(client)
    kit.assume_turns(longest_ms, kit.timings.unhealthy_ms, "a VERIFY after the other")
    kit.require(copy is not None and copy.published[0].healthy, "a healthy instance", copy)


@requirement("DISTRO-LEASE-008", SHOULD, "#lease-pause", bug="B23", since="2.2.0", own_node=True)
async def suspension_ends_no_lease(kit: Kit) -> None:
    """A node that was suspended for longer than a lease ends no copy because of that, of a client of either kind: no
    member could have renewed a lease meanwhile."""
    await kit.start_node(short_lease=True)
    copies = [await kit.synced(), await kit.synced(client=kit.http_client(kit.peer.address).id)]
    suspended_ms = kit.timings.lease_ms + 2 * kit.timings.clean_ms
    kit.note(f"{kit.target.address} is suspended for {suspended_ms} ms")
    await kit.target.suspend(suspended_ms)
    for peer in kit.peers:  # a client without an answer for this time connects again
        await peer.disconnect_from_node()
        await peer.dial(kit.target.address)
    resumed_ms = kit.target.clock.now_ms()
    await kit.sleep(2 * kit.timings.clean_ms)
    held = [await kit.peer.query(client) for client, _ in copies]
    kit.assume_turns(kit.target.clock.now_ms() - resumed_ms, kit.timings.lease_ms, "a poll")
    for (client, service), copy in zip(copies, held, strict=True):
        is_held = services(copy) == [service]
        if not is_held:
            again = (await kit.peer.sync(client, 2, (service, "10.0.0.1", 80))).succeeded
            is_applied = again and services(await kit.peer.query(client)) == [service]
            observed = {"known": copy is not None, "again": is_applied}
            kit.require(is_held, f"{client} with {service}, as before", copy, observed=observed)


async def _end_with_their_lease(kit: Kit, since_ms: int, clients: Sequence[str]) -> None:
    """Expects the copies to end at the next check after their lease, and not before. They exist now, and since
    `since_ms` at the earliest."""
    end_ms = kit.target.clock.now_ms() + kit.timings.lease_ms + 2 * kit.timings.clean_ms
    await _keep_until(kit, since_ms + kit.timings.lease_ms - 1_000, clients, "its lease has not ended")
    for each in clients:
        within_ms = max(0, end_ms - kit.target.clock.now_ms())
        await kit.eventually(kit.lacks(each), within_ms=within_ms, what=f"the end of {each}, which is not verified")


async def _members_receive_nothing(kit: Kit, clients: Sequence[str]) -> None:
    """Other members may have verified copies of clients whose copies have ended here."""
    if not kit.target.limits.counts_members:
        return
    sent = poll_local(lambda: next((each for of in clients for at in kit.peers for each in kit.arrivals(of, at)), None))
    await kit.never(sent, for_ms=2 * kit.timings.sync_ms, what="the node does not own them")


async def _is_kept_by_verifies(kit: Kit, since_ms: int, client: str) -> int:
    """The longest time without a renewal."""
    renewed_ms, longest_ms = since_ms, 0

    async def renew() -> None:
        nonlocal renewed_ms, longest_ms
        began_ms = kit.target.clock.now_ms()
        longest_ms = max(longest_ms, began_ms - renewed_ms)
        answer = await kit.peer.verify(client, 1)
        if not answer.succeeded:
            kit.assume_turns(kit.target.clock.now_ms() - renewed_ms, kit.timings.lease_ms, "renewals")
        renewed_ms = began_ms

    until_ms = kit.target.clock.now_ms() + kit.timings.lease_ms + 2 * kit.timings.clean_ms
    await _keep_until(kit, until_ms, [client], "it is verified all the time", renew)
    return longest_ms


@requirement("DISTRO-LEASE-009", MUST, "#http-beat, #lease-copies")
async def client_that_beats_does_not_expire(kit: Kit) -> None:
    """A client of the HTTP API that beats never expires, however long it changes nothing."""
    client, service = kit.http_client(kit.target.address), kit.service()
    reply = await client.register(service)
    kit.note(f"{client.id}, which the node owns, registers {service} there: {reply}")
    kit.assume(reply.status == 200, f"a registration of {client.id} that succeeds", reply)
    beaten_ms = kit.target.clock.now_ms()

    async def beat() -> None:
        nonlocal beaten_ms
        last_ms, beaten_ms = beaten_ms, kit.target.clock.now_ms()
        await client.light_beat(service)
        kit.assume_turns(kit.target.clock.now_ms() - last_ms, kit.timings.unhealthy_ms, "one beat after the other")

    until_ms = kit.target.clock.now_ms() + kit.timings.lease_ms + 2 * kit.timings.clean_ms
    await _keep_until(kit, until_ms, [client.id], "it beats", beat)


async def _keep_until(
    kit: Kit, until_ms: int, clients: Sequence[str], why: str, meanwhile: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Queries the copies every few seconds; a lease takes minutes. The answer to a query that ends after `until_ms` is
    ignored."""
    while (left_ms := until_ms - kit.target.clock.now_ms()) > 0:
        if meanwhile is not None:
            await meanwhile()
        await kit.keep_alive()
        before_last_ms = left_ms - _LAST_LOOK_MS
        await kit.sleep(min(_KEEP_ALIVE_MS, before_last_ms if before_last_ms > 0 else left_ms))
        for client in clients:
            copy = await kit.peer.query(client)
            if copy is None and meanwhile is not None:
                await meanwhile()  # shows whether this process was too late
            if kit.target.clock.now_ms() <= until_ms:
                kit.require(copy is not None, f"{client} to stay: {why}", "the node does not hold it any more")
