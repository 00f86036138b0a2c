"""The second way to get messages onto a link: a recording gRPC proxy on a real socket, in front of any server.

It listens at the address under which the source knows the target and passes everything on as it came, unary calls and
streams, whatever the release. What may happen to a unary call is decided by the `Link`; here live only the sockets.
A Nacos server knows its caller by the TCP connection (docs/protocol #connection-id), so each connection from the
source gets a connection of its own to the target, a `Lane`, and loses it when its stream ends. A cut ends the streams,
and with them the lanes, and every call, with UNAVAILABLE: what the source of a refused connection sees. The proxy keeps
the port meanwhile, so a heal cannot find it taken. Source: docs/real-servers.md#between-real-nodes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

import grpc
import grpc.aio

from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import LOOPBACK, Context, node_server
from distro_conformance.wire.links import Link, LinkCutError
from distro_protos import REQUEST_METHOD, REQUEST_SERVICE, STREAM_METHOD, STREAM_SERVICE, Payload

CALL_TIMEOUT_MAX_S = 60.0
"""Java sends no deadline, which Python shows as 9.2e9 s; passed on it would expire at once
(docs/real-servers.md#a-played-member)."""

STREAMLESS_LANE_MAX_S = 10.0
"""A source that only asked (a server check that failed) and never opened its stream does not come back."""

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.use_local_subchannel_pool", 1),  # a TCP connection of its own
    ("grpc.max_receive_message_length", 100 * 1024 * 1024),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),  # a node is asked directly, whatever the environment says
)


@dataclass(slots=True)
class Lane:
    """One connection from the source and the connection to the target that belongs to it."""

    channel: grpc.aio.Channel
    streaming: bool = False
    closed: bool = False
    expiry: asyncio.TimerHandle | None = field(default=None, repr=False)

    async def call(self, request: Payload, timeout_s: float) -> Payload:
        """Raises AioRpcError as the target's side ended the call, LinkCutError when the lane was closed meanwhile."""
        ask = self.channel.unary_unary(
            f"/{REQUEST_SERVICE}/{REQUEST_METHOD}",
            request_serializer=Payload.SerializeToString,
            response_deserializer=Payload.FromString,
        )
        try:
            reply: Payload = await ask(request, timeout=timeout_s)
        except asyncio.CancelledError:
            if self.closed:  # closing a channel cancels what is under way; the sender did not give up
                raise LinkCutError from None
            raise
        return reply

    async def close(self) -> None:
        self.closed = True
        if self.expiry is not None:
            self.expiry.cancel()
        await self.channel.close()


class Forwarder:
    """Use as `async with Forwarder(link, listen_port, "127.0.0.1:9849"):`; cut and heal the link itself."""

    def __init__(self, link: Link, listen_port: int, upstream: str) -> None:
        self.link = link
        self.listen_port = listen_port
        self.upstream = upstream
        self._lanes: dict[str, Lane] = {}
        self._server: grpc.aio.Server | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Raises TargetError when the port cannot be bound. Port 0 takes a free one; `listen_port` then names it."""
        server = node_server(self._unary, self._stream)
        try:
            self.listen_port = server.add_insecure_port(f"{LOOPBACK}:{self.listen_port}")
        except RuntimeError as error:
            raise TargetError(
                f"port {self.listen_port} for the link {self.link.source}->{self.link.target} is in use: choose others"
            ) from error
        await server.start()
        self._server = server

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
        await asyncio.gather(*self._closing, *(self._drop_lane(peer) for peer in tuple(self._lanes)))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _unary(self, request: Payload, context: Context) -> Payload:
        lane = self._lane(context)
        remaining_s = context.time_remaining()
        timeout_s = CALL_TIMEOUT_MAX_S if remaining_s is None else min(remaining_s, CALL_TIMEOUT_MAX_S)
        try:
            return await self.link.carry(request, lambda payload: lane.call(payload, timeout_s))
        except LinkCutError:
            await self._refuse(context)
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")

    async def _stream(self, _requests: object, context: Context) -> None:
        lane = self._lane(context)
        lane.streaming = True
        try:
            await self._pump(lane, context)
        finally:
            await self._drop_lane(context.peer())

    async def _pump(self, lane: Lane, context: Context) -> None:
        """Both directions until one of three ends it: the source, the target, the cut."""
        call: Any = lane.channel.stream_stream(f"/{STREAM_SERVICE}/{STREAM_METHOD}")()
        up = asyncio.create_task(_up(context, call))
        down = asyncio.create_task(_down(call, context))
        severed = asyncio.create_task(self.link.until_cut())
        try:
            await asyncio.wait({down, severed}, return_when=asyncio.FIRST_COMPLETED)
            if severed.done():
                await self._refuse(context)
            await down
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
        finally:
            for task in (up, down, severed):
                task.cancel()
            call.cancel()
            await asyncio.gather(up, down, severed, return_exceptions=True)

    async def _refuse(self, context: Context) -> NoReturn:
        await context.abort(grpc.StatusCode.UNAVAILABLE, f"the link {self.link.source}->{self.link.target} is cut")

    def _lane(self, context: Context) -> Lane:
        peer = context.peer()
        lane = self._lanes.get(peer)
        if lane is None:
            lane = self._lanes[peer] = Lane(grpc.aio.insecure_channel(self.upstream, options=CHANNEL_OPTIONS))
            lane.expiry = asyncio.get_running_loop().call_later(STREAMLESS_LANE_MAX_S, self._expire, peer, lane)
        return lane

    def _expire(self, peer: str, lane: Lane) -> None:
        if not lane.streaming and self._lanes.get(peer) is lane:
            closing = asyncio.create_task(self._drop_lane(peer))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _drop_lane(self, peer: str) -> None:
        lane = self._lanes.pop(peer, None)
        if lane is not None:
            await lane.close()


async def _up(context: Context, call: Any) -> None:
    """Source to target. A source that has finished sending is passed on as such; its stream goes on."""
    while (payload := await context.read()) is not grpc.aio.EOF:
        await call.write(payload)
    await call.done_writing()


async def _down(call: Any, context: Context) -> None:
    """Target to source. Raises AioRpcError when the target ended the stream with an error."""
    while (payload := await call.read()) is not grpc.aio.EOF:
        await context.write(payload)
