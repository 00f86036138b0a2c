"""`/v1/ns/distro/datums`: the data of 1.x, of which a node has none.

A server of 2.0.x asks each member for them while it starts, and takes 404 for a failed load; servers up to 2.1.2
answer. Once a cluster speaks gRPC no member sends such data. Source: docs/protocol #load-types.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from distro_impl.profiles import Profile


def distro_v1_routes(profile: Profile) -> Iterable[web.RouteDef]:
    async def datums(_: web.Request) -> web.Response:
        return web.Response(body=b"{}", content_type="application/octet-stream", charset="UTF-8")

    if profile.http_v1_distro:
        yield web.get("/v1/ns/distro/datums", datums)
