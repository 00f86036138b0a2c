"""Whether a node survives abusive clients, and the resources that it keeps afterwards.

    python bench/abuse.py --json [--quick]

One node in a process of its own, in real time. Against it: connections opened and dropped, half-open sockets, readers
that do not read, a subscriber that never acknowledges, random and spoiled payloads (those of impl/tests/payloads.py),
bodies nested beyond all bounds, and other protocols on the HTTP port.

A tenth of the same load first fills the caches
of the node. Then its resident memory and its live asyncio tasks are read before and after the full load; both times
garbage and free pages are released first, so the growth is what the node keeps. The benchmark fails if memory has grown
by more than TOLERANCE, if a task is left, if an error was logged, or if anything was written to stderr: the node logs
nothing there, so such output comes from an unhandled error.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import logging
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
sys.path.insert(0, str(Path(__file__).parents[1] / "impl" / "tests"))

import grpc
from impl_lab import RawClient  # type: ignore[import-not-found]
from payloads import NOT_HTTP, nested_payloads, random_payloads  # type: ignore[import-not-found]

from distro_impl import Node, NodeConfig, SystemClock, free_main_ports
from distro_impl.logs import LOG_FILES

TOLERANCE = 1.15
"""Memory afterwards divided by memory before. Most of the growth is free pages that malloc cannot release."""

AT_ONCE = 50
CALM_S = 8.0
"""The time that the node needs to notice that all clients are gone, time-outs of pushes included."""


@dataclass(frozen=True)
class Load:
    connections: int
    half_open: int
    slow_readers: int
    slow_s: float
    payloads: int
    nested: int
    not_http: int

    def divided(self, by: int) -> Load:
        return Load(
            self.connections // by,
            self.half_open // by,
            max(1, self.slow_readers // by),
            self.slow_s / by,
            self.payloads // by,
            self.nested // by,
            self.not_http // by,
        )


FULL = Load(
    connections=10_000,
    half_open=1_000,
    slow_readers=50,
    slow_s=60.0,
    payloads=1_000_000,
    nested=50_000,
    not_http=20_000,
)
QUICK = Load(
    connections=1_000,
    half_open=200,
    slow_readers=10,
    slow_s=6.0,
    payloads=20_000,
    nested=5_000,
    not_http=1_000,
)


# The node's process


async def serve(port: int) -> None:
    """Run the node: each line on stdin is answered with a line of figures, and the end of stdin ends the node.

    The garbage collector runs less often than by default. So it may also run deep inside the recursion of a decoder.
    """
    gc.set_threshold(sys.getrecursionlimit())
    errors: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.addFilter(lambda record: record.name not in LOG_FILES)  # a real server logs these as errors, too
    handler.emit = lambda record: errors.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(str(context.get("exception") or context["message"])))
    node = Node(NodeConfig(port=port), clock=SystemClock())
    await node.start()
    print("ready", flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        figures = {"rss_mib": rss_mib(), "tasks": len(asyncio.all_tasks()), "errors": errors}
        print(json.dumps(figures), flush=True)
    await node.stop()


def rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


class NodeProcess:
    """The process of the node. `stderr`: everything that it wrote there; set when it has ended."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process, self.port, self.stderr = process, port, ""
        self.sdk, self.cluster = f"127.0.0.1:{port + 1000}", f"127.0.0.1:{port + 1001}"

    async def figures(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        return json.loads(await self._process.stdout.readline())  # type: ignore[no-any-return]


@asynccontextmanager
async def node_process() -> AsyncIterator[NodeProcess]:
    (port,) = free_main_ports(1)
    pipe = asyncio.subprocess.PIPE
    with tempfile.TemporaryFile() as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--serve", str(port), stdin=pipe, stdout=pipe, stderr=stderr, limit=2**24
        )
        assert process.stdin is not None
        assert process.stdout is not None
        node = NodeProcess(process, port)
        try:
            if await process.stdout.readline() != b"ready\n":
                sys.exit("the node did not start")
            yield node
        finally:
            process.stdin.close()
            await process.wait()
            stderr.seek(0)
            node.stderr = stderr.read().decode(errors="replace")


# The abuse


async def open_and_drop(node: NodeProcess, count: int) -> None:
    """Connections that are set up, register and subscribe, and are then closed without deregistering."""

    async def one(number: int) -> None:
        client = RawClient(node.sdk, {"source": "sdk", "module": "naming"})
        await client.connect()
        await client.register(f"service-{number % 10}", 80)
        await client.subscribe(f"service-{number % 7}")
        await client.close()

    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(first, min(count, first + AT_ONCE))))


@asynccontextmanager
async def half_open_sockets(node: NodeProcess, count: int) -> AsyncIterator[None]:
    """Sockets that are open during all other loads; some of them have sent the beginning of HTTP/2."""
    sockets = []
    for number in range(count):
        half_open = socket.create_connection(("127.0.0.1", node.port + 1000 + number % 2))
        half_open.sendall((b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n")[number % 3])
        sockets.append(half_open)
    yield
    for half_open in sockets:
        half_open.close()


async def push_to_slow_readers(node: NodeProcess, count: int, seconds: float) -> None:
    """Pushes to clients that do not read, and to one that reads and never acknowledges."""
    async with AsyncExitStack() as stack:

        async def client() -> Any:
            opened = RawClient(node.sdk, {"source": "sdk", "module": "naming"})
            stack.push_async_callback(opened.close)
            return await opened.connect()

        writer, mute = await client(), await client()
        await mute.subscribe("busy")
        for _ in range(count):
            slow = await client()
            slow.reads.clear()
            await slow.subscribe("busy")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await writer.register("busy", random.randrange(1, 60_000), metadata={"ballast": "x" * 100_000})
            mute.take()
            await asyncio.sleep(0.05)


async def send_payloads(node: NodeProcess, count: int, seed: int) -> None:
    async def many(target: str, labels: dict[str, str], seed: int) -> None:
        client = RawClient(target, labels)
        await client.connect()
        make = random_payloads(seed)
        for number in range(count // (2 * SENDERS)):
            try:
                await client.ask_bytes(make())
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.INTERNAL:
                    raise
            if number % 1_000 == 0 and not (await client.ask("HealthCheckRequest", {})).succeeded:
                sys.exit("the node closed the connection of a client that sent an invalid payload")
        await client.close()

    await asyncio.gather(
        *(many(node.sdk, {"source": "sdk", "module": "naming"}, seed + number) for number in range(SENDERS)),
        *(many(node.cluster, {"source": "cluster"}, seed - 1 - number) for number in range(SENDERS)),
    )


SENDERS = 4


async def send_nested(node: NodeProcess, count: int) -> None:
    """Bodies that are nested deeper than a decoder's recursion may go.

    Before each of them a call is aborted, which leaves garbage with finalizers. The collector runs these at the depth
    that the decoder has reached, and the recursion limit must not stop them."""

    async def many(seed: int) -> None:
        client = RawClient(node.sdk, {"source": "sdk", "module": "naming"})
        await client.connect()
        make = nested_payloads(seed)
        for _ in range(count // SENDERS):
            with suppress(grpc.aio.AioRpcError):
                await client.ask_bytes(NO_PAYLOAD)
            if (await client.ask_bytes(make())).succeeded:
                sys.exit("the node accepted a body that is nested too deep")
        await client.close()

    await asyncio.gather(*(many(number) for number in range(SENDERS)))


NO_PAYLOAD = b"\xff\xff"


async def speak_no_http(node: NodeProcess, count: int) -> None:
    """Other protocols on the HTTP port, each on a connection of its own, which the node must close."""

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(NOT_HTTP[number % len(NOT_HTTP)])
        with suppress(ConnectionError):
            writer.write_eof()
            await reader.read()
        writer.close()

    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(first, min(count, first + AT_ONCE))))


async def abuse(node: NodeProcess, load: Load, seed: int) -> dict[str, float]:
    """Apply all kinds of load; returns the seconds that each took."""
    seconds = {}
    async with half_open_sockets(node, load.half_open):
        for name, work in (
            ("connections", open_and_drop(node, load.connections)),
            ("slow_readers", push_to_slow_readers(node, load.slow_readers, load.slow_s)),
            ("payloads", send_payloads(node, load.payloads, seed)),
            ("nested", send_nested(node, load.nested)),
            ("not_http", speak_no_http(node, load.not_http)),
        ):
            began = time.monotonic()
            await work
            seconds[name] = round(time.monotonic() - began, 1)
    await asyncio.sleep(CALM_S)
    return seconds


async def measure(load: Load) -> dict[str, Any]:
    async with node_process() as node:
        await abuse(node, replace(load.divided(10), connections=max(100, load.connections // 10)), seed=1)
        before = await node.figures()
        seconds = await abuse(node, load, seed=1_000)
        after = await node.figures()
    figures = {
        "connections": load.connections,
        "half_open_sockets": load.half_open,
        "payloads": load.payloads,
        "nested_bodies": load.nested,
        "not_http": load.not_http,
        "rss_before_mib": before["rss_mib"],
        "rss_after_mib": after["rss_mib"],
        "tasks_before": before["tasks"],
        "tasks_after": after["tasks"],
        "errors_logged": len(after["errors"]),
        "lines_on_stderr": len(node.stderr.splitlines()),
        "payloads_per_s": round(load.payloads / seconds["payloads"]),
        **{f"{name}_s": value for name, value in seconds.items()},
    }
    for error in after["errors"][:5]:
        print(f"logged: {error}", file=sys.stderr)
    for line in node.stderr.splitlines()[:20]:
        print(f"written: {line}", file=sys.stderr)
    ratios = {"rss_after_to_before": round(after["rss_mib"] / before["rss_mib"], 3)}
    return {"bench": "abuse", "figures": figures, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON (they always are)")
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--serve", type=int, metavar="PORT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve))
        return
    result = asyncio.run(measure(QUICK if arguments.quick else FULL))
    print(json.dumps(result, indent=2))
    figures = result["figures"]
    if result["ratios"]["rss_after_to_before"] > TOLERANCE:
        sys.exit("the memory of the node has grown by more than the tolerance")
    if figures["tasks_after"] > figures["tasks_before"]:
        sys.exit("tasks were left behind")
    if figures["errors_logged"]:
        sys.exit("errors were logged")
    if figures["lines_on_stderr"]:
        sys.exit("the node has written to stderr")


if __name__ == "__main__":
    main()
