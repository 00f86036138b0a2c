"""Distro messages as the kit reads them: which operation, about which client, with which revision and content.

The wire carries a JSON object inside Base64 inside a JSON object inside an envelope; nothing else in the kit unpacks
it. Source: docs/protocol #distro-envelope to #sync-result.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from distro_protos import Json, Message, Payload, decode, encode
from distro_traces.content import Replica, has_batch, replica_from_sync
from distro_traces.event import Outcome

RESOURCE_TYPE = "Nacos:Naming:v2:ClientData"
DISTRO_REQUEST, DISTRO_RESPONSE = "DistroDataRequest", "DistroDataResponse"
UNKNOWN_RESOURCE_TYPE = "Nacos:Naming:v9:Unknown"
UNHEARD_TYPE = "NobodyKnowsThisResponse"
ACKNOWLEDGED: Json = {"resultCode": 200, "errorCode": 0, "success": True}
REFUSED: Json = {"resultCode": 500, "errorCode": 500, "message": "refused", "success": False}


@dataclass(frozen=True, slots=True)
class DistroCall:
    """The content of a Distro request. `replica` is the content of a CHANGE or ADD; `has_batch`: a service in it has
    one."""

    operation: str
    client: str | None = None
    revision: int | None = None
    replica: Replica | None = None
    has_batch: bool = False

    @property
    def digest(self) -> str | None:
        return None if self.replica is None else self.replica.digest


@dataclass(frozen=True, slots=True)
class RoutedCall:
    """A Distro request on a link: sender, receiver and content, with the id that its four trace rows share."""

    id: str
    source: str
    target: str
    call: DistroCall


class Journal(Protocol):
    """Records every Distro call on a link, in the order of events. See `recording/journal.py`."""

    def new_id(self) -> str: ...
    def sent(self, routed: RoutedCall) -> None: ...
    def received(self, routed: RoutedCall) -> None: ...
    def replied(self, routed: RoutedCall, outcome: Outcome, reply: Message) -> None: ...
    def ended(self, routed: RoutedCall, outcome: Outcome) -> None: ...
    def fault(self, source: str, target: str, what: str) -> None: ...


def read_request(message: Message) -> DistroCall | None:
    """None when the message is no Distro request; content that cannot be read leaves revision and replica empty."""
    if message.type != DISTRO_REQUEST:
        return None
    operation = str(message.body.get("dataOperation", "?"))
    data = message.body.get("distroData") or {}
    client = (data.get("distroKey") or {}).get("resourceKey")
    if operation == "VERIFY":
        return DistroCall(operation, client, (content_of(data) or {}).get("revision"))
    if operation in ("CHANGE", "ADD"):
        content = content_of(data) or {}
        try:
            replica = replica_from_sync(content)
        except ValueError:
            return DistroCall(operation, client)
        return DistroCall(operation, client, replica.revision, replica, has_batch(content))
    return DistroCall(operation, client)


def mistyped(request: Payload) -> Payload:
    """The same Distro request, about data of an unknown type."""
    message = decode(request)
    data = message.body["distroData"]
    key = {**data["distroKey"], "resourceType": UNKNOWN_RESOURCE_TYPE}
    body = {**message.body, "distroData": {**data, "distroKey": key}}
    return encode(message.type, body, headers=message.headers, client_ip=request.metadata.client_ip)


def read_snapshot(reply: Message) -> tuple[Replica, ...]:
    """All clients in a SNAPSHOT reply, native and synced. Raises ValueError when the reply holds no snapshot."""
    content = content_of(reply.body.get("distroData") or {})
    if not reply.succeeded or content is None:
        raise ValueError(f"no snapshot in the reply: {reply.type} {reply.body.get('message', '')}".rstrip())
    return tuple(replica_from_sync(item) for item in content.get("clientSyncDataList", ()))


def read_query(reply: Message) -> Replica | None:
    """The client in a QUERY reply; None when the node answers that it does not know it. Raises ValueError for a refusal
    or an unreadable answer."""
    data = reply.body.get("distroData") or {}
    content = content_of(data)
    if outcome_of(reply) is not Outcome.SUCCESS or (content is None and data.get("content")):
        raise ValueError(f"no answer to QUERY: {reply}")
    return None if content is None else replica_from_sync(content)


def outcome_of(reply: Message) -> Outcome:
    """As the sender reads it: a typed response with resultCode 200 is success, another code a failure."""
    if reply.type != DISTRO_RESPONSE:
        return Outcome.ERROR
    return Outcome.SUCCESS if reply.succeeded else Outcome.FAIL


def content_of(data: Mapping[str, Any]) -> Json | None:
    text = data.get("content")
    if not text:
        return None
    try:
        value = json.loads(base64.b64decode(text, validate=True))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def distro_request(
    operation: str, client: str | None = None, *, target: str | None = None, content: Any = None
) -> Json:
    """The body of a request; a SNAPSHOT request carries no data at all, a VERIFY no target
    (docs/protocol #distro-snapshot)."""
    if operation == "SNAPSHOT":
        return {"headers": {}, "dataOperation": operation, "module": "cluster"}
    key = {"resourceKey": client, "resourceType": RESOURCE_TYPE, "targetServer": target}
    data = {"distroKey": key, "type": operation, "content": None if content is None else pack(content)}
    return {"headers": {}, "distroData": data, "dataOperation": operation, "module": "cluster"}


def pack(content: Any) -> str:
    return base64.b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()


def sync_data(client: str, revision: int, instances: Iterable[tuple[str, str, int]], **metadata: str) -> Json:
    """A ClientSyncData object for instances given as (service, ip, port), all with the same metadata
    (docs/protocol #distro-content)."""
    rows = list(instances)
    return {
        "clientId": client,
        "attributes": {"clientAttributes": {"revision": revision}},
        "namespaces": ["public" for _ in rows],
        "groupNames": ["DEFAULT_GROUP" for _ in rows],
        "serviceNames": [service for service, _, _ in rows],
        "instancePublishInfos": [_info(ip, port, metadata) for _, ip, port in rows],
        "batchInstanceData": {},
    }


def batch_data(
    client: str,
    revision: int,
    batches: Mapping[str, Iterable[tuple[str, int]]],
    instances: Iterable[tuple[str, str, int]] = (),
) -> Json:
    """A ClientSyncData object with a batch for each of these services, and the other instances
    (docs/protocol #distro-content)."""
    infos = [[_info(ip, port, {}) for ip, port in batch] for batch in batches.values()]
    data = {
        "namespaces": ["public" for _ in batches],
        "groupNames": ["DEFAULT_GROUP" for _ in batches],
        "serviceNames": list(batches),
        "batchInstancePublishInfos": [{"port": 0, "healthy": False, "instancePublishInfos": each} for each in infos],
    }
    return {**sync_data(client, revision, instances), "batchInstanceData": data}


def _info(ip: str, port: int, metadata: Mapping[str, str]) -> Json:
    return {"ip": ip, "port": port, "healthy": True, "cluster": "DEFAULT", "extendDatum": dict(metadata)}
