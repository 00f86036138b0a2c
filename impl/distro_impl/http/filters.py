"""Filters before the APIs: traffic that a node does not take yet, and APIs that a release has closed.

Source: docs/protocol #load-asks and #http-v1 (warm-up), TrafficReviseFilter; #http-v2 (3.x), ApiCompatibilityFilter.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from distro_impl.http.replies import CONTEXT_PATH, GONE, ErrorCode, text, wrapped
from distro_impl.remote.http_client import SERVER_AGENT
from distro_impl.security.callers import In3x, access_to_route
from distro_impl.security.inner_api import InnerApi

UP = "UP"
SERVICE_UNAVAILABLE = 503
NAMING_V1 = "/v1/ns/"


def revise_traffic(status: Callable[[], str]) -> Middleware:
    """While the server is not UP, v1 naming is refused to all but other servers."""

    @web.middleware
    async def revised(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_naming = request.path.startswith(CONTEXT_PATH + NAMING_V1)
        if not is_naming or status() == UP or request.headers.get("User-Agent", "").startswith(SERVER_AGENT):
            return await handler(request)
        return text(f"server is {status()} now, please try again later!", SERVICE_UNAVAILABLE)

    return revised


def close_old_apis(inner_api: InnerApi) -> Middleware:
    """3.x answers 410 to administration over v1 and v2, and to reports over HTTP once it asks members who they are."""

    @web.middleware
    async def closed(request: web.Request, handler: Handler) -> web.StreamResponse:
        access = access_to_route(request.method, request.path.removeprefix(CONTEXT_PATH))
        in_3x = In3x.SERVED if access is None else access.in_3x
        if in_3x is In3x.SERVED or (in_3x is In3x.UNTIL_ALL_ARE_3X and not inner_api.is_checked):
            return await handler(request)
        message = (
            "Current API will be deprecated, If wanted continue to use, please set "
            "`nacos.core.api.compatibility.admin.enabled=true` in application.properties."
        )
        return wrapped(None, ErrorCode.API_DEPRECATED, GONE, message)

    return closed
