"""What stands between a gRPC request and its handler: the table of callers (callers.py), applied.

Requests of members need what `InnerApi` asks for, requests of clients a token where authentication is on. Who is
refused gets the answer of the handler's own class, 500/403, so that a member counts it as a failure and an SDK logs in
again. Source: docs/protocol #wire-errors and #member-auth.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.naming.client import DEFAULT_NAMESPACE
from distro_impl.remote.errors import NO_RIGHT, SERVER_ERROR, failure
from distro_impl.remote.handlers import Reply, Request, response_type
from distro_impl.security.callers import REQUESTS, Caller
from distro_impl.security.inner_api import InnerApi
from distro_impl.security.tokens import ACCESS_TOKEN, AccessDeniedError, TokenManager
from distro_protos import Json

EMPTY_ANSWERS: Mapping[str, Json] = {"ServiceListRequest": {"count": 0}}
"""What a refusal carries too: numbers that the class of the answer has in any case."""
NOT_SERVED = "this request is not served"


class RemoteRequestAuthFilter:
    def __init__(self, inner_api: InnerApi, tokens: TokenManager | None) -> None:
        self._inner_api, self._tokens = inner_api, tokens

    def refusal(self, request: Request) -> Reply | None:
        """None: the request may pass."""
        try:
            access = REQUESTS.get(request.type)
            if access is None:
                raise AccessDeniedError(NOT_SERVED)
            if access.caller is Caller.MEMBER:
                self._inner_api.check(request.headers, request.client_ip)
            elif self._tokens is not None and access.right is not None:
                namespace = request.body.namespace or DEFAULT_NAMESPACE
                self._tokens.check(request.headers.get(ACCESS_TOKEN), access.right, namespace)
        except AccessDeniedError as error:
            refused = failure(SERVER_ERROR, NO_RIGHT, str(error))
            return response_type(request.type), {**EMPTY_ANSWERS.get(request.type, {}), **refused}
        return None
