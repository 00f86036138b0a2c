"""Credentials: of the clusters that the kit starts, and for a foreign server.

The identity is the header that members, also played ones, send to each other. From 3.0 on, and in `strict`, a node
refuses requests of a member without it, so a cluster needs one; older releases do not check it. A foreign server has
its own, and a user where authentication is on. They are never printed: not in reports, logs, shown commands or errors.
Source: docs/protocol #member-auth.
"""

from __future__ import annotations

import json
import ssl
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distro_conformance.targets.direct import NO_HEADERS, asked
from distro_conformance.verdict import UsageError
from distro_impl.options import DEFAULT_OPTIONS, NodeOptions, ServerIdentity, TlsOptions
from distro_impl.profiles import InnerAuth, Profile
from distro_impl.settings.errors import SettingError
from distro_impl.transport.tls import check, client_context

IDENTITY = ServerIdentity("distrocheck-cluster", "is-ours")
LOGIN_PATHS = ("/nacos/v1/auth/login", "/nacos/v3/auth/user/login")
REFUSED = (401, 403)
TLS_PORTS = ("grpc", "http")


def options_for(profile: Profile) -> NodeOptions:
    """The options of a node with this profile."""
    return DEFAULT_OPTIONS if profile.inner_auth is InnerAuth.NEVER else NodeOptions(identity=IDENTITY)


def headers_of(identity: ServerIdentity | None) -> Mapping[str, str]:
    """The headers of a request of a member in a cluster with this identity."""
    return NO_HEADERS if identity is None else {identity.key: identity.value}


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The ports of the servers that have TLS, the file of the authorities that the kit trusts (without it those of the
    system), and the files of its own certificate and key, for ports that require one of their clients."""

    ports: frozenset[str] = frozenset()
    authority: Path | None = None
    own: tuple[Path, Path] | None = None

    def of(self, port: str) -> TlsOptions | None:
        if port not in self.ports:
            return None
        certificate, key = self.own or (Path(), Path())
        return TlsOptions(
            cert_chain_file=certificate,
            private_key_file=key,
            trust_collection_file=self.authority,
            is_mutual=self.own is not None,
        )

    @property
    def context(self) -> ssl.SSLContext | None:
        """For HTTP; None: plain text."""
        options = self.of("http")
        return None if options is None else client_context(options)

    def url(self, address: str, path: str) -> str:
        return f"{'https' if 'http' in self.ports else 'http'}://{address}{path}"


NO_TLS = ClientTls()


@dataclass(frozen=True, slots=True)
class Credentials:
    """`identity` is the header that the servers send to each other; the other two fields are a user of the server."""

    identity: ServerIdentity | None = None
    username: str | None = None
    password: str = field(default="", repr=False)
    tls: ClientTls = NO_TLS

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a member's request."""
        return headers_of(self.identity)

    def client_headers(self, address: str) -> Mapping[str, str]:
        """The headers of a client's request to the server at this main port: a token, for which the user logs in there.
        Without a user: the identity, which a server accepts instead. Raises UsageError when the user is refused."""
        if self.username is None:
            return self.headers
        form = urllib.parse.urlencode({"username": self.username, "password": self.password}).encode()
        statuses = []
        for path in LOGIN_PATHS:
            status, body = asked(self.tls.url(address, path), data=form, context=self.tls.context)
            statuses.append(status)
            if token := _token_in(body):
                return {**self.headers, "accessToken": token, "Authorization": f"Bearer {token}"}
        if any(status in REFUSED for status in statuses):
            raise UsageError(f"{address} refuses user {self.username}; check name and password")
        return self.headers


NO_CREDENTIALS = Credentials()


def tls_of(
    ports: Sequence[str], authority: Path | None, certificate: Path | None = None, key: Path | None = None
) -> ClientTls:
    """Raises UsageError for a port or a file that cannot be."""
    if any(port not in TLS_PORTS for port in ports):
        raise UsageError(f"--tls names the ports with TLS, each with its own --tls: {', '.join(TLS_PORTS)}")
    if not ports and (authority or certificate or key):
        raise UsageError(
            f"--ca, --cert and --key are for TLS; name the ports that have it by --tls ({', '.join(TLS_PORTS)})"
        )
    if (certificate is None) != (key is None):
        raise UsageError("--cert and --key are a certificate and its key; give both")
    if authority is not None:
        try:
            ssl.create_default_context(cafile=authority)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ca {authority}: no certificates in PEM ({error})") from error
    own = None if certificate is None or key is None else (certificate, key)
    if own is not None:
        try:
            check(TlsOptions(cert_chain_file=own[0], private_key_file=own[1]))
        except (OSError, SettingError) as error:
            raise UsageError(f"--cert and --key: {error}") from error
    return ClientTls(frozenset(ports), authority, own)


def credentials_of(identity: str | None, username: str | None, password: str) -> Credentials:
    """`identity` is KEY=VALUE. Raises UsageError, which does not repeat it."""
    if identity is None:
        return Credentials(None, username, password)
    key, equals, value = identity.partition("=")
    if not (key and equals):
        raise UsageError("--identity: write it as KEY=VALUE (nacos.core.auth.server.identity.key and .value)")
    return Credentials(ServerIdentity(key, value), username, password)


def _token_in(body: str) -> str | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    token = found.get("accessToken") if isinstance(found, dict) else None
    return token if isinstance(token, str) else None
