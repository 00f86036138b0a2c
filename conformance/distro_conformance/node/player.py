"""A client that the kit plays: it sends the requests of an SDK and records what it receives.

To the node it looks like an SDK: one connection with the same labels, the request bodies of
docs/protocol #naming-requests. It keeps no cache and never reconnects, since a check needs the answers of the node, not
their handling by an SDK.

Answers over gRPC, over HTTP and by the model have one form, whose code is the one that a client reads: that in the body
if there is one (a beat is answered `{"code": 20404}` with status 200), else the HTTP status; over gRPC the error code,
else the result code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from distro_conformance.verdict import KitError
from distro_conformance.wire.connection import SDK_LABELS, Connection, OnPush
from distro_impl.transport.transport import Channel
from distro_protos import Json, Message

PUSH, DETECTION = "NotifySubscriberRequest", "ClientDetectionRequest"
NAMESPACE, GROUP, CLUSTER = "public", "DEFAULT_GROUP", "DEFAULT"
CACHE_MS = 10_000
"""How long a list may be kept, which no switch has changed."""
FIELDS = frozenset({"cluster", "weight", "enabled"})
"""Words of an instance's text that are no metadata."""
Instance = tuple[str, int, Mapping[str, str]]
"""ip, port and metadata."""
OK = 200
BEAT_TAKEN, BEAT_UNKNOWN = 10200, 20404
WRAPPED_OK, WRAPPED_UNKNOWN = 0, 21003
"""In the wrapper of versions 2 and 3 of the HTTP API; the beat of version 2 has none."""
UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """`code`: None when no node answered. `is_refused`: the request is not carried out. `detail`: the answer's own
    text."""

    code: int | None
    is_refused: bool
    detail: str = field(default="", compare=False)

    def __str__(self) -> str:
        return UNREACHABLE if self.code is None else str(self.code)

    @property
    def asks_to_register(self) -> bool:
        """A beat found no instance: part of the protocol, and no failure."""
        return self.code in (BEAT_UNKNOWN, WRAPPED_UNKNOWN)


def not_reached(why: str) -> ClientAnswer:
    return ClientAnswer(None, is_refused=True, detail=why)


def answer_over_http(status: int, text: str) -> ClientAnswer:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    coded = body.get("code") if isinstance(body, dict) else None
    code = coded if isinstance(coded, int) else status
    is_done = status == OK and code in (OK, WRAPPED_OK, BEAT_TAKEN)
    return ClientAnswer(code, not is_done, f"{status} {text!r}")


def answer_over_grpc(reply: Message) -> ClientAnswer:
    code = reply.body.get("errorCode") or reply.body.get("resultCode", OK)
    return ClientAnswer(int(code), not reply.succeeded, str(reply))


class RefusedError(KitError):
    """The node answered a client's request with an error; `answer` is that, where it counts as the client's answer."""

    def __init__(self, message: str, answer: ClientAnswer | None = None) -> None:
        super().__init__(message)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Host:
    """One entry of a service list, as far as checks look at it."""

    ip: str
    port: int
    healthy: bool
    metadata: Mapping[str, str]
    weight: float
    cluster: str

    @property
    def address(self) -> str:
        return f"{self.ip}:{self.port}"


class PlayedClient(Connection):
    """Use `await PlayedClient.connect(sdk_address)`; `id` is the connection id, the client's name in Distro."""

    def __init__(
        self, address: str, channel: Channel, on_push: OnPush | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.node = "", address
        """What messages call it, by default its id, and its node."""
        self.pushes: list[Message] = []
        """NotifySubscriberRequest and all other messages of the node on the stream, in order."""
        self.require: Callable[[str], None] = lambda _: None
        """Called with the feature that a request needs; raises where the server lacks it."""
        super().__init__(address, channel, on_push or self.pushes.append, headers)

    @classmethod
    async def connect(
        cls, sdk_address: str, namespace: str = NAMESPACE, headers: Mapping[str, str] | None = None
    ) -> Self:
        """Raises TargetError when the node does not take the connection."""
        client = await cls.open(sdk_address, labels=SDK_LABELS, headers=headers)
        client.namespace = namespace
        return client

    async def register(self, service: str, ip: str, port: int, /, **metadata: str) -> ClientAnswer:
        """Publish one instance; a second call for the same service replaces it. Raises RefusedError."""
        return await self._change("InstanceRequest", instance_request("registerInstance", service, ip, port, metadata))

    async def register_batch(self, service: str, instances: Iterable[Instance]) -> ClientAnswer:
        """Publish these instances; replaces what it published there. Raises RefusedError."""
        self.require("batch")
        return await self._change("BatchInstanceRequest", batch_request(service, instances))

    async def deregister(self, service: str, ip: str, port: int, /, **metadata: str) -> ClientAnswer:
        """Withdraw the client's instance of the service; the node ignores the instance that is named
        (docs/protocol #naming-requests). Raises RefusedError."""
        body = instance_request("deregisterInstance", service, ip, port, metadata)
        return await self._change("InstanceRequest", body)

    async def query(self, service: str) -> tuple[Host, ...]:
        """The service's list as the node shows it now; up to 0.6 s old on a real server. Raises RefusedError."""
        return read_hosts(await self._ask("ServiceQueryRequest", query_request(service)))

    async def subscribe(self, service: str, *, wanted: bool = True) -> tuple[Host, ...]:
        """The current list; from now on changes arrive in `pushes`, or no longer. Raises RefusedError."""
        reply = await self._ask(
            "SubscribeServiceRequest", {**service_request(service), "subscribe": wanted, "clusters": ""}
        )
        return read_hosts(reply)

    def pushed(self, service: str) -> list[Message]:
        """The lists of that service that it was pushed, in order."""
        return [
            push
            for push in self.pushes
            if push.type == PUSH and (push.body.get("serviceInfo") or {}).get("name") == service
        ]

    def last_pushed(self, service: str) -> tuple[Host, ...] | None:
        """The hosts in the last push of that service; None without a push."""
        pushes = self.pushed(service)
        return read_hosts(pushes[-1]) if pushes else None

    async def _change(self, type_name: str, body: Json) -> ClientAnswer:
        return answer_over_grpc(await self._ask(type_name, body))

    async def _ask(self, type_name: str, body: Json) -> Message:
        reply = await self.ask(type_name, body)
        if not reply.succeeded:
            message = f"{self.node} answers {type_name} of {self.name or self.id} with {reply}"
            raise RefusedError(message, answer_over_grpc(reply))
        return reply


def instance_request(kind: str, service: str, ip: str, port: int, metadata: Mapping[str, str]) -> Json:
    """The body of an InstanceRequest; `kind` is registerInstance or deregisterInstance."""
    return {**service_request(service), "type": kind, "instance": instance_of(service, ip, port, metadata)}


def batch_request(service: str, instances: Iterable[Instance]) -> Json:
    """The body of a BatchInstanceRequest."""
    bodies = [instance_of(service, *instance) for instance in instances]
    return {**service_request(service), "type": "batchRegisterInstance", "instances": bodies}


def instance_of(service: str, ip: str, port: int, metadata: Mapping[str, str]) -> Json:
    """One instance as an SDK writes it; the keys of FIELDS among the metadata are fields of their own."""
    return {
        "ip": ip,
        "port": port,
        "weight": float(metadata.get("weight", 1.0)),
        "healthy": True,
        "enabled": metadata.get("enabled") != "false",
        "ephemeral": True,
        "clusterName": metadata.get("cluster", CLUSTER),
        "serviceName": service,
        "metadata": without_fields(metadata),
    }


def without_fields(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in metadata.items() if key not in FIELDS}


def read_hosts(message: Message) -> tuple[Host, ...]:
    """The hosts of the `serviceInfo` in a reply or a push."""
    hosts: list[dict[str, Any]] = (message.body.get("serviceInfo") or {}).get("hosts") or []
    return tuple(map(read_host, hosts))


def read_host(host: Mapping[str, Any]) -> Host:
    return Host(
        host["ip"],
        host["port"],
        bool(host.get("healthy")),
        host.get("metadata") or {},
        host.get("weight", 1.0),
        host.get("clusterName", CLUSTER),
    )


def query_request(name: str) -> Json:
    """The body of a ServiceQueryRequest, for instances of all clusters, healthy or not."""
    return {**service_request(name), "cluster": "", "healthyOnly": False, "udpPort": 0}


def service_request(name: str) -> Json:
    """The part that every request about a service begins with."""
    return {"headers": {}, "namespace": NAMESPACE, "serviceName": name, "groupName": GROUP, "module": "naming"}
