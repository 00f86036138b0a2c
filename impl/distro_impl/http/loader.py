"""`/v1|v2/core/loader`: what an operator asks about connections, and how clients are sent elsewhere.

Answers are plain values without an envelope under both versions, as a real server gives them. Source:
wire-protocol.md section 9.2; ServerLoaderController.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from distro_impl.http.replies import json_reply
from distro_impl.remote.loader import ServerLoad, ServerLoader
from distro_protos import Json

DEFAULT_FACTOR = "0.1"


def loader_routes(loader: ServerLoader) -> Iterable[web.RouteDef]:
    async def current(_: web.Request) -> web.Response:
        return json_reply(loader.current())

    async def reload_current(request: web.Request) -> web.Response:
        count = _parameter(request, "count")
        if not count.isdecimal():
            raise web.HTTPBadRequest(text=f"Param 'count' is illegal, it must be a whole number, not '{count}'")
        loader.reload_count(int(count), request.query.get("redirectAddress"))
        return web.Response(text="success")

    async def reload_client(request: web.Request) -> web.Response:
        """A connection that is not there is no error."""
        loader.reload_client(_parameter(request, "connectionId"), request.query.get("redirectAddress"))
        return web.Response(text="success")

    async def smart_reload_cluster(request: web.Request) -> web.Response:
        factor = request.query.get("loaderFactor", DEFAULT_FACTOR)
        try:
            moved = await loader.smart_reload(min(1.0, max(0.0, float(factor.removesuffix("f")))))
        except ValueError:
            raise web.HTTPBadRequest(
                text=f"Param 'loaderFactor' is illegal, it must be a number, not '{factor}'"
            ) from None
        return web.Response(text="Ok" if moved else "Fail")

    async def cluster(_: web.Request) -> web.Response:
        return json_reply(_summary(await loader.cluster_loads(), loader.member_count))

    for version in ("v1", "v2"):
        base = f"/{version}/core/loader"
        yield web.get(f"{base}/current", current)
        yield web.get(f"{base}/reloadCurrent", reload_current)
        yield web.get(f"{base}/reloadClient", reload_client)
        yield web.get(f"{base}/smartReloadCluster", smart_reload_cluster)
        yield web.get(f"{base}/cluster", cluster)


def _parameter(request: web.Request, name: str) -> str:
    value = request.query.get(name, "")
    if not value:
        raise web.HTTPBadRequest(text=f"Required request parameter '{name}' is not present")
    return value


def _summary(loads: list[ServerLoad], member_count: int) -> Json:
    counts = [load.sdk_count for load in loads]
    return {
        "total": sum(counts),
        "min": min(counts),
        "max": max(counts),
        "avg": sum(counts) // len(counts),
        "detail": [{"address": load.address, "metric": dict(load.metrics)} for load in loads],
        "memberCount": member_count,
        "metricsCount": len(loads),
        "completed": len(loads) == member_count,
    }
