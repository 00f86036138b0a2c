"""Connections: ids, the checks before a handler, set-up, abilities, limits, codes, detection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, instead, left_out, mutant, swapped
from distro_impl.remote import acceptor
from distro_impl.remote.acceptor import RequestAcceptor as Acceptor
from distro_impl.remote.connection import Connection, ConnectionMeta
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.ejector import ConnectionEjector
from distro_impl.remote.errors import BAD_GATEWAY, NacosError
from distro_impl.security.inner_api import InnerApi
from distro_protos import Payload, read_json

_GRPC_LIMIT_BYTES = 4 * 1024 * 1024


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


@mutant("m-one-id-for-all", ConnectionManager, "_new_id")
def _constant_id(_: Any, self: Any, peer: Any) -> Any:  # noqa: ARG001
    """Every transport has the same id."""
    return "1700000000000_127.0.0.1_1"


@mutant("m-health-check-fails", Acceptor, "_reply")
def _fails_health_checks(old: Any, self: Any, payload: Payload, peer: Any) -> Any:
    """A health check on a connection that is set up fails."""
    if payload.metadata.type == "HealthCheckRequest" and self._connections.get(self._connections.id_of(peer)):
        return "HealthCheckResponse", {"resultCode": 500, "errorCode": 500, "success": False}
    return old(self, payload, peer)


@mutant("B39", ConnectionManager, "detect")
async def _deaf(*_: object) -> bool:
    """A connection that answers a detection is ejected all the same."""
    return False


@mutant("m-answer-to-a-detection-is-no-sign-of-life", ConnectionManager, "detect")
async def _no_sign_of_life(old: Any, self: Any, connection: Any, timeout_ms: int) -> bool:
    """A connection that has answered a detection is asked again at the next check."""
    active_ms = connection.last_active_ms
    is_alive = bool(await old(self, connection, timeout_ms))
    connection.last_active_ms = active_ms
    return is_alive


@mutant("m-members-are-not-asked", ConnectionManager, "detect")
async def _members_are_not_asked(old: Any, self: Any, connection: Any, timeout_ms: int) -> bool:
    """A silent connection of a member stays, and is sent no detection."""
    return connection.meta.labels.get("source") == "cluster" or bool(await old(self, connection, timeout_ms))


@mutant("m-detection-believes-anybody", ConnectionManager, "detect")
async def _trusting(*_: object) -> bool:
    """A connection that answers no detection stays."""
    return True


@mutant("m-one-silent-connection-ends", ConnectionEjector, "_eject_silent")
async def _one_ends(old: Any, self: Any) -> None:
    """Of the connections that answer no detection each check ends one."""
    eject = self._eject
    ended: list[Connection] = []

    def first(connection: Connection, why: str) -> None:
        if not ended:
            ended.append(connection)
            eject(connection, why)

    with swapped(self, "_eject", first):
        await old(self)


@mutant("m-rubbish-ends-the-client", Acceptor, "_receive")
async def _ends_on_rubbish(old: Any, self: Any, stream: Any, peer: Any, connection_id: str, serialized: bytes) -> None:
    """A stream message that cannot be read ends its client."""
    payload = Payload.FromString(serialized)
    if payload.metadata.type == "ConnectionSetupRequest" and not payload.body.value.endswith(b"}"):
        self._connections.unregister(connection_id)
        return
    await old(self, stream, peer, connection_id, serialized)


@mutant("m-second-set-up-starts-over", ConnectionManager, "register")
def _registers_again(old: Any, self: Any, connection: Connection) -> None:
    """A second set-up on one transport makes a new client."""
    if connection.id in self._connections:
        self._disconnected(self._connections.pop(connection.id))
    old(self, connection)


@mutant("m-no-abilities", Acceptor, "_set_up")
async def _without_ack(_: Any, self: Any, connection: Connection, body: Any) -> None:
    """A client that sent its abilities does not get those of the server."""
    if body.labels is not None:
        self._connections.register(connection)


@mutant("m-id-has-no-port", ConnectionManager, "_new_id")
def _without_the_port(old: Any, self: Any, peer: Any) -> str:
    """The id of a transport has the same port for all."""
    return f"{str(old(self, peer)).rpartition('_')[0]}_1"


@mutant("m-id-has-no-time", ConnectionManager, "_new_id")
def _without_the_time(old: Any, self: Any, peer: Any) -> str:
    """The id of a transport has the same time for all."""
    return f"1700000000000_{str(old(self, peer)).partition('_')[2]}"


@mutant("m-id-has-the-nodes-address", ConnectionManager, "_new_id")
def _address_of_the_node(old: Any, self: Any, peer: Any) -> str:
    """The id of a transport has an address that is not its own."""
    time, _, port = str(old(self, peer)).split("_")
    return f"{time}_10.0.0.1_{port}"


@mutant("m-each-server-check-makes-an-id", Acceptor, "_reply")
def _makes_an_id(old: Any, self: Any, payload: Any, peer: Any) -> Any:
    """A second server check of a transport is answered with another id."""
    name, body = old(self, payload, peer)
    checked = self.__dict__.setdefault("_checked", set())
    if name == "ServerCheckResponse" and peer in checked:
        body = {**body, "connectionId": self._connections._new_id(peer)}
    checked.add(peer)
    return name, body


@mutant("m-abilities-are-the-clients", Acceptor, "_set_up")
async def _the_clients(old: Any, self: Any, connection: Connection, body: Any) -> None:
    """A client that sent its abilities gets them back."""
    with swapped(acceptor, "ABILITIES", body.ability_table):
        await old(self, connection, body)


@mutant("m-abilities-are-pushed-to-all", Acceptor, "_set_up")
async def _pushed_to_all(old: Any, self: Any, connection: Connection, body: Any) -> None:
    """A client that sent no table of abilities gets the node's too."""
    body.ability_table = body.ability_table or {}
    await old(self, connection, body)


def _limited(mutant_id: str, purpose: str, text: str) -> None:
    def made(old: Any) -> Any:
        async def start(self: Any) -> None:
            if self._purpose.startswith(purpose):
                self._options = replace(self._options, max_inbound_bytes=_GRPC_LIMIT_BYTES)
            await old(self)

        return start

    add(Mutant(mutant_id, text, changes=(Change(Acceptor, "start", made),)))


_limited("m-four-mebibytes-of-members", "cluster", "Messages of members may have 4 MiB, which is gRPC's own limit.")
_limited("m-four-mebibytes-of-clients", "SDK", "Messages of clients may have 4 MiB, which is gRPC's own limit.")


@mutant("m-errors-report-success", NacosError, "to_json")
def _of_success(old: Any, self: Any) -> Any:
    """An ErrorResponse that is made before a handler has the result code of success."""
    return {**old(self), "resultCode": 200}


@mutant("m-failures-report-success", Acceptor, "_reply")
def _says_success(old: Any, self: Any, payload: Any, peer: Any) -> Any:
    """The field `success` of each answer is true."""
    name, body = old(self, payload, peer)
    return name, {**body, "success": True}


@mutant("m-answers-to-clients-have-an-error-code", Acceptor, "_reply")
def _has_an_error_code(old: Any, self: Any, payload: Any, peer: Any) -> Any:
    """An answer of success to a client has an error code."""
    name, body = old(self, payload, peer)
    is_naming = name in ("InstanceResponse", "SubscribeServiceResponse", "QueryServiceResponse")
    return name, {**body, "errorCode": 200} if is_naming and body["errorCode"] == 0 else body


@mutant("m-unknown-fields-of-clients-are-refused", Acceptor, "_reply")
def _refuses_unknown_fields(old: Any, self: Any, payload: Any, peer: Any) -> Any:
    """A registration with a field that this release does not know is refused."""
    if payload.metadata.type == "InstanceRequest":
        known = {"headers", "requestId", "namespace", "serviceName", "groupName", "type", "instance", "module"}
        if unknown := set(read_json(payload.body.value)) - known:
            raise NacosError(BAD_GATEWAY, f"unknown fields: {unknown}")
    return old(self, payload, peer)


left_out(
    "m-requests-are-no-signs-of-life",
    Connection,
    "touch",
    "A connection that sends requests all the time counts as idle.",
)

left_out("m-inner-identity-is-not-asked", InnerApi, "check", "A request of a member without the identity is accepted.")
add(
    Mutant(
        "m-four-mebibytes-of-a-snapshot",
        "Answers of members may have 4 MiB, which is gRPC's own limit.",
        {"reply_bytes_max": _GRPC_LIMIT_BYTES},
    ),
    Mutant("m-unknown-type-is-500", "A request without a handler gets 500.", changes=(_with_code(500, 302),)),
    Mutant("m-unreadable-is-500", "A body that cannot be read gets 500.", changes=(_with_code(500, 502),)),
    Mutant("m-unregistered-is-500", "A request without a set-up gets 500.", changes=(_with_code(500, 301),)),
    Mutant(
        "m-everybody-is-a-client",
        "Connections for other modules get a naming client too.",
        changes=(instead(ConnectionMeta, "is_naming", property(lambda self: True)),),  # noqa: ARG005
    ),
)
