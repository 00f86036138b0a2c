"""What stands between a gRPC request and its handler: the identity of servers, and the tokens of users.

Requests of members ("inner API") need the identity of the cluster where the release asks for it, requests of clients a
token where authentication is on. Who is refused gets the answer of the handler's own class, 500/403, so that a member
counts it as a failure and an SDK logs in again. Source: wire-protocol.md sections 1.4 and 4.4.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from distro_impl.distro.transport_agent import DISTRO_DATA
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import MEMBER_REPORT
from distro_impl.options import ServerIdentity
from distro_impl.profiles import InnerAuth, Profile
from distro_impl.remote.errors import NO_RIGHT, SERVER_ERROR, failure
from distro_impl.remote.handlers import Reply, Request, response_type
from distro_impl.security.tokens import ACCESS_TOKEN, AccessDeniedError, Right, TokenManager
from distro_protos import Json

INNER_REQUESTS = frozenset({DISTRO_DATA, MEMBER_REPORT})
CLIENT_REQUESTS: Mapping[str, Right] = {
    "InstanceRequest": Right.WRITE,
    "BatchInstanceRequest": Right.WRITE,
    "PersistentInstanceRequest": Right.WRITE,
    "SubscribeServiceRequest": Right.READ,
    "ServiceQueryRequest": Right.READ,
    "ServiceListRequest": Right.READ,
}
EMPTY_ANSWERS: Mapping[str, Json] = {"ServiceListRequest": {"count": 0}}
"""What a refusal carries too: numbers that the class of the answer has in any case."""
NO_IDENTITY = "this server has no identity to compare with: set nacos.core.auth.server.identity.key and .value"
WRONG_IDENTITY = "the request does not carry the identity of this cluster"


class RemoteRequestAuthFilter:
    def __init__(self, inner_api: InnerApi, tokens: TokenManager | None) -> None:
        self._inner_api, self._tokens = inner_api, tokens

    def refusal(self, request: Request) -> Reply | None:
        """None: the request may pass."""
        try:
            if request.type in INNER_REQUESTS:
                self._inner_api.check(request.headers)
            elif self._tokens is not None and request.type in CLIENT_REQUESTS:
                self._tokens.check(request.headers.get(ACCESS_TOKEN), CLIENT_REQUESTS[request.type])
        except AccessDeniedError as error:
            refused = failure(SERVER_ERROR, NO_RIGHT, str(error))
            return response_type(request.type), {**EMPTY_ANSWERS.get(request.type, {}), **refused}
        return None


class InnerApi:
    """Whether a request comes from a member of this cluster."""

    def __init__(self, profile: Profile, identity: ServerIdentity | None, members: ServerMemberManager) -> None:
        self._identity, self._members = identity, members
        self._rule = profile.inner_auth
        self._all_were_3x = False

    @property
    def is_checked(self) -> bool:
        """In 3.x once the whole cluster is 3.x, and from then on for good."""
        if self._rule is InnerAuth.ALL_MEMBERS_3X:
            self._all_were_3x = self._all_were_3x or self._all_are_3x()
            return self._all_were_3x
        return self._rule is InnerAuth.CONFIGURED and self._identity is not None

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises AccessDeniedError."""
        if not self.is_checked:
            return
        if self._identity is None:
            raise AccessDeniedError(NO_IDENTITY)
        if not self.is_member(headers):
            raise AccessDeniedError(WRONG_IDENTITY)

    def is_member(self, headers: Mapping[str, str]) -> bool:
        """Whether the headers carry the identity, whether or not it is asked for."""
        if self._identity is None:
            return False
        shown = header(headers, self._identity.key) or ""
        return hmac.compare_digest(shown.encode(), self._identity.value.encode())

    def _all_are_3x(self) -> bool:
        members = self._members.all_members()
        return all(str(member.extend_info.get("version", "")).startswith("3.") for member in members)


def header(headers: Mapping[str, str], name: str) -> str | None:
    """Names of headers are the same in upper and lower case."""
    if name in headers:
        return headers[name]
    return next((value for key, value in headers.items() if key.lower() == name.lower()), None)
