"""Logging in over HTTP, and what stands before the HTTP API where authentication is on.

SDKs log in here and carry the token in their gRPC requests. Rights are asked for by method: GET reads, all else
writes; some of what only reads is open to everybody. Source: wire-protocol.md sections 4.4, 7.1 and 8; what running
servers with their console answer to whom.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web
from aiohttp.typedefs import Middleware

from distro_impl.http.parameters import Parameters, read_parameters
from distro_impl.http.replies import error_page, json_reply
from distro_impl.options import TOKEN_SECONDS, AuthOptions
from distro_impl.profiles import Profile
from distro_impl.remote.errors import NO_RIGHT, SERVER_ERROR, NacosError
from distro_impl.remote.http_client import SERVER_AGENT
from distro_impl.security.request_filter import InnerApi
from distro_impl.security.tokens import ACCESS_TOKEN, AccessDeniedError, Right, TokenManager

LOGIN_PATHS = ("/v1/auth/login", "/v1/auth/users/login")
LOGIN_PATH_3X = "/v3/auth/user/login"
OPEN_PREFIXES = (
    *LOGIN_PATHS,
    LOGIN_PATH_3X,
    "/actuator/",
    "/v1/console/health/",
    "/v1/console/server/",
    "/v1/ns/distro/",
    "/v2/console/health/",
    "/v3/admin/core/state/",
)
"""What anybody may ask: how to log in, whether the node is well, and what 2.0.x members ask about data of 1.x."""

OPEN_TO_READ = (
    "/v1/ns/operator/",
    "/v1/ns/ops/",
    "/v2/ns/operator/",
    "/v2/ns/ops/",
    "/v1/ns/instance/statuses",
)
"""What anybody may look at."""
CLUSTER = "/v1/core/cluster/"
ADMINISTRATION = (CLUSTER, "/v2/core/loader/", "/v2/core/cluster/", "/v2/ns/client")
"""What a reader may not even look at."""

AUTH_DISABLED = "AUTH_DISABLED"
"""The token that everybody gets where authentication is off."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def login_routes(profile: Profile, tokens: TokenManager | None) -> Iterable[web.RouteDef]:
    """A client with a user name logs in before anything else, so without authentication everybody is let in."""

    async def login(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        name = parameters.as_given("username")
        for needed in ("username", "password") if tokens else ():
            if needed not in parameters.texts():
                raise NacosError(SERVER_ERROR, f"caused: Required request parameter '{needed}' is not present;")
        try:
            token = tokens.login(name, parameters.as_given("password")) if tokens else AUTH_DISABLED
        except AccessDeniedError as error:
            return web.Response(status=403, text=str(error))
        is_admin = tokens is None or tokens.may_write(name)
        seconds = tokens.token_seconds if tokens else TOKEN_SECONDS
        return json_reply({"accessToken": token, "tokenTtl": seconds, "globalAdmin": is_admin, "username": name})

    for path in (*LOGIN_PATHS, LOGIN_PATH_3X) if profile.http_v3_api else LOGIN_PATHS:
        yield web.post(path, login)


def auth_filter(
    context_path: str, profile: Profile, options: AuthOptions, tokens: TokenManager, inner_api: InnerApi
) -> Middleware:
    """Members pass with the identity of the cluster, clients with a token, or with what one is given for."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.path.removeprefix(context_path)
        right = _right(request, path)
        is_open = path.startswith(CLUSTER) and not profile.http_cluster_needs_auth
        if right is not None and not is_open and not _is_member(request):
            try:
                parameters = await read_parameters(request)
                tokens.check(_token(request, parameters) or _token_of_user(parameters, tokens), right)
            except AccessDeniedError as error:
                return error_page(NO_RIGHT, request.path, str(error))
        return await handler(request)

    def _is_member(request: web.Request) -> bool:
        agent = request.headers.get("User-Agent", "")
        is_trusted_agent = options.trusts_server_user_agent and agent.startswith(SERVER_AGENT)
        return is_trusted_agent or inner_api.is_member(request.headers)

    return check


def _right(request: web.Request, path: str) -> Right | None:
    """What is needed for this; None where nobody needs anything, which is true also of what is not there."""
    is_read = request.method in ("GET", "HEAD")
    if request.match_info.http_exception is not None or path.startswith(OPEN_PREFIXES):
        return None
    if is_read and path.startswith(OPEN_TO_READ):
        return None
    return Right.READ if is_read and not path.startswith(ADMINISTRATION) else Right.WRITE


def _token(request: web.Request, parameters: Parameters) -> str:
    bearer = request.headers.get("Authorization", "")
    if bearer.startswith("Bearer "):
        return bearer.removeprefix("Bearer ")
    return request.headers.get(ACCESS_TOKEN) or parameters.as_given(ACCESS_TOKEN)


def _token_of_user(parameters: Parameters, tokens: TokenManager) -> str | None:
    """The Node SDK never logs in: it names its user in every request. None for one that there is not."""
    try:
        return tokens.login(parameters.as_given("username"), parameters.as_given("password"))
    except AccessDeniedError:
        return None
