"""The copies of one client at the node under test and at the played members, side by side.

The node is asked as any member may ask it. A played member keeps no copies: of its own client it has the content that
it sent last, of any other client the content that it acknowledged last.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

import grpc.aio

from distro_conformance.diagrams.evidence import CLIENT_ID
from distro_conformance.findings.finding import Held, differ
from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.verdict import KitError
from distro_traces.content import Replica, replica_from_sync

_ASKED_FOR_S = 10.0
_REQUEST = re.compile(rf"(?:CHANGE|DELETE|VERIFY) of ({CLIENT_ID.pattern})")
_SILENT = "gave no answer"
_NEVER, _GONE = "was sent nothing of it", "was sent a DELETE"
_Has = tuple[Replica | None, str]
"""The content, and its description."""


def client_of(message: str, evidence: Iterable[str]) -> str | None:
    """The client that a finding names; else the client of the last request, or the only client that its check noted."""
    if named := CLIENT_ID.search(message):
        return named[0]
    lines = list(evidence)
    requested = [found[1] for line in lines if (found := _REQUEST.search(line))]
    noted = {client for line in lines for client in CLIENT_ID.findall(line)}
    return requested[-1] if requested else noted.pop() if len(noted) == 1 else None


async def held_by_each(kit: Kit, client: str) -> tuple[Held, ...]:
    """The node first. Other members do not know a client of a played member and are left out."""
    sender = next((peer for peer in kit.played if client in peer.sent_contents), None)
    receivers = kit.played if kit.target.limits.counts_members else ()
    members = {peer.address: _of_member(kit, peer, client) for peer in ([sender] if sender else receivers)}
    rows = {kit.target.address: await _asked(kit, client), **members}
    owner = sender.address if sender else kit.target.address
    is_known = rows[kit.target.address][1] != _SILENT
    return tuple(
        Held(
            address,
            address == owner,
            described,
            is_known and address != owner and differ(_revised(rows[owner][0]), _revised(copy)),
        )
        for address, (copy, described) in rows.items()
    )


async def _asked(kit: Kit, client: str) -> _Has:
    try:
        async with asyncio.timeout(_ASKED_FOR_S):
            copy = await kit.peer.query(client)
    except (KitError, ValueError, TimeoutError, grpc.aio.AioRpcError):
        return None, _SILENT
    return copy, "holds nothing" if copy is None else f"holds {copy}"


def _of_member(kit: Kit, peer: PlayedPeer, client: str) -> _Has:
    if client in peer.sent_contents:
        content = peer.sent_contents[client]
        own = None if content is None else replica_from_sync(content)
        return own, "sent a DELETE" if own is None else f"sent {own}"
    acknowledged = [each for each in kit.arrivals(client, peer) if each.answered]
    received = [each.call for each in acknowledged if each.call and each.call.operation in ("CHANGE", "DELETE")]
    if not received:
        return None, _NEVER
    copy = received[-1].replica
    return copy, _GONE if copy is None else f"was sent {copy}"


def _revised(copy: Replica | None) -> tuple[int, object] | None:
    return None if copy is None else (copy.revision, copy.published)
