"""What a node makes of what members say."""

from __future__ import annotations

from typing import Any

from distro_impl.distro.data_processor import DistroClientDataProcessor as Processor
from distro_impl.distro.distro_handler import DistroDataRequestHandler as Handler
from distro_impl.mutants.mutant import Change, Mutant, as_if, instead
from distro_impl.naming.client import PublishedInstance, SyncData
from distro_impl.naming.client_manager import ClientManager
from distro_impl.remote.payloads import DataOperation


def _resurrects(*, by_snapshot: bool) -> Any:
    """What was deleted is forgotten before a CHANGE, or before a snapshot, is looked at."""

    def made(old: Any) -> Any:
        def process_change(self: Any, data: Any, reason: str) -> bool:
            kept = self._clients._deleted_ms
            if (reason == DataOperation.SNAPSHOT) is by_snapshot:
                self._clients._deleted_ms = {}
            try:
                return bool(old(self, data, reason))
            finally:
                if (reason == DataOperation.SNAPSHOT) is by_snapshot:
                    self._clients._deleted_ms = kept

        return process_change

    return Change(Processor, "process_change", made)


def _native(old: Any) -> Any:
    def connected(self: Any, sync: SyncData) -> Any:
        client = old(self, sync)
        client.native = True
        return client

    return connected


def _unknown_fails(old: Any) -> Any:
    def process_delete(self: Any, client_id: str) -> bool:
        return bool(self._clients.get(client_id) is not None and old(self, client_id))

    return process_delete


def _creates(name: str) -> Any:
    def made(old: Any) -> Any:
        def asked(self: Any, client_id: str, *arguments: Any) -> Any:
            found = old(self, client_id, *arguments)
            if self._clients.get(client_id) is None:
                self._clients.apply(SyncData(client_id, 1, {}), revision=1, reason="QUERY")
            return found

        return asked

    return Change(Processor, name, made)


def _adds_only(old: Any) -> Any:
    def apply(self: Any, sync: SyncData, **named: Any) -> None:
        client = self._clients.get(sync.client_id)
        kept = dict(client.publishers) if client is not None else {}
        old(self, SyncData(sync.client_id, sync.revision, {**kept, **sync.publishers}), **named)

    return apply


def _refuses_add(old: Any) -> Any:
    def sync(self: Any, data: Any, key: Any) -> Any:
        if data.type == DataOperation.ADD:
            return {"resultCode": 500, "errorCode": 500, "success": False}
        return old(self, data, key)

    return sync


def _blind_to(*fields: str) -> Any:
    def made(_: Any) -> Any:
        seen = [each for each in ("ip", "port", "healthy", "extend_datum", "cluster") if each not in fields]

        def equals(self: Any, other: Any, *, sees_cluster: bool) -> bool:  # noqa: ARG001
            return isinstance(other, PublishedInstance) and all(
                getattr(self, each) == getattr(other, each) for each in seen
            )

        return equals

    return Change(PublishedInstance, "equals", made)


def _own_only(_: Any) -> Any:
    return lambda self: {
        "clientSyncDataList": [self.data_of(client.id) for client in self._clients if client.responsible]
    }


def _without_revisions(old: Any) -> Any:
    def data_of(self: Any, client_id: str) -> Any:
        found = old(self, client_id)
        return {**found, "attributes": {"clientAttributes": {}}} if found else found

    return data_of


def _codes_disagree(old: Any) -> Any:
    def handle(self: Any, request: Any) -> Any:
        type_name, body = old(self, request)
        return type_name, {**body, "errorCode": 500} if body.get("resultCode") == 200 else body

    return handle


def _query_fails(old: Any) -> Any:
    def query(self: Any, key: Any) -> Any:
        found = old(self, key)
        return found if "distroData" in found else {"resultCode": 500, "errorCode": 500, "success": False}

    return query


def _acknowledged_only(old: Any) -> Any:
    """A CHANGE of a known copy is acknowledged and not applied."""

    def process_change(self: Any, data: Any, reason: str) -> bool:
        return True if self._clients.get(data["clientId"]) is not None else bool(old(self, data, reason))

    return process_change


def _strict_fields(old: Any) -> Any:
    def process_change(self: Any, data: Any, reason: str) -> bool:
        known = {"clientId", "attributes", "namespaces", "groupNames", "serviceNames"}
        known |= {"instancePublishInfos", "batchInstanceData"}
        return not set(data) - known and bool(old(self, data, reason))

    return process_change


MUTANTS = (
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
        "B07",
        "A client learnt from a peer is created as native: it is re-broadcast and verified, and never expires.",
        changes=(Change(ClientManager, "_sync_client_connected", _native),),
    ),
    Mutant(
        "B26", "A CHANGE that comes after the DELETE brings the client back.", changes=(_resurrects(by_snapshot=False),)
    ),
    Mutant("B27", "A snapshot brings back who was deleted meanwhile.", changes=(_resurrects(by_snapshot=True),)),
    Mutant(
        "m-unknown-delete-fails",
        "A DELETE of an unknown client fails, and is repeated for ever.",
        changes=(Change(Processor, "process_delete", _unknown_fails),),
    ),
    Mutant("m-query-creates", "A QUERY of an unknown client creates it.", changes=(_creates("data_of"),)),
    Mutant("m-verify-creates", "A VERIFY of an unknown client creates it.", changes=(_creates("process_verify"),)),
    Mutant(
        "m-change-only-adds",
        "What a CHANGE does not mention stays.",
        changes=(Change(ClientManager, "apply", _adds_only),),
    ),
    Mutant(
        "m-change-is-not-applied",
        "A CHANGE of a copy is acknowledged and not applied.",
        changes=(Change(Processor, "process_change", _acknowledged_only),),
    ),
    Mutant(
        "m-delete-is-not-applied",
        "A DELETE is acknowledged and not applied.",
        changes=(instead(Processor, "process_delete", lambda *_: True),),
    ),
    Mutant("m-add-is-refused", "An ADD fails.", changes=(Change(Handler, "_sync", _refuses_add),)),
    Mutant("m-equality-without-health", "A change of health alone is not applied.", changes=(_blind_to("healthy"),)),
    Mutant("m-equality-without-port", "A change of the port alone is not applied.", changes=(_blind_to("port"),)),
    Mutant(
        "m-equality-without-metadata", "One of metadata alone is not applied.", changes=(_blind_to("extend_datum"),)
    ),
    Mutant(
        "m-snapshot-of-own-clients", "A snapshot lacks the copies.", changes=(Change(Processor, "snapshot", _own_only),)
    ),
    Mutant(
        "m-answers-without-revisions",
        "Snapshots, queries and changes hold no revision.",
        changes=(Change(Processor, "data_of", _without_revisions),),
    ),
    Mutant("m-codes-disagree", "A success has an error code.", changes=(Change(Handler, "handle", _codes_disagree),)),
    Mutant(
        "m-unknown-query-fails",
        "A QUERY of an unknown client fails.",
        changes=(Change(Handler, "_query", _query_fails),),
    ),
    Mutant(
        "m-unknown-fields-are-refused",
        "A CHANGE with a field that this release does not know is refused.",
        changes=(Change(Processor, "process_change", _strict_fields),),
    ),
)
