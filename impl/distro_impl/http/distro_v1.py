"""`/v1/ns/distro/datums`: the replicated data of Nacos 1.x. A node has none, and answers with an empty object.

A server of 2.0.x requests these data from each member while it starts, and treats 404 as a failed load. Servers up to
2.1.2 answer the request. In a cluster that uses gRPC no member sends such data. Source: docs/protocol #load-types.
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
