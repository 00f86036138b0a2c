"""Instances as SDKs write and read them, and the `ServiceInfo` that queries and pushes carry.

What a client publishes is kept and replicated as `InstancePublishInfo`, with weight, enabled and instance id among the
metadata under reserved keys; an SDK sees an `Instance`. Source: wire-protocol.md sections 3.1, 3.2 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from distro_impl.naming.client import PublishedInstance, Service
from distro_protos import Json

INSTANCE_ID, WEIGHT, ENABLED = "customInstanceId", "publishInstanceWeight", "publishInstanceEnable"
RESERVED_KEYS = frozenset({INSTANCE_ID, WEIGHT, ENABLED})

DEFAULT_CLUSTER = "DEFAULT"
CACHE_MILLIS = 10_000
HEART_BEAT = {
    "instanceHeartBeatInterval": ("preserved.heart.beat.interval", 5_000),
    "instanceHeartBeatTimeOut": ("preserved.heart.beat.timeout", 15_000),
    "ipDeleteTimeout": ("preserved.ip.delete.timeout", 30_000),
}
"""Field of Instance -> (metadata key, default in ms)."""


def published_instance(instance: Mapping[str, Any], service: Service, *, generate_id: bool) -> PublishedInstance:
    """`Instance` of a register request -> what is kept. Raises KeyError or ValueError when ip or port are unusable."""
    ip, port = str(instance["ip"]), int(instance["port"])
    extend_datum: dict[str, Any] = dict(instance.get("metadata") or {})
    instance_id = instance.get("instanceId")
    if not instance_id and generate_id:
        instance_id = f"{ip}#{port}#{instance.get('clusterName') or 'null'}#{service.grouped_name}"
    if instance_id:
        extend_datum[INSTANCE_ID] = instance_id
    weight = float(instance.get("weight", 1.0))
    if weight != 1.0:
        extend_datum[WEIGHT] = weight  # a float: an integer literal would poison the service on a real server (D9)
    if not instance.get("enabled", True):
        extend_datum[ENABLED] = False
    return PublishedInstance(
        ip, port, bool(instance.get("healthy", True)), instance.get("clusterName") or DEFAULT_CLUSTER, extend_datum
    )


def service_info(
    service: Service,
    published: Iterable[PublishedInstance],
    *,
    clusters: str,
    healthy_only: bool,
    last_ref_time: int,
) -> Json:
    """`ServiceInfo` with the enabled instances of the wanted clusters (comma separated, "" for all)."""
    wanted = {name for name in clusters.split(",") if name}
    hosts = [
        _instance(service, instance)
        for instance in published
        if instance.extend_datum.get(ENABLED, True)
        and (instance.healthy or not healthy_only)
        and (not wanted or instance.cluster in wanted)
    ]
    return {
        "name": service.name,
        "groupName": service.group,
        "clusters": clusters,
        "cacheMillis": CACHE_MILLIS,
        "hosts": hosts,
        "lastRefTime": last_ref_time,
        "checksum": "",
        "allIPs": False,
        "reachProtectionThreshold": False,
        "valid": True,
    }


def _instance(service: Service, instance: PublishedInstance) -> Json:
    datum = instance.extend_datum
    metadata = {key: value for key, value in datum.items() if key not in RESERVED_KEYS}
    return {
        "instanceId": datum.get(INSTANCE_ID),
        "ip": instance.ip,
        "port": instance.port,
        "weight": float(weight) if isinstance(weight := datum.get(WEIGHT, 1.0), int | float) else 1.0,
        "healthy": instance.healthy,
        "enabled": True,
        "ephemeral": True,
        "clusterName": instance.cluster,
        "serviceName": service.grouped_name,
        "metadata": metadata,
        **{name: _milliseconds(metadata.get(key), default) for name, (key, default) in HEART_BEAT.items()},
    }


def _milliseconds(text: Any, default_ms: int) -> int:
    """Metadata are anybody's text; what is no number there counts as not said."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else default_ms
