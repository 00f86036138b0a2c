"""The HTTP client of a node, for what it has to ask of other members: one session, which ends with the node.

The answer is read whole. No time-out of aiohttp's is used: those run in real time, and what is timed goes through the
clock of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from distro_impl.options import TlsOptions
from distro_impl.transport.http import tcp_connector

SERVER_AGENT = "Nacos-Server"
"""With this a server's User-Agent begins."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes


class HttpClient:
    def __init__(
        self,
        tls: TlsOptions | None = None,
        connector: Callable[[TlsOptions | None], aiohttp.BaseConnector] = tcp_connector,
    ) -> None:
        """With `tls` the other members are asked over HTTPS."""
        self._tls, self._connector = tls, connector
        self._session: aiohttp.ClientSession | None = None

    def url(self, member: str, path: str) -> str:
        return f"{'https' if self._tls else 'http'}://{member}{path}"

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> HttpAnswer:
        """Raises aiohttp.ClientError when there is no answer."""
        session = self._session = self._session or _new_session(self._connector(self._tls))
        target = URL(url, encoded=True)  # unchanged: nothing in it is quoted a second time
        async with session.request(method, target, headers=headers, data=body or None, allow_redirects=False) as reply:
            return HttpAnswer(reply.status, await reply.read())

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _new_session(connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=True,
    )
