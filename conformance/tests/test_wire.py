"""The connection that everything played uses, seen from below: TCP; and how an answer is read."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from distro_conformance.node.peer import PlayedPeer
from distro_conformance.targets.ports import CLUSTER_OFFSET, free_base_ports
from distro_conformance.wire.connection import SDK_LABELS, Connection
from distro_conformance.wire.messages import ACKNOWLEDGED, DISTRO_RESPONSE, read_query
from distro_protos import Message

pytestmark = pytest.mark.wire


async def test_close_ends_the_transport_at_once_although_the_connection_is_still_held() -> None:
    """A server knows of a client's end by its transport; gRPC keeps one open while one of its calls is referenced."""
    (port,) = free_base_ports()
    peer = PlayedPeer(port, lambda: 0)
    await peer.start()
    ended = asyncio.Event()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port + CLUSTER_OFFSET)
        await asyncio.gather(_pump(reader, to_server), _pump(from_server, writer))
        ended.set()

    between = await asyncio.start_server(relay, "127.0.0.1", 0)
    try:
        address = f"127.0.0.1:{between.sockets[0].getsockname()[1]}"
        connection = await Connection.open(address, labels=SDK_LABELS)

        await connection.close()

        async with asyncio.timeout(20):
            await ended.wait()
        assert connection.id
    finally:
        between.close()
        await peer.stop()


@pytest.mark.parametrize(
    "reply",
    [
        Message("ErrorResponse", {"resultCode": 500, "errorCode": 301, "message": "Connection is unregistered."}),
        Message(DISTRO_RESPONSE, {"resultCode": 500, "errorCode": 500, "message": "not now"}),
        Message(DISTRO_RESPONSE, {**ACKNOWLEDGED, "distroData": {"content": "%%%"}}),
    ],
    ids=["of a stranger", "refused", "no Base64"],
)
def test_only_a_success_without_content_says_that_a_client_is_unknown(reply: Message) -> None:
    assert read_query(Message(DISTRO_RESPONSE, ACKNOWLEDGED)) is None
    with pytest.raises(ValueError, match="no answer to QUERY"):
        read_query(reply)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()
    with contextlib.suppress(ConnectionError):
        await sink.wait_closed()
