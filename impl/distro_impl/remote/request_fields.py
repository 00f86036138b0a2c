"""The fields of each request type.

Handlers get bodies whose fields have the declared types, or are absent; they need not defend themselves against a
`port` that is a list. A value that cannot become its field makes the whole body unreadable (502), as it does where
Jackson reads it. Source: docs/protocol #wire-checks, #connection-handshake, #connection-internal, #naming-requests,
#member-report and #distro-envelope.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.json_fields import (
    Field,
    anything,
    bytes_text,
    enum,
    fields,
    flag,
    integer,
    list_of,
    map_of,
    read_field,
    real,
    text,
)
from distro_protos import Json

_ABILITY = map_of(anything)
MEMBER = fields(
    ip=text,
    port=integer,
    state=enum("STARTING", "UP", "SUSPICIOUS", "DOWN", "ISOLATION"),
    extendInfo=map_of(anything),
    address=text,
    failAccessCnt=integer,
    abilities=fields(remoteAbility=_ABILITY, configAbility=_ABILITY, namingAbility=_ABILITY),
    grpcReportEnabled=flag,
)
"""The Member object, which is the same over gRPC and HTTP."""

_OPERATION = enum("ADD", "CHANGE", "DELETE", "VERIFY", "SNAPSHOT", "QUERY")
_INSTANCE = fields(
    instanceId=text,
    ip=text,
    port=integer,
    weight=real,
    healthy=flag,
    enabled=flag,
    ephemeral=flag,
    clusterName=text,
    serviceName=text,
    metadata=map_of(text),
)
_SERVICE: Mapping[str, Field] = {"namespace": text, "serviceName": text, "groupName": text}
_DISTRO_KEY = fields(resourceKey=text, resourceType=text, targetServer=text)

REQUESTS: Mapping[str, Field] = {
    "HealthCheckRequest": fields(),
    "InstanceRequest": fields(**_SERVICE, type=text, instance=_INSTANCE),
    "PersistentInstanceRequest": fields(**_SERVICE, type=text, instance=_INSTANCE),
    "BatchInstanceRequest": fields(**_SERVICE, type=text, instances=list_of(_INSTANCE)),
    "SubscribeServiceRequest": fields(**_SERVICE, subscribe=flag, clusters=text),
    "ServiceQueryRequest": fields(**_SERVICE, cluster=text, healthyOnly=flag, udpPort=integer),
    "ServiceListRequest": fields(**_SERVICE, pageNo=integer, pageSize=integer, selector=text),
    "MemberReportRequest": fields(node=MEMBER),
    "DistroDataRequest": fields(
        dataOperation=_OPERATION,
        distroData=fields(distroKey=_DISTRO_KEY, type=_OPERATION, content=bytes_text),
    ),
    "ServerLoaderInfoRequest": fields(),
    "ConfigChangeClusterSyncRequest": fields(),
    "ServerReloadRequest": fields(reloadCount=integer, reloadServer=text),
    "ConnectionSetupRequest": fields(
        clientVersion=text, tenant=text, labels=map_of(text), abilityTable=map_of(flag), abilities=anything
    ),
}


_RESPONSE = fields(resultCode=integer, errorCode=integer, message=text, requestId=text)


def read_body(type_name: str, body: Json) -> Json:
    """The declared fields of a request, or of any response; all of them for a type that is not declared.

    Raises FieldError.
    """
    declared = _RESPONSE if type_name.endswith("Response") else REQUESTS.get(type_name, anything)
    found: Json = read_field(type_name, declared, body)
    return found
