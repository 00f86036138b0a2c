"""A connection that dies silently: the node must detect it (docs/protocol #ejector-check).

A node that keeps such a client keeps verifying it at the other members, and all of them list a dead instance for ever.
The checks query the node itself; other requirements cover how the end of a client reaches the other members.
"""

from __future__ import annotations

import itertools

from distro_conformance.node.kit import Kit
from distro_conformance.node.player import DETECTION, PlayedClient, query_request
from distro_conformance.requirements.requirement import MUST, SHOULD, requirement
from distro_conformance.waiting import Poll, poll_local
from distro_conformance.wire.connection import CLUSTER_LABELS
from distro_protos import Message

_IDLE_MS, _CHECK_MS, _ANSWER_MS, _ACTIVE_MS = 20_000, 3_000, 5_000, 6_000
_SILENT = 5
_CLOSED_MS = 1_000
"""From the end of a client to that of its connection."""
_EXPELLED_MS = _IDLE_MS + 2 * (_CHECK_MS + _ANSWER_MS)
"""The longest time of any release: the previous check may still be waiting for another client's answer."""


@requirement("DISTRO-CONNECTION-001", MUST, "#ejector-check", bug="B03")
async def mute_client_is_given_up(kit: Kit) -> None:
    """A client that is silent for 20 s and answers a detection with failure or not at all is removed with all that it
    publishes, its connection closed and its DELETE sent to every member, however many such clients there are."""
    refusing, *silent = clients = [await _registered(kit) for _ in range(_SILENT)]
    refusing.refuses = True
    for client in silent:
        await client.fall_silent()
    kit.note(f"{refusing.id} answers every request with failure, and the others fall silent")
    end_ms = kit.target.clock.now_ms() + _EXPELLED_MS
    for client in clients:

        async def otherwise(client: PlayedClient = client) -> dict[str, object]:
            return {"held": await kit.peer.query(client.id) is not None, "detections": _detections(client)}

        what, left_ms = f"the end of {client.id}, whose connection is dead", end_ms - kit.target.clock.now_ms()
        await kit.eventually(kit.lacks(client.id), within_ms=max(0, left_ms), what=what, otherwise=otherwise)
        await kit.eventually(_closed(client), within_ms=_CLOSED_MS, what=f"the connection of {client.id} closed")
        for peer in kit.peers if kit.target.limits.counts_members else ():
            await kit.eventually_sent("DELETE", client.id, at=peer)


@requirement("DISTRO-CONNECTION-002", SHOULD, "#ejector-answer", bug="B39")
async def answering_client_stays(kit: Kit) -> None:
    """A client that only answers detections keeps its connection and what it publishes, and is asked again only once it
    has been idle for 20 s since its answer."""
    client, clock = await _registered(kit), kit.target.clock
    gone, answered_ms = kit.lacks(client.id), list[int]()

    async def poll() -> str | None:
        if _detections(client) > len(answered_ms):
            answered_ms.append(clock.now_ms())
            kit.note(f"{client.id} has answered a detection")
        return await gone()

    def otherwise() -> dict[str, object]:
        after_ms = clock.now_ms() - answered_ms[-1] if answered_ms else None
        return {"detections": len(answered_ms), "after_ms": after_ms}

    what = f"{client.id} answers every request"
    await kit.never(poll, for_ms=_EXPELLED_MS, what=what, otherwise=otherwise)
    for earlier_ms, later_ms in itertools.pairwise(answered_ms):
        kit.require_apart(earlier_ms, later_ms, _IDLE_MS - _CHECK_MS, f"two detections of {client.id}")


@requirement("DISTRO-CONNECTION-003", MUST, "#ejector-check", bug="B03")
async def idle_client_is_asked(kit: Kit) -> None:
    """The node sends a detection on a connection, of a client or of a member, once the connection has been idle for
    20 s, and not before."""
    client, pushes = await kit.client(idle=True), list[Message]()
    member = await kit.connection(CLUSTER_LABELS, on_push=pushes.append)
    asked = _asked(client)
    await kit.never(asked, for_ms=kit.timings.idle_ms - _CHECK_MS, what=f"{client.id} was active a moment ago")
    await _is_asked(kit, client, within_ms=2 * _CHECK_MS + _ANSWER_MS + _CHECK_MS)
    also = poll_local(lambda: any(each.type == DETECTION for each in pushes))
    what = f"a {DETECTION} to the member {member.id}"
    await kit.eventually(also, within_ms=2 * _CHECK_MS + _ANSWER_MS, what=what)


@requirement("DISTRO-CONNECTION-004", MUST, "#wire-checks, #ejector-check")
async def active_client_is_not_asked(kit: Kit) -> None:
    """Requests count as signs of life, and so do answers to pushes: a client that sends health checks, or queries
    alone, or only acknowledges pushes, gets no detection, and an idle client gets one.

    The idle client shows that the node sends detections at all; without it the absence of one would prove nothing.
    """
    checking, querying, acknowledging, idle = [await kit.client(idle=True) for _ in range(4)]
    active, query = (checking, querying), query_request(kit.service())
    (publisher, service), clock = await kit.publisher(), kit.target.clock
    await acknowledging.subscribe(service)
    pushed_ms = clock.now_ms()
    for turn in range(_EXPELLED_MS // _ACTIVE_MS):
        await kit.sleep(_ACTIVE_MS)
        await publisher.register(service, "10.0.0.1", 81 + turn)
        await kit.arrange_pushed(acknowledging, service, f"10.0.0.1:{81 + turn}")
        kit.assume_turns(clock.now_ms() - pushed_ms, kit.timings.idle_ms, "pushes")
        pushed_ms = clock.now_ms()
        replies = await checking.check_health(), await querying.ask("ServiceQueryRequest", query)
        idle_ms = max(each.longest_idle_ms for each in active) if kit.target.clock.is_real else 0
        kit.assume_turns(idle_ms, kit.timings.idle_ms, "signs of life")
        kit.require(all(each.succeeded for each in replies), "connections that live", replies)
    asked = [str(push) for each in (*active, acknowledging) for push in each.pushes if push.type == DETECTION]
    kit.require(not asked, f"no {DETECTION}", asked)
    await _is_asked(kit, idle, within_ms=_CHECK_MS)


def _closed(client: PlayedClient) -> Poll[bool]:
    return poll_local(lambda: client.is_closed)


def _asked(client: PlayedClient) -> Poll[str]:
    return poll_local(lambda: DETECTION if _detections(client) else None)


def _detections(client: PlayedClient) -> int:
    return sum(push.type == DETECTION for push in client.pushes)


async def _is_asked(kit: Kit, client: PlayedClient, *, within_ms: int) -> None:
    async def otherwise() -> dict[str, object]:
        return {"held": await kit.peer.query(client.id) is not None}

    what = f"a {DETECTION} to {client.id}"
    await kit.eventually(_asked(client), within_ms=within_ms, what=what, otherwise=otherwise)


async def _registered(kit: Kit) -> PlayedClient:
    client, _ = await kit.publisher(idle=True)
    kit.assume(await kit.peer.query(client.id) is not None, f"the node to hold {client.id}", "nothing")
    return client
