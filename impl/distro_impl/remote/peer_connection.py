"""One connection to a peer, from set-up to retirement: a channel, the bidirectional stream on it, the set-up message.

It is thrown away when it breaks. A retired one takes no new requests and closes when the last one under way has ended.
Source: docs/protocol #connection-handshake and #member-client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from distro_impl.config import cluster_target
from distro_impl.core import Core
from distro_impl.remote.payloads import SENDER_HEADER
from distro_impl.transport.transport import ClientStream, PeerLink
from distro_protos import Message, Payload, UnreadableBodyError, decode, encode

SETUP_PROBES = 100
"""How often a new connection asks whether its set-up was taken in, before it gives up."""


class PeerUnreachableError(ConnectionError):
    """There is no connection to the peer, or it broke under the request."""


class CallFailedError(PeerUnreachableError):
    """The connection is there, and the call on it failed all the same."""


class PeerConnection:
    """`ended` is called once, when it is retired; `closed` once it is closed."""

    def __init__(
        self,
        core: Core,
        peer: str,
        link: PeerLink,
        ended: Callable[[], None],
        closed: Callable[[PeerConnection], None],
    ) -> None:
        own = self._own = core.config
        self._peer, self._clock, self._link = peer, core.clock, link
        self._ended, self._closed = ended, closed
        tls, reply_bytes_max = own.options.cluster_server.tls, own.profile.reply_bytes_max
        self._channel = core.transport.channel(cluster_target(peer), tls, reply_bytes_max)
        self._under_way = 0
        self.is_usable = True
        self.is_open = True
        self.last_answer_ms = core.clock.now_ms()

    async def set_up(self) -> None:
        """ServerCheck, stream, set-up message, and a question whether that has arrived. Raises PeerUnreachableError.

        Java sleeps 100 ms or waits for SetupAckRequest; a health check answers the same at once, with 301 until the
        connection is registered.
        """
        await self._check_listening()
        check = await self.ask("ServerCheckRequest", {})
        if check.type != "ServerCheckResponse" or not check.succeeded:
            raise PeerUnreachableError(f"{self._peer} does not serve yet: {check.body.get('message')}")
        stream = self._channel.open_stream()
        self._clock.spawn(self._read(stream), f"stream {self._own.address} to {self._peer}")
        await self._write_setup(stream)
        for _ in range(SETUP_PROBES):
            if (await self.ask("HealthCheckRequest", {})).succeeded:
                return
        raise PeerUnreachableError(f"{self._peer} did not register the connection")

    async def ask(self, type_name: str, body: Mapping[str, Any]) -> Message:
        """The reply, whatever it says. Raises PeerUnreachableError or UnreadableBodyError."""
        self._under_way += 1
        try:
            reply = await self._link.carry(self._request(type_name, body), self._forward)
        except (grpc.aio.AioRpcError, ConnectionError) as error:
            is_broken = not isinstance(error, grpc.aio.AioRpcError) or error.code() is grpc.StatusCode.UNAVAILABLE
            if is_broken:
                self.retire()
            failed = PeerUnreachableError if is_broken else CallFailedError
            raise failed(f"{self._peer}: {_reason(error)}") from error
        finally:
            self._under_way -= 1
            self._close_if_done()
        self.last_answer_ms = self._clock.now_ms()
        return decode(reply)

    def retire(self) -> None:
        """Take no more requests; close when the last one under way has ended."""
        if self.is_usable:
            self.is_usable = False
            self._ended()
        self._close_if_done()

    async def close(self) -> None:
        """Counts as open until it is done: the end of the node ends who was about to close it."""
        self.is_usable = self.is_open = False
        await self._channel.close()
        self._closed(self)

    def _close_if_done(self) -> None:
        if self.is_open and not self.is_usable and not self._under_way:
            self.is_open = False
            self._clock.spawn(self.close(), f"{self._own.address} closes its connection to {self._peer}")

    async def _check_listening(self) -> None:
        try:
            self._link.check_connect()
            await self._channel.check_listening()
        except OSError as error:
            raise PeerUnreachableError(f"no server listens at {cluster_target(self._peer)}: {error}") from error

    async def _forward(self, request: Payload) -> Payload:
        return Payload.FromString(await self._channel.call(request.SerializeToString()))

    async def _write_setup(self, stream: ClientStream) -> None:
        setup = {
            "clientVersion": f"Nacos-Server:v{self._own.profile.version}",
            "tenant": "",
            "labels": self._labels(),
            "abilityTable": {},
            "module": "internal",
        }
        try:
            await stream.write(self._request("ConnectionSetupRequest", setup).SerializeToString())
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise PeerUnreachableError(f"the stream to {self._peer} broke during set-up") from error

    def _labels(self) -> dict[str, str]:
        if not self._own.profile.cluster_client_says_tls:
            return {"source": "cluster"}
        return {"source": "cluster", "tls.enable": str(self._own.options.cluster_server.tls is not None).lower()}

    async def _read(self, stream: ClientStream) -> None:
        """Until the stream ends. Waiting for a message is no work; the message itself is."""
        try:
            with self._clock.parked():
                while (message := await stream.read()) is not None:
                    await self._answer(stream, Payload.FromString(message))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, UnreadableBodyError):
            pass  # the connection is gone or of no use, which is all that matters
        finally:
            self.retire()

    async def _answer(self, stream: ClientStream, payload: Payload) -> None:
        """A member that is asked to reset agrees and connects again; it has no other server to go to."""
        request = payload.metadata.type
        if request in ("ClientDetectionRequest", "ConnectResetRequest"):
            answer = {"resultCode": 200, "errorCode": 0, "requestId": decode(payload).body.get("requestId")}
            reply = encode(request.removesuffix("Request") + "Response", {**answer, "success": True})
            await stream.write(reply.SerializeToString())
        if request == "ConnectResetRequest":
            self.retire()

    def _request(self, type_name: str, body: Mapping[str, Any]) -> Payload:
        """Where the profile sends them, its headers are the identity of the cluster and the address of this node
        (docs/protocol #member-auth, #owner-handover)."""
        identity = self._own.options.identity if self._own.profile.identity_sent else None
        headers = {} if identity is None else {identity.key: identity.value}
        if self._own.profile.sender_is_named:
            headers[SENDER_HEADER] = self._own.address
        return encode(type_name, {"headers": {}, **body}, headers=headers, client_ip=self._own.ip)


def _reason(error: grpc.aio.AioRpcError | ConnectionError) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}, {error.details()}"
    return str(error) or type(error).__name__
