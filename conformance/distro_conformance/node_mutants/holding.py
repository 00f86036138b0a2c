"""What a node makes of what members say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from distro_conformance.node_mutants.mutant import Change, Mutant, add, as_if, instead, mutant, swapped
from distro_impl.distro import data_processor
from distro_impl.distro.data_processor import DistroClientDataProcessor as Processor
from distro_impl.distro.distro_handler import DistroDataRequestHandler as Handler
from distro_impl.distro.distro_handler import MalformedRequestError
from distro_impl.events import NodeEventKind
from distro_impl.naming.client import Published, PublishedBatch, PublishedInstance, SyncData
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.deleted import DeletedClients
from distro_impl.naming.ip_port_client import is_ip_port
from distro_impl.remote.payloads import DataOperation


def _resurrects(*, by_snapshot: bool) -> Any:
    """What was deleted is forgotten before a CHANGE, or before a snapshot, is looked at."""

    def made(old: Any) -> Any:
        def process_change(self: Any, data: Any, reason: str, sender: str | None) -> bool:
            is_meant = (reason == DataOperation.SNAPSHOT) is by_snapshot
            with swapped(self._clients, "_deleted", DeletedClients() if is_meant else self._clients._deleted):
                return bool(old(self, data, reason, sender))

        return process_change

    return Change(Processor, "process_change", made)


@mutant("m-revision-only-rises", ClientManager, "apply")
def _only_rises(old: Any, self: Any, sync: SyncData, *, revision: int | None, reason: str) -> None:
    """A CHANGE of a lower revision is applied, and the copy keeps the higher one."""
    known = self.get(sync.client_id)
    kept = revision if known is None or revision is None else max(revision, known.revision)
    old(self, sync, revision=kept, reason=reason)


@mutant("m-lower-hash-is-older", ClientManager, "apply")
def _lower_is_older(old: Any, self: Any, sync: SyncData, **named: Any) -> None:
    """A CHANGE of a client of the HTTP API with a lower revision than that of the copy is not applied."""
    held = self.get(sync.client_id)
    if held is None or not is_ip_port(sync.client_id) or sync.revision >= held.revision:
        old(self, sync, **named)


@mutant("m-equal-change-keeps-the-revision", ClientManager, "apply")
def _keeps_the_revision(old: Any, self: Any, sync: SyncData, *, revision: int | None, reason: str) -> None:
    """The revision of a CHANGE that changes nothing else is not taken over."""
    held = self.get(sync.client_id)
    is_equal = held is not None and held.publishers == sync.publishers
    old(self, sync, revision=None if is_equal else revision, reason=reason)


@mutant("B07", ClientManager, "_sync_client_connected")
def _native(old: Any, self: Any, sync: SyncData) -> Any:
    """A client learnt from a peer is created as native: it is re-broadcast and verified, and never expires."""
    client = old(self, sync)
    client.native = True
    return client


@mutant("m-unknown-delete-fails", Processor, "process_delete")
def _unknown_fails(old: Any, self: Any, client_id: str, sender: str | None) -> bool:
    """A DELETE of an unknown client fails, and is repeated for ever."""
    return bool(self._clients.get(client_id) is not None and old(self, client_id, sender))


def _creates(name: str) -> Any:
    def made(old: Any) -> Any:
        def asked(self: Any, client_id: str, *arguments: Any) -> Any:
            found = old(self, client_id, *arguments)
            if self._clients.get(client_id) is None:
                self._clients.apply(SyncData(client_id, 1, {}), revision=1, reason="QUERY")
            return found

        return asked

    return Change(Processor, name, made)


@mutant("m-change-only-adds", ClientManager, "apply")
def _adds_only(old: Any, self: Any, sync: SyncData, **named: Any) -> None:
    """What a CHANGE does not mention stays."""
    client = self._clients.get(sync.client_id)
    kept = dict(client.publishers) if client is not None else {}
    old(self, SyncData(sync.client_id, sync.revision, {**kept, **sync.publishers}), **named)


def _applied_with(old: Any, self: Any, sync: SyncData, named: dict[str, Any], **fields: Any) -> None:
    """Apply a copy of a client of the HTTP API with these fields in each instance."""
    if is_ip_port(sync.client_id):
        single = {service: each for service, each in sync.publishers.items() if isinstance(each, PublishedInstance)}
        changed = {service: replace(each, **fields) for service, each in single.items()}
        sync = SyncData(sync.client_id, sync.revision, {**sync.publishers, **changed})
    old(self, sync, **named)


@mutant("m-copy-is-healthy", ClientManager, "apply")
def _healthy(old: Any, self: Any, sync: SyncData, **named: Any) -> None:
    """An instance of a client of the HTTP API is healthy in a copy, whatever the member says that sends it."""
    _applied_with(old, self, sync, named, healthy=True)


@mutant("m-copy-is-in-the-default-cluster", ClientManager, "apply")
def _in_the_default_cluster(old: Any, self: Any, sync: SyncData, **named: Any) -> None:
    """An instance of a client of the HTTP API is in the cluster DEFAULT in a copy, whatever the member says."""
    _applied_with(old, self, sync, named, cluster="DEFAULT")


@mutant("m-add-is-refused", Handler, "_sync")
def _refuses_add(old: Any, self: Any, data: Any, *more: Any) -> Any:
    """An ADD fails."""
    if data.type == DataOperation.ADD:
        return {"resultCode": 500, "errorCode": 500, "success": False}
    return old(self, data, *more)


def _blind_to(*fields: str) -> Any:
    def made(_: Any) -> Any:
        seen = [each for each in ("ip", "port", "healthy", "extend_datum", "cluster") if each not in fields]

        def equals(self: Any, other: Any, *, sees_cluster: bool) -> bool:  # noqa: ARG001
            return isinstance(other, PublishedInstance) and all(
                getattr(self, each) == getattr(other, each) for each in seen
            )

        return equals

    return Change(PublishedInstance, "equals", made)


@mutant("m-batches-of-one-length-are-equal", PublishedBatch, "equals")
def _of_one_length(_: Any, self: Any, other: Any, **__: Any) -> bool:
    """A batch that is received counts as equal to any other with as many instances."""
    return isinstance(other, PublishedBatch) and len(self.instances) == len(other.instances)


@mutant("m-batches-at-the-same-addresses-are-equal", PublishedBatch, "equals")
def _at_the_same_addresses(_: Any, self: Any, other: Any, **__: Any) -> bool:
    """A batch that is received counts as equal to any other with the same addresses."""
    if not isinstance(other, PublishedBatch):
        return False
    addresses = [sorted((each.ip, each.port) for each in batch.instances) for batch in (self, other)]
    return addresses[0] == addresses[1]


@mutant("m-snapshot-without-the-empty", Processor, "snapshot")
def _without_the_empty(old: Any, self: Any) -> Any:
    """A SNAPSHOT leaves out clients that publish nothing."""
    every = old(self)["clientSyncDataList"]
    return {"clientSyncDataList": [each for each in every if each["serviceNames"] or each.get("batchInstanceData")]}


@mutant("m-empty-copies-are-not-made", ClientManager, "apply")
def _empty_are_not_made(old: Any, self: Any, sync: SyncData, **named: Any) -> None:
    """A CHANGE of an unknown client that publishes nothing is acknowledged and makes no copy."""
    if sync.publishers or self.get(sync.client_id) is not None:
        old(self, sync, **named)


def _leaving(mutant_id: str, text: str, is_left_out: Callable[[Published, Published], bool]) -> None:
    """What a member has sent in a service is not applied where `is_left_out(received, held)`."""

    def made(old: Any) -> Any:
        def apply(self: Any, sync: SyncData, **named: Any) -> None:
            known = self.get(sync.client_id)
            held = {} if known is None else known.publishers
            kept = {
                service: held[service]
                for service, new in sync.publishers.items()
                if service in held and is_left_out(new, held[service])
            }
            old(self, dataclasses.replace(sync, publishers={**sync.publishers, **kept}), **named)

        return apply

    add(Mutant(mutant_id, text, changes=(Change(ClientManager, "apply", made),)))


_leaving(
    "m-empty-batch-of-a-member-is-ignored",
    "An empty batch in a CHANGE leaves what the copy has in its service.",
    lambda new, _: isinstance(new, PublishedBatch) and not new.instances,
)
_leaving(
    "m-received-single-leaves-the-batch",
    "A single instance in a CHANGE does not replace a batch.",
    lambda new, held: isinstance(new, PublishedInstance) and isinstance(held, PublishedBatch),
)


@mutant("m-copies-have-no-ids", data_processor, "read_sync_data")
def _no_ids(old: Any, data: Any, **named: Any) -> SyncData:
    """The ids of single instances in a CHANGE are lost."""
    for info in data["instancePublishInfos"]:
        info["extendDatum"].pop("customInstanceId", None)
    return old(data, **named)  # type: ignore[no-any-return]


@mutant("m-change-without-batches-fails", data_processor, "read_sync_data")
def _without_batches_fails(old: Any, data: Any, **named: Any) -> Any:
    """A CHANGE without the field for batches, which members of 2.0.x do not have, cannot be read."""
    return old(data if "batchInstanceData" in data else {}, **named)


@mutant("m-change-without-a-revision-fails", data_processor, "read_sync_data")
def _without_a_revision_fails(old: Any, data: Any, **named: Any) -> Any:
    """A CHANGE without a revision, which members of 2.0.x do not have, cannot be read."""
    return old(data if "revision" in data["attributes"]["clientAttributes"] else {}, **named)


@mutant("m-received-groups-are-default", data_processor, "read_sync_data")
def _in_the_default_group(old: Any, data: Any, **named: Any) -> Any:
    """The group of what is received is lost."""
    return old({**data, "groupNames": ["DEFAULT_GROUP" for _ in data.get("groupNames", ())]}, **named)


@mutant("m-snapshot-of-own-clients", Processor, "snapshot")
def _own_only(_: Any, self: Any) -> Any:
    """A snapshot lacks the copies."""
    return {"clientSyncDataList": [self.data_of(client.id) for client in self._clients if client.responsible]}


@mutant("m-answers-without-revisions", Processor, "data_of")
def _without_revisions(old: Any, self: Any, client_id: str) -> Any:
    """Snapshots, queries and changes hold no revision."""
    found = old(self, client_id)
    return {**found, "attributes": {"clientAttributes": {}}} if found else found


@mutant("m-codes-disagree", Handler, "handle")
def _codes_disagree(old: Any, self: Any, request: Any) -> Any:
    """A success has an error code."""
    type_name, body = old(self, request)
    return type_name, {**body, "errorCode": 500} if body.get("resultCode") == 200 else body


@mutant("m-unknown-query-fails", Handler, "_query")
def _query_fails(old: Any, self: Any, key: Any) -> Any:
    """A QUERY of an unknown client fails."""
    found = old(self, key)
    return found if "distroData" in found else {"resultCode": 500, "errorCode": 500, "success": False}


@mutant("m-change-is-not-applied", Processor, "process_change")
def _acknowledged_only(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """A CHANGE of a copy is acknowledged and not applied."""
    return self._clients.get(data["clientId"]) is not None or bool(old(self, data, reason, sender))


@mutant("m-change-disowns-the-connected", Processor, "process_change")
def _disowns(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """A CHANGE of a client that is connected here is refused, and the client counts as a copy from then on."""
    is_applied = bool(old(self, data, reason, sender))
    held = self._clients.get(data["clientId"])
    if not is_applied and held is not None:
        held.native = False
    return is_applied


@mutant("m-delete-disowns-the-connected", Processor, "process_delete")
def _deletes_and_disowns(old: Any, self: Any, client_id: str, sender: str | None) -> bool:
    """A DELETE of a client that is connected here is refused, and the client counts as a copy from then on."""
    is_applied = bool(old(self, client_id, sender))
    held = self._clients.get(client_id)
    if not is_applied and held is not None:
        held.native = False
    return is_applied


@mutant("m-add-changes-the-connected", Processor, "process_change")
def _add_changes(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """An ADD is applied to a client that is connected here."""
    with swapped(self, "_is_untouchable", lambda _: False) if reason == DataOperation.ADD else nullcontext():
        return bool(old(self, data, reason, sender))


@mutant("m-undecodable-change-empties-the-copy", Handler, "_sync")
def _empties(old: Any, self: Any, data: Any, key: Any, request: Any) -> Any:
    """A CHANGE whose content cannot be decoded is refused and removes the copy."""
    try:
        return old(self, data, key, request)
    except MalformedRequestError:
        self._processor.process_delete(key.resource_key, None)
        raise


@mutant("m-failed-verify-removes-the-copy", Processor, "process_verify")
def _removes_the_copy(old: Any, self: Any, client_id: str, revision: int, sender: str | None) -> bool:
    """A VERIFY of another revision removes the copy, which its owner is about to send again."""
    if old(self, client_id, revision, sender):
        return True
    if (held := self._clients.get(client_id)) is not None and not held.native:
        self._clients._remove(client_id, NodeEventKind.REPLICA_REMOVED, None)
    return False


@mutant("m-unknown-fields-are-refused", Processor, "process_change")
def _strict_fields(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """A CHANGE with a field that this release does not know is refused."""
    known = {"clientId", "attributes", "namespaces", "groupNames", "serviceNames"}
    known |= {"instancePublishInfos", "batchInstanceData"}
    return not set(data) - known and bool(old(self, data, reason, sender))


add(
    Mutant(
        "B01",
        "A CHANGE or a snapshot is applied to a client that is connected here.",
        changes=(as_if(Processor, "process_change", native_untouched_by_peers=False),),
    ),
    Mutant(
        "B41",
        "A DELETE removes a client that is connected here.",
        changes=(as_if(Processor, "process_delete", native_untouched_by_peers=False),),
    ),
    Mutant(
        "B26", "A CHANGE that comes after the DELETE brings the client back.", changes=(_resurrects(by_snapshot=False),)
    ),
    Mutant("B27", "A snapshot brings back who was deleted meanwhile.", changes=(_resurrects(by_snapshot=True),)),
    Mutant("m-query-creates", "A QUERY of an unknown client creates it.", changes=(_creates("data_of"),)),
    Mutant("m-verify-creates", "A VERIFY of an unknown client creates it.", changes=(_creates("process_verify"),)),
    Mutant(
        "m-delete-is-not-applied",
        "A DELETE is acknowledged and not applied.",
        changes=(instead(Processor, "process_delete", lambda *_: True),),
    ),
    Mutant("m-equality-without-health", "A change of health alone is not applied.", changes=(_blind_to("healthy"),)),
    Mutant("m-equality-without-port", "A change of the port alone is not applied.", changes=(_blind_to("port"),)),
    Mutant(
        "m-equality-without-metadata", "One of metadata alone is not applied.", changes=(_blind_to("extend_datum"),)
    ),
)
