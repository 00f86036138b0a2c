"""Distro's requests as they travel, and how their sender reads the replies.

The sender looks at `resultCode == 200` only, and it matters which class a failure has: a typed DistroDataResponse is an
answer, anything else is an exception (docs/protocol #sync-unreadable, #verify-failed, #load-size, #distro-envelope,
#distro-content and #sync-result).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile
from distro_impl.remote.payloads import DataOperation
from distro_impl.remote.peer_connection import PeerUnreachableError
from distro_protos import Json, Message, UnreadableBodyError, read_json, write_json

DISTRO_DATA = "DistroDataRequest"
DISTRO_DATA_RESPONSE = "DistroDataResponse"
RESOURCE_TYPE = "Nacos:Naming:v2:ClientData"


class DistroReply(StrEnum):
    """What became of a request, as its sender reads it."""

    SUCCESS = "success"
    FAIL = "fail"  # a typed response with another resultCode
    EXCEPTION = "exception"  # no connection, time-out, ErrorResponse, unreadable body
    NOT_SENT = "not sent"  # the target is not UP (from 2.1.1 on)


class DistroTransportAgent:
    """Sends to the other members."""

    def __init__(self, profile: Profile, members: ServerMemberManager, clients: ClusterRpcClientProxy) -> None:
        self._profile, self._members, self._clients = profile, members, clients

    def sync_body(self, peer: str, operation: DataOperation, client_id: str, data: Json | None) -> Json:
        """Of CHANGE with the client's data, or of DELETE without."""
        return distro_body(operation, client_id, data, target=peer)

    async def sync(self, peer: str, body: Json) -> DistroReply:
        """Send CHANGE or DELETE. To one that is no member any more that is a success: its tasks end silently
        (docs/protocol #sync-only-up)."""
        if not self._members.has_member(peer):
            return DistroReply.SUCCESS
        return (await self._send(peer, body, self._profile.sync_timeout_ms))[0]

    async def verify(self, peer: str, client_id: str, revision: int) -> DistroReply:
        """Send VERIFY; as sent by all v2 servers it names no target."""
        if not self._members.has_member(peer):
            return DistroReply.SUCCESS
        body = distro_body(DataOperation.VERIFY, client_id, {"clientId": client_id, "revision": revision})
        return (await self._send(peer, body, self._profile.verify_timeout_ms))[0]

    async def load_snapshot(self, peer: str) -> tuple[DistroReply, list[Json]]:
        """SUCCESS with the ClientSyncData objects of all clients that `peer` knows, or what else became of it.

        A success without data counts as an unreadable answer (docs/real-servers.md#what-the-sender-does).
        """
        body = {"dataOperation": DataOperation.SNAPSHOT, "module": "cluster"}
        outcome, reply = await self._send(peer, body, self._profile.load_timeout_ms)
        if outcome is not DistroReply.SUCCESS or reply is None:
            return outcome, []
        try:
            loaded = decode_content(reply.body["distroData"])["clientSyncDataList"]
        except (KeyError, TypeError, ValueError):
            return DistroReply.EXCEPTION, []
        return (DistroReply.SUCCESS, loaded) if isinstance(loaded, list) else (DistroReply.EXCEPTION, [])

    async def _send(self, peer: str, body: Json, timeout_ms: int) -> tuple[DistroReply, Message | None]:
        if self._profile.sends_only_to_up_members and not self._members.is_up(peer):
            return DistroReply.NOT_SENT, None
        try:
            reply = await self._clients.request(peer, DISTRO_DATA, body, timeout_ms)
        except (PeerUnreachableError, TimeoutError):
            return DistroReply.EXCEPTION, None
        except UnreadableBodyError:
            return DistroReply.EXCEPTION, Message("", {}, {})
        if reply.type != DISTRO_DATA_RESPONSE:
            return DistroReply.EXCEPTION, reply
        return (DistroReply.SUCCESS if reply.succeeded else DistroReply.FAIL), reply


def distro_body(operation: DataOperation, client_id: str, data: Json | None, target: str | None = None) -> Json:
    """The body of a request about one client. `data` becomes the content."""
    named = {} if target is None else {"targetServer": target}
    content = {} if data is None else {"content": encode_content(data)}
    return {
        "distroData": {
            "distroKey": {"resourceKey": client_id, "resourceType": RESOURCE_TYPE, **named},
            "type": operation,
            **content,
        },
        "dataOperation": operation,
        "module": "cluster",
    }


def encode_content(data: Mapping[str, Any]) -> str:
    """Padded Base64 of the inner JSON."""
    return base64.b64encode(write_json(data)).decode()


def decode_content(distro_data: Mapping[str, Any]) -> Any:
    """The inner JSON of a `distroData` object in a reply. Raises KeyError or ValueError (also for missing padding)."""
    return read_json(base64.b64decode(distro_data["content"], validate=True))
