"""How changes leave: what is queued, merged, sent, sent again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, instead, left_out, mutant, swapped
from distro_impl.distro import transport_agent
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroKey, DistroProtocol
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.changes import ClientChanged
from distro_impl.naming.client import Client, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import is_ip_port
from distro_impl.remote.cluster_client import ClusterClient
from distro_impl.remote.ejector import ConnectionEjector
from distro_impl.remote.payloads import DataOperation
from distro_impl.tasks.delay_engine import DelayTaskEngine

_TYPES = ("DistroDataResponse", "ErrorResponse")


@mutant("m-delete-retried-as-change", DistroProtocol, "_handle", missing_client_is_deleted=False)
def _as_change(
    old: Any, self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply, revision: int | None
) -> None:
    """A DELETE that failed is retried as CHANGE; the client is gone, so no DELETE is sent."""
    is_failure = reply is not DistroReply.SUCCESS
    old(self, key, DataOperation.CHANGE if is_failure else operation, reply, revision)


def _without_its_change(self: ClientManager, register: Callable[[], None]) -> None:
    """The client has changed, and subscribers are sent it, but not the members."""
    publish = self._notify.publish

    def other_events(event: object) -> None:
        if not isinstance(event, ClientChanged):
            publish(event)

    with swapped(self._notify, "publish", other_events):
        register()


@mutant("m-changed-instance-is-not-announced", ClientManager, "register")
def _change_of_an_instance_stays(
    old: Any, self: Any, client: Client, service: Service, *args: Any, **named: Any
) -> None:
    """What a connected client registers under a service that it publishes already is not sent to the members."""
    if service in client.publishers and not is_ip_port(client.id):
        _without_its_change(self, lambda: old(self, client, service, *args, **named))
    else:
        old(self, client, service, *args, **named)


@mutant("m-changed-http-instance-is-not-announced", ClientManager, "register")
def _http_change_stays(old: Any, self: Any, client: Client, service: Service, *args: Any, **named: Any) -> None:
    """What a client of the HTTP API registers under a service that it publishes already is not sent to the members."""
    if service in client.publishers and is_ip_port(client.id):
        _without_its_change(self, lambda: old(self, client, service, *args, **named))
    else:
        old(self, client, service, *args, **named)


@mutant("m-merge-takes-the-longer-delay", DelayTaskEngine, "add")
def _longer_delay(old: Any, self: Any, key: Any, action: Any, delay_ms: int) -> None:
    """A change that joins a waiting retry waits as long as the retry."""
    pending = self._tasks.get(key)
    old(self, key, action, delay_ms if pending is None else max(delay_ms, pending.interval_ms))


@mutant("m-received-delete-is-passed-on", DistroProtocol, "_on_client_removed")
def _passes_on(old: Any, self: Any, event: Any) -> None:
    """The removal of a copy is sent to the members as a DELETE."""
    old(self, event)
    if not event.client.responsible:
        self._sync_to_all(event.client.id, DataOperation.DELETE)


def _believed(*good: DistroReply, only: DataOperation | None = None) -> Any:
    """Some bad ends of a sync count as success."""

    def made(old: Any) -> Any:
        def handle(self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply, *sent: Any) -> None:
            is_believed = reply in good and only in (None, operation)
            old(self, key, operation, DistroReply.SUCCESS if is_believed else reply, *sent)

        return handle

    return Change(DistroProtocol, "_handle", made)


@mutant("m-error-is-success", DistroTransportAgent, "_send")
async def _error_is_success(old: Any, self: Any, *arguments: Any) -> Any:
    """A sync that is answered with an ErrorResponse counts as done."""
    outcome, reply = await old(self, *arguments)
    is_error = reply is not None and reply.type == "ErrorResponse"
    return (DistroReply.SUCCESS, reply) if is_error else (outcome, reply)


@mutant("B42", DistroTransportAgent, "_send")
async def _strange_is_lost(old: Any, self: Any, *arguments: Any) -> Any:
    """A sync whose answer cannot be read, or is of an unknown type, is lost without a retry."""
    outcome, reply = await old(self, *arguments)
    is_strange = reply is not None and reply.type not in _TYPES
    return (DistroReply.SUCCESS, reply) if is_strange else (outcome, reply)


@mutant("m-timeout-is-success", DistroTransportAgent, "_send")
async def _timeout_is_success(old: Any, self: Any, *arguments: Any) -> Any:
    """A sync that is not answered counts as done."""
    outcome, reply = await old(self, *arguments)
    return (DistroReply.SUCCESS, None) if outcome is DistroReply.EXCEPTION and reply is None else (outcome, reply)


@mutant("m-merge-keeps-max-delay", DelayTaskEngine, "add")
def _starts_over(old: Any, self: Any, key: Any, action: Any, delay_ms: int) -> None:
    """Every change puts off what waits, so that a client that goes on changing is never announced."""
    self._tasks.pop(key, None)
    old(self, key, action, delay_ms)


@mutant("B08", DelayTaskEngine, "add", missing_client_is_deleted=False)
def _first_wins(old: Any, self: Any, key: Any, action: Any, delay_ms: int) -> None:
    """A DELETE that meets a waiting CHANGE gives way to it."""
    pending = self.pending(key)
    old(self, key, pending if isinstance(pending, DataOperation) else action, delay_ms)


@mutant("m-one-member-is-told", DistroProtocol, "_sync_to_all")
def _to_the_first(_: Any, self: Any, client_id: str, operation: DataOperation) -> None:
    """A change is sent to one member only."""
    peer = min(self._members.other_addresses())
    self._delayed.add(DistroKey(client_id, peer), operation, self._profile.sync_delay_ms)


@mutant("m-stale-content", DistroClientDataProcessor, "data_of")
def _as_it_was(old: Any, self: Any, client_id: str) -> Any:
    """A CHANGE holds what was read of the client the first time."""
    found = old(self, client_id)
    kept = self.__dict__.setdefault("_kept", {})
    if found and (found["serviceNames"] or client_id in kept):
        return kept.setdefault(client_id, found)
    return found


@mutant("m-no-target", transport_agent, "distro_body")
def _without_target(old: Any, operation: Any, client_id: Any, data: Any, target: Any = None) -> Any:  # noqa: ARG001
    """A sync does not name its receiver."""
    return old(operation, client_id, data)


@mutant("m-send-add-for-change", DistroTransportAgent, "sync_body")
def _sends_add(old: Any, self: Any, peer: str, operation: DataOperation, *arguments: Any) -> Any:
    """A change is sent as ADD."""
    is_change = operation is DataOperation.CHANGE
    return old(self, peer, DataOperation.ADD if is_change else operation, *arguments)


@mutant("m-delete-is-given-up", DistroProtocol, "_handle")
def _gives_up(
    old: Any, self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply, revision: int | None
) -> None:
    """A DELETE that has failed three times is given up."""
    failed = self.__dict__.setdefault("_failed", Counter())
    failed[key] += operation is DataOperation.DELETE
    old(self, key, operation, DistroReply.SUCCESS if failed[key] > 2 else reply, revision)


@mutant("m-deregistration-is-not-announced", ClientManager, "deregister")
def _registrations_only(old: Any, self: Any, client: Any, service: Any) -> None:
    """Deregistrations are not sent to members."""
    with swapped(self, "_publish_change", lambda *_: None):
        old(self, client, service)


@mutant("m-one-worker", DistroProtocol, "_send")
async def _one_at_a_time(_old: Any, self: Any, key: Any, _: Any, body: Any) -> Any:
    """Syncs to all members share one worker that waits for each answer."""
    lock = self.__dict__.setdefault("_lock", asyncio.Lock())
    with self._clock.parked():
        await lock.acquire()
    try:
        return await self._agent.sync(key.peer, body)
    finally:
        lock.release()


@mutant("m-http-clients-are-told-to-one", DistroProtocol, "_sync_to_all")
def _http_to_the_first(_: Any, self: Any, client_id: str, operation: DataOperation) -> None:
    """Changes of clients of the HTTP API are sent to one member only."""
    for peer in self._members.other_addresses()[: 1 if is_ip_port(client_id) else None]:
        self._delayed.add(DistroKey(client_id, peer), operation, self._profile.sync_delay_ms)


def _for_one(mutant_id: str, text: str, owner: Any, name: str, concerns: Any = lambda *_: True) -> None:
    """What the method changes is sent to the first member only, where `concerns` its arguments."""
    on: list[bool] = []

    def noted(old: Any) -> Any:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            on.append(concerns(*arguments))
            try:
                return old(self, *arguments, **named)
            finally:
                on.pop()

        return method

    def limited(old: Any) -> Any:
        def sync_to_all(self: Any, client_id: str, operation: DataOperation) -> None:
            if not any(on):
                old(self, client_id, operation)
                return
            peer = self._members.other_addresses()[0]
            self._delayed.add(DistroKey(client_id, peer), operation, self._profile.sync_delay_ms)

        return sync_to_all

    add(Mutant(mutant_id, text, changes=(Change(owner, name, noted), Change(DistroProtocol, "_sync_to_all", limited))))


_for_one(
    "m-last-deregistration-is-for-one",
    "A CHANGE of a client that publishes nothing more is sent to one member only.",
    ClientManager,
    "deregister",
    lambda client, service: set(client.publishers) <= {service},
)
_for_one("m-health-is-for-one", "What beats change is sent to one member only.", ClientManager, "_judge")
_for_one(
    "m-end-of-a-mute-client-is-for-one",
    "The end of a client that the node gives up is sent to one member only.",
    ConnectionEjector,
    "_eject",
)
_for_one(
    "m-end-of-an-empty-client-is-for-one",
    "The end of a client of the HTTP API without instances is sent to one member only.",
    ClientManager,
    "remove_expired",
)


@mutant("m-forgotten-connection-stays", ClusterClient, "_give_up")
def _stays(_old: Any, _self: Any, _connection: Any) -> None:
    """A connection that its member does not know any more is used all the same."""


def to_who_has_left(old: Any) -> Any:
    def follow(self: Any, listed: Any) -> None:
        old(self, (*listed, *self._clients))

    return follow


left_out(
    "B35",
    ClusterClient,
    "check",
    "A connection on which something was sent lately counts as alive, whether or not anything is answered.",
)
left_out("m-no-change", DistroProtocol, "_on_client_changed", "No CHANGE is sent.")
left_out("m-no-delete", DistroProtocol, "_on_client_removed", "No DELETE is sent.")

add(
    Mutant(
        "B37",
        "What waits for a member that has left the list is tried for ever.",
        changes=(
            instead(ServerMemberManager, "has_member", lambda *_: True),
            Change(
                ServerMemberManager,
                "is_up",
                lambda old: lambda self, address: address not in self.others or old(self, address),
            ),
            Change(ClusterRpcClientProxy, "_follow", to_who_has_left),
        ),
    ),
    Mutant("m-failure-is-success", "A typed failure counts as success.", changes=(_believed(DistroReply.FAIL),)),
    Mutant(
        "m-failed-delete-is-forgotten",
        "A DELETE is sent once, whatever comes of it.",
        changes=(_believed(DistroReply.FAIL, DistroReply.EXCEPTION, DistroReply.NOT_SENT, only=DataOperation.DELETE),),
    ),
    Mutant(
        "m-not-sent-is-forgotten",
        "What could not be sent to a member that is not UP is forgotten.",
        changes=(_believed(DistroReply.NOT_SENT),),
    ),
)
