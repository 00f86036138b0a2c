"""How changes leave: what is queued, merged, sent, sent again."""

from __future__ import annotations

import asyncio
from typing import Any

from distro_impl.distro import transport_agent
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroKey, DistroProtocol
from distro_impl.distro.transport_agent import DistroReply, DistroTransportAgent
from distro_impl.mutants.mutant import Change, Mutant, instead
from distro_impl.naming.client_manager import ClientManager
from distro_impl.remote.payloads import DataOperation
from distro_impl.tasks.delay_engine import DelayTaskEngine

_TYPES = ("DistroDataResponse", "ErrorResponse")


def _as_change(old: Any) -> Any:
    def handle(self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply) -> None:
        is_failure = reply is not DistroReply.SUCCESS
        old(self, key, DataOperation.CHANGE if is_failure else operation, reply)

    return handle


def _believed(*good: DistroReply, only: DataOperation | None = None) -> Any:
    """Some bad ends of a sync count as success."""

    def made(old: Any) -> Any:
        def handle(self: Any, key: DistroKey, operation: DataOperation, reply: DistroReply) -> None:
            is_believed = reply in good and only in (None, operation)
            old(self, key, operation, DistroReply.SUCCESS if is_believed else reply)

        return handle

    return Change(DistroProtocol, "_handle", made)


def _error_is_success(old: Any) -> Any:
    async def send(self: Any, *arguments: Any) -> Any:
        outcome, reply = await old(self, *arguments)
        is_error = reply is not None and reply.type == "ErrorResponse"
        return (DistroReply.SUCCESS, reply) if is_error else (outcome, reply)

    return send


def _strange_is_lost(old: Any) -> Any:
    async def send(self: Any, *arguments: Any) -> Any:
        outcome, reply = await old(self, *arguments)
        is_strange = reply is not None and reply.type not in _TYPES
        return (DistroReply.SUCCESS, reply) if is_strange else (outcome, reply)

    return send


def _timeout_is_success(old: Any) -> Any:
    async def send(self: Any, *arguments: Any) -> Any:
        outcome, reply = await old(self, *arguments)
        return (DistroReply.SUCCESS, None) if outcome is DistroReply.EXCEPTION and reply is None else (outcome, reply)

    return send


def _starts_over(old: Any) -> Any:
    def add(self: Any, key: Any, action: Any, delay_ms: int) -> None:
        self._tasks.pop(key, None)
        old(self, key, action, delay_ms)

    return add


def _first_wins(old: Any) -> Any:
    def add(self: Any, key: Any, action: Any, delay_ms: int) -> None:
        pending = self.pending(key)
        old(self, key, pending if isinstance(pending, DataOperation) else action, delay_ms)

    return add


def _to_the_first(_: Any) -> Any:
    def sync_to_all(self: Any, client_id: str, operation: DataOperation) -> None:
        peer = min(self._members.other_addresses())
        self._delayed.add(DistroKey(client_id, peer), operation, self._profile.sync_delay_ms)

    return sync_to_all


def _as_it_was(old: Any) -> Any:
    """What is sent is what was read first."""

    def data_of(self: Any, client_id: str) -> Any:
        found = old(self, client_id)
        kept = self.__dict__.setdefault("_kept", {})
        if found and (found["serviceNames"] or client_id in kept):
            return kept.setdefault(client_id, found)
        return found

    return data_of


def _without_target(old: Any) -> Any:
    return lambda operation, client_id, data, target=None: old(operation, client_id, data)  # noqa: ARG005


def _registrations_only(old: Any) -> Any:
    def deregister(self: Any, client: Any, service: Any) -> None:
        published = self._publish_change
        self._publish_change = lambda *_: None
        try:
            old(self, client, service)
        finally:
            self._publish_change = published

    return deregister


async def _one_at_a_time(self: Any, key: Any, _: Any, body: Any) -> Any:
    lock = self.__dict__.setdefault("_lock", asyncio.Lock())
    with self._clock.parked():
        await lock.acquire()
    try:
        return await self._agent.sync(key.peer, body)
    finally:
        lock.release()


MUTANTS = (
    Mutant(
        "m-delete-retried-as-change",
        "A DELETE that failed is retried as CHANGE; the client is gone, so nobody is told to delete it.",
        {"missing_client_is_deleted": False},
        (Change(DistroProtocol, "_handle", _as_change),),
    ),
    Mutant(
        "m-merge-keeps-max-delay",
        "Every change puts off what waits, so that a client that goes on changing is never announced.",
        changes=(Change(DelayTaskEngine, "add", _starts_over),),
    ),
    Mutant(
        "B08",
        "A DELETE that meets a waiting CHANGE gives way to it.",
        {"missing_client_is_deleted": False},
        (Change(DelayTaskEngine, "add", _first_wins),),
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
    Mutant(
        "m-error-is-success",
        "A sync that is answered with an ErrorResponse counts as done.",
        changes=(Change(DistroTransportAgent, "_send", _error_is_success),),
    ),
    Mutant(
        "B42",
        "A sync whose answer is of an unknown type is lost without a retry.",
        changes=(Change(DistroTransportAgent, "_send", _strange_is_lost),),
    ),
    Mutant(
        "m-timeout-is-success",
        "A sync that is not answered counts as done.",
        changes=(Change(DistroTransportAgent, "_send", _timeout_is_success),),
    ),
    Mutant(
        "m-one-member-is-told",
        "A change is sent to one member only.",
        changes=(Change(DistroProtocol, "_sync_to_all", _to_the_first),),
    ),
    Mutant(
        "m-stale-content",
        "A CHANGE holds what was read of the client the first time.",
        changes=(Change(DistroClientDataProcessor, "data_of", _as_it_was),),
    ),
    Mutant(
        "m-no-target",
        "A sync does not name its receiver.",
        changes=(Change(transport_agent, "distro_body", _without_target),),
    ),
    Mutant(
        "m-deregistration-is-not-announced",
        "Members are not told of deregistrations.",
        changes=(Change(ClientManager, "deregister", _registrations_only),),
    ),
    Mutant(
        "m-one-worker",
        "Syncs to all members share one worker that waits for each answer.",
        changes=(instead(DistroProtocol, "_send", _one_at_a_time),),
    ),
    Mutant(
        "m-no-change", "No CHANGE is sent.", changes=(instead(DistroProtocol, "_on_client_changed", lambda *_: None),)
    ),
    Mutant(
        "m-no-delete", "No DELETE is sent.", changes=(instead(DistroProtocol, "_on_client_removed", lambda *_: None),)
    ),
)
