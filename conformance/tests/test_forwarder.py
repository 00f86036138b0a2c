"""The forwarder between a source and a target: a small server that distinguishes its callers by their TCP connection.

The server is as strict as a real one where it matters here: a unary call on a connection without a stream is
"unregistered", so a proxy that mixes up or shares connections cannot pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import pytest

from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection, node_server
from distro_conformance.wire.forwarder import CALL_TIMEOUT_MAX_S, Forwarder
from distro_conformance.wire.links import Link
from distro_conformance.wire.messages import RoutedCall, distro_request, read_snapshot, sync_data
from distro_impl import Node, NodeConfig, SystemClock, free_main_ports
from distro_model.actions import Swallow
from distro_protos import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    Json,
    Message,
    Payload,
    decode,
    encode,
)
from distro_traces.event import Outcome

pytestmark = pytest.mark.wire

CHANGE = distro_request("CHANGE", "c1", target="b", content=sync_data("c1", 1, [("web", "10.0.0.1", 80)]))
OK = {"resultCode": 200, "errorCode": 0, "success": True}


@dataclass
class Server:
    """Answers at once, except a Distro request after `answer.clear()`."""

    port: int = 0
    streams: list[str] = field(default_factory=list)  # the peers with an open stream
    deadlines_s: list[float] = field(default_factory=list)
    cancelled: int = 0
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def unary(self, request: Payload, context: Any) -> Payload:
        message = decode(request)
        self.deadlines_s.append(context.time_remaining())
        if message.type == "ServerCheckRequest":
            return encode("ServerCheckResponse", {**OK, "connectionId": context.peer()})
        if context.peer() not in self.streams:
            return encode("ErrorResponse", {"resultCode": 500, "errorCode": 301})
        if message.type == "DistroDataRequest":
            try:
                await self.answer.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return encode(message.type.removesuffix("Request") + "Response", OK)

    async def stream(self, _requests: object, context: Any) -> None:
        assert decode(Payload.FromString(await context.read())).type == "ConnectionSetupRequest"
        self.streams.append(context.peer())
        try:
            await context.write(encode("ConnectResetRequest", {"requestId": "1"}).SerializeToString())
            while await context.read() is not grpc.aio.EOF:
                pass
        finally:
            self.streams.remove(context.peer())

    async def start(self) -> grpc.aio.Server:
        server = node_server(self.unary, self.stream)
        self.port = server.add_insecure_port("127.0.0.1:0")
        self.answer.set()
        await server.start()
        return server


class Events(list[str]):
    """A journal that is a list of short lines."""

    def new_id(self) -> str:
        return f"m{len(self)}"

    def sent(self, routed: RoutedCall) -> None:
        self.append(f"{routed.source} sent {routed.call.operation} of {routed.call.client}")

    def received(self, routed: RoutedCall) -> None:
        self.append(f"{routed.target} received {routed.call.operation} of {routed.call.client}")

    def replied(self, routed: RoutedCall, outcome: Outcome, reply: Message) -> None:  # noqa: ARG002
        self.append(f"{routed.target} replied {outcome}")

    def ended(self, routed: RoutedCall, outcome: Outcome) -> None:
        self.append(f"{routed.source} observed {outcome}")

    def fault(self, source: str, target: str, what: str) -> None:
        self.append(f"{source}->{target} {what}")


@dataclass
class Setting:
    server: Server
    link: Link
    events: Events
    address: str

    async def connect(self, **options: Any) -> Connection:
        return await Connection.open(self.address, labels=CLUSTER_LABELS, **options)


@asynccontextmanager
async def setting() -> AsyncIterator[Setting]:
    server, events = Server(), Events()
    running = await server.start()
    link = Link("a", "b", events)
    async with Forwarder(link, 0, f"127.0.0.1:{server.port}") as forwarder:
        yield Setting(server, link, events, f"127.0.0.1:{forwarder.listen_port}")
    await running.stop(None)


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110  (the other side is a socket and cannot set an event)
        await asyncio.sleep(0.005)


async def send(connection: Connection, body: Json) -> Message:
    return await connection.ask("DistroDataRequest", body)


async def sent_and_unanswered(s: Setting, source: Connection) -> asyncio.Task[Message]:
    s.server.answer.clear()
    call = asyncio.create_task(send(source, CHANGE))
    await until(lambda: "b received CHANGE of c1" in s.events)
    return call


async def unavailable(call: Awaitable[Message]) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_call_passes_and_leaves_four_rows() -> None:
    async with setting() as s, await s.connect() as source:
        assert (await send(source, CHANGE)).succeeded
        assert s.events == ["a sent CHANGE of c1", "b received CHANGE of c1", "b replied success", "a observed success"]


async def test_pushes_of_the_target_reach_the_source() -> None:
    pushed: list[Message] = []
    async with setting() as s, await s.connect(on_push=pushed.append):
        await until(lambda: pushed)
        assert pushed[0].type == "ConnectResetRequest"


async def test_each_connection_has_one_of_its_own_at_the_target() -> None:
    async with setting() as s, await s.connect() as first, await s.connect() as second:
        assert first.id != second.id
        assert sorted(s.server.streams) == sorted([first.id, second.id])


async def test_the_connection_at_the_target_ends_with_the_one_of_the_source() -> None:
    async with setting() as s:
        first, second = await s.connect(), await s.connect()
        await first.close()
        await until(lambda: s.server.streams == [second.id])
        await second.close()


async def test_a_sender_that_gives_up_cancels_the_call_at_the_target() -> None:
    async with setting() as s, await s.connect() as source:
        call = await sent_and_unanswered(s, source)
        await asyncio.sleep(0.05)
        call.cancel()
        await until(lambda: s.server.cancelled)
        assert s.events[-1] == "a observed timeout"


async def test_a_call_without_deadline_is_not_given_an_endless_one() -> None:
    """Java peers send none; 9.2e9 s passed on would be over at once."""
    async with setting() as s, grpc.aio.insecure_channel(s.address) as channel:
        ask: Any = channel.unary_unary(f"/{REQUEST_SERVICE}/{REQUEST_METHOD}", Payload.SerializeToString)
        await ask(encode("ServerCheckRequest", {}))
        assert s.server.deadlines_s[-1] < CALL_TIMEOUT_MAX_S + 1  # the wire rounds up


async def test_a_cut_ends_what_is_connected_and_refuses_what_comes() -> None:
    async with setting() as s:
        source = await s.connect()
        s.link.cut()
        await until(lambda: not s.server.streams)
        await unavailable(send(source, CHANGE))
        with pytest.raises(TargetError, match="the link a->b is cut"):
            await s.connect()
        assert s.events == ["a->b cut", "a sent CHANGE of c1", "a observed unreachable"]
        await source.close()


async def test_a_call_under_way_when_the_link_is_cut_is_unavailable() -> None:
    async with setting() as s, await s.connect() as source:
        call = await sent_and_unanswered(s, source)
        await asyncio.sleep(0.05)
        s.link.cut()
        await unavailable(call)
        assert s.events[-1] == "a observed unreachable"


async def test_a_source_that_is_gone_sends_nothing_more() -> None:
    """A server is killed a moment after its stop is recorded."""
    async with setting() as s, await s.connect() as source:
        s.link.source_gone()
        await unavailable(send(source, CHANGE))
        assert s.events == []
        s.link.source_back()
        assert (await send(source, CHANGE)).succeeded


async def test_a_target_that_is_gone_receives_nothing_until_it_is_back() -> None:
    async with setting() as s, await s.connect() as source:
        s.link.target_gone()
        await unavailable(send(source, CHANGE))
        assert s.events == ["a sent CHANGE of c1", "a observed unreachable"]
        s.link.target_back()
        assert (await send(source, CHANGE)).succeeded


async def test_a_target_that_is_gone_has_not_answered_what_it_received() -> None:
    async with setting() as s, await s.connect() as source:
        call = await sent_and_unanswered(s, source)
        s.link.target_gone()
        s.server.answer.set()
        await unavailable(call)
        assert s.events[1:] == ["b received CHANGE of c1", "a observed unreachable"]


async def test_a_mended_link_has_no_fault_armed() -> None:
    async with setting() as s, await s.connect() as source:
        s.link.arm(Swallow("a", "b", "CHANGE"))
        s.link.clear_faults()
        await send(source, CHANGE)
        assert "b received CHANGE of c1" in s.events


async def test_a_healed_link_takes_new_connections_on_the_same_port() -> None:
    async with setting() as s:
        await (await s.connect()).close()
        s.link.cut()
        s.link.heal()
        async with await s.connect() as source:
            assert (await send(source, CHANGE)).succeeded


async def test_a_held_link_lets_a_connection_be_made_and_keeps_its_requests() -> None:
    async with setting() as s:
        s.link.hold()
        async with await s.connect() as source:
            call = asyncio.create_task(send(source, CHANGE))
            await until(lambda: "a sent CHANGE of c1" in s.events)
            assert ("b received CHANGE of c1") not in s.events
            s.link.release()
            assert (await call).succeeded


async def test_a_target_that_is_not_there_is_unavailable() -> None:
    with contextlib.closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        async with Forwarder(Link("a", "b", Events()), 0, f"127.0.0.1:{unused.getsockname()[1]}") as forwarder:
            with pytest.raises(TargetError, match="cannot connect"):
                await Connection.open(f"127.0.0.1:{forwarder.listen_port}", labels=CLUSTER_LABELS)


async def test_a_port_in_use_is_said_in_one_line() -> None:
    async with Forwarder(Link("a", "b", Events()), 0, "127.0.0.1:1") as first:
        with pytest.raises(TargetError, match=rf"port {first.listen_port} for the link c->b is in use"):
            async with Forwarder(Link("c", "b", Events()), first.listen_port, "127.0.0.1:1"):
                pass


async def test_it_stands_in_front_of_a_reference_node_too() -> None:
    (port,) = free_main_ports(1)
    node, events = Node(NodeConfig(port=port), clock=SystemClock()), Events()
    await node.start()
    async with Forwarder(Link("a", "b", events), 0, node.config.cluster_target) as forwarder:
        address = f"127.0.0.1:{forwarder.listen_port}"
        async with await Connection.open(address, labels=CLUSTER_LABELS) as source:
            assert (await send(source, CHANGE)).succeeded
            (replica,) = read_snapshot(await send(source, distro_request("SNAPSHOT")))
            assert replica.client == "c1"
    await node.stop()
    assert events[-1] == "a observed success"
