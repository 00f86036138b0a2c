"""Users, their rights, and their tokens: JWT signed with the secret that all members share, as upstream's plug-in.

So a token of one member is good at every other, a real server included. A user has the permissions of upstream's roles,
read and write for one namespace or for all; who may write in all is an administrator. Source: docs/protocol
#member-auth, #http-v1 and #settings-keys; NacosRoleServiceImpl.

The library of the tokens takes 8 MiB and a tenth of the time that a node needs to be ready, so it is imported by the
first token: most nodes see none.
"""

from __future__ import annotations

import hmac

from distro_impl.clocks.clock import Clock
from distro_impl.options import AuthOptions, User
from distro_impl.security.callers import Right
from distro_protos import check_nesting

ACCESS_TOKEN = "accessToken"
ALGORITHMS = ((64, "HS512"), (48, "HS384"), (0, "HS256"))
"""From so many bytes of secret on."""


WITHOUT_TYPE = {"typ": None}
"""Servers compare the whole header of a token with the one that they write themselves: `{"alg":"HS256"}`."""


NO_USER, NO_RIGHT = "user not found!", "authorization failed!"


class AccessDeniedError(Exception):
    """The client gets the message."""


class TokenManager:
    def __init__(self, options: AuthOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._algorithm = next(name for least, name in ALGORITHMS if len(options.secret) >= least)

    @property
    def token_seconds(self) -> int:
        return self._options.token_seconds

    def login(self, name: str, password: str) -> str:
        """A token for this user. Raises AccessDeniedError."""
        import jwt  # noqa: PLC0415 - see the module

        user = self._options.users.get(name)
        given = password.encode(errors="replace")
        if user is None or not hmac.compare_digest(user.password.encode(), given):
            raise AccessDeniedError("unknown user!")
        expires_s = self._clock.now_ms() // 1000 + self._options.token_seconds
        claims = {"sub": name, "exp": expires_s}
        return jwt.encode(claims, self._options.secret, self._algorithm, headers=WITHOUT_TYPE)

    def is_administrator(self, name: str) -> bool:
        return name in self._options.users and self._options.users[name].may(Right.WRITE, None)

    def check(self, token: str | None, right: Right, namespace: str | None) -> None:
        """Raises AccessDeniedError when the owner of the token may not do that in the namespace; None: in all."""
        if token is None or not token.strip():
            raise AccessDeniedError(NO_USER)
        if not self._user_of(token).may(right, namespace):
            raise AccessDeniedError(NO_RIGHT)

    def _user_of(self, token: str) -> User:
        import jwt  # noqa: PLC0415 - see the module
        from jwt.utils import base64url_decode  # noqa: PLC0415

        try:
            check_nesting(base64url_decode(token.partition(".")[0]))  # read before the signature is checked
            claims = jwt.decode(token, self._options.secret, [self._algorithm], options={"verify_exp": False})
        except (jwt.InvalidTokenError, ValueError):
            raise AccessDeniedError("token invalid!") from None
        expires_s, user = claims.get("exp"), self._options.users.get(str(claims.get("sub", "")))
        if not isinstance(expires_s, int | float) or expires_s * 1000 <= self._clock.now_ms():
            raise AccessDeniedError("token expired!")
        if user is None:
            raise AccessDeniedError(NO_RIGHT)
        return user
