"""The bodies of requests, as typed structures.

Handlers get these: they need not defend themselves against a `port` that is a list. What cannot become its field makes
the whole body unreadable (502), as it does where Jackson reads it. A new request type is a class and a line in
REQUESTS. Source: docs/protocol #wire-checks, #connection-handshake, #connection-internal, #naming-requests,
#member-report and #distro-envelope.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from distro_impl.jackson import Fields, Int, read
from distro_protos import Payload, merged_headers

SENDER_HEADER = "distro-sender"
"""Header of a request to a member: the address of the member that sends it. Only `strict` sends and reads it; a server
reads the headers that it knows, and ignores this one (docs/protocol #owner-handover)."""


class DataOperation(StrEnum):
    ADD = "ADD"
    CHANGE = "CHANGE"
    DELETE = "DELETE"
    VERIFY = "VERIFY"
    SNAPSHOT = "SNAPSHOT"
    QUERY = "QUERY"


class NodeState(StrEnum):
    """What a member may say of itself."""

    STARTING = "STARTING"
    UP = "UP"
    SUSPICIOUS = "SUSPICIOUS"
    DOWN = "DOWN"
    ISOLATION = "ISOLATION"


class Body(Fields):
    """Of any request."""

    headers: dict[str, str] | None = None


class Response(Fields):
    """What is read of any response."""

    result_code: Int = 200
    error_code: Int = 0
    message: str | None = None
    request_id: str | None = None


class Instance(Fields):
    """The JSON object `Instance`, as a client writes it."""

    instance_id: str | None = None
    ip: str | None = None
    port: Int | None = None
    weight: float = 1.0
    healthy: bool = True
    enabled: bool = True
    ephemeral: bool = True
    cluster_name: str | None = None
    service_name: str | None = None
    metadata: dict[str, str] | None = None


class NamingBody(Body):
    namespace: str | None = None
    service_name: str | None = None
    group_name: str | None = None


class InstanceRequest(NamingBody):
    type: str | None = None
    instance: Instance | None = None


class BatchInstanceRequest(NamingBody):
    type: str | None = None
    instances: list[Instance] | None = None


class SubscribeServiceRequest(NamingBody):
    subscribe: bool = False
    clusters: str | None = None


class ServiceQueryRequest(NamingBody):
    cluster: str | None = None
    healthy_only: bool = False
    udp_port: Int = 0


class ServiceListRequest(NamingBody):
    page_no: Int = 0
    page_size: Int = 0
    selector: str | None = None


class Abilities(Fields):
    remote_ability: dict[str, Any] | None = None
    config_ability: dict[str, Any] | None = None
    naming_ability: dict[str, Any] | None = None


class Node(Fields):
    """The Member object, which is the same over gRPC and HTTP."""

    ip: str | None = None
    port: Int = 0
    state: NodeState | None = None
    extend_info: dict[str, Any] | None = None
    address: str | None = None
    fail_access_cnt: Int = 0
    abilities: Abilities | None = None
    grpc_report_enabled: bool = False


class MemberReportRequest(Body):
    node: Node | None = None


class DistroKeyFields(Fields):
    resource_key: str | None = None
    resource_type: str | None = None
    target_server: str | None = None


class DistroDataFields(Fields):
    distro_key: DistroKeyFields | None = None
    type: DataOperation | None = None
    content: bytes | None = None
    """Base64 with padding, on the wire."""


class DistroDataRequest(Body):
    data_operation: DataOperation | None = None
    distro_data: DistroDataFields | None = None


class ConnectionSetupRequest(Body):
    client_version: str | None = None
    tenant: str | None = None
    labels: dict[str, str] | None = None
    ability_table: dict[str, bool] | None = None
    abilities: Any = None


REQUESTS: Mapping[str, type[Body]] = {
    "InstanceRequest": InstanceRequest,
    "PersistentInstanceRequest": InstanceRequest,
    "BatchInstanceRequest": BatchInstanceRequest,
    "SubscribeServiceRequest": SubscribeServiceRequest,
    "ServiceQueryRequest": ServiceQueryRequest,
    "ServiceListRequest": ServiceListRequest,
    "MemberReportRequest": MemberReportRequest,
    "DistroDataRequest": DistroDataRequest,
    "ConnectionSetupRequest": ConnectionSetupRequest,
}
"""By the simple name of the class; of others only the headers are read."""


def read_body(payload: Payload) -> tuple[Body | Response, Mapping[str, str]]:
    """The body and the headers; those of the envelope win over those inside the body, which the Python SDK sends too.

    Raises ValueError.
    """
    metadata = payload.metadata
    type_name, text = metadata.type, payload.body.value or b"null"
    if type_name.endswith("Response"):
        return read(Response, text), {}
    body: Body = read(REQUESTS.get(type_name, Body), text)
    return body, merged_headers(body.headers or {}, metadata.headers)
