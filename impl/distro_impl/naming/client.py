"""A client: the unit of ownership and of replication, and how it is written as `ClientSyncData`.

A client is what one naming connection publishes and subscribes to. Its owner, the node that holds the connection, has
it as *native*; every other node has a *synced* copy. The other kind, without connection, is in ip_port_client.py.
Source: docs/protocol #client-change, #revision-connection, #distro-content and #sync-announce.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple

import msgspec

from distro_impl.jackson import JAVA_INT_MAX, JAVA_INT_MIN, Fields, Int, convert, undeclared
from distro_impl.profiles import Profile
from distro_protos import Json

DEFAULT_NAMESPACE, DEFAULT_GROUP, DEFAULT_CLUSTER = "public", "DEFAULT_GROUP", "DEFAULT"

INSTANCE_ID = "customInstanceId"
"""The key in `extend_datum` for the id of an instance, given or generated."""

MAX_ID_LENGTH = 1_024
"""Of an address that is registered, and of the id of a client. No release says one; what is longer is a mistake or
an attack, and would be kept, hashed and replicated."""


class MalformedSyncDataError(ValueError):
    """A ClientSyncData object that a server could not take over; the message names the field."""


class Service(NamedTuple):
    """Identity of a service (docs/protocol #naming-names)."""

    namespace: str
    group: str
    name: str

    @property
    def grouped_name(self) -> str:
        return f"{self.group}@@{self.name}"


class PublishedInstance(msgspec.Struct, frozen=True, gc=False):
    """`InstancePublishInfo`: what one client publishes in one service.

    `extend_datum` mixes the user's metadata with reserved keys (docs/protocol #distro-content).
    """

    ip: str
    port: int
    healthy: bool = True
    cluster: str = DEFAULT_CLUSTER
    extend_datum: Mapping[str, Any] = {}

    @classmethod
    def kept(cls, ip: str, port: int, cluster: str, datum: Mapping[str, Any], *, healthy: bool) -> PublishedInstance:
        """With texts that are kept once, however many instances have them. An id no other instance has.

        Raises ValueError when a value is nested too deep."""
        shared = {
            intern(key): (intern(value) if key != INSTANCE_ID else value) if type(value) is str else undeclared(value)
            for key, value in datum.items()
            if value is not None
        }
        return cls(intern(ip), port, healthy, intern(cluster), shared)

    @property
    def instances(self) -> tuple[PublishedInstance, ...]:
        return (self,)

    def equals(self, other: Published, *, sees_cluster: bool) -> bool:
        """The servers' own equality, which ignores the cluster (D4) unless the profile says otherwise."""
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
    """`BatchInstancePublishInfo`: several instances that one client publishes in one service, perhaps none."""

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
        """Whether it is this node that replicates and verifies the client (docs/protocol #sync-announce)."""
        return self.native

    def renew(self, now_ms: int) -> None:
        """Its owner said that our copy is right."""
        self.renewed_ms = now_ms

    def asked(self, now_ms: int, profile: Profile) -> None:  # noqa: ARG002 - its connection is its sign of life
        """It asked for a change, here, and got it."""
        self.revision += 1

    def is_expired(self, now_ms: int, profile: Profile) -> bool:
        """Only a copy expires; a native client lives as long as its connection (docs/protocol #lease-copies)."""
        return not self.native and now_ms - self.renewed_ms > profile.client_expired_ms

    @property
    def singles(self) -> dict[Service, PublishedInstance]:
        """Without the batches."""
        return {service: held for service, held in self.publishers.items() if isinstance(held, PublishedInstance)}

    def instances_json(self) -> list[Json]:
        """The single instances, as they travel."""
        return [instance.to_json() for instance in self.singles.values()]

    def sync_data(self, *, with_revision: bool, with_batches: bool = True, superseded: Sequence[int] = ()) -> Json:
        """The `ClientSyncData` object: four parallel lists and those of the batches, together the complete set.

        Releases ignore attributes that they do not know: `superseded` is sent and read by `strict` alone.
        """
        revision = {"revision": self.revision} if with_revision else {}
        data: Json = {
            "clientId": self.id,
            "attributes": {"clientAttributes": {**revision, **({"superseded": superseded} if superseded else {})}},
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
    superseded: tuple[int, ...] = ()
    """The revisions that its sender knows to be replaced. No release sends them."""

    @property
    def has_batches(self) -> bool:
        return any(isinstance(published, PublishedBatch) for published in self.publishers.values())


class _InstancePublishInfo(Fields):
    ip: str
    extend_datum: dict[str, Any]
    port: Int = 0
    healthy: bool = False
    cluster: str | None = None

    def read(self) -> PublishedInstance:
        cluster = self.cluster or DEFAULT_CLUSTER
        return PublishedInstance.kept(self.ip, self.port, cluster, self.extend_datum, healthy=self.healthy)


class _Batch(Fields):
    instance_publish_infos: list[_InstancePublishInfo]


class _Services(Fields):
    namespaces: list[str]
    group_names: list[str]
    service_names: list[str]

    def read(self) -> list[Service]:
        """The lists are parallel."""
        return list(map(Service, self.namespaces, self.group_names, self.service_names))


class _Batches(_Services):
    batch_instance_publish_infos: list[_Batch]


class _Attributes(Fields):
    client_attributes: dict[str, Any] | None = None


class _ClientSyncData(_Services):
    client_id: Any
    attributes: _Attributes
    instance_publish_infos: list[_InstancePublishInfo]
    batch_instance_data: Any = None


def read_sync_data(data: Mapping[str, Any], *, with_batches: bool = True) -> SyncData:
    """Read all of it before anything is applied. Raises MalformedSyncDataError."""
    try:
        read: _ClientSyncData = convert(_ClientSyncData, data, nulls_and_depth_matter=False)
        attributes = read.attributes.client_attributes or {}
        revision, superseded = attributes.get("revision") or 0, attributes.get("superseded")
        publishers: dict[Service, Published] = {}
        if with_batches:
            publishers.update(_read_batches(read.batch_instance_data))
        instances = (info.read() for info in read.instance_publish_infos)
        publishers.update(zip(read.read(), instances, strict=True))
    except ValueError as error:
        raise MalformedSyncDataError(f"not a ClientSyncData object: {error}") from error
    if not isinstance(read.client_id, str):
        raise MalformedSyncDataError(f"clientId {read.client_id!r} is not a string")
    if len(read.client_id) > MAX_ID_LENGTH:
        raise MalformedSyncDataError(f"clientId is longer than {MAX_ID_LENGTH}")
    if not isinstance(revision, int) or not JAVA_INT_MIN <= revision <= JAVA_INT_MAX:
        raise MalformedSyncDataError(f"revision {revision!r} is not a 32-bit integer")
    superseded = superseded if isinstance(superseded, list) else ()
    return SyncData(read.client_id, revision, publishers, tuple(each for each in superseded if isinstance(each, int)))


def _read_batches(data: Any) -> dict[Service, Published]:
    """Nothing, `{}` and empty lists all mean that there are none."""
    if not data or (isinstance(data, dict) and not data.get("namespaces")):
        return {}
    batches: _Batches = convert(_Batches, data)
    shells = (
        PublishedBatch(tuple(info.read() for info in shell.instance_publish_infos))
        for shell in batches.batch_instance_publish_infos
    )
    return dict(zip(batches.read(), shells, strict=True))
