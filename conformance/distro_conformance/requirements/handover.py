"""Changes of the owner of a client of the HTTP API (docs/protocol #owner-responsible, #owner-handover).

A member leaves the list of the node and comes back: this moves ownership the same way in every release and depends on
no time-out. Each of these checks starts a node of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from distro_conformance.node.http_player import PlayedHttpClient
from distro_conformance.node.kit import Kit
from distro_conformance.node.kit import services as services_of
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.replies import FAILURE, SUCCESS
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import poll_local
from distro_traces.content import Replica

_READ_MS = 6_000
"""Until the node has read a changed list and recomputed the owners."""
_VERIFY_MS = 4_000
"""Between two VERIFYs of a played member."""
_UNDER_WAY_MS = 1_000
"""Until messages that were sent before the owner changed have arrived."""


class _Moved(NamedTuple):
    """A client of the member `leaving`, which the node owns while `leaving` is not on its list.

    `staying` is on the list all the time.
    """

    client: PlayedHttpClient
    service: str
    leaving: PlayedPeer
    staying: PlayedPeer


@requirement("DISTRO-OWNER-002", MUST, "#owner-responsible, #member-list", own_node=True)
async def heir_speaks_for_the_client(kit: Kit) -> None:
    """When a member leaves the list, the next owner of its clients of the HTTP API verifies them and announces their
    changes."""
    await kit.start_node()
    client, service, _, staying = await _copied(kit)
    await kit.change_members(staying)
    await kit.eventually_sent("VERIFY", client.id, at=staying, within_ms=_READ_MS + 2 * kit.timings.verify_ms)
    more = kit.service()
    reply = await client.register(more)
    kit.note(f"it registers {more} at the node: {reply}")
    both = sorted((service, more))
    announced = kit.arrival("CHANGE", client.id, at=staying, carrying=lambda copy: services_of(copy) == both)
    what = f"a CHANGE of {client.id} with {' and '.join(both)} at {staying.address}"
    await kit.eventually(announced, within_ms=2 * kit.timings.sync_ms, what=what)


@requirement("DISTRO-OWNER-003", MUST, "#owner-responsible, #lease-beats", since="2.2.1", own_node=True)
async def former_owner_falls_silent(kit: Kit) -> None:
    """A node that no longer owns a client of the HTTP API no longer verifies it and no longer judges whether it is
    alive."""
    await kit.start_node()
    moved = await _accepted(kit)
    await _comes_back(kit, moved)
    await kit.settle(_UNDER_WAY_MS)
    before = _sent_about(kit, moved)

    spoken_for = poll_local(lambda: next((each for each in _sent_about(kit, moved) if each not in before), None))
    client = moved.client.id
    await kit.never(
        spoken_for, for_ms=kit.timings.gone_ms + 2 * kit.timings.beat_check_ms, what=f"the node does not own {client}"
    )
    copy = await kit.peer.query(client)
    kit.require(copy is not None and _is_alive(copy), f"a healthy {client} at the node, which does not judge it", copy)


@requirement("DISTRO-OWNER-004", MUST, "#owner-handover", bug="B22", since="2.2.1", own_node=True)
async def new_owner_is_sent_the_client(kit: Kit) -> None:
    """A node that accepted what a client of the HTTP API publishes sends it to a member that joins and becomes its
    owner."""
    await kit.start_node()
    moved = client, service, leaving, _ = await _accepted(kit)
    await _comes_back(kit, moved)
    sent = kit.arrival("CHANGE", client.id, at=leaving, carrying=lambda copy: services_of(copy) == [service])
    held = services_of(await kit.peer.query(client.id)) == [service]  # a client without beats is held only for a while

    async def otherwise() -> dict[str, object]:
        return {"held": held, "sent": len(kit.arrivals(client.id, leaving))}

    what = f"a CHANGE of {client.id} with {service} at {leaving.address}"
    await kit.eventually(sent, within_ms=2 * kit.timings.sync_ms, what=what, otherwise=otherwise)


@requirement("DISTRO-OWNER-005", SHOULD, "#owner-handover", since="2.2.1", own_node=True)
async def conclusions_are_not_handed_over(kit: Kit) -> None:
    """A state that a node only inferred from missing beats is not sent to the owner that received those beats."""
    await kit.start_node()
    moved = client, _, leaving, staying = await _copied(kit)
    await kit.change_members(staying)
    dead = kit.arrival("CHANGE", client.id, at=staying, carrying=lambda copy: not _is_alive(copy))
    within_ms = _READ_MS + kit.timings.unhealthy_ms + kit.timings.beat_check_ms + 2 * kit.timings.sync_ms
    await kit.arrange(dead, within_ms=within_ms, what=f"a CHANGE of {client.id}, unhealthy, at {staying.address}")
    await _comes_back(kit, moved)
    sent = kit.arrival("CHANGE", client.id, at=leaving)

    what = f"{leaving.address} received the beats of {client.id}, and the node did not"
    await kit.never(sent, for_ms=2 * kit.timings.sync_ms, what=what)


@requirement("DISTRO-OWNER-006", MUST, "#owner-handover", since="2.2.1", own_node=True)
async def what_waits_is_sent(kit: Kit) -> None:
    """A change that a client of the HTTP API requested from a node is sent to a member until the member acknowledges
    it, even if another member owns the client by then."""
    await kit.start_node()
    moved = client, service, _, staying = await _accepted(kit)
    more = kit.service()
    both = sorted((service, more))
    kit.answer("CHANGE", FAILURE, client=client.id, at=staying)
    await client.register(more)
    failed = kit.arrival("CHANGE", client.id, at=staying, carrying=lambda copy: services_of(copy) == both)
    await kit.arrange(failed, within_ms=2 * kit.timings.sync_ms, what=f"a CHANGE of {client.id} with {more}")
    await _comes_back(kit, moved)
    await kit.settle(_UNDER_WAY_MS)

    def changes() -> list[Arrival]:
        found = (each for each in kit.arrivals(client.id, staying) if each.is_about("CHANGE"))
        return [each for each in found if each.call and services_of(each.call.replica) == both]

    before = len(changes())
    again = poll_local(lambda: next(iter(changes()[before:]), None))
    what = (
        f"a CHANGE of {client.id}, which {moved.leaving.address} owns, with {' and '.join(both)} at {staying.address}"
    )
    await kit.eventually(again, within_ms=2 * kit.timings.retry_ms, what=what)


@requirement("DISTRO-OWNER-008", SHOULD, "#owner-handover", bug="B22", since="2.1.2")
async def what_was_replaced_does_not_come_back(kit: Kit) -> None:
    """A node does not accept the content that a change of a client of the HTTP API has replaced, neither from a member
    that has not acknowledged the change nor from one that has: an older CHANGE may still be under way."""
    client, service, more = kit.http_client(kit.target.address), kit.service(), kit.service()
    await client.register(service)
    first = await kit.arrange_sent("CHANGE", client.id, at=kit.peer, within_ms=2 * kit.timings.sync_ms)
    revision = None if first.call is None else first.call.revision
    both = sorted((service, more))

    async def refused(is_acknowledged: str) -> None:
        reply = await kit.peer.sync(client.id, revision or 0, (service, client.ip, client.port))
        kit.note(f"{kit.peer.address}, which {is_acknowledged} it, sends CHANGE of {client.id} as it was: {reply}")
        held = services_of(await kit.peer.query(client.id))
        observed = {"acknowledged": reply.succeeded, "before": held == [service]}
        kit.require(held == both, f"{client.id} with {' and '.join(both)} at the node", held, observed=observed)

    kit.answer("CHANGE", FAILURE, client=client.id, at=kit.peer)
    await client.register(more)
    changed = kit.arrival("CHANGE", client.id, at=kit.peer, carrying=lambda copy: services_of(copy) == both)
    failed = await kit.arrange(changed, within_ms=2 * kit.timings.sync_ms, what=f"a CHANGE of {client.id} with {more}")
    await refused("has not acknowledged")
    kit.answer("CHANGE", SUCCESS, client=client.id, at=kit.peer)
    again = kit.arrival("CHANGE", client.id, at=kit.peer, after=failed, carrying=lambda copy: services_of(copy) == both)
    await kit.arrange(again, within_ms=2 * kit.timings.retry_ms, what=f"the CHANGE of {client.id} with {more} again")
    await kit.settle(_UNDER_WAY_MS)
    await refused("has acknowledged")


@requirement("DISTRO-OWNER-007", MUST, "#lease-beats, #verify-accept, #owner-responsible", since="2.2.1", own_node=True)
async def heir_counts_verifies_as_beats(kit: Kit) -> None:
    """The new owner of a client of the HTTP API counts a recent VERIFY as a beat, however old its copy is: it marks no
    instance of the client unhealthy and removes none before the time-outs have passed since that VERIFY."""
    await kit.start_node()
    other = kit.service()
    client, service, leaving, staying = await _copied(kit, other)
    copied_ms = kit.target.clock.now_ms()
    until_ms = copied_ms + kit.timings.gone_ms + kit.timings.beat_check_ms
    while (verified_ms := kit.target.clock.now_ms()) < until_ms:
        await leaving.verify(client.id, 1)
        await kit.sleep(_VERIFY_MS)
    reply = await leaving.verify(client.id, 1)
    kit.assume(reply.succeeded, f"a VERIFY of {client.id} that succeeds", reply)
    await kit.change_members(staying)
    kit.note(f"{leaving.address} leaves the list; its last VERIFY of {client.id} was at {verified_ms} ms")

    async def judged() -> Replica | str | None:
        copy = await kit.peer.query(client.id)
        return None if copy is not None and _is_alive(copy, instances=2) else copy or f"no {client.id}"

    what = f"{client.id} with {service} and {other} was verified at {verified_ms} ms"
    await kit.never(
        judged, for_ms=max(0, verified_ms + kit.timings.unhealthy_ms - 1 - kit.target.clock.now_ms()), what=what
    )
    within_ms = _READ_MS + kit.timings.beat_check_ms + 2 * kit.timings.sync_ms
    dead = kit.arrival("CHANGE", client.id, at=staying, carrying=lambda copy: not _is_alive(copy, instances=2))
    await kit.eventually(dead, within_ms=within_ms, what=f"a CHANGE of {client.id}, unhealthy, at {staying.address}")


def _moving(kit: Kit) -> _Moved:
    """In `strict` the next member in the ring represents a member that is back but has not reported itself yet.
    `leaving` is the played member that the node does not represent, so the client returns to it by way of the third
    member."""
    ring = sorted((kit.target.address, *(peer.address for peer in kit.peers)))
    after_node = ring[(ring.index(kit.target.address) + 1) % len(ring)]
    leaving, staying = sorted((kit.peer, kit.other), key=lambda peer: peer.address != after_node)
    client = kit.http_client(leaving.address, node_owns_without=leaving.address)
    return _Moved(client, kit.service(), leaving, staying)


async def _copied(kit: Kit, *others: str) -> _Moved:
    """The node has a copy of the client, which publishes these other services too."""
    moved = client, service, leaving, _ = _moving(kit)
    published = (service, *others)
    reply = await leaving.sync(client.id, 1, *((each, client.ip, client.port) for each in published))
    kit.note(f"{leaving.address} sends CHANGE of {client.id}, which it owns, with {' and '.join(published)}: {reply}")
    kit.assume(reply.succeeded, f"an acknowledged CHANGE of {client.id}", reply)
    return moved


async def _accepted(kit: Kit) -> _Moved:
    """The client has registered at the node, which owns it, and `staying` has received its CHANGE."""
    moved = client, service, leaving, staying = _moving(kit)
    await kit.change_members(staying)

    async def kept() -> bool:
        before = len(leaving.http.requests)
        reply = await client.register(service)
        kit.note(f"{client.id} registers {service} at the node: {reply}")
        return reply.text == "ok" and len(leaving.http.requests) == before

    await kit.arrange(kept, within_ms=_READ_MS, what=f"a registration of {client.id} that the node keeps")
    await kit.arrange_sent("CHANGE", client.id, at=staying, within_ms=2 * kit.timings.sync_ms)
    return moved


async def _comes_back(kit: Kit, moved: _Moved) -> None:
    """`leaving` is on the list again and has reported itself, and the node treats it as the owner of the client."""
    client, _, leaving, staying = moved
    await kit.change_members(leaving, staying)

    async def passed_on() -> bool:
        await leaving.report()
        before = len(leaving.http.requests)
        await client.light_beat(kit.service())  # an unknown service: no effect if it is not passed on
        return len(leaving.http.requests) > before

    await kit.arrange(passed_on, within_ms=_READ_MS, what=f"a node that knows {leaving.address} as the owner")
    kit.note(f"{leaving.address} has reported itself, and the node passes on to it what {client.id} asks")


def _sent_about(kit: Kit, moved: _Moved) -> list[Arrival]:
    """All requests about the client, except CHANGEs to `leaving`, which belong to the hand-over."""
    client, _, leaving, staying = moved
    at_leaving = (each for each in kit.arrivals(client.id, leaving) if not each.is_about("CHANGE"))
    return [*kit.arrivals(client.id, staying), *at_leaving]


def _is_alive(copy: Replica, instances: int = 1) -> bool:
    return [each.healthy for each in copy.published] == [True] * instances
