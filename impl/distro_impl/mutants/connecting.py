"""Connections: the checks before a handler, set-up, detection."""

from __future__ import annotations

from typing import Any

from distro_impl.mutants.mutant import Change, Mutant, instead
from distro_impl.remote.acceptor import RequestAcceptor as Acceptor
from distro_impl.remote.connection import Connection, ConnectionMeta
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.errors import NacosError
from distro_protos import Payload


def _with_code(wrong: int, right: int) -> Change:
    """An error before a handler carries another code."""

    def made(old: Any) -> Any:
        def reply(self: Any, payload: Payload, peer: Any) -> Any:
            try:
                return old(self, payload, peer)
            except NacosError as error:
                raise NacosError(wrong if error.code == right else error.code, error.message) from error

        return reply

    return Change(Acceptor, "_reply", made)


def _constant_id(_: Any) -> Any:
    return lambda self, peer: "1700000000000_127.0.0.1_1"  # noqa: ARG005


def _fails_health_checks(old: Any) -> Any:
    def reply(self: Any, payload: Payload, peer: Any) -> Any:
        if payload.metadata.type == "HealthCheckRequest" and self._connections.get(self._connections.id_of(peer)):
            return "HealthCheckResponse", {"resultCode": 500, "errorCode": 500, "success": False}
        return old(self, payload, peer)

    return reply


async def _deaf(*_: object) -> bool:
    return False


async def _trusting(*_: object) -> bool:
    return True


def _ends_on_rubbish(old: Any) -> Any:
    async def receive(self: Any, stream: Any, peer: Any, connection_id: str, serialized: bytes) -> None:
        payload = Payload.FromString(serialized)
        if payload.metadata.type == "ConnectionSetupRequest" and not payload.body.value.endswith(b"}"):
            self._connections.unregister(connection_id)
            return
        await old(self, stream, peer, connection_id, serialized)

    return receive


def _registers_again(old: Any) -> Any:
    def register(self: Any, connection: Connection) -> bool:
        if connection.id in self._connections:
            self._disconnected(self._connections.pop(connection.id))
        return bool(old(self, connection))

    return register


async def _without_ack(self: Any, connection: Connection, body: Any) -> None:
    if body.labels is None or not self._connections.register(connection):
        await self._refuse(connection)


MUTANTS = (
    Mutant("m-unknown-type-is-500", "A request that nobody handles gets 500.", changes=(_with_code(500, 302),)),
    Mutant("m-unreadable-is-500", "A body that cannot be read gets 500.", changes=(_with_code(500, 502),)),
    Mutant("m-unregistered-is-500", "A request without a set-up gets 500.", changes=(_with_code(500, 301),)),
    Mutant(
        "m-one-id-for-all",
        "Every transport has the same id.",
        changes=(Change(ConnectionManager, "_new_id", _constant_id),),
    ),
    Mutant(
        "m-health-check-fails",
        "A health check on a connection that is set up fails.",
        changes=(Change(Acceptor, "_reply", _fails_health_checks),),
    ),
    Mutant(
        "B39",
        "A connection that answers a detection is ejected all the same.",
        changes=(instead(ConnectionManager, "detect", _deaf),),
    ),
    Mutant(
        "m-detection-believes-anybody",
        "A connection that answers no detection stays.",
        changes=(instead(ConnectionManager, "detect", _trusting),),
    ),
    Mutant(
        "m-rubbish-ends-the-client",
        "A stream message that cannot be read ends its client.",
        changes=(Change(Acceptor, "_receive", _ends_on_rubbish),),
    ),
    Mutant(
        "m-second-set-up-starts-over",
        "A second set-up on one transport makes a new client.",
        changes=(Change(ConnectionManager, "register", _registers_again),),
    ),
    Mutant(
        "m-no-abilities",
        "A client that sent its abilities is not told those of the server.",
        changes=(instead(Acceptor, "_set_up", _without_ack),),
    ),
    Mutant(
        "m-requests-are-no-signs-of-life",
        "A connection that sends requests all the time counts as idle.",
        changes=(instead(Connection, "touch", lambda self: None),),  # noqa: ARG005
    ),
    Mutant(
        "m-everybody-is-a-client",
        "Connections for other modules get a naming client too.",
        changes=(instead(ConnectionMeta, "is_naming", property(lambda self: True)),),  # noqa: ARG005
    ),
)
