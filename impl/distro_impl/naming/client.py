"""A client: the unit of ownership and of replication, and how it is written as `ClientSyncData`.

A client is what one naming connection publishes and subscribes to. Its owner, the node that holds the connection, has
it as *native*; every other node has a *synced* copy. The other kind, without connection, is in ip_port_client.py.
Source: docs/protocol #client-change, #revision-connection, #distro-content and #sync-announce.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from distro_impl.json_fields import JAVA_INT_MAX, JAVA_INT_MIN, anything, fields, flag, integer, map_of, text
from distro_impl.profiles import Profile
from distro_protos import Json

DEFAULT_NAMESPACE, DEFAULT_GROUP, DEFAULT_CLUSTER = "public", "DEFAULT_GROUP", "DEFAULT"

MAX_ID_LENGTH = 1_024
"""Of an address that somebody registers, and of the id of a client. No release says one; what is longer is a mistake or
an attack, and would be kept, hashed and replicated."""


class MalformedSyncDataError(ValueError):
    """A ClientSyncData object that a server could not take over; the message names the field."""


class Service(NamedTuple):
    """Identity of a service (section 3.1)."""

    namespace: str
    group: str
    name: str

    @property
    def grouped_name(self) -> str:
        return f"{self.group}@@{self.name}"


@dataclass(frozen=True, slots=True)
class PublishedInstance:
    """`InstancePublishInfo`: what one client publishes in one service.

    `extend_datum` mixes the user's metadata with reserved keys (section 5.2).
    """

    ip: str
    port: int
    healthy: bool = True
    cluster: str = DEFAULT_CLUSTER
    extend_datum: Mapping[str, Any] = field(default_factory=dict)

    @property
    def instances(self) -> tuple[PublishedInstance, ...]:
        return (self,)

    def equals(self, other: Published, *, sees_cluster: bool) -> bool:
        """The servers' own equality, which forgets the cluster (D4) unless told otherwise."""
        return (
            isinstance(other, PublishedInstance)
            and (self.ip, self.port, self.healthy) == (other.ip, other.port, other.healthy)
            and self.extend_datum == other.extend_datum
            and (not sees_cluster or self.cluster == other.cluster)
        )

    def to_json(self) -> Json:
        return {
            "ip": self.ip,
            "port": self.port,
            "healthy": self.healthy,
            "cluster": self.cluster,
            "extendDatum": dict(self.extend_datum),
            "metadataId": f"{self.ip}:{self.port}:{self.cluster}",
        }

    def key(self, *, sees_cluster: bool) -> tuple[Any, ...]:
        """Two instances with the same key are equal."""
        datum = json.dumps(self.extend_datum, sort_keys=True)
        return self.ip, self.port, self.healthy, datum, self.cluster if sees_cluster else None


@dataclass(frozen=True, slots=True)
class PublishedBatch:
    """`BatchInstancePublishInfo`: several instances that one client publishes in one service, perhaps none (5.2)."""

    instances: tuple[PublishedInstance, ...]

    def equals(self, other: Published, *, sees_cluster: bool) -> bool:
        """As multisets: the order does not count, repetitions do."""
        return isinstance(other, PublishedBatch) and self._keys(sees_cluster) == other._keys(sees_cluster)

    def to_json(self) -> Json:
        """The batch is a shell in the shape of an instance, around the real ones."""
        instances = [instance.to_json() for instance in self.instances]
        return {"port": 0, "healthy": False, "metadataId": "null:0:null", "instancePublishInfos": instances}

    def _keys(self, sees_cluster: bool) -> Counter[tuple[Any, ...]]:
        return Counter(instance.key(sees_cluster=sees_cluster) for instance in self.instances)


Published = PublishedInstance | PublishedBatch
"""What a client has in a service. `instances` are all of it, one or many."""


@dataclass(slots=True, eq=False)
class Client:
    """What one node holds of one client. Changed only by `ClientManager`."""

    id: str
    native: bool
    renewed_ms: int
    """When the lease of a synced copy was last renewed."""
    revision: int = 0
    publishers: dict[Service, Published] = field(default_factory=dict)
    subscribers: dict[Service, str] = field(default_factory=dict)
    """Service -> the cluster selector that the subscription named ("" for all)."""

    @property
    def responsible(self) -> bool:
        """Whether it is this node that replicates and verifies the client (section 6.1)."""
        return self.native

    def renew(self, now_ms: int) -> None:
        """Its owner said that our copy is right."""
        self.renewed_ms = now_ms

    def asked(self, now_ms: int) -> None:  # noqa: ARG002 - its connection tells that it lives
        """It asked for a change, here, and got it."""
        self.revision += 1

    def is_expired(self, now_ms: int, profile: Profile) -> bool:
        """Only a copy expires; a native client lives as long as its connection (section 6.7)."""
        return not self.native and now_ms - self.renewed_ms > profile.client_expired_ms

    @property
    def singles(self) -> dict[Service, PublishedInstance]:
        """Without the batches."""
        return {service: held for service, held in self.publishers.items() if isinstance(held, PublishedInstance)}

    def instances_json(self) -> list[Json]:
        """The single instances, as they travel."""
        return [instance.to_json() for instance in self.singles.values()]

    def sync_data(self, *, with_revision: bool, with_batches: bool = True) -> Json:
        """The `ClientSyncData` object: four parallel lists and those of the batches, together the complete set."""
        data: Json = {
            "clientId": self.id,
            "attributes": {"clientAttributes": {"revision": self.revision} if with_revision else {}},
            **_names(self.singles),
            "instancePublishInfos": self.instances_json(),
        }
        if with_batches:
            batches = {service: held for service, held in self.publishers.items() if isinstance(held, PublishedBatch)}
            infos = [batch.to_json() for batch in batches.values()]
            data["batchInstanceData"] = {**_names(batches), "batchInstancePublishInfos": infos} if batches else {}
        return data


def _names(services: Iterable[Service]) -> Json:
    services = tuple(services)
    return {
        "namespaces": [service.namespace for service in services],
        "groupNames": [service.group for service in services],
        "serviceNames": [service.name for service in services],
    }


@dataclass(frozen=True, slots=True)
class SyncData:
    """A `ClientSyncData` object as received."""

    client_id: str
    revision: int
    publishers: Mapping[Service, Published]
    """The batches first, as they are applied."""

    @property
    def has_batches(self) -> bool:
        return any(isinstance(published, PublishedBatch) for published in self.publishers.values())


def read_sync_data(data: Mapping[str, Any], *, with_batches: bool = True) -> SyncData:
    """Read all of it before anything is applied. Raises MalformedSyncDataError."""
    try:
        revision = (data["attributes"].get("clientAttributes") or {}).get("revision", 0)
        if not isinstance(data["clientId"], str):
            raise MalformedSyncDataError(f"clientId {data['clientId']!r} is not a string")
        if len(data["clientId"]) > MAX_ID_LENGTH:
            raise MalformedSyncDataError(f"clientId is longer than {MAX_ID_LENGTH}")
        if not isinstance(revision, int) or not JAVA_INT_MIN <= revision <= JAVA_INT_MAX:
            raise MalformedSyncDataError(f"revision {revision!r} is not a 32-bit integer")
        publishers: dict[Service, Published] = _read_batches(data.get("batchInstanceData")) if with_batches else {}
        instances = map(_read_instance, data["instancePublishInfos"])
        publishers.update(zip(_read_services(data), instances, strict=True))
        return SyncData(data["clientId"], revision, publishers)
    except MalformedSyncDataError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MalformedSyncDataError(f"not a ClientSyncData object: {type(error).__name__} at {error}") from error


def _read_service(namespace: Any, group: Any, name: Any) -> Service:
    return Service(text(namespace), text(group), text(name))


def _read_services(lists: Mapping[str, Any]) -> list[Service]:
    return list(map(_read_service, lists["namespaces"], lists["groupNames"], lists["serviceNames"]))


def _read_batches(batches: Mapping[str, Any] | None) -> dict[Service, Published]:
    """Nothing, `{}` and empty lists all mean that there are none."""
    if not batches or not batches.get("namespaces"):
        return {}
    shells = (
        PublishedBatch(tuple(map(_read_instance, shell["instancePublishInfos"])))
        for shell in batches["batchInstancePublishInfos"]
    )
    return dict(zip(_read_services(batches), shells, strict=True))


_INSTANCE_PUBLISH_INFO = fields(ip=text, port=integer, healthy=flag, cluster=text, extendDatum=map_of(anything))


def _read_instance(element: Any) -> PublishedInstance:
    info = _INSTANCE_PUBLISH_INFO(element)
    return PublishedInstance(
        info["ip"],
        info.get("port", 0),
        info.get("healthy", False),
        info.get("cluster") or DEFAULT_CLUSTER,
        info["extendDatum"],
    )
