"""Options of a node beside its address, its members and its profile: limits, certificates, users, identity.

All defaults are those of an unconfigured server: plain text, no authentication, messages up to 10 MiB. The
keys that set them are in `settings/registry.py`. Source: docs/protocol #wire-limits, #wire-tls, #member-auth and
#settings-keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MAX_MESSAGE_BYTES = 10 * 1024 * 1024
"""The limit of every Nacos server and Java client (docs/protocol #wire-limits)."""


TOKEN_SECONDS = 18_000
"""How long a token is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """The certificate of a server, and whom it trusts; files in PEM. An encrypted key needs its password."""

    cert_chain_file: Path
    private_key_file: Path
    trust_collection_file: Path | None = None
    """Whose certificates are accepted: of clients with mutual authentication, of the other members always."""
    is_mutual: bool = False
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcServerOptions:
    """One of the two gRPC servers."""

    max_inbound_bytes: int = MAX_MESSAGE_BYTES
    keep_alive_ms: int = 7_200_000
    keep_alive_timeout_ms: int = 20_000
    permit_keep_alive_ms: int = 10_000
    """Clients may ping this often. Upstream says 300 s, but SDKs ping every 60 s of silence, and gRPC's C core, unlike
    Java's, does not accept that (docs/protocol #wire-limits)."""
    tls: TlsOptions | None = None


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The header by which members of one cluster know each other (docs/protocol #member-auth)."""

    key: str
    value: str = field(repr=False)


ALL_NAMESPACES = "*"
READS_ALL: Mapping[str, str] = {ALL_NAMESPACES: "r"}
WRITES_ALL: Mapping[str, str] = {ALL_NAMESPACES: "rw"}


@dataclass(frozen=True, slots=True)
class User:
    """`grants` is what the user may do, `r` and `w`, by namespace."""

    name: str
    password: str = field(repr=False)
    grants: Mapping[str, str] = field(default_factory=lambda: WRITES_ALL)

    def may(self, right: str, namespace: str | None) -> bool:
        """None: what lies in no namespace."""
        granted = self.grants.get(ALL_NAMESPACES, "") + ("" if namespace is None else self.grants.get(namespace, ""))
        return right in granted


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthOptions:
    """Authentication of clients by user name, password and token; `None` in its place means off."""

    secret: bytes = field(repr=False)
    users: Mapping[str, User]
    token_seconds: int = TOKEN_SECONDS
    trusts_server_user_agent: bool = False
    """HTTP requests whose User-Agent says Nacos-Server pass without a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    sdk_server: GrpcServerOptions = GrpcServerOptions()
    cluster_server: GrpcServerOptions = GrpcServerOptions()
    http_tls: TlsOptions | None = None
    """Of the main port; then the other members are asked over HTTPS too."""
    identity: ServerIdentity | None = None
    auth: AuthOptions | None = None
    drains_on_stop: bool = False
    """A stopping node deregisters its clients at the other members first; a real server just closes."""


DEFAULT_OPTIONS = NodeOptions()
