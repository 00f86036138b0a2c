"""The HTTP server of a node: its port, its context path, its routes.

aiohttp carries it. An API is a file of this folder that gives route definitions; this file knows none of them. Every
path lies under `/nacos`, and an unknown path is answered with 404, as a real server does. Who sends what is
no HTTP is worth a line of the log, not a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Middleware

from distro_impl.http.replies import CONTEXT_PATH, answer_errors
from distro_impl.logs import logger
from distro_impl.options import MAX_MESSAGE_BYTES, TlsOptions
from distro_impl.transport.transport import Transport

CUT_S = 0.001
"""How long a request under way is waited for when there is no grace; aiohttp takes 0 for no limit."""

log = logger(__name__)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Errors that aiohttp logs although the client caused them become one warning."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, web.RequestPayloadError):  # the handler that needed the body has answered
        return False
    if isinstance(error, HttpProcessingError):
        peer = record.args[0] if isinstance(record.args, tuple) and record.args else "a client"
        reason = " ".join(error.message.split())
        record.levelno, record.levelname, record.exc_info = logging.WARNING, "WARNING", None
        record.msg, record.args = "what %s has sent is no HTTP request: %.200s", (peer, reason)
    return True


log.addFilter(_is_worth_a_line)


class HttpServer:
    def __init__(
        self,
        *,
        ip: str,
        port: int,
        purpose: str,
        routes: Iterable[web.RouteDef],
        filters: Iterable[Middleware] = (),
        tls: TlsOptions | None = None,
        transport: Transport,
    ) -> None:
        """`routes` are below the context path; `filters` stand before all of them, in this order."""
        self._ip, self._port, self._purpose, self._tls = ip, port, purpose, tls
        self._transport = transport
        self._routes, self._filters = tuple(routes), tuple(filters)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Raises PortInUseError, and SettingError when a certificate is unusable."""
        below = web.Application(middlewares=[answer_errors, *self._filters], client_max_size=MAX_MESSAGE_BYTES)
        below.add_routes(self._routes)
        app = web.Application(client_max_size=MAX_MESSAGE_BYTES)
        app.add_subapp(CONTEXT_PATH, below)
        runner = web.AppRunner(app, access_log=None, logger=log, handle_signals=False)
        await self._transport.serve_http(runner, self._ip, self._port, purpose=self._purpose, tls=self._tls)
        self._runner = runner

    async def stop(self, grace_s: float | None = None) -> None:
        """With a grace the requests under way may end first; without, their connections are cut."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for site in tuple(runner.sites):
            await site.stop()
        assert runner.server is not None
        await runner.server.shutdown(grace_s or CUT_S)
        await runner.cleanup()
