"""A client: the unit of ownership and of replication, and how it is written as `ClientSyncData`.

A client is what one naming connection publishes and subscribes to. Its owner, the node that holds the connection, has
it as *native*; every other node has a *synced* copy. The other kind, without connection, is in ip_port_client.py.
Source: wire-protocol.md sections 5.2 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from distro_impl.json_fields import anything, fields, flag, integer, map_of, text
from distro_impl.profiles import Profile
from distro_protos import Json

JAVA_INT_MIN, JAVA_INT_MAX = -(2**31), 2**31 - 1


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
    cluster: str = "DEFAULT"
    extend_datum: Mapping[str, Any] = field(default_factory=dict)

    def equals(self, other: PublishedInstance, *, sees_cluster: bool) -> bool:
        """The servers' own equality, which forgets the cluster (D4) unless told otherwise."""
        return (
            (self.ip, self.port, self.healthy) == (other.ip, other.port, other.healthy)
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


@dataclass(slots=True, eq=False)
class Client:
    """What one node holds of one client. Changed only by `ClientManager`."""

    id: str
    native: bool
    renewed_ms: int
    """When the lease of a synced copy was last renewed."""
    revision: int = 0
    publishers: dict[Service, PublishedInstance] = field(default_factory=dict)
    subscribers: dict[Service, str] = field(default_factory=dict)
    """Service -> the cluster selector that the subscription named ("" for all)."""

    @property
    def responsible(self) -> bool:
        """Whether it is this node that replicates and verifies the client (section 6.1)."""
        return self.native

    def renew(self, now_ms: int) -> None:
        """Its owner said that our copy is right."""
        self.renewed_ms = now_ms

    def is_expired(self, now_ms: int, profile: Profile) -> bool:
        """Only a copy expires; a native client lives as long as its connection (section 6.7)."""
        return not self.native and now_ms - self.renewed_ms > profile.client_expired_ms

    def instances_json(self) -> list[Json]:
        """What it publishes, as it travels."""
        return [instance.to_json() for instance in self.publishers.values()]

    def sync_data(self, *, with_revision: bool) -> Json:
        """The `ClientSyncData` object: four parallel lists, the complete set."""
        services = tuple(self.publishers)
        return {
            "clientId": self.id,
            "attributes": {"clientAttributes": {"revision": self.revision} if with_revision else {}},
            "namespaces": [service.namespace for service in services],
            "groupNames": [service.group for service in services],
            "serviceNames": [service.name for service in services],
            "instancePublishInfos": self.instances_json(),
            "batchInstanceData": {},
        }


@dataclass(frozen=True, slots=True)
class SyncData:
    """A `ClientSyncData` object as received."""

    client_id: str
    revision: int
    publishers: Mapping[Service, PublishedInstance]


def read_sync_data(data: Mapping[str, Any]) -> SyncData:
    """Read all of it before anything is applied. Raises MalformedSyncDataError."""
    try:
        revision = (data["attributes"].get("clientAttributes") or {}).get("revision", 0)
        if (data.get("batchInstanceData") or {}).get("serviceNames"):
            raise MalformedSyncDataError("batchInstanceData is not empty; this node does not know batch instances")
        if not isinstance(data["clientId"], str):
            raise MalformedSyncDataError(f"clientId {data['clientId']!r} is not a string")
        if not isinstance(revision, int) or not JAVA_INT_MIN <= revision <= JAVA_INT_MAX:
            raise MalformedSyncDataError(f"revision {revision!r} is not a 32-bit integer")
        services = map(_read_service, data["namespaces"], data["groupNames"], data["serviceNames"])
        instances = map(_read_instance, data["instancePublishInfos"])
        return SyncData(data["clientId"], revision, dict(zip(services, instances, strict=True)))
    except MalformedSyncDataError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MalformedSyncDataError(f"not a ClientSyncData object: {type(error).__name__} at {error}") from error


def _read_service(namespace: Any, group: Any, name: Any) -> Service:
    return Service(text(namespace), text(group), text(name))


_INSTANCE_PUBLISH_INFO = fields(ip=text, port=integer, healthy=flag, cluster=text, extendDatum=map_of(anything))


def _read_instance(element: Any) -> PublishedInstance:
    info = _INSTANCE_PUBLISH_INFO(element)
    return PublishedInstance(
        info["ip"],
        info.get("port", 0),
        info.get("healthy", False),
        info.get("cluster") or "DEFAULT",
        info["extendDatum"],
    )
