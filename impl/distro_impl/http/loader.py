"""`/v2/core/loader`: what an operator asks about connections, and how clients are sent elsewhere.

Every 2.x has it under this path alone, and answers with plain values without an envelope. Source:
docs/protocol #http-admin; ServerLoaderController.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from distro_impl.http.parameters import WHOLE_NUMBER
from distro_impl.http.replies import json_reply
from distro_impl.membership.loader import ServerLoad, ServerLoader
from distro_protos import Json

DEFAULT_FACTOR = "0.1"


def loader_routes(loader: ServerLoader) -> Iterable[web.RouteDef]:
    async def current(_: web.Request) -> web.Response:
        return json_reply(loader.current())

    async def reload_current(request: web.Request) -> web.Response:
        count = _parameter(request, "count")
        if not WHOLE_NUMBER.fullmatch(count):
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

    base = "/v2/core/loader"
    yield web.get(f"{base}/current", current)
    yield web.get(f"{base}/reloadCurrent", reload_current)
    yield web.get(f"{base}/reloadClient", reload_client)
    yield web.get(f"{base}/smartReloadCluster", smart_reload_cluster)
    yield web.get(f"{base}/cluster", cluster)


def _parameter(request: web.Request, name: str) -> str:
    """May be empty."""
    if name not in request.query:
        raise web.HTTPBadRequest(text=f"Parameter '{name}' is missing")
    return request.query[name]


def _summary(loads: list[ServerLoad], member_count: int) -> Json:
    counts = [load.sdk_count for load in loads]
    average = sum(counts) // len(counts)
    return {
        "total": sum(counts),
        "min": min(counts),
        "max": max(counts),
        "avg": average,
        "threshold": average * 1.1,
        "detail": [{"address": load.address, "metric": dict(load.metrics)} for load in loads],
        "memberCount": member_count,
        "metricsCount": len(loads),
        "completed": len(loads) == member_count,
    }
