"""Options of a node other than its address, members and profile: limits, certificates, users, identity.

The defaults are those of a server without configuration: plain text, no authentication, messages up to 10 MiB. The keys
that set the options are in `settings/registry.py`. Source: docs/protocol #wire-limits, #wire-tls, #member-auth and
#settings-keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_MESSAGE_BYTES = 10 * 1024 * 1024
"""The limit of every Nacos server and Java client (docs/protocol #wire-limits)."""


TOKEN_SECONDS = 18_000
"""The time for which a token is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """The certificate of a server, and the certificates that it trusts, as PEM files. An encrypted key needs its
    password."""

    cert_chain_file: Path
    private_key_file: Path
    trust_collection_file: Path | None = None
    """The accepted certificates: of clients, if authentication is mutual; of the other members always."""
    is_mutual: bool = False
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcServerOptions:
    """One of the two gRPC servers."""

    max_inbound_bytes: int = MAX_MESSAGE_BYTES
    keep_alive_ms: int = 7_200_000
    keep_alive_timeout_ms: int = 20_000
    permit_keep_alive_ms: int = 10_000
    """The shortest time between two pings of a client. Nacos has 300 s, although its SDKs ping after 60 s of silence:
    gRPC for Java accepts that, and gRPC's C core, which is used here, does not (docs/protocol #wire-limits)."""
    tls: TlsOptions | None = None


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The HTTP header by which members of a cluster identify themselves (docs/protocol #member-auth)."""

    key: str
    value: str = field(repr=False)


ALL_NAMESPACES = "*"
READS_ALL: Mapping[str, str] = {ALL_NAMESPACES: "r"}
WRITES_ALL: Mapping[str, str] = {ALL_NAMESPACES: "rw"}


@dataclass(frozen=True, slots=True)
class User:
    """A user. `grants`: by namespace the rights of the user, `r` (read) and `w` (write)."""

    name: str
    password: str = field(repr=False)
    grants: Mapping[str, str] = field(default_factory=lambda: WRITES_ALL)

    def may(self, right: str, namespace: str | None) -> bool:
        """Whether the user has the right. `namespace` None: for requests about no namespace."""
        granted = self.grants.get(ALL_NAMESPACES, "") + ("" if namespace is None else self.grants.get(namespace, ""))
        return right in granted


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthOptions:
    """Authentication of clients by user name, password and token. Without these options it is off."""

    secret: bytes = field(repr=False)
    users: Mapping[str, User]
    token_seconds: int = TOKEN_SECONDS
    trusts_server_user_agent: bool = False
    """Whether HTTP requests with the User-Agent Nacos-Server are accepted without a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    sdk_server: GrpcServerOptions = GrpcServerOptions()
    cluster_server: GrpcServerOptions = GrpcServerOptions()
    http_tls: TlsOptions | None = None
    """The certificate of the main port. With it, requests to the other members use HTTPS, too."""
    identity: ServerIdentity | None = None
    auth: AuthOptions | None = None
    drains_on_stop: bool = False
    """Whether a node that stops first deregisters its clients at the other members. A real server does not."""


DEFAULT_OPTIONS = NodeOptions()
