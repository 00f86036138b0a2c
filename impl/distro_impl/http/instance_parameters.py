"""The instance that an HTTP request is about, and the beat of one: from parameters to what naming takes.

Source: docs/protocol #http-v1, #http-refusals and #http-beat.
"""

from __future__ import annotations

import math

from distro_impl.http.metadata import is_scalar, metadata_of, scalar, text_values
from distro_impl.http.parameters import Parameters, invalid
from distro_impl.http.replies import ApiError, ErrorCode
from distro_impl.http.service_names import GROUP_SEPARATOR
from distro_impl.naming.client import DEFAULT_CLUSTER, DEFAULT_GROUP, DEFAULT_NAMESPACE, Service
from distro_impl.naming.instance_operator import BeatInfo
from distro_impl.naming.service_info import MAX_WEIGHT, MIN_WEIGHT
from distro_impl.remote.payloads import Instance
from distro_protos import read_json


def address_of(parameters: Parameters) -> tuple[str, int]:
    """Of the instance that the request is about."""
    return parameters.required("ip"), parameters.port()


def cluster_of(parameters: Parameters) -> str:
    return parameters.text("clusterName", "cluster", default=DEFAULT_CLUSTER)


def instance_of(parameters: Parameters, service: Service) -> Instance:
    """What a gRPC client would send. The id is always generated on HTTP."""
    (ip, port), cluster = address_of(parameters), cluster_of(parameters)
    return Instance(
        instance_id=f"{ip}#{port}#{cluster}#{service.grouped_name}",
        ip=ip,
        port=port,
        cluster_name=cluster,
        weight=weight_of(parameters),
        enabled=parameters.flag("enabled", "enable", default=True),
        healthy=parameters.flag("healthy", default=True),
        ephemeral=parameters.flag("ephemeral", default=True),
        metadata=metadata_of(parameters.text("metadata")),
    )


def beat_of(parameters: Parameters) -> BeatInfo | None:
    """The full beat in the parameter `beat`; None for a light one."""
    text = parameters.text("beat")
    if not text:
        return None
    try:
        beat = read_json(text.encode())
    except ValueError:
        raise invalid("beat", "is not JSON") from None
    if not isinstance(beat, dict):
        raise invalid("beat", "is not a JSON object")
    fields = Parameters({key: scalar("beat", value) for key, value in beat.items() if is_scalar(value)})
    if not fields.flag("ephemeral", default=True):
        raise invalid("beat", "is of a persistent instance; those have no beats")
    return BeatInfo(
        service=beaten_service(fields, parameters),
        ip=fields.required("ip"),
        port=fields.port(),
        cluster=fields.text("cluster", default=cluster_of(parameters)),
        weight=weight_of(fields, default="0"),  # as RsInfo in every release: a double that nothing sets
        metadata=text_values("beat", beat.get("metadata") or {}),
    )


def beaten_service(fields: Parameters, parameters: Parameters) -> Service:
    """The service in the body of a beat, `group@@name` or a name in the default group, in the request's namespace."""
    group, separator, name = fields.text("serviceName").partition(GROUP_SEPARATOR)
    namespace = parameters.text("namespaceId", default=DEFAULT_NAMESPACE)
    return Service(namespace, group, name) if separator else Service(namespace, DEFAULT_GROUP, group)


def weight_of(parameters: Parameters, default: str = "1") -> float:
    try:
        weight = float(parameters.text("weight", default=default))
    except ValueError:
        weight = math.nan
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ApiError(
            ErrorCode.WEIGHT_ERROR,
            f"instance format invalid: The weights range from {MIN_WEIGHT} to {MAX_WEIGHT}",
        )
    return weight
