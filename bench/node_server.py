"""The servers that `bench/node.py` measures, in a process of their own: reference nodes, or a plain echo server.

    python bench/node_server.py echo
    python bench/node_server.py nodes PORT[,PORT…] [--member PORT …] [--profile NAME] [--watch] [--hold CLIENTS]

When it is ready it prints one JSON line with the seconds that the imports and the start took. It ends when its input
ends. With `--watch` it then prints the changes of clients that the observers of its nodes reported, each as [kind,
client, revision, ms]. With `--hold` the first node owns that many clients from the start, as if they had just
connected. Ports are main ports on loopback. Imports are kept small, since the memory of this process is measured.
"""

from __future__ import annotations

# ruff: noqa: E402 - the clock starts before the imports, whose time it measures
import time

BEGAN_S = time.perf_counter()

import argparse
import asyncio
import json
import sys
from collections.abc import Callable

import grpc.aio
import uvloop

from distro_protos import REQUEST_METHOD, REQUEST_SERVICE, Payload

SERVICES = 500
"""The number of services in which the clients of `--hold` publish; each publishes one instance."""

Watched = list[tuple[str, str, int | None, int]]


async def echo(ready: Callable[..., None]) -> Watched:
    """An echo server of plain grpc.aio: it returns each request as the reply."""

    async def reply(request: Payload, _: grpc.aio.ServicerContext[Payload, Payload]) -> Payload:
        return request

    handler = grpc.unary_unary_rpc_method_handler(reply, Payload.FromString, Payload.SerializeToString)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(REQUEST_SERVICE, {REQUEST_METHOD: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ready(port=port)
    await _input_ended()
    await server.stop(None)
    return []


async def nodes(
    ready: Callable[..., None], ports: list[int], others: list[int], *, profile: str, is_watched: bool, held: int
) -> Watched:
    """A whole cluster, or some of its members while the others run in other processes."""
    from distro_impl import Cluster, NodeEvent, profile_named  # noqa: PLC0415 - the echo server does not need it
    from distro_impl.naming.client import PublishedInstance, Service  # noqa: PLC0415

    watched: Watched = []

    def observe(event: NodeEvent) -> None:
        watched.append((event.kind, event.client, event.revision, event.at_ms))

    cluster = Cluster(
        len(ports),
        profile=profile_named(profile),
        ports=ports,
        further_members=[f"127.0.0.1:{port}" for port in others],
        observer=observe if is_watched else None,
    )
    async with cluster:
        clients = cluster.nodes[0].parts.naming.clients
        for number in range(held):
            clients.client_connected(f"{number}_10.0.0.1_80")
            client = clients.get(f"{number}_10.0.0.1_80")
            assert client is not None
            service = Service("public", "DEFAULT_GROUP", f"service-{number % SERVICES}")
            clients.register(client, service, PublishedInstance(f"10.0.{number >> 8 & 255}.{number & 255}", 80))
        ready()
        await _input_ended()
    return watched


async def _input_ended() -> None:
    await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["echo", "nodes"])
    parser.add_argument("ports", nargs="?", default="", help="main ports of the nodes, with commas between them")
    parser.add_argument("--member", type=int, action="append", default=[], help="main port of a further member")
    parser.add_argument("--profile", default="strict", help="the release that the nodes behave like")
    parser.add_argument("--watch", action="store_true", help="print at the end what the nodes did to their clients")
    parser.add_argument("--hold", type=int, default=0, help="clients that the first node owns from the start")
    arguments = parser.parse_args()
    if arguments.what == "nodes":
        import distro_impl  # noqa: F401, PLC0415 - counted as an import, not as a start
    imported_s = time.perf_counter()

    def ready(**more: int) -> None:
        times = {"import_s": imported_s - BEGAN_S, "start_s": time.perf_counter() - imported_s}
        print(json.dumps({**times, **more}), flush=True)

    if arguments.what == "echo":
        watched = uvloop.run(echo(ready))
    else:
        ports = [int(port) for port in arguments.ports.split(",")]
        options = {"profile": arguments.profile, "is_watched": arguments.watch, "held": arguments.hold}
        watched = uvloop.run(nodes(ready, ports, arguments.member, **options))
    print(json.dumps(watched), flush=True)


if __name__ == "__main__":
    main()
