"""Random and invalid input, a million of each kind: does any cause an exception, an error log or a partial change?

    python bench/fuzz.py --json [--quick | --count N] [--first N] [--kinds payloads headers streams http]

The node is in this process, over the transport in memory and in virtual time, so that nearly all the time is the
node's. Input is made in batches of a thousand; each is the same in every run, so `--first N` continues where another
run has stopped, and repeats a failure by its number. After each batch the node must answer a valid request, must not
have logged an error of its own, and must hold consistent tables. The exit code is 1 when it does not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
sys.path.insert(0, str(Path(__file__).parents[1] / "impl" / "tests"))

import grpc
from aiohttp import StreamReader, web
from aiohttp.test_utils import make_mocked_request
from payloads import (  # type: ignore[import-not-found]
    CLUSTER_REQUESTS,
    NASTY,
    NASTY_TEXTS,
    REQUESTS,
    SDK_REQUESTS,
    random_payloads,
    spoiled,
)

from distro_impl import Node, NodeConfig, VirtualClock, free_main_ports, profile_named
from distro_impl.config import CLUSTER_PORT_OFFSET, SDK_PORT_OFFSET
from distro_impl.http.server import HttpServer
from distro_impl.logs import LOG_FILES
from distro_impl.options import AuthOptions, NodeOptions, ServerIdentity, User
from distro_impl.transport.memory import MemoryTransport
from distro_protos import Payload, decode, encode

COUNT, QUICK_COUNT = 1_000_000, 20_000
BATCH = 1_000
STREAM_MESSAGES = 50
"""After so many on one stream another one is opened."""

SETUP = {"clientVersion": "fuzz", "tenant": "", "abilityTable": {}, "module": "internal"}
HEADER_NAMES = (
    "accessToken",
    "Nacos-Server",
    "cluster",
    "User-Agent",
    "Client-Version",
    "app",
    "",
    "x\n",
    "Authorization",
)
PARAMETERS = (
    *("serviceName", "groupName", "namespaceId", "ip", "port", "clusterName", "cluster", "weight", "enabled"),
    *(
        "healthy",
        "ephemeral",
        "metadata",
        "beat",
        "clusters",
        "healthyOnly",
        "udpPort",
        "pageNo",
        "pageSize",
        "clientId",
    ),
    *("key", "entry", "value", "nodes", "count", "username", "password", "accessToken", "state", "app"),
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
MEANT = ("Request method", "would be kept by raft")
"""How a 500 begins or what it says that is an answer and no accident."""


class Target:
    """One node, with a connection on each of its two ports."""

    def __init__(self, *, secured: bool) -> None:
        self.clock = VirtualClock()
        self.transport = MemoryTransport(self.clock, 0)
        self.errors: list[str] = []
        users = {"nacos": User("nacos", "password")}
        secrets = NodeOptions(
            identity=ServerIdentity("cluster", "is-ours"), auth=AuthOptions(secret=b"s" * 32, users=users)
        )
        options = secrets if secured else NodeOptions()
        (port,) = free_main_ports(1)
        self.config = NodeConfig(
            port=port, members=(f"127.0.0.1:{port}",), profile=profile_named("strict"), options=options
        )
        self.node = Node(self.config, clock=self.clock, transport=self.transport)
        self._channels: dict[int, Any] = {}

    async def start(self) -> None:
        handler = logging.Handler(logging.ERROR)
        handler.addFilter(lambda record: record.name not in LOG_FILES)  # what a real server calls an error too
        handler.emit = lambda record: self.errors.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.errors.append(str(context)))
        await self.node.start()
        for offset, source in ((SDK_PORT_OFFSET, "sdk"), (CLUSTER_PORT_OFFSET, "cluster")):
            self._channels[offset], _ = await self.connected(offset, source)

    async def connected(self, offset: int, source: str) -> tuple[Any, Any]:
        """A channel and its stream, set up; pushes are not read."""
        channel = self.transport.channel(f"127.0.0.1:{self.config.port + offset}")
        await channel.call(encode("ServerCheckRequest", {}).SerializeToString())
        stream = channel.open_stream()
        stream.stop_reading()
        await stream.write(
            encode(
                "ConnectionSetupRequest", {**SETUP, "labels": {"source": source, "module": "naming"}}
            ).SerializeToString()
        )
        await self.clock.settle()
        return channel, stream

    async def ask(self, offset: int, request: bytes) -> None:
        try:
            reply = decode(Payload.FromString(await self._channels[offset].call(request)))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.INTERNAL:
                raise
        else:
            assert reply.type.endswith("Response"), reply
            assert reply.body["success"] is (reply.body["resultCode"] == 200), reply

    async def check(self) -> None:
        """It serves, nothing was logged, and its tables fit each other."""
        await self.clock.advance(100)
        reply = decode(Payload.FromString(await self._channels[SDK_PORT_OFFSET].call(_HEALTH)))
        if not reply.succeeded:  # an unanswered detection, or a reset: connect again
            assert reply.body.get("errorCode") == 301, reply
            self._channels[SDK_PORT_OFFSET], _ = await self.connected(SDK_PORT_OFFSET, "sdk")
            self._channels[CLUSTER_PORT_OFFSET], _ = await self.connected(CLUSTER_PORT_OFFSET, "cluster")
        assert not self.errors, self.errors[:3]
        clients = self.node.parts.naming.clients
        published = {(service, client.id) for client in clients for service in client.publishers}
        indexed = set(clients._publishers)
        assert published == indexed, published ^ indexed
        for client in clients:
            json.dumps(client.sync_data(with_revision=True))


_HEALTH = encode("HealthCheckRequest", {}).SerializeToString()


async def payloads(target: Target, random: Random) -> None:
    sdk, member = (random_payloads(random.random(), each) for each in (SDK_REQUESTS, CLUSTER_REQUESTS + SDK_REQUESTS))
    for _ in range(BATCH // 2):
        await target.ask(SDK_PORT_OFFSET, sdk())
        await target.ask(CLUSTER_PORT_OFFSET, member())


async def headers(target: Target, random: Random) -> None:
    """Good requests with headers of any kind, in the envelope and inside of the body."""
    for _ in range(BATCH):
        type_name, body = random.choice(REQUESTS)
        texts = random.random() < 0.5
        values = [each for each in NASTY if not texts or isinstance(each, str)]
        inside: Any = {name: random.choice(values) for name in random.sample(HEADER_NAMES, 3)}
        if random.random() < 0.2:
            inside = random.choice(NASTY)
        text = json.dumps({**body, "headers": inside}).encode()
        payload = Payload()
        payload.metadata.type = type_name
        payload.body.value = random.choice((text, text, text, random.choice(NASTY_TEXTS)))
        for name in random.sample(HEADER_NAMES, random.randrange(4)):
            value = random.choice(
                (*NASTY, "is-ours", "Nacos-Server:v" + "9" * 5_000, random.randbytes(20).decode("latin-1"))
            )
            payload.metadata.headers[name] = str(value).encode(errors="replace").decode()
        payload.metadata.client_ip = str(random.choice(NASTY)).encode(errors="replace").decode()
        of_members = (type_name, body) in CLUSTER_REQUESTS
        await target.ask(CLUSTER_PORT_OFFSET if of_members else SDK_PORT_OFFSET, payload.SerializeToString())


async def streams(target: Target, random: Random) -> None:
    """Anything at all on a stream; set-ups, answers and acknowledgements among it."""
    requests = [
        ("ConnectionSetupRequest", {**SETUP, "labels": {"source": "sdk", "module": "naming", "AppName": "a"}}),
        ("NotifySubscriberResponse", {"resultCode": 200, "errorCode": 0, "requestId": "1", "success": True}),
        ("ClientDetectionResponse", {"resultCode": 200, "errorCode": 0, "requestId": "2", "success": True}),
        ("ConnectResetResponse", {"resultCode": 500, "errorCode": 1, "requestId": "3", "success": False}),
        ("PushAckRequest", {"requestId": "4", "success": True}),
    ]
    for _ in range(BATCH // STREAM_MESSAGES):
        offset = random.choice((SDK_PORT_OFFSET, CLUSTER_PORT_OFFSET))
        channel = target.transport.channel(f"127.0.0.1:{target.config.port + offset}")
        stream = channel.open_stream()
        stream.stop_reading()
        for _ in range(STREAM_MESSAGES):
            message = (
                spoiled(random.choice, requests) if random.random() < 0.9 else random.randbytes(random.randrange(99))
            )
            try:
                await stream.write(message)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                break
        await target.clock.settle()
        await channel.close()
        await target.clock.settle()


async def http(target: Target, random: Random) -> None:
    """Requests as they come out of the parser, to every route."""
    (server,) = (each for each in target.node._servers if isinstance(each, HttpServer))
    assert server._runner is not None
    app = server._runner.app
    paths = sorted({resource.canonical for each in app.router.resources() for resource in _resources(each)})
    for _ in range(BATCH):
        asked = {"serviceName": "web", "ip": "10.0.0.7", "port": "80"} if random.random() < 0.7 else {}
        asked |= {name: _text(random) for name in random.sample(PARAMETERS, random.randrange(5))}
        query, form = (quote_all(asked), b"") if random.random() < 0.5 else ("", quote_all(asked).encode())
        body = random.choice((form, form, random.choice(NASTY_TEXTS), json.dumps(random.choice(NASTY)).encode()))
        kind = random.choice(("application/x-www-form-urlencoded", "application/json", "text/plain; charset=none", ""))
        request = _request(app, random.choice(METHODS), f"{random.choice(paths)}?{query}", kind, body, _text(random))
        try:
            answer: Any = await app._handle(request)
        except web.HTTPException as error:
            answer = error
        if answer.status == 500:
            assert any(meant in (answer.text or "") for meant in MEANT), (
                request.method,
                request.path_qs,
                body,
                answer.text,
            )


def _resources(resource: Any) -> list[Any]:
    """Those of an application below it, or it alone."""
    return list(resource._app.router.resources()) if hasattr(resource, "_app") else [resource]


def quote_all(asked: Mapping[str, str]) -> str:
    return urlencode(asked, quote_via=quote, errors="surrogatepass")


def _text(random: Random) -> str:
    value = random.choice((*NASTY, "web", "G@@web", "10.0.0.7", "80", "k=v", '{"ip":"10.0.0.7","port":80}', "\r\nx"))
    return value if isinstance(value, str) else json.dumps(value)


def _request(app: web.Application, method: str, path: str, kind: str, body: bytes, agent: str) -> web.Request:
    loop = asyncio.get_running_loop()
    content = StreamReader(_Protocol(), 2**16, loop=loop)  # type: ignore[arg-type]
    content.feed_data(body)
    content.feed_eof()
    headers = {
        "Host": "a",
        "Content-Length": str(len(body)),
        "User-Agent": " ".join(agent.split())[:9_000].encode(errors="replace").decode(),
    }
    if kind:
        headers["Content-Type"] = kind
    return make_mocked_request(method, path, headers=headers, payload=content, app=app, client_max_size=10 * 2**20)


class _Protocol:
    _reading_paused = False

    def pause_reading(self) -> None: ...
    def resume_reading(self, **_: object) -> None: ...


KINDS: Mapping[str, Callable[[Target, Random], Awaitable[None]]] = {
    "payloads": payloads,
    "headers": headers,
    "streams": streams,
    "http": http,
}


async def run(kind: str, first: int, count: int) -> float:
    """Seconds that it took. Raises AssertionError, after a line with the command that repeats it."""
    target = Target(secured=kind == "headers")
    await target.start()
    began_s = time.process_time()
    for batch in range(first // BATCH, (first + count) // BATCH):
        try:
            await KINDS[kind](target, Random(f"{kind} {batch}"))
            await target.check()
        except BaseException:
            print(f"repeat: bench/fuzz.py --kinds {kind} --first {batch * BATCH} --count {BATCH}", file=sys.stderr)
            raise
        if batch % 50 == 49:
            print(f"{kind}: {(batch + 1) * BATCH}, {time.process_time() - began_s:.0f} s", file=sys.stderr, flush=True)
    await target.node.crash()
    return time.process_time() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--first", type=int, default=0, help="go on from here")
    parser.add_argument("--count", type=int, help="of each kind")
    arguments = parser.parse_args()
    count = (QUICK_COUNT if arguments.quick else COUNT) if arguments.count is None else arguments.count
    if count % BATCH or arguments.first % BATCH or count <= 0:  # nothing never fails
        parser.error(f"--first and --count are multiples of {BATCH}, and --count is not 0")
    figures: dict[str, float] = {"first": arguments.first}
    for kind in arguments.kinds:
        figures[f"{kind}_per_cpu_s"] = round(count / max(0.001, asyncio.run(run(kind, arguments.first, count))))
        figures[kind] = count
    print(json.dumps({"bench": "fuzz", "figures": figures}, indent=2))


if __name__ == "__main__":
    main()
