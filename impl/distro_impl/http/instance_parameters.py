"""The instance that an HTTP request is about, and the beat of one: from parameters to what naming takes.

Metadata are a JSON object, or pairs; all of it becomes text. Source: docs/protocol #http-v1, #http-refusals and
#http-beat.
"""

from __future__ import annotations

import json
import math
from typing import Any

from distro_impl.http.parameters import GROUP_SEPARATOR, Parameters, invalid, printable
from distro_impl.http.replies import ApiError, ErrorCode
from distro_impl.naming.client import DEFAULT_CLUSTER, DEFAULT_GROUP, DEFAULT_NAMESPACE, Service
from distro_impl.naming.instance_operator import BeatInfo
from distro_impl.naming.service_info import MAX_WEIGHT, MIN_WEIGHT
from distro_impl.remote.payloads import Instance
from distro_protos import check_nesting, read_json


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


def metadata_of(text: str) -> dict[str, str]:
    """A JSON object, or `k=v,k=v`."""
    if not text:
        return {}
    try:
        check_nesting(text.encode())
        metadata = json.loads(text, parse_int=str, parse_float=str)
    except ValueError:
        return _metadata_of_pairs(text)
    return text_values("metadata", {} if metadata is None else metadata)


def _metadata_of_pairs(text: str) -> dict[str, str]:
    metadata = {}
    for pair in filter(None, text.split(",")):
        key, separator, value = pair.partition("=")
        if not separator or not value or "=" in value:
            raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata format incorrect:{text}")
        metadata[key] = value
    return metadata


def text_values(name: str, metadata: Any) -> dict[str, str]:
    """Metadata is text; a number or a boolean becomes one, null is left out, anything else is refused."""
    if not isinstance(metadata, dict):
        raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata in param '{name}' is not a JSON object")
    return {printable(key): scalar(name, value) for key, value in metadata.items() if value is not None}


def is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float))


def scalar(name: str, value: Any) -> str:
    if isinstance(value, str):
        return printable(value)
    if not is_scalar(value):
        raise ApiError(ErrorCode.INSTANCE_METADATA_ERROR, f"metadata in param '{name}' has a value that is no text")
    return json.dumps(value)
