"""The load of a starting node: which members it asks, what it accepts, and what it does not do before (docs/protocol
#load-first, #load-asks, #load-takes). Each check starts a node of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from distro_conformance.findings.finding import NOTHING
from distro_conformance.node.errors import ViolationError
from distro_conformance.node.kit import Kit, services
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.replies import ERROR, FAILURE, HALF_A_SNAPSHOT, Reply, snapshot_reply
from distro_conformance.release import Span
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.targets.nacos_home import LOAD_RETRY_MS
from distro_conformance.waiting import Poll, poll_local
from distro_conformance.wire.messages import batch_data, sync_data

_STARTED_MS = 10_000
"""Until a serving node has sent its first request; it takes less than a second where nodes know their members."""
_NOT_UPGRADED_WITH_DATA = Span(until="2.0.4")
"""A first node of these releases counts its services in both of its stores, and accepts no client while they differ: a
node that has only loaded copies refuses for ever. So it must serve before it gets any copy (observed on a running
2.0.4)."""
_PORTS = (80, 81)
_HELD_MS = 15_000
_SLOW_MS = 8_000
"""Longer than any time-out but that of a SNAPSHOT request."""
_BALLAST = 8 * 1024 * 1024
"""The size of the content, which is a third longer in the message."""
_LOAD_RETRY_MS, _LOAD_RETRY_2_0_MS = 30_000, 60_000
_FAILED_LOADS = 5
"""More than the attempts that callers usually make."""


@requirement("DISTRO-LOAD-001", MUST, "#load-first, #load-asks", bug="B32", since="2.2.1", own_node=True)
async def load_is_asked_at_once(kit: Kit) -> None:
    """A node that starts requests a SNAPSHOT at once, from the members in ascending order, and from no other member
    after a success."""
    await kit.start_node()
    low, high = sorted(kit.peers, key=lambda peer: peer.address)
    await kit.eventually(_asked(low), within_ms=_STARTED_MS, what=f"a SNAPSHOT request at {low.address}")
    await kit.never(_asked(high), for_ms=2_000, what=f"{low.address} has answered")


@requirement("DISTRO-LOAD-002", MUST, "#load-asks", since="2.2.1", own_node=True)
async def next_member_is_asked(kit: Kit) -> None:
    """If a member fails a SNAPSHOT, the next member is asked at once."""
    await _is_loaded_from_the_next(kit, FAILURE)


@requirement("DISTRO-LOAD-010", MUST, "#load-takes", since="2.2.1", own_node=True)
async def half_a_snapshot_is_no_load(kit: Kit) -> None:
    """A SNAPSHOT that cannot be read does not complete the load, even if its answer reports success: the next member is
    asked at once."""
    await _is_loaded_from_the_next(kit, HALF_A_SNAPSHOT)


@requirement("DISTRO-LOAD-011", MUST, "#load-takes", since="2.2.1", own_node=True)
async def snapshot_with_a_broken_client_is_no_load(kit: Kit) -> None:
    """A SNAPSHOT with a client that cannot be applied does not complete the load: the next member is asked at once."""
    await _is_loaded_from_the_next(kit, snapshot_reply({"clientId": kit.foreign_client(), "namespaces": "none"}))


@requirement("DISTRO-LOAD-003", MUST, "#load-takes", own_node=True)
async def snapshot_is_applied(kit: Kit) -> None:
    """The clients of a SNAPSHOT, of either kind, are applied as copies, each with all its services and their metadata,
    and all its batches: lists show them, a VERIFY of their revision succeeds, and the node sends nothing about them."""
    client, service, other, its = kit.foreign_client(), *(kit.service() for _ in range(3))
    http = kit.http_client(kit.peer.address)
    batches = {kit.service(): _PORTS, kit.service(): _PORTS[1:]} if kit.has_batches else {}
    batched = {name: [("10.0.0.2", port) for port in ports] for name, ports in batches.items()}
    loaded = (client, http.id, kit.foreign_client())
    contents = (
        sync_data(http.id, 3, [(its, http.ip, http.port)], zone="a"),
        batch_data(loaded[-1], 3, batched),
        sync_data(client, 3, [(service, "10.0.0.1", 80), (other, "10.0.0.1", 80)], zone="a"),
    )
    serves_first = kit.target.profile in _NOT_UPGRADED_WITH_DATA
    if serves_first:
        _all_answer(kit, ERROR)
        await kit.start_node()
    _all_answer(kit, snapshot_reply(*contents))
    if not serves_first:
        await kit.start_node()
    within_ms = _STARTED_MS + (_LOAD_RETRY_2_0_MS if serves_first else 0)
    await kit.eventually(kit.holds(client, service, other), within_ms=within_ms, what=f"{client} at the node")
    reader = await kit.client()
    for name, address in (service, "10.0.0.1:80"), (other, "10.0.0.1:80"), (its, f"{http.ip}:{http.port}"):
        (host,) = await kit.eventually_listed(reader, name, address)
        kit.require(dict(host.metadata) == {"zone": "a"}, f"the metadata zone a of {name}", host)
    for name, ports in batches.items():
        await kit.eventually_listed(reader, name, *(f"10.0.0.2:{port}" for port in ports))
    for each in loaded if batches else loaded[:-1]:
        verified = await kit.peer.verify(each, 3)
        kit.require(verified.succeeded, f"success for VERIFY of {each} revision 3", verified)
    await kit.arrange_sent("VERIFY", reader.id, within_ms=2 * kit.timings.verify_ms)
    sent = [str(arrival) for each in loaded for peer in kit.peers for arrival in kit.arrivals(each, peer)]
    kit.require(not sent, "nothing about them at any member", sent)


@requirement("DISTRO-LOAD-009", SHOULD, "#load-size", bug="B11", since="2.2.1", own_node=True)
async def large_snapshot_is_taken(kit: Kit) -> None:
    """A SNAPSHOT of more than 10 MiB is applied like any other: a node that cannot load never verifies."""
    (client, service), ballast = (kit.foreign_client(), kit.service()), kit.foreign_client()
    large = sync_data(ballast, 1, [(kit.service(), "10.0.0.2", 80)], ballast="x" * _BALLAST)
    _all_answer(kit, snapshot_reply(sync_data(client, 1, [(service, "10.0.0.1", 80)]), large))
    await kit.start_node(until_loaded=False)

    async def otherwise() -> dict[str, object]:
        asked = [len(_requests(peer)) for peer in kit.peers]
        parts = [await kit.peer.query(each) is not None for each in (client, ballast)]
        _all_answer(kit, snapshot_reply(sync_data(client, 1, [(service, "10.0.0.1", 80)])))
        return {"asked": asked, "parts": any(parts), "smaller": await _is_taken(kit, client, service)}

    what = f"{client} at the node, from a snapshot of {_BALLAST} bytes and more"
    held = kit.holds(client, service)
    await kit.eventually(held, within_ms=_STARTED_MS + _LOAD_RETRY_MS, what=what, otherwise=otherwise)


@requirement("DISTRO-LOAD-012", MUST, "#load-asks, #load-takes", since="2.2.1", own_node=True)
async def slow_snapshot_is_taken(kit: Kit) -> None:
    """A SNAPSHOT of more than 4 MiB, which gRPC accepts by itself, and less than 10 MiB that is answered after several
    seconds is applied, and no other member is asked meanwhile: one of many clients takes its time."""
    client, service = kit.foreign_client(), kit.service()
    content = sync_data(client, 1, [(service, "10.0.0.1", 80)], ballast="x" * (_BALLAST // 2))
    _all_answer(kit, replace(snapshot_reply(content), after_ms=_SLOW_MS))
    await kit.start_node(until_loaded=False)

    def asked(count: int) -> Poll[list[str]]:
        return poll_local(lambda: [peer.address for peer in kit.peers for _ in _requests(peer)][count - 1 :] or None)

    await kit.eventually(asked(1), within_ms=_STARTED_MS, what="a SNAPSHOT request")
    await kit.never(asked(2), for_ms=_SLOW_MS, what=f"the first request is answered after {_SLOW_MS} ms")
    await kit.eventually(kit.holds(client, service), within_ms=_STARTED_MS, what=f"{client} at the node")


@requirement("DISTRO-LOAD-004", MUST, "#load-takes", since="2.2.1", own_node=True)
async def no_verify_before_the_load(kit: Kit) -> None:
    """Until its load is complete a node sends syncs but no VERIFY; afterwards it sends both."""
    asked = await _loads_slowly(kit, snapshot_reply())
    client, _ = await kit.publisher()
    await kit.eventually_sent("CHANGE", client.id)
    left_ms = max(0, asked.at_ms + _HELD_MS - 1_000 - kit.target.clock.now_ms())
    verify = kit.arrival("VERIFY", client.id)
    await kit.never(verify, for_ms=left_ms, what="the load is not complete")
    within_ms = 1_000 + 2 * kit.timings.verify_ms
    await kit.eventually(verify, within_ms=within_ms, what=f"a VERIFY of {client.id} after the load")


@requirement("DISTRO-LOAD-005", MUST, "#load-asks", since="2.2.1", own_node=True)
async def failed_load_is_repeated(kit: Kit) -> None:
    """If every member has failed, the node asks them again later, until one answers."""
    failing = [(peer, peer.answer("SNAPSHOT", ERROR)) for peer in kit.peers]
    await kit.start_node(until_loaded=False)
    within_ms = _LOAD_RETRY_MS + LOAD_RETRY_MS
    for peer in kit.peers:
        await kit.arrange(_asked(peer), within_ms=_STARTED_MS, what=f"a SNAPSHOT request at {peer.address}")
    for number in range(2, _FAILED_LOADS + 1):
        for peer in kit.peers:
            what = f"SNAPSHOT request number {number} at {peer.address}"
            await kit.eventually(_asked(peer, number), within_ms=within_ms, what=what)
    client, service = kit.foreign_client(), kit.service()
    for peer, rule in failing:
        peer.forget(rule)
    _all_answer(kit, snapshot_reply(sync_data(client, 3, [(service, "10.0.0.1", 80)])))
    await kit.eventually(kit.holds(client, service), within_ms=within_ms, what=f"{client}, from a later SNAPSHOT")


@requirement("DISTRO-LOAD-006", MUST, "#receive-native", bug="B01", since="2.2.1", own_node=True)
async def snapshot_leaves_connected_clients_alone(kit: Kit) -> None:
    """A SNAPSHOT does not change a client that is connected to the node, however old its copy in the SNAPSHOT is."""
    client_of: list[str] = []
    stale, fresh = kit.service(), kit.service()

    def snapshot() -> Reply:
        contents = [sync_data(client, 1, [(stale, "10.0.0.1", 80)]) for client in client_of]
        return Reply(snapshot_reply().type, snapshot_reply(*contents).body)

    _all_answer(kit, ERROR)
    await kit.start_node(until_loaded=False)
    client = await kit.client()
    for service in (stale, fresh):
        await client.register(service, "10.0.0.1", 80)
    client_of.append(client.id)
    for peer in kit.peers:
        peer.answer("SNAPSHOT", snapshot())
    kit.note(f"members now answer SNAPSHOT with {client.id}, {stale} alone")
    await _asked_again(kit)
    await kit.settle(1_000)
    copy = await kit.peer.query(client.id)
    is_unharmed = services(copy) == sorted((stale, fresh))
    answers = NOTHING if is_unharmed else await kit.announced(client.id, [stale])
    observed = {**answers, "published": services(copy), "sent": [stale]}
    kit.require(is_unharmed, f"{client.id} with both services", copy, observed=observed)


@requirement("DISTRO-LOAD-007", MUST, "#receive-late", bug="B27", since="2.2.1", own_node=True)
async def snapshot_restores_no_client(kit: Kit) -> None:
    """A SNAPSHOT does not restore a client whose DELETE arrived while the SNAPSHOT was under way, and all its other
    clients are applied, in the place of an older copy too."""
    (client, service), (rest, its) = ((kit.foreign_client(), kit.service()) for _ in range(2))
    reply = snapshot_reply(
        *(sync_data(each, 3, [(name, "10.0.0.1", 80)]) for each, name in ((client, service), (rest, its)))
    )
    asked = await _loads_slowly(kit, reply)
    older = kit.service()
    await kit.synced(2, client=rest, service=older)
    deleted = await kit.peer.delete(client)
    kit.note(f"{kit.peer.address} sends DELETE of {client}: {deleted}")
    kit.assume(kit.target.clock.now_ms() < asked.at_ms + _HELD_MS, "a DELETE before the snapshot", "it came later")
    await kit.settle(max(0, asked.at_ms + _HELD_MS + 1_500 - kit.target.clock.now_ms()))
    copy, other = await kit.peer.query(client), await kit.peer.query(rest)
    observed = NOTHING if copy is None else await kit.held_as_copy(client, 3, [service])
    observed = {**observed, "acknowledged": deleted.succeeded, "others": services(other) == [its]}
    kit.require(copy is None, f"no {client}", copy, observed=observed)
    what = f"{rest} with {its} in the place of {older}: it comes after {client} in the snapshot"
    kit.require(services(other) == [its], what, other)


@requirement("DISTRO-LOAD-008", SHOULD, "#load-snapshot, #defect-d14", bug="B33", since="2.2.1", own_node=True)
async def unloaded_node_gives_no_snapshot(kit: Kit) -> None:
    """A node that has not loaded yet refuses a SNAPSHOT request: the receiver would take its incomplete data for
    complete."""
    asked = await _loads_slowly(kit, snapshot_reply())
    client, service = await kit.publisher()
    try:
        given: Mapping[str, object] | None = {each.client: services(each) for each in await kit.peer.snapshot()}
    except ValueError as refusal:
        kit.note(f"it answers SNAPSHOT with a refusal: {refusal}")
        given = None
    kit.assume(kit.target.clock.now_ms() < asked.at_ms + _HELD_MS, "a SNAPSHOT before its load", "it came later")
    is_held = given == {client.id: [service]}
    kit.require(given is None, "a refusal", f"a snapshot of {given}", observed={"is_what_is_held": is_held})


async def _is_taken(kit: Kit, client: str, service: str) -> bool:
    """Whether the node loads the client when it asks again."""
    within_ms = _LOAD_RETRY_MS + LOAD_RETRY_MS
    try:
        await kit.eventually(kit.holds(client, service), within_ms=within_ms, what=f"{client} at the node")
    except ViolationError:
        return False
    return True


async def _is_loaded_from_the_next(kit: Kit, reply: Reply) -> None:
    """Expects the load from the second member when the first one answers with `reply`."""
    low, high = sorted(kit.peers, key=lambda peer: peer.address)
    low.answer("SNAPSHOT", reply)
    client, service = kit.foreign_client(), kit.service()
    high.answer("SNAPSHOT", snapshot_reply(sync_data(client, 3, [(service, "10.0.0.1", 80)])))
    await kit.start_node(until_loaded=False)
    await kit.eventually(_asked(high), within_ms=_STARTED_MS, what=f"a SNAPSHOT request at {high.address}")
    await kit.eventually(kit.holds(client, service), within_ms=1_000, what=f"{client} at the node")


def _all_answer(kit: Kit, reply: Reply) -> None:
    for peer in kit.peers:
        peer.answer("SNAPSHOT", reply)


def _requests(peer: PlayedPeer) -> list[Arrival]:
    return [arrival for arrival in peer.arrivals if arrival.is_about("SNAPSHOT")]


def _asked(peer: PlayedPeer, number: int = 1) -> Poll[Arrival]:
    return poll_local(lambda: next(iter(_requests(peer)[number - 1 :]), None))


async def _loads_slowly(kit: Kit, reply: Reply) -> Arrival:
    """Starts the node while the members refuse its requests; from then on they answer with `reply` after `_HELD_MS`.

    Returns the first request after that, so that time is left however long the start takes.
    """
    _all_answer(kit, ERROR)
    await kit.start_node(until_loaded=False)
    _all_answer(kit, Reply(reply.type, reply.body, after_ms=_HELD_MS))
    return await _asked_again(kit)


async def _asked_again(kit: Kit) -> Arrival:
    seen = {peer.address: len(_requests(peer)) for peer in kit.peers}
    again = poll_local(
        lambda: next((each for peer in kit.peers for each in _requests(peer)[seen[peer.address] :]), None)
    )
    return await kit.arrange(again, within_ms=_LOAD_RETRY_MS + LOAD_RETRY_MS, what="another SNAPSHOT request")
