"""Mutants that handle the first of several correctly and the others wrongly: members, copies, requests of one kind.

A check that observes only the first one does not find them.
"""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, mutant, swapped
from distro_conformance.node_mutants.sending import to_who_has_left
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroKey, DistroProtocol
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.distro.verify_task import VerifyTask
from distro_impl.http.distro_filter import DistroFilter
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.naming.client import Client
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port
from distro_impl.remote.acceptor import RequestAcceptor
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.http_client import SERVER_AGENT
from distro_impl.remote.payloads import DataOperation
from distro_impl.remote.peer_connection import PeerConnection
from distro_impl.security.request_filter import RemoteRequestAuthFilter

_EARLY_MS = 10_000

# Members.


@mutant("m-brief-client-stays-elsewhere", DistroProtocol, "_sync_to_all", missing_client_is_deleted=False)
def _first_wins_elsewhere(_: Any, self: Any, client_id: str, operation: DataOperation) -> None:
    """A DELETE that meets a waiting CHANGE gives way to it, at all members but the first."""
    for number, peer in enumerate(self._members.other_addresses()):
        key = DistroKey(client_id, peer)
        waiting = self._delayed.pending(key) if number else None
        self._delayed.add(key, waiting or operation, self._profile.sync_delay_ms)


@mutant("m-end-elsewhere-is-followed-by-a-change", DistroProtocol, "_sync_delete")
async def _followed_by_a_change(old: Any, self: Any, key: DistroKey) -> None:
    """After the DELETE of a client all members but the first get an empty CHANGE of it."""
    await old(self, key)
    if key.peer in self._members.other_addresses()[1:]:
        empty: dict[str, list[Any]] = {
            name: [] for name in ("namespaces", "groupNames", "serviceNames", "instancePublishInfos")
        }
        data = {"clientId": key.client_id, "attributes": {"clientAttributes": {"revision": 9}}, **empty}
        await self._agent.sync(key.peer, self._agent.sync_body(key.peer, DataOperation.CHANGE, key.client_id, data))


def _verified_elsewhere(mutant_id: str, text: str, *more: Change, clients: Any) -> None:
    """In each round `clients` of the task are verified too, at all members but the first."""

    def made(old: Any) -> Any:
        def run(self: Any) -> None:
            old(self)
            for client_id in clients(self):
                for peer in self._members.other_addresses()[1:]:
                    self._execute_engine.add_task(
                        f"VERIFY to {peer}",
                        "a VERIFY",
                        lambda peer=peer, each=client_id: self._agent.verify(peer, each, 1),
                    )

        return run

    add(Mutant(mutant_id, text, changes=(Change(VerifyTask, "run", made), *more)))


def _gone(self: Any) -> list[str]:
    seen, owned = self.__dict__.setdefault("_seen", {}), self._processor.owned_clients()
    seen.update(dict.fromkeys(owned))
    return [each for each in seen if each not in owned]


_verified_elsewhere(
    "m-the-dead-are-verified-elsewhere",
    "A client that has gone is verified as before, at all members but the first.",
    clients=_gone,
)


@mutant("m-verify-elsewhere-keeps-its-revision", VerifyTask, "_verify")
async def _keeps_its_revision(old: Any, self: Any, peer: str, client_id: str) -> None:
    """A VERIFY of a connected client at any member but the first has the revision of the first CHANGE."""
    revision = self._processor.revision_of(client_id)
    if revision is None or is_ip_port(client_id) or peer not in self._members.other_addresses()[1:]:
        await old(self, peer, client_id)
    else:
        await self._agent.verify(peer, client_id, min(1, revision))


_of_other_modules: list[str] = []


def _noted(old: Any) -> Any:
    def register(self: Any, connection: Connection) -> None:
        if connection.meta.is_sdk and not connection.meta.is_naming:
            _of_other_modules.append(connection.id)
        old(self, connection)

    return register


_verified_elsewhere(
    "m-every-connection-is-verified-elsewhere",
    "Connections for other modules are verified too, at all members but the first.",
    Change(ConnectionManager, "register", _noted),
    clients=lambda _: tuple(_of_other_modules),
)


def _deletes_for_ever(old: Any) -> Any:
    async def sync(self: Any, peer: str, body: Any) -> Any:
        if body["dataOperation"] is DataOperation.DELETE and not self._members.has_member(peer):
            reply = await self._clients.request(peer, "DistroDataRequest", body, self._profile.sync_timeout_ms)
            return DistroReply.SUCCESS if reply.succeeded else DistroReply.FAIL
        return await old(self, peer, body)

    return sync


add(
    Mutant(
        "m-delete-for-who-left-is-tried-for-ever",
        "A DELETE that waits for a member that has left the list is tried for ever.",
        changes=(
            Change(DistroTransportAgent, "sync", _deletes_for_ever),
            Change(ClusterRpcClientProxy, "_follow", to_who_has_left),
        ),
    )
)

# Copies.


@mutant("m-empty-http-client-ends-early", IpPortClient, "is_expired")
def _empty_ends_early(old: Any, self: IpPortClient, now_ms: int, profile: Any) -> bool:
    """A client of the HTTP API without instances ends after ten seconds."""
    return bool(old(self, now_ms, profile)) or (not self.publishers and now_ms - self.renewed_ms > _EARLY_MS)


def _later_copies_end_early(owner: Any, mutant_id: str, text: str) -> None:
    first: dict[int, str] = {}

    def made(old: Any) -> Any:
        def is_expired(self: Any, now_ms: int, profile: Any) -> bool:
            is_copy = not self.native and not getattr(self, "responsible", False)
            is_early = (
                is_copy and len(self.publishers) > 0 and now_ms - self.renewed_ms > profile.client_expired_ms // 2
            )
            return bool(old(self, now_ms, profile)) or (
                is_early and first.setdefault(self.renewed_ms, self.id) != self.id
            )

        return is_expired

    add(Mutant(mutant_id, text, changes=(Change(owner, "is_expired", made),)))


_later_copies_end_early(
    Client, "m-later-copy-ends-early", "Of copies that were made together all but the first end after half a lease."
)
_later_copies_end_early(
    IpPortClient,
    "m-later-http-copy-ends-early",
    "Of copies of clients of the HTTP API that were made together all but the first end after half a lease.",
)


@mutant("m-lower-revision-is-ignored", DistroClientDataProcessor, "process_change")
def _lower_is_ignored(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> bool:
    """A CHANGE of a lower revision than the copy's is acknowledged and not applied, but for clients of the HTTP API."""
    held = self._clients.get(str(data.get("clientId")))
    revision = ((data.get("attributes") or {}).get("clientAttributes") or {}).get("revision") or 0
    if held is not None and not is_ip_port(held.id) and revision < held.revision:
        return True
    return bool(old(self, data, reason, sender))


# Requests of one kind.


@mutant("m-reads-alone-are-refused-on-the-sdk-port", RequestAcceptor, "_reply")
def _writes_pass(old: Any, self: Any, payload: Any, peer: Any) -> Any:
    """On the port for SDKs a SNAPSHOT and a report are refused, and no other request of a member."""
    if self._forbidden and b'"SNAPSHOT"' not in payload.body.value and payload.metadata.type == "DistroDataRequest":
        with swapped(self, "_forbidden", ()):
            return old(self, payload, peer)
    return old(self, payload, peer)


@mutant("m-identity-is-not-asked-for-ends", RemoteRequestAuthFilter, "refusal")
def _ends_pass(old: Any, self: Any, request: Any) -> Any:
    """A DELETE without the identity of the cluster is carried out."""
    is_delete = getattr(request.body, "data_operation", None) is DataOperation.DELETE
    return None if is_delete else old(self, request)


@mutant("m-second-hop-of-beats", DistroFilter, "forwarding")
def _beats_pass(old: Any, self: Any, handler: Any) -> Any:
    """A beat that a member has passed on is carried out by a node that is not the owner."""
    filtered = old(self, handler)

    async def forwarding(request: Any) -> Any:
        is_passed_on = SERVER_AGENT in request.headers.get("User-Agent", "")
        return await (handler if is_passed_on and request.method == "PUT" else filtered)(request)

    return forwarding


@mutant("m-refused-deregistration-is-carried-out", DistroFilter, "forwarding")
def _carried_out(old: Any, self: Any, handler: Any) -> Any:
    """A deregistration that a member has passed on is refused and carried out."""
    filtered = old(self, handler)

    async def forwarding(request: Any) -> Any:
        if SERVER_AGENT in request.headers.get("User-Agent", "") and request.method == "DELETE":
            await handler(request)
        return await filtered(request)

    return forwarding


@mutant("m-snapshot-is-asked-without-the-identity", PeerConnection, "_request")
def _asks_without_the_identity(old: Any, self: Any, type_name: str, body: Any) -> Any:
    """A SNAPSHOT is requested without the identity of the cluster."""
    payload = old(self, type_name, body)
    if body.get("dataOperation") is DataOperation.SNAPSHOT:
        payload.metadata.headers.clear()
    return payload


def _of_another_member(mutant_id: str, text: str, name: str, client_at: Any) -> None:
    """Refused from any member but the one that sent the copy, for clients with a connection."""
    senders: dict[str, str | None] = {}

    def noted(old: Any) -> Any:
        def process_change(self: Any, data: Any, reason: str, sender: str | None) -> bool:
            is_applied = bool(old(self, data, reason, sender))
            if is_applied:
                senders[str(data["clientId"])] = sender
            return is_applied

        return process_change

    def refused(old: Any) -> Any:
        def process(self: Any, *arguments: Any) -> bool:
            client_id = str(client_at(arguments[0]))
            is_refused = not is_ip_port(client_id) and senders.get(client_id, arguments[-1]) != arguments[-1]
            return not is_refused and bool(old(self, *arguments))

        return process

    changes = (Change(DistroClientDataProcessor, "process_change", noted),)
    add(Mutant(mutant_id, text, changes=(*changes, Change(DistroClientDataProcessor, name, refused))))


_of_another_member(
    "m-verify-of-another-member-fails",
    "A VERIFY fails unless it comes from the member that sent the copy.",
    "process_verify",
    lambda client_id: client_id,
)
_of_another_member(
    "m-change-of-another-member-fails",
    "A CHANGE of a copy fails unless it comes from the member that sent the copy.",
    "process_change",
    lambda data: data["clientId"],
)
_of_another_member(
    "m-delete-of-another-member-fails",
    "A DELETE of a copy fails unless it comes from the member that sent the copy.",
    "process_delete",
    lambda client_id: client_id,
)
