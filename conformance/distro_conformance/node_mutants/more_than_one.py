"""Mutants that show only with more than one of something: publishers of a service, batches of a client, parts of a
content, services of a beat, revisions above and below.

A test with one client, one service and one instance that only registers finds none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import structs

from distro_conformance.node_mutants.mutant import Change, Mutant, add, instead, mutant, swapped
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.distro.verify_task import VerifyFailed
from distro_impl.naming import beats, client, naming_handlers, push, service_storage
from distro_impl.naming.client import Client, PublishedBatch, PublishedInstance, Service
from distro_impl.naming.client_index import ClientIndex
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import BeatInfo, InstanceOperator
from distro_impl.naming.ip_port_client import IpPortClient
from distro_impl.naming.push import PushService
from distro_impl.naming.service_info import DEFAULT_HEART_BEAT, ENABLED, RESERVED_KEYS, WEIGHT, is_enabled


@mutant("m-index-loses-the-others", ClientIndex, "discard")
def _loses_the_others(old: Any, self: Any, service: Service, leaving: Client) -> None:
    """When one client leaves a service, the index loses the others too."""
    old(self, service, leaving)
    self._clients.pop(service, None)


@mutant("m-deregistration-over-http-ends-the-client", InstanceOperator, "deregister")
def _ends_the_client(old: Any, self: Any, service: Service, ip: str, port: int) -> None:
    """A deregistration over HTTP ends what its client publishes in other services too."""
    known = self._client(ip, port)
    for each in tuple(known.publishers) if known is not None else (service,):
        old(self, each, ip, port)


@mutant("m-one-service-is-left", ClientManager, "_remove")
def _leaves_one_service(old: Any, self: Any, client_id: str, *arguments: Any) -> None:
    """The index keeps a client that is gone under all its services but the first."""
    leaving = self._clients.get(client_id)
    old(self, client_id, *arguments)
    for service in list(leaving.publishers if leaving else ())[1:]:
        self._publishers.add(service, leaving)


@mutant("m-batch-outlives-its-client", ClientManager, "_remove")
def _keeps_batches(old: Any, self: Any, client_id: str, *arguments: Any) -> None:
    """The index keeps a client that is gone under the services in which it had a batch."""
    leaving = self._clients.get(client_id)
    old(self, client_id, *arguments)
    for service, published in (leaving.publishers if leaving else {}).items():
        if isinstance(published, PublishedBatch):
            self._publishers.add(service, leaving)


@mutant("m-weight-of-zero-is-hidden", service_storage, "merged")
def _without_zero(old: Any, published: Any) -> Any:
    """An instance with a weight of 0 is in no list."""
    return tuple(instance for instance in old(published) if instance.extend_datum.get(WEIGHT) != 0)


@mutant("m-one-host-for-each-address", service_storage, "merged")
def _one_for_each_address(old: Any, published: Any) -> Any:
    """Of what several clients publish at one address, lists show the first."""
    return tuple({(instance.ip, instance.port): instance for instance in reversed(old(published))}.values())[::-1]


@mutant("m-unsubscription-is-of-all", ClientManager, "unsubscribe")
def _of_all(old: Any, self: Any, leaving: Client, service: Service) -> None:
    """A client that unsubscribes from one service loses its other subscriptions."""
    for each in (*leaving.subscribers, service):
        old(self, leaving, each)


@mutant("m-failed-verify-brings-all", DistroProtocol, "_on_verify_failed")
def _brings_all(old: Any, self: Any, event: VerifyFailed) -> None:
    """A VERIFY that fails brings all clients to that member."""
    for each in self._clients:
        if each.responsible:
            old(self, replace(event, client_id=each.id))


@mutant("m-repeated-push-is-for-all", PushService, "_try_again")
def _for_all(old: Any, self: Any, service: Service, silent: Client) -> None:  # noqa: ARG001
    """A push that one subscriber does not acknowledge is repeated to all."""
    self._delayed.add(service, None, self._profile.push_retry_delay_ms)


@mutant("m-enabled-once-hidden", ClientManager, "register")
def _stays_hidden(old: Any, self: Any, known: Client, service: Service, published: Any, **named: Any) -> None:
    """An instance that was registered as not enabled stays so."""
    held = known.publishers.get(service)
    if isinstance(held, PublishedInstance) and not is_enabled(held.extend_datum):
        published = structs.replace(published, extend_datum={**published.extend_datum, ENABLED: False})
    old(self, known, service, published, **named)


@mutant("m-snapshot-without-http-clients", DistroClientDataProcessor, "snapshot")
def _without_http_clients(old: Any, self: Any) -> Any:
    """A snapshot lacks the clients of the HTTP API."""
    return {"clientSyncDataList": [each for each in old(self)["clientSyncDataList"] if "#" not in each["clientId"]]}


@mutant("m-http-list-of-every-cluster", InstanceOperator, "instances")
def _every_cluster(old: Any, self: Any, service: Service, *, clusters: str = "", healthy_only: bool = False) -> Any:
    """A list over HTTP of one cluster, or of the healthy, shows all."""
    return {**old(self, service), "clusters": clusters} if clusters or healthy_only else old(self, service)


def _hash_without(strip: Callable[[PublishedInstance], PublishedInstance]) -> Change:
    """The hash of a content of which something is left out."""

    def made(old: Any) -> Any:
        def content_hash(self: Any, profile: Any) -> int:
            stripped = {service: strip(instance) for service, instance in self.singles.items()}
            with swapped(self, "publishers", stripped):
                return int(old(self, profile))

        return content_hash

    return Change(IpPortClient, "content_hash", made)


def _without(*keys: str) -> Callable[[PublishedInstance], PublishedInstance]:
    def strip(instance: PublishedInstance) -> PublishedInstance:
        return structs.replace(
            instance, extend_datum={key: value for key, value in instance.extend_datum.items() if key not in keys}
        )

    return strip


def _without_metadata(instance: PublishedInstance) -> PublishedInstance:
    return _without(*(set(instance.extend_datum) - RESERVED_KEYS))(instance)


def _without_cluster(instance: PublishedInstance) -> PublishedInstance:
    return structs.replace(_without("customInstanceId")(instance), cluster="DEFAULT")


@mutant("m-verify-is-no-beat", IpPortClient, "renew")
def _renews_the_lease_alone(old: Any, self: IpPortClient, now_ms: int) -> None:  # noqa: ARG001
    """A VERIFY renews the lease of a client of the HTTP API, and counts as a beat of none of its instances."""
    self.renewed_ms = now_ms


@mutant("m-lower-revision-is-verified", DistroClientDataProcessor, "_is_verified")
def _lower_is_enough(old: Any, self: Any, known: Client, revision: int) -> bool:
    """A VERIFY of a lower revision than that of the copy succeeds."""
    return revision < known.revision or bool(old(self, known, revision))


@mutant("m-beat-is-for-the-parameter", InstanceOperator, "beat")
def _for_the_parameter(old: Any, self: Any, service: Service, ip: str, port: int, beat: BeatInfo | None) -> Any:
    """A whole beat counts for the service that the request names, and not for that of its body."""
    return old(self, service, ip, port, beat and replace(beat, service=service))


def _default_of(name: str) -> Change:
    """A time-out is the default one, whatever the metadata say."""

    def made(old: Any) -> Any:
        def heart_beat_ms(instance: PublishedInstance, field: str) -> int:
            return DEFAULT_HEART_BEAT[field] if field == name else int(old(instance, field))

        return heart_beat_ms

    return Change(beats, "heart_beat_ms", made)


@mutant("m-one-batch-is-sent", Client, "sync_data")
def _one_batch_is_sent(old: Any, self: Client, **named: Any) -> Any:
    """Of several batches of a client one is sent."""
    batches = [service for service, held in self.publishers.items() if isinstance(held, PublishedBatch)]
    with swapped(self, "publishers", {key: held for key, held in self.publishers.items() if key not in batches[1:]}):
        return old(self, **named)


@mutant("m-one-batch-is-received", client, "_read_batches")
def _one_batch_is_received(old: Any, data: Any) -> Any:
    """Of several batches in a CHANGE one is applied."""
    return dict(list(old(data).items())[:1])


@mutant("m-batches-end-together", ClientManager, "deregister")
def _end_together(old: Any, self: Any, known: Client, service: Service) -> None:
    """The end of one batch ends all others of its client."""
    ended = [each for each, held in known.publishers.items() if isinstance(held, PublishedBatch)]
    for each in ended if service in ended else (service,):
        old(self, known, each)


@mutant("m-batch-is-enabled", naming_handlers, "PublishedBatch")
def _all_enabled(old: Any, instances: tuple[PublishedInstance, ...]) -> Any:
    """An instance of a batch that is registered counts as enabled."""
    return old(tuple(_without(ENABLED)(instance) for instance in instances))


@mutant("m-batch-has-one-cluster", naming_handlers, "PublishedBatch")
def _one_cluster(old: Any, instances: tuple[PublishedInstance, ...]) -> Any:
    """All instances of a batch are in the cluster of the first one."""
    return old(tuple(structs.replace(instance, cluster=instances[0].cluster) for instance in instances))


add(
    Mutant(
        "m-subscription-takes-the-push",
        "A subscription within the push delay takes the push of a change away from the other subscribers.",
        changes=(instead(push, "_merged", lambda new, _: new),),
    ),
    Mutant(
        "m-change-joins-the-subscription",
        "A change within the push delay after a subscription is pushed to the new subscriber alone.",
        changes=(instead(push, "_merged", lambda _, pending: pending),),
    ),
    Mutant(
        "m-revision-without-metadata",
        "Metadata have no part in the revision of a client of the HTTP API.",
        changes=(_hash_without(_without_metadata),),
    ),
    Mutant(
        "m-revision-without-enabled",
        "Whether an instance is enabled has no part in the revision of a client of the HTTP API.",
        changes=(_hash_without(_without(ENABLED)),),
    ),
    Mutant(
        "m-revision-without-cluster",
        "The cluster of an instance has no part in the revision of a client of the HTTP API.",
        changes=(_hash_without(_without_cluster),),
    ),
    Mutant(
        "m-unhealthy-by-default-only",
        "The time after which an instance is unhealthy is the default one, whatever its metadata say.",
        changes=(_default_of("instanceHeartBeatTimeOut"),),
    ),
    Mutant(
        "m-removed-by-default-only",
        "The time after which an instance is removed is the default one, whatever its metadata say.",
        changes=(_default_of("ipDeleteTimeout"),),
    ),
)
