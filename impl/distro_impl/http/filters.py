"""Filters before the APIs: traffic that a node does not take yet, and APIs that a release has closed.

Source: wire-protocol.md sections 6.8 and 7.1 (warm-up), TrafficReviseFilter; section 7.2 (3.x), ApiCompatibilityFilter.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from distro_impl.http.cluster import CLUSTER_REPORT
from distro_impl.http.replies import GONE, ErrorCode, text, wrapped
from distro_impl.remote.http_client import SERVER_AGENT

UP = "UP"
SERVICE_UNAVAILABLE = 503
NAMING_V1 = "/v1/ns/"
OPEN_IN_3 = frozenset(
    {
        ("POST", "/v1/ns/instance"),
        ("DELETE", "/v1/ns/instance"),
        ("PUT", "/v1/ns/instance/beat"),
        ("GET", "/v1/ns/instance/list"),
        ("GET", "/v1/ns/service/list"),
        ("GET", "/v1/ns/operator/metrics"),
        ("POST", CLUSTER_REPORT),
    }
)
"""What of v1 and v2 a 3.x server serves by default: what old clients and old members need."""


def revise_traffic(context_path: str, status: Callable[[], str]) -> Middleware:
    """While the server is not UP, v1 naming is refused to all but other servers."""

    @web.middleware
    async def revised(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_naming = request.path.startswith(context_path + NAMING_V1)
        if not is_naming or status() == UP or request.headers.get("User-Agent", "").startswith(SERVER_AGENT):
            return await handler(request)
        return text(f"server is {status()} now, please try again later!", SERVICE_UNAVAILABLE)

    return revised


def close_old_apis(context_path: str) -> Middleware:
    """3.x answers 410 to administration over v1 and v2."""

    @web.middleware
    async def closed(request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.path.removeprefix(context_path)
        is_served = request.match_info.http_exception is None
        is_old = path.startswith(("/v1/", "/v2/")) and not path.startswith("/v1/auth/")
        if not is_served or not is_old or (request.method, path) in OPEN_IN_3:
            return await handler(request)
        message = (
            "Current API will be deprecated, If wanted continue to use, please set "
            "`nacos.core.api.compatibility.admin.enabled=true` in application.properties."
        )
        return wrapped(None, ErrorCode.API_DEPRECATED, GONE, message)

    return closed
