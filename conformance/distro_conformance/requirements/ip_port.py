"""Clients of the HTTP API: no connection, one owner by hash, and beats (docs/protocol #owner-place, #lease-copies and
#http-v1)."""

from __future__ import annotations

from distro_conformance.node.http_member import ANSWER
from distro_conformance.node.http_player import PlayedHttpClient
from distro_conformance.node.kit import Kit
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Look

_UNHEALTHY_MS, _GONE_MS, _CHECK_MS = 15_000, 30_000, 5_000


@requirement(
    "DISTRO-IPPORT-001",
    MUST,
    source="docs/protocol #sync-announce, #http-v1",
    text="An instance registered over HTTP at its owner reaches every other member as a CHANGE of `ip:port#true`.",
)
async def registration_over_http_arrives_as_change(kit: Kit) -> None:
    client, _ = await _registered(kit)
    await kit.eventually(
        kit.arrival("CHANGE", client.id), within_ms=2 * kit.timings.sync_ms, what=f"a CHANGE of {client.id}"
    )


@requirement(
    "DISTRO-IPPORT-002",
    MUST,
    source="docs/protocol #lease-beats",
    text="An instance whose beats stay out is unhealthy after 15 s and gone after 30 s, each at the next check.",
)
async def beats_that_stay_out_end_the_instance(kit: Kit) -> None:
    began_ms = kit.target.clock.now_ms()
    client, service = await _registered(kit)
    reader = await kit.client()

    def shown(*states: str) -> Look[str]:
        async def look() -> str | None:
            hosts = await reader.query(service)
            state = "gone" if not hosts else "healthy" if hosts[0].healthy else "unhealthy"
            return state if state in states else None

        return look

    def left_of(after_ms: int) -> int:
        return max(0, began_ms + after_ms - kit.target.clock.now_ms())

    await kit.never(shown("unhealthy", "gone"), for_ms=left_of(_UNHEALTHY_MS - 1), what=f"{client.id} may yet beat")
    seen = await kit.eventually(
        shown("unhealthy", "gone"),
        within_ms=left_of(_UNHEALTHY_MS + _CHECK_MS + kit.timings.view_ms),
        what=f"{client.id} shown as unhealthy",
    )
    kit.require(seen == "unhealthy", f"{client.id} to be unhealthy before it is gone", seen)
    await kit.never(shown("gone"), for_ms=left_of(_GONE_MS - 1), what=f"{client.id} may yet beat")
    await kit.eventually(
        shown("gone"), within_ms=left_of(_GONE_MS + _CHECK_MS + kit.timings.view_ms), what=f"the end of {client.id}"
    )


@requirement(
    "DISTRO-IPPORT-003",
    MUST,
    source="docs/protocol #owner-place, #owner-filter",
    text="A request about an instance that another member owns is passed on, and its answer is given back unchanged.",
)
async def request_about_a_foreign_client_is_passed_on(kit: Kit) -> None:
    client, service = kit.http_client(kit.peer.address), kit.service()
    reply = await client.register(service)
    kit.note(f"{client.id}, which {kit.peer.address} owns, registers {service} at the node: {reply}")
    passed_on = [each for each in kit.peer.http.requests if each["query"].get("ip") == client.ip]
    kit.require(
        [each["method"] for each in passed_on] == ["POST"],
        f"the registration of {client.id} to be passed on to {kit.peer.address}, once",
        passed_on,
    )
    kit.require((reply.status, reply.text) == (200, ANSWER), f"the answer of {kit.peer.address}, {ANSWER!r}", reply)
    copy = await kit.peer.query(client.id)
    kit.require(copy is None, f"the node to hold nothing of {client.id}", copy)


async def _registered(kit: Kit) -> tuple[PlayedHttpClient, str]:
    """A client that the node owns."""
    client, service = kit.http_client(kit.target.address), kit.service()
    reply = await client.register(service)
    kit.note(f"{client.id}, which the node owns, registers {service} there: {reply}")
    kit.presuppose((reply.status, reply.text) == (200, "ok"), f"a registration of {client.id} that succeeds", reply)
    return client, service
