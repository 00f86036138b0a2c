"""A client that holds no connection: an `ip:port` that was registered over HTTP and lives by its beats.

Every member has the same kind of object for it; who is responsible is asked of the DistroMapper whenever it matters, so
ownership moves with the member list. Source: docs/protocol #ip-port-creation,
#revision-ip-port, #distro-content, #verify-round and #lease-copies, classes IpPortBasedClient and DistroUtils.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from distro_impl.java_hash import java_hash, objects_hash
from distro_impl.naming.client import DEFAULT_CLUSTER, Client, PublishedInstance, Service
from distro_impl.naming.service_info import is_enabled, weight_of
from distro_impl.profiles import Profile
from distro_protos import Json

EPHEMERAL, PERSISTENT = "#true", "#false"

DEFAULT_IP_DELETE_TIMEOUT_MS = 30_000
SUBSCRIBER_TIMEOUT_MS = 10_000


def ip_port_client_id(ip: str, port: int) -> str:
    return f"{ip}:{port}{EPHEMERAL}"


def is_ip_port(client_id: str) -> bool:
    """Anything with a `#` (class ClientManagerDelegate)."""
    return "#" in client_id


def is_persistent(client_id: str) -> bool:
    return client_id.endswith(PERSISTENT)


def responsible_tag(client_id: str) -> str:
    """What the owner is chosen by: `ip:port`.

    Cut at the last `#`. Releases cut at the first, and then no node owns a client whose ip, whatever a stranger wrote
    there, contains one: the member that registered it never replicates it.
    """
    return client_id.rpartition("#")[0]


class Ownership(Protocol):
    """Who is responsible for an ip:port client, by its tag: `DistroMapper`."""

    def responsible(self, tag: str) -> bool: ...

    def is_followed_by(self, tag: str, member: str | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class Agent:
    """What a client that asks over HTTP says of itself: the program, and the application that it serves."""

    name: str = ""
    app: str = ""


@dataclass(slots=True, eq=False)
class IpPortClient(Client):
    """`renewed_ms` is when it last registered, deregistered, beat, or was verified."""

    ownership: Ownership = field(kw_only=True)
    heart_beats_ms: dict[Service, int] = field(default_factory=dict)
    """When each instance sent its last beat. Never taken from a peer: a copy begins its own count."""

    agent: Agent = Agent()
    """Of the last one that subscribed."""
    accepted_here: bool = False
    """The client requested what it publishes from this node, which has concluded no other content from missing beats
    since; nor has a member sent another."""

    @property
    def responsible(self) -> bool:
        return self.ownership.responsible(responsible_tag(self.id))

    def is_followed_by(self, member: str | None) -> bool:
        """Whether `member` stands behind this node in the order in which members own the client."""
        return self.ownership.is_followed_by(responsible_tag(self.id), member)

    def renew(self, now_ms: int) -> None:
        """The owner vouches for all of it. The next owner counts from here."""
        self.renewed_ms = now_ms
        self.heart_beats_ms = dict.fromkeys(self.publishers, now_ms)

    def asked(self, now_ms: int, profile: Profile) -> None:
        """Its revision is its content, and moves with it."""
        self.renewed_ms = now_ms
        self.revision = self.content_hash(profile)

    def is_expired(self, now_ms: int, profile: Profile) -> bool:
        silent_ms = now_ms - self.renewed_ms
        is_lapsed = profile.ip_port_lease and silent_ms > profile.client_expired_ms
        is_empty = not self.publishers and silent_ms > DEFAULT_IP_DELETE_TIMEOUT_MS
        is_unused = not self.subscribers or silent_ms > SUBSCRIBER_TIMEOUT_MS
        return is_lapsed or (is_empty and is_unused)

    def content_hash(self, profile: Profile) -> int:
        """What its revision is: the same for the same content, on every member that computes it.

        That of a set is a sum, and stays as it is where two services swap their metadata or their health.
        """
        if profile.revision_sums_services:
            return objects_hash(self.id, {_published_hash(*published) for published in self.singles.items()})
        keys = sorted((service, instance.key(sees_cluster=True)) for service, instance in self.singles.items())
        return java_hash(f"{self.id} {keys}")

    def instances_json(self) -> list[Json]:
        return [
            {**instance.to_json(), "lastHeartBeatTime": self.heart_beats_ms[service]}
            for service, instance in self.singles.items()
        ]


def _published_hash(service: Service, instance: PublishedInstance) -> int:
    ephemeral, datum = True, instance.extend_datum
    return objects_hash(
        service.namespace,
        service.group,
        service.name,
        ephemeral,
        instance.ip,
        instance.port,
        weight_of(datum),
        instance.healthy,
        is_enabled(datum),
        instance.cluster or DEFAULT_CLUSTER,
        datum,
    )
