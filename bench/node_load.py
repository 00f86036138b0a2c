"""The load that `bench/node.py` puts on any server: connections, requests one after the other on each.

Requests are written once and replies are not read beyond their type, so that the same loop drives a node, a real
Nacos and a bare echo, and two results differ only by the server.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
import grpc.aio

from distro_protos import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    STREAM_METHOD,
    STREAM_SERVICE,
    Json,
    Payload,
    decode,
    encode,
)

IN_FLIGHT = 4
"""Requests under way on each connection at a time."""

SERVICES = 500
PATIENCE_S = 60.0
UNREGISTERED_CODES = (300, 301)  # the set-up is still on its way
SETUP: Json = {
    "headers": {},
    "clientVersion": "Nacos-Java-Client:v2.2.4",
    "tenant": "",
    "labels": {"source": "sdk", "module": "naming"},
    "abilityTable": {},
    "module": "internal",
}
UnaryCall: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[Payload, Payload]"
OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


@dataclass(frozen=True, slots=True)
class Client:
    """One connection. A registered one is a client of the server with this `id`."""

    number: int
    id: str
    call: UnaryCall


def registration(client: int, service: int, version: int = 0) -> Payload:
    """The request of a Java SDK for one instance; another version is another content."""
    instance = {
        "ip": f"10.{client >> 8}.{client & 255}.{service & 255}",
        "port": 8000 + service,
        "weight": 1.0,
        "healthy": True,
        "enabled": True,
        "ephemeral": True,
        "clusterName": "DEFAULT",
        "serviceName": f"service-{service}",
        "metadata": {"version": str(version), "zone": "west"},
    }
    return encode("InstanceRequest", {**_about(service), "type": "registerInstance", "instance": instance})


def query(service: int) -> Payload:
    return encode("ServiceQueryRequest", {**_about(service), "cluster": "", "healthyOnly": False, "udpPort": 0})


def _about(service: int) -> Json:
    return {
        "headers": {},
        "namespace": "public",
        "serviceName": f"service-{service}",
        "groupName": "DEFAULT_GROUP",
        "module": "naming",
    }


@asynccontextmanager
async def connected(target: str, numbers: Sequence[int], *, is_server: bool = True) -> AsyncIterator[list[Client]]:
    """Connections to one gRPC port, set up as an SDK does; towards an echo they are bare channels."""
    channels = [grpc.aio.insecure_channel(target, options=OPTIONS) for _ in numbers]
    streams: list[Any] = []
    answering: list[asyncio.Task[None]] = []
    try:
        clients = []
        for number, channel in zip(numbers, channels, strict=True):
            call: UnaryCall = channel.unary_unary(
                f"/{REQUEST_SERVICE}/{REQUEST_METHOD}", Payload.SerializeToString, Payload.FromString
            )
            client_id = ""
            if is_server:
                check = decode(await call(encode("ServerCheckRequest", {"headers": {}})))
                client_id = str(check.body["connectionId"])
                stream = channel.stream_stream(
                    f"/{STREAM_SERVICE}/{STREAM_METHOD}", Payload.SerializeToString, Payload.FromString
                )()
                streams.append(stream)
                await stream.write(encode("ConnectionSetupRequest", SETUP))
                answering.append(asyncio.create_task(_keep_answering(stream)))
                await _registered(call)
            clients.append(Client(number, client_id, call))
        yield clients
    finally:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*answering)
        for channel in channels:
            await channel.close()


async def _keep_answering(stream: Any) -> None:
    """Who is idle for 20 s is asked whether it lives."""
    with suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
        while (request := await stream.read()) is not grpc.aio.EOF:
            message = decode(request)
            if message.type == "ClientDetectionRequest":
                answer = {"resultCode": 200, "errorCode": 0, "requestId": message.body["requestId"], "success": True}
                await stream.write(encode("ClientDetectionResponse", answer))


async def _registered(call: UnaryCall) -> None:
    question = encode("HealthCheckRequest", {"headers": {}})
    while decode(await call(question)).body.get("errorCode") in UNREGISTERED_CODES:
        pass  # the next answer takes a round trip


async def calls_per_s(clients: Sequence[Client], requests: Sequence[Payload], seconds: float) -> float:
    """As many of these requests as go through in the time. A reply that is an error ends the bench."""
    calls, end_s = 0, time.perf_counter() + seconds

    async def keep_calling(client: Client, own: Iterator[Payload]) -> None:
        nonlocal calls
        while time.perf_counter() < end_s:
            _require_success(await client.call(next(own)))
            calls += 1

    began_s = time.perf_counter()
    turns = [itertools.cycle([*requests[offset:], *requests[:offset]]) for offset in range(IN_FLIGHT)]
    await asyncio.gather(*(keep_calling(client, turn) for client in clients for turn in turns))
    return calls / (time.perf_counter() - began_s)


async def register_all(clients: Sequence[Client], instances_each: int) -> None:
    """Every client publishes in so many services, spread over all of them; each service gets about as many."""

    async def register(client: Client) -> None:
        for number in range(instances_each):
            service = (client.number * 7 + number) % SERVICES
            _require_success(await client.call(registration(client.number, service)))

    await asyncio.gather(*(register(client) for client in clients))


async def until_shown(client: Client, instances: int) -> None:
    """Until the client's node shows so many instances in all services together; SystemExit when it never does."""
    end_s, shown = time.perf_counter() + PATIENCE_S, -1
    while shown != instances:
        if time.perf_counter() > end_s:
            raise SystemExit(f"after {PATIENCE_S:.0f} s a node shows {shown} of {instances} instances")
        shown = 0
        for service in range(SERVICES):
            shown += len(decode(await client.call(query(service))).body["serviceInfo"]["hosts"])


async def change_steadily(clients: Sequence[Client], changes_per_s: int, seconds: float) -> None:
    """Changes at an even pace, the clients in turn. It waits for no answer: a slow server shows as lateness."""
    began_s = time.perf_counter()
    under_way = set()
    for number in range(int(changes_per_s * seconds)):
        ahead_s = began_s + number / changes_per_s - time.perf_counter()
        if ahead_s > 0:
            await asyncio.sleep(ahead_s)
        client = clients[number % len(clients)]
        task = asyncio.create_task(_change(client, number))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def _change(client: Client, number: int) -> None:
    _require_success(await client.call(registration(client.number, client.number % SERVICES, number)))


async def beats_per_s(address: str, connections: int, seconds: float) -> float | None:
    """Heartbeats of HTTP clients, full ones, each from an instance of its own; None when the server knows no beats."""
    url = f"http://{address}/nacos/v1/ns/instance/beat"
    end_s, beats = time.perf_counter() + seconds, 0

    async def keep_beating(session: aiohttp.ClientSession, number: int) -> bool:
        nonlocal beats
        beat = {"ip": f"10.9.0.{number}", "port": 80, "serviceName": "DEFAULT_GROUP@@beats", "cluster": "DEFAULT"}
        parameters = {"serviceName": "DEFAULT_GROUP@@beats", "beat": json.dumps(beat)}
        while time.perf_counter() < end_s:
            async with session.put(url, params=parameters) as reply:
                if reply.status == 404:
                    return False
                reply.raise_for_status()
                await reply.read()
            beats += 1
        return True

    began_s = time.perf_counter()
    with suppress(aiohttp.ClientConnectionError):
        async with aiohttp.ClientSession() as session:
            known = await asyncio.gather(*(keep_beating(session, number) for number in range(connections)))
        return beats / (time.perf_counter() - began_s) if all(known) else None
    return None


def _require_success(reply: Payload) -> None:
    if reply.metadata.type == "ErrorResponse":
        raise SystemExit(f"the server answers {decode(reply).body}; nothing was measured")
