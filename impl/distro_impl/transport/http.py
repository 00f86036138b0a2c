"""Below HTTP: what carries its bytes, TCP or a pair of sockets within this process.

Both speak real HTTP; in memory there is no port that another program might have or listen to.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from distro_impl.options import TlsOptions
from distro_impl.ports import PortInUseError, is_free
from distro_impl.transport.tls import client_context, server_context
from distro_protos.addresses import bracketed, without_brackets

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler


async def serve_on_tcp(runner: web.AppRunner, ip: str, port: int, *, purpose: str, tls: TlsOptions | None) -> None:
    """Raises PortInUseError, and SettingError when a certificate is unusable."""
    if not is_free(ip, port):
        raise PortInUseError(port, purpose)
    context = None if tls is None else server_context(tls)
    await runner.setup()
    try:
        await web.TCPSite(runner, without_brackets(ip), port, ssl_context=context).start()
    except OSError as error:
        await runner.cleanup()
        raise PortInUseError(port, purpose) from error


def tcp_connector(tls: TlsOptions | None) -> aiohttp.BaseConnector:
    """Connections are not kept: a pooled one that its peer has closed meanwhile would fail a request."""
    return aiohttp.TCPConnector(force_close=True, limit=0, ssl=True if tls is None else client_context(tls))


class PairConnector(aiohttp.BaseConnector):
    """Every connection is a new pair of sockets, of which the server at that address gets one end."""

    def __init__(self, servers: Mapping[str, web.AppRunner]) -> None:
        super().__init__(force_close=True, limit=0)
        self._servers = servers

    async def _create_connection(self, req: aiohttp.ClientRequest, _traces: Any, _timeout: Any) -> ResponseHandler:
        runner = self._servers.get(f"{bracketed(req.url.host or '')}:{req.url.port}")
        if runner is None or runner.server is None:
            raise aiohttp.ClientConnectionError(f"no server listens at {req.url.host}:{req.url.port}")
        loop = asyncio.get_running_loop()
        client, server = socket.socketpair()
        await loop.connect_accepted_socket(runner.server, server)
        _, protocol = await loop.create_connection(self._factory, sock=client)
        return protocol
