"""Requests and answers of played members, in the language and on the wire.

Nothing here keeps state between two actions: `peers` decides the order of actions and informs the oracle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distro_conformance.drivers.clients import read_instance
from distro_conformance.node.replies import ERROR, FAILURE, UNREADABLE, Reply
from distro_conformance.wire.messages import (
    ACKNOWLEDGED,
    UNHEARD_TYPE,
    UNKNOWN_RESOURCE_TYPE,
    batch_data,
    distro_request,
    pack,
    read_snapshot,
    sync_data,
)
from distro_model.actions import MALFORMED, PeerRequest
from distro_model.messages import Change, Delete, Request, Snapshot, Verify, batch_of
from distro_protos import Json, Message
from distro_traces.content import Replica

UNPARSED = "an ErrorResponse: the body cannot be read (docs/protocol #wire-checks)"
ANSWERS: Mapping[str, Reply] = {
    "fail": FAILURE,
    "error": ERROR,
    "unreadable": UNREADABLE,
    "unheard": Reply(UNHEARD_TYPE, ACKNOWLEDGED),
}


def request_of(action: PeerRequest, client_id: str, target: str) -> tuple[Json, Request | None]:
    """The body of a member's request to `target`, and its event in the model; None for a request that only reads."""
    client = action.client or ""
    match action.operation:
        case "CHANGE":
            instances = {service: text.split(", ") for service, text in action.content}
            batches = {service: [*map(_address, each)] for service, each in instances.items() if len(each) > 1}
            singles = [(service, *_address(each[0])) for service, each in instances.items() if len(each) == 1]
            data = batch_data(client_id, action.revision, batches, singles)
            published = tuple(
                (service, batch_of(each) if len(each) > 1 else each[0]) for service, each in instances.items()
            )
            body = distro_request("CHANGE", client_id, target=target, content=data)
            return body, Change(client, action.revision, published)
        case "DELETE":
            return distro_request("DELETE", client_id, target=target), Delete(client)
        case "VERIFY":
            content = {"clientId": client_id, "revision": action.revision}
            return distro_request("VERIFY", client_id, content=content), Verify(client, action.revision)
        case "SNAPSHOT":
            return distro_request("SNAPSHOT"), Snapshot()
    if action.operation in MALFORMED:
        return malformed(action.operation, client_id), Delete(client)
    return distro_request("QUERY", client_id, target=target), None


def _address(instance: str) -> tuple[str, int]:
    ip, port, _ = read_instance(instance)
    return ip, port


def copies_in(reply: Message) -> Sequence[Replica]:
    """The clients in a SNAPSHOT; none if it was refused."""
    try:
        return read_snapshot(reply)
    except ValueError:
        return ()


def malformed(kind: str, client: str) -> Json:
    """A malformed request, by its fault."""
    sync = sync_data(client, 1, [("web", "10.9.9.9", 80)])
    body = dict(distro_request("CHANGE", client, target="", content=sync))
    data = dict(body["distroData"])
    match kind:
        case "NO-KEY":
            data["distroKey"] = None
        case "NO-CONTENT":
            data["content"] = None
        case "NO-BASE64":
            data["content"] = "%%%"
        case "NO-JSON":
            data["content"] = pack(1)[:2] + "=="
        case "NO-TYPE":
            data["type"] = None
        case "UNKNOWN-TYPE":
            data["distroKey"] = {**data["distroKey"], "resourceType": UNKNOWN_RESOURCE_TYPE}
    return {**body, "distroData": data}
