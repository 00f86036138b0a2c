"""`/v1/ns/operator`: what an operator, and an old client that looks for a healthy server, may ask.

Source: wire-protocol.md sections 7.1 (status) and 9.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aiohttp import web


def operator_routes(is_started: Callable[[], bool]) -> Iterable[web.RouteDef]:
    async def metrics(_: web.Request) -> web.Response:
        return web.json_response({"status": "UP" if is_started() else "STARTING"})

    yield web.get("/v1/ns/operator/metrics", metrics)
