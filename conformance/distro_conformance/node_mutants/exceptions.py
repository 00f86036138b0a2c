"""Rules with an exception: for the member that a message came from, for clients of one kind, after some failures, for
what is later than expected. A check with one client, one member and one failure does not meet the exception."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from msgspec import structs
from yarl import URL

from distro_conformance.node_mutants.mutant import Change, Mutant, add, mutant, swapped
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroKey, DistroProtocol
from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.transport_agent import DistroReply
from distro_impl.http import distro_filter
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.naming.changes import Cause
from distro_impl.naming.client import INSTANCE_ID, Published, PublishedBatch, PublishedInstance, Service, SyncData
from distro_impl.naming.client_index import ClientIndex
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.deleted import DeletedClients
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port
from distro_impl.naming.service_info import ENABLED, WEIGHT
from distro_impl.remote.acceptor import RequestAcceptor
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.payloads import DataOperation
from distro_impl.remote.peer_connection import PeerUnreachableError
from distro_protos import Message

_FAILURES, _WORKERS, _LOADS, _REMEMBERED_MS, _IDLE_MS = 5, 8, 3, 10_000, 20_000


def _sends_on() -> None:
    """Flooding: each node sends what it receives to all but the sender."""
    sender: dict[str, str | None] = {}

    def noted(old: Any) -> Any:
        def process_change(self: Any, data: Any, reason: str, source: str | None) -> bool:
            if reason != DataOperation.SNAPSHOT:
                sender[str(data.get("clientId"))] = source
            return bool(old(self, data, reason, source))

        return process_change

    def sent_on(old: Any) -> Any:
        def on_client_changed(self: Any, event: Any) -> None:
            old(self, event)
            client_id = event.client.id
            if event.cause is Cause.RECEIVED and client_id in sender and not event.client.responsible:
                for peer in self._members.other_addresses():
                    if peer != sender[client_id]:
                        delay_ms = self._profile.sync_delay_ms
                        self._delayed.add(DistroKey(client_id, peer), DataOperation.CHANGE, delay_ms)

        return on_client_changed

    text = "A CHANGE that a member sends is sent on to all other members."
    changes = (
        Change(DistroClientDataProcessor, "process_change", noted),
        Change(DistroProtocol, "_on_client_changed", sent_on),
    )
    add(Mutant("m-received-change-is-sent-on", text, changes=changes))


_sends_on()


@mutant("m-fifth-failure-is-the-last", DistroProtocol, "_handle")
def _gives_up(
    old: Any, self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply, revision: int | None
) -> None:
    """A sync that has failed five times is given up."""
    failed = self.__dict__.setdefault("_failed", Counter())
    failed[key, operation] += 1
    if reply is DistroReply.SUCCESS or failed[key, operation] >= _FAILURES:
        del failed[key, operation]
        reply = DistroReply.SUCCESS
    old(self, key, operation, reply, revision)


@mutant("m-delete-for-the-down-is-forgotten", DistroProtocol, "_handle")
def _forgets_delete(
    old: Any, self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply, revision: int | None
) -> None:
    """A DELETE that could not be sent to a member that is not UP is forgotten."""
    is_forgotten = reply is DistroReply.NOT_SENT and operation is DataOperation.DELETE
    old(self, key, operation, DistroReply.SUCCESS if is_forgotten else reply, revision)


@mutant("m-few-workers", DistroProtocol, "_send")
async def _few_workers(old: Any, self: Any, *arguments: Any) -> Any:
    """Syncs to all members share eight workers, each of which waits for its answer."""
    pool = self.__dict__.setdefault("_pool", asyncio.Semaphore(_WORKERS))
    with self._clock.parked():
        await pool.acquire()
    try:
        return await old(self, *arguments)
    finally:
        pool.release()


class _OwnTask(DistroKey):
    """Equal to no other: its task is merged with none."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


@mutant("m-changes-are-not-merged", DistroProtocol, "_sync_to_all")
def _each_change(old: Any, self: Any, client_id: str, operation: DataOperation) -> None:
    """Each of several changes within the delay brings a CHANGE of its own, all with the last state."""
    if operation is not DataOperation.CHANGE:
        old(self, client_id, operation)
        return
    for peer in self._members.other_addresses():
        self._delayed.add(_OwnTask(client_id, peer), operation, self._profile.sync_delay_ms)


@mutant("m-failed-verify-of-http-clients-is-ignored", DistroProtocol, "_on_verify_failed")
def _connected_only(old: Any, self: Any, event: Any) -> None:
    """A failed VERIFY of a client of the HTTP API brings nothing."""
    if not is_ip_port(event.client_id):
        old(self, event)


@mutant("m-later-change-of-the-deleted-is-applied", DistroClientDataProcessor, "process_change")
def _later_is_applied(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """A CHANGE after the DELETE of its client is applied if its revision is above that of the removed copy."""
    sent = ((data.get("attributes") or {}).get("clientAttributes") or {}).get("revision") or 0
    removed = self.__dict__.setdefault("_removed", {})
    held = self._clients.get(data["clientId"])
    if held is not None:
        removed[held.id] = max(held.revision, sent)
    elif sent > removed.get(data["clientId"], sent):
        with swapped(self._clients, "_deleted", DeletedClients()):
            return bool(old(self, data, reason, sender))
    else:
        removed[data["clientId"]] = sent
    return bool(old(self, data, reason, sender))


@mutant("m-delete-of-the-unknown-is-not-remembered", DistroClientDataProcessor, "process_delete")
def _not_remembered(old: Any, self: Any, client_id: str, sender: str | None) -> bool:
    """A CHANGE that its DELETE has overtaken, of a client that was not known yet, is applied."""
    return self._clients.get(client_id) is None or bool(old(self, client_id, sender))


@mutant("m-batches-leave-the-revision", ClientManager, "apply")
def _leaves_the_revision(old: Any, self: Any, sync: SyncData, *, revision: int | None, reason: str) -> None:
    """A CHANGE with batches leaves the revision of the copy."""
    is_held = self.get(sync.client_id) is not None
    has_batch = any(isinstance(each, PublishedBatch) for each in sync.publishers.values())
    old(self, sync, revision=None if is_held and has_batch else revision, reason=reason)


@mutant("m-connected-client-takes-the-revision", DistroClientDataProcessor, "process_change")
def _takes_the_revision(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """A CHANGE of a client that is connected here sets its revision, and nothing else."""
    held = self._clients.get(str(data.get("clientId")))
    if held is not None and held.native:
        held.revision = data["attributes"]["clientAttributes"]["revision"]
    return bool(old(self, data, reason, sender))


@mutant("m-passed-on-without-the-namespace", distro_filter, "forwarded_url")
def _without_the_namespace(old: Any, *arguments: Any) -> str:
    """A request that is passed on lacks the namespace."""
    url = URL(old(*arguments))
    return str(url.with_query({key: value for key, value in url.query.items() if key != "namespaceId"}))


@mutant("m-health-of-copies-is-not-pushed", ClientManager, "apply")
def _health_is_not_pushed(old: Any, self: Any, sync: SyncData, **named: Any) -> None:
    """A CHANGE that changes nothing but the health of instances is not pushed."""
    held = self.get(sync.client_id)
    before = {} if held is None else {key: structs.replace(each, healthy=True) for key, each in held.singles.items()}
    after = {
        key: each if isinstance(each, PublishedBatch) else structs.replace(each, healthy=True)
        for key, each in sync.publishers.items()
    }
    with swapped(self, "_subscribers", ClientIndex() if before == after else self._subscribers):
        old(self, sync, **named)


@mutant("m-deregistration-is-by-name", ClientManager, "deregister")
def _by_name(old: Any, self: Any, client: Any, service: Service) -> None:
    """A deregistration removes the services of that name in every namespace and group."""
    alike = [each for each in client.publishers if each.name == service.name and each != service]
    self._keep(client, dict.fromkeys(alike))
    old(self, client, service)


@mutant("m-deleted-http-client-stays-deleted", DistroClientDataProcessor, "_is_deleted")
def _stays_deleted(_: Any, self: Any, client_id: str) -> bool:
    """A CHANGE after a DELETE is refused for clients of the HTTP API too, whose ids come back."""
    return bool(self._clients.was_deleted(client_id))


def _loads_without_the_revision(mutant_id: str, text: str, is_meant: Any) -> None:
    def made(old: Any) -> Any:
        def process_snapshot(self: Any, elements: Any, sender: str) -> None:
            old(self, [{**each, "attributes": {}} if is_meant(each) else each for each in elements], sender)

        return process_snapshot

    add(Mutant(mutant_id, text, changes=(Change(DistroClientDataProcessor, "process_snapshot", made),)))


_loads_without_the_revision(
    "m-loaded-http-clients-lack-revisions",
    "The clients of the HTTP API in a SNAPSHOT are applied without their revisions.",
    lambda element: is_ip_port(str(element.get("clientId"))),
)
_loads_without_the_revision(
    "m-loaded-batches-lack-revisions",
    "Clients with batches in a SNAPSHOT are applied without their revisions.",
    lambda element: "batchInstanceData" in element and element["batchInstanceData"].get("namespaces"),
)


@mutant("m-snapshot-lacks-revisions-of-http-clients", DistroClientDataProcessor, "snapshot")
def _snapshot_lacks_revisions(old: Any, self: Any) -> Any:
    """A SNAPSHOT has the clients of the HTTP API without their revisions."""
    found = old(self)["clientSyncDataList"]
    return {
        "clientSyncDataList": [{**each, "attributes": {}} if is_ip_port(each["clientId"]) else each for each in found]
    }


@mutant("m-verify-heals", ClientManager, "verified")
def _verify_heals(old: Any, self: Any, client: Any, sender: str | None) -> None:
    """A VERIFY of a client of the HTTP API makes its unhealthy instances healthy, as a beat does."""
    if isinstance(client, IpPortClient):
        unhealthy = {service: each for service, each in client.singles.items() if not each.healthy}
        self._keep(client, {service: structs.replace(each, healthy=True) for service, each in unhealthy.items()})
    old(self, client, sender)


@mutant("m-health-checks-alone-are-signs-of-life", RequestAcceptor, "_reply")
def _health_checks_alone(old: Any, self: Any, payload: Any, peer: Any) -> Any:
    """Requests other than health checks are no signs of life of a connection."""
    connection = self._connections.get(self._connections.id_of(peer))
    before_ms = None if connection is None else connection.last_active_ms
    reply = old(self, payload, peer)
    if connection is not None and payload.metadata.type != "HealthCheckRequest":
        connection.last_active_ms = before_ms
    return reply


@mutant("m-acknowledgements-are-no-signs-of-life", ConnectionManager, "acknowledge")
def _acknowledgements_are_no_signs(old: Any, self: Any, connection_id: str, request_id: Any, succeeded: bool) -> None:
    """An answer to a push is no sign of life of its connection; one to a detection is."""
    connection = self._connections.get(connection_id)
    before_ms = None if connection is None else connection.last_active_ms
    is_detected = connection is not None and connection.idle_ms() >= _IDLE_MS
    old(self, connection_id, request_id, succeeded)
    if connection is not None and not is_detected:
        connection.last_active_ms = before_ms


@mutant("m-load-is-tried-three-times", LoadTask, "_try_again_later")
def _tried_three_times(old: Any, self: Any) -> None:
    """A load that has failed three times is given up."""
    self._failed_rounds = getattr(self, "_failed_rounds", 0) + 1
    if self._failed_rounds < _LOADS:
        old(self)


@mutant("m-deleted-are-forgotten-early", ClientManager, "remove_expired")
def _forgotten_early(old: Any, self: Any) -> None:
    """Who was deleted is remembered for ten seconds."""
    old(self)
    self._deleted.forget_before(self._clock.now_ms() - _REMEMBERED_MS)


@mutant("m-end-of-a-client-without-services-is-not-sent", DistroProtocol, "_on_client_removed")
def _ends_quietly(old: Any, self: Any, event: Any) -> None:
    """The end of a client that publishes nothing is not sent to members."""
    if event.client.publishers:
        old(self, event)


def _is_not_pushed(mutant_id: str, text: str, key: str | None = None, **parts: Any) -> None:
    """Nothing but that key of the extra data, or these `parts`, changes."""

    def without(published: Published | None) -> Any:
        if not isinstance(published, PublishedInstance):
            return published
        datum = published.extend_datum if key is None else {**published.extend_datum, key: None}
        return structs.replace(published, extend_datum=datum, **parts)

    def made(old: Any) -> Any:
        def register(self: Any, of: Any, service: Service, published: Published, **named: Any) -> None:
            is_quiet = without(of.publishers.get(service)) == without(published)
            with swapped(self, "_subscribers", ClientIndex() if is_quiet else self._subscribers):
                old(self, of, service, published, **named)

        return register

    add(Mutant(mutant_id, text, changes=(Change(ClientManager, "register", made),)))


_is_not_pushed(
    "m-weight-is-not-pushed", "A registration that changes only the weight of an instance is not pushed.", WEIGHT
)
_is_not_pushed(
    "m-enabling-is-not-pushed", "A registration that only enables or disables an instance is not pushed.", ENABLED
)
_is_not_pushed(
    "m-health-is-not-pushed", "A registration that changes only the health of an instance is not pushed.", healthy=True
)
_is_not_pushed(
    "m-cluster-is-not-pushed",
    "A registration that changes only the cluster of an instance is not pushed.",
    INSTANCE_ID,
    cluster="",
)


@mutant("m-unreachable-is-forgotten", ClusterRpcClientProxy, "request")
async def _unreachable_is_forgotten(old: Any, self: Any, peer: str, type_name: str, body: Any, *more: Any) -> Any:
    """A CHANGE or a DELETE that finds no connection to its member is forgotten."""
    try:
        return await old(self, peer, type_name, body, *more)
    except PeerUnreachableError:
        if body.get("dataOperation") not in (DataOperation.CHANGE, DataOperation.DELETE):
            raise
        return Message("DistroDataResponse", {"resultCode": 200}, {})
