"""Instances as SDKs write and read them, and the `ServiceInfo` that queries and pushes carry.

What a client publishes is kept and replicated as `InstancePublishInfo`, with weight, enabled and instance id among the
metadata under reserved keys; an SDK sees an `Instance`. Of protection thresholds there is nothing to see: they come
with metadata stored by Raft, which this node does not have. Source: docs/protocol #naming-names, #naming-requests and
#distro-content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from distro_impl.naming.client import DEFAULT_CLUSTER, INSTANCE_ID, MAX_ID_LENGTH, PublishedInstance, Service
from distro_impl.naming.instance_id import GENERATOR, SIMPLE, InstanceIdGenerator
from distro_impl.remote.errors import INVALID_PARAM, NacosError
from distro_impl.remote.payloads import Instance
from distro_protos import Json

WEIGHT, ENABLED = "publishInstanceWeight", "publishInstanceEnable"
RESERVED_KEYS = frozenset({INSTANCE_ID, WEIGHT, ENABLED})

NOT_PERSISTENT = "persistent instances are not supported by this node, only ephemeral ones"
MIN_WEIGHT, MAX_WEIGHT = 0.0, 10_000.0
CLUSTER_NAME = re.compile(r"[0-9a-zA-Z-]+")
CACHE_MILLIS = 10_000
HEART_BEAT = {
    "instanceHeartBeatInterval": ("preserved.heart.beat.interval", 5_000),
    "instanceHeartBeatTimeOut": ("preserved.heart.beat.timeout", 15_000),
    "ipDeleteTimeout": ("preserved.ip.delete.timeout", 30_000),
}
"""Field of Instance -> (metadata key, default in ms)."""
HEART_BEAT_KEYS = frozenset(key for key, _ in HEART_BEAT.values())
DEFAULT_HEART_BEAT: Mapping[str, int] = {name: default_ms for name, (_, default_ms) in HEART_BEAT.items()}
"""What nearly every instance has."""
MILLISECONDS = re.compile(r"[0-9]{1,18}")


class IllegalInstanceError(ValueError):
    """An instance that cannot be published; the message says why."""


def check_instance(instance: Instance) -> None:
    """NamingUtils.checkInstanceIsLegal. Raises IllegalInstanceError."""
    times = heart_beat(instance.metadata or {})
    if times["instanceHeartBeatInterval"] > min(times["instanceHeartBeatTimeOut"], times["ipDeleteTimeout"]):
        raise IllegalInstanceError(
            "Instance 'heart beat interval' must less than 'heart beat timeout' and 'ip delete timeout'."
        )
    cluster = instance.cluster_name
    if cluster and not CLUSTER_NAME.fullmatch(cluster):
        raise IllegalInstanceError(
            f"Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: {cluster})"
        )


def published_instance(instance: Instance, instance_id: str | None) -> PublishedInstance:
    """`Instance` of a register request -> what is kept. Raises IllegalInstanceError when a field is unusable."""
    ip = instance.ip
    if ip is None:
        raise IllegalInstanceError("illegal instance: it has no ip")
    extend_datum: dict[str, Any] = dict(instance.metadata or {})
    if len(ip) > MAX_ID_LENGTH:
        raise IllegalInstanceError(f"illegal instance: its ip is longer than {MAX_ID_LENGTH}")
    if instance_id:
        extend_datum[INSTANCE_ID] = instance_id
    weight = float(instance.weight)
    if weight != 1.0:
        # A float: an integer literal would poison the service on a real server (D9).
        extend_datum[WEIGHT] = weight
    if not instance.enabled:
        extend_datum[ENABLED] = False
    cluster = instance.cluster_name or DEFAULT_CLUSTER
    return PublishedInstance.kept(ip, instance.port or 0, cluster, extend_datum, healthy=instance.healthy)


def check_ephemeral(instance: Instance) -> None:
    """Raises NacosError. A real server takes another one for an ephemeral one here, in silence; SDKs send them
    elsewhere."""
    if not instance.ephemeral:
        raise NacosError(INVALID_PARAM, NOT_PERSISTENT)


def published_by(
    instance: Instance, service: Service, ids: InstanceIdGenerator | None, *, checked: bool
) -> PublishedInstance:
    """What a request publishes, with its own id alone where there are no `ids`. Raises NacosError."""
    try:
        if checked:
            check_instance(instance)
        if ids is None:
            return published_instance(instance, instance.instance_id)
        return published_with_id(instance, service, ids)
    except IllegalInstanceError as error:
        raise NacosError(INVALID_PARAM, str(error)) from error


def published_with_id(instance: Instance, service: Service, ids: InstanceIdGenerator) -> PublishedInstance:
    """With the id that it brings, else with a generated one. Raises IllegalInstanceError and what `ids` raises."""
    has_id = instance.instance_id or INSTANCE_ID in (instance.metadata or {})
    return published_instance(instance, instance.instance_id if has_id else ids.generate(instance, service))


def weight_of(datum: Mapping[str, Any]) -> float:
    """What a peer or a user wrote under the reserved key need not be a number."""
    weight = datum.get(WEIGHT, 1.0)
    return float(weight) if isinstance(weight, int | float) else 1.0


def is_enabled(datum: Mapping[str, Any]) -> bool:
    return datum.get(ENABLED, True) is not False


def merged(published: Iterable[PublishedInstance]) -> tuple[PublishedInstance, ...]:
    """What several clients publish alike, field by field, is one host."""
    seen: dict[tuple[str, int], list[PublishedInstance]] = {}
    kept = []
    for instance in published:
        alike = seen.setdefault((instance.ip, instance.port), [])
        if instance not in alike:
            alike.append(instance)
            kept.append(instance)
    return tuple(kept)


def shown(
    published: Iterable[PublishedInstance], *, clusters: str | None = "", healthy_only: bool = False
) -> list[PublishedInstance]:
    """The enabled ones in the wanted clusters (comma separated, "" for all)."""
    return [
        instance
        for instance in in_clusters(published, clusters)
        if is_enabled(instance.extend_datum) and (instance.healthy or not healthy_only)
    ]


def in_clusters(published: Iterable[PublishedInstance], clusters: str | None) -> Iterable[PublishedInstance]:
    wanted = set(clusters.split(",")) if clusters and clusters.strip() else set()
    return (instance for instance in published if not wanted or instance.cluster in wanted)


def hosts_of(service: Service, published: Iterable[PublishedInstance]) -> list[Json]:
    """`Instance` of each."""
    return [_instance(service, instance) for instance in published]


def service_info(service: Service, hosts: list[Json], *, clusters: str | None, last_ref_time: int) -> Json:
    """`ServiceInfo`. The time comes last, so that what stands before it can be written once (service_storage.py)."""
    return {
        "name": service.name,
        "groupName": service.group,
        "clusters": clusters,
        "cacheMillis": CACHE_MILLIS,
        "hosts": hosts,
        "checksum": "",
        "allIPs": False,
        "reachProtectionThreshold": False,
        "valid": True,
        "lastRefTime": last_ref_time,
    }


def heart_beat(metadata: Mapping[str, Any]) -> Mapping[str, int]:
    """The three heart-beat fields of Instance. What is no number in the metadata counts as not said."""
    if HEART_BEAT_KEYS.isdisjoint(metadata):
        return DEFAULT_HEART_BEAT
    return {name: _milliseconds(metadata.get(key), default) for name, (key, default) in HEART_BEAT.items()}


def _milliseconds(text: Any, default_ms: int) -> int:
    return int(text) if isinstance(text, str) and MILLISECONDS.fullmatch(text) else default_ms


def _instance(service: Service, instance: PublishedInstance) -> Json:
    datum = instance.extend_datum
    metadata = {key: _text(value) for key, value in datum.items() if key not in RESERVED_KEYS}
    generator = metadata.get(GENERATOR) if metadata else SIMPLE
    shown = {"instanceId": _text(datum.get(INSTANCE_ID)), "instanceIdGenerator": generator, "ip": instance.ip}
    return {
        **{name: text for name, text in shown.items() if text is not None},
        "port": instance.port,
        "weight": weight_of(datum),
        "healthy": instance.healthy,
        "enabled": is_enabled(datum),
        "ephemeral": True,
        "clusterName": instance.cluster,
        "serviceName": service.grouped_name,
        "metadata": metadata,
        **heart_beat(metadata),
    }


def _text(value: Any) -> str | None:
    """Metadata are texts for every reader, whatever a peer has sent."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None or isinstance(value, str) else str(value)
