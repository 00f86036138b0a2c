"""Logging in over HTTP, and what stands before the HTTP API.

SDKs log in here and carry the token in their gRPC requests. Who may call which route is in security/callers.py. Source:
docs/protocol #http-auth, #member-auth, #http-v1 and #settings-keys; what running servers with their console answer to
whom.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web
from aiohttp.typedefs import Middleware

from distro_impl.http.parameters import Parameters, read_parameters
from distro_impl.http.replies import CONTEXT_PATH, error_page, json_reply
from distro_impl.naming.client import DEFAULT_NAMESPACE
from distro_impl.options import TOKEN_SECONDS, AuthOptions
from distro_impl.profiles import Profile
from distro_impl.remote.errors import NO_RIGHT, SERVER_ERROR, NacosError
from distro_impl.remote.http_client import SERVER_AGENT
from distro_impl.security.callers import Caller, access_to_route
from distro_impl.security.inner_api import InnerApi
from distro_impl.security.request_filter import NOT_SERVED
from distro_impl.security.tokens import ACCESS_TOKEN, AccessDeniedError, TokenManager
from distro_protos.addresses import is_loopback

LOGIN_PATHS = ("/v1/auth/login", "/v1/auth/users/login")
LOGIN_PATH_3X = "/v3/auth/user/login"

NOT_LOCAL = "it changes this node: without users it takes a request from this machine or the identity of the cluster"
AUTH_DISABLED = "AUTH_DISABLED"
"""The token that every client gets where authentication is off."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def login_routes(profile: Profile, tokens: TokenManager | None) -> Iterable[web.RouteDef]:
    """A client with a user name logs in before anything else, so without authentication any login succeeds."""

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
        is_admin = tokens is None or tokens.is_administrator(name)
        seconds = tokens.token_seconds if tokens else TOKEN_SECONDS
        return json_reply({"accessToken": token, "tokenTtl": seconds, "globalAdmin": is_admin, "username": name})

    for path in (*LOGIN_PATHS, LOGIN_PATH_3X) if profile.http_v3_api else LOGIN_PATHS:
        yield web.post(path, login)


class HttpAuthFilter:
    """The table of callers (security/callers.py), applied to a request that has a route.

    Members pass with the identity of the cluster, clients with a token, or with what one is given for.
    """

    def __init__(
        self, profile: Profile, auth: AuthOptions | None, tokens: TokenManager | None, inner_api: InnerApi
    ) -> None:
        """No `auth` and no `tokens` where no user logs in."""
        self._profile, self._auth, self._tokens, self._inner_api = profile, auth, tokens, inner_api

    def middleware(self) -> Middleware:
        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.match_info.http_exception is None:
                try:
                    await self.check(request)
                except AccessDeniedError as error:
                    return error_page(NO_RIGHT, request.path, str(error))
            return await handler(request)

        return check

    async def check(self, request: web.Request) -> None:
        """Raises AccessDeniedError."""
        access = access_to_route(request.method, request.path.removeprefix(CONTEXT_PATH))
        if access is None:
            raise AccessDeniedError(NOT_SERVED)
        if access.caller is Caller.MEMBER:
            self._inner_api.check(request.headers, request.remote or "")
        if access.changes_node and self._tokens is None:
            self._check_local(request)
        is_open = access.open_before_2_3 and not self._profile.http_cluster_needs_auth
        if self._tokens is None or access.right is None or is_open or self._is_server(request):
            return
        parameters = await read_parameters(request)
        token = _token(request, parameters) or _token_of_user(parameters, self._tokens)
        namespace = parameters.text("namespaceId", default=DEFAULT_NAMESPACE) if access.has_namespace else None
        self._tokens.check(token, access.right, namespace)

    def _check_local(self, request: web.Request) -> None:
        """Raises AccessDeniedError for a caller on another machine without the identity of the cluster."""
        if not is_loopback(request.remote or "") and not self._inner_api.is_member(request.headers):
            raise AccessDeniedError(NOT_LOCAL)

    def _is_server(self, request: web.Request) -> bool:
        agent = request.headers.get("User-Agent", "")
        is_trusted = self._auth is not None and self._auth.trusts_server_user_agent
        return (is_trusted and agent.startswith(SERVER_AGENT)) or self._inner_api.is_member(request.headers)


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
