"""The keys that set something: one entry for each, with its type, what it sets and which releases read it.

`docs/reference/settings.md` is generated from this table. What a key sets is `section.field`: a field of the profile,
or of a part of the options (`configured.py` knows the sections). Two keys that set the same field contradict each other
when both are given. Source: docs/protocol #wire-limits, #wire-tls, #member-list, #releases-matrix and #settings-keys;
keys that begin with `distrocheck` are our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What the text of a value must be."""

    MILLISECONDS = "milliseconds"
    SECONDS = "seconds"
    BYTES = "bytes"
    COUNT = "count"
    PORT = "port"
    FLAG = "true or false"
    TEXT = "text"
    FILE = "file"
    LIST = "list, separated by commas"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key. `since` and `until` are the first and the last release that read it; `sets` is never empty."""

    key: str
    kind: Kind
    sets: tuple[str, ...]
    text: str
    since: str = "2.0.0"
    until: str | None = None


_DISTRO = "nacos.core.protocol.distro.data"
_GRPC = "nacos.remote.server.grpc"
_AUTH = "nacos.core.auth"
TLS_PREFIXES: Mapping[str, tuple[str, str]] = {
    "sdk_tls": ("nacos.remote.server.rpc.tls", "2.3.0"),
    "cluster_tls": ("nacos.remote.peer.rpc.tls", "2.4.0"),
}
"""Section -> prefix of its keys, and the first release that has them."""

LAST_LEGACY = "2.1.2"
"""Up to here three legacy keys overwrite those of Distro itself (docs/protocol #releases-matrix)."""


def _distro() -> Iterable[Setting]:
    sync, retry = "From a change to its sync.", "From a failed sync to the next try."
    load = "From a failed initial load to the next try."
    for key, field, text, since in (
        ("sync.delayMs", "sync_delay_ms", sync, "2.2.0"),
        ("sync.timeoutMs", "sync_timeout_ms", "Time-out of a sync.", "2.0.1"),
        ("sync.retryDelayMs", "sync_retry_delay_ms", retry, "2.2.0"),
        ("verify.intervalMs", "verify_interval_ms", "Between two verify rounds.", "2.0.1"),
        ("verify.timeoutMs", "verify_timeout_ms", "Time-out of a verify.", "2.0.1"),
        ("load.retryDelayMs", "load_retry_delay_ms", load, "2.2.0"),
        ("load.timeoutMs", "load_timeout_ms", "Time-out of a snapshot request.", "2.1.1"),
    ):
        yield Setting(f"{_DISTRO}.{key}", Kind.MILLISECONDS, (f"profile.{field}",), text, since)
    for key, field, text in (
        ("nacos.naming.distro.taskDispatchPeriod", "sync_delay_ms", sync),
        ("nacos.naming.distro.syncRetryDelay", "sync_retry_delay_ms", retry),
        ("nacos.naming.clean.loadDataRetryDelayMillis", "load_retry_delay_ms", load),
    ):
        yield Setting(key, Kind.MILLISECONDS, (f"profile.{field}",), text, until=LAST_LEGACY)


def _naming() -> Iterable[Setting]:
    lease = "How long a synced client lives without a sign of life."
    period, age = "Between two looks for empty services.", "So long an empty service stays in the list."
    expires = "An instance without beats is removed after a while, not only unhealthy."
    warm = "HTTP v1 naming answers 503 until the initial load is complete."
    ack, again = (
        "How long a subscriber may take to acknowledge.",
        "From a push without acknowledgement to the next try.",
    )
    for key, field, text, since in (
        ("client.expired.time", "client_expired_ms", lease, "2.0.3"),
        ("clean.empty-service.interval", "empty_service_clean_period_ms", period, "2.0.0"),
        ("clean.empty-service.expired-time", "empty_service_expired_ms", age, "2.0.0"),
        ("expireInstance", "expire_instance", expires, "2.0.0"),
        ("data.warmup", "data_warmup", warm, "2.0.0"),
        ("push.pushTaskDelay", "push_delay_ms", "From a change to the push of it.", "2.0.1"),
        ("push.pushTaskTimeout", "push_timeout_ms", ack, "2.0.1"),
        ("push.pushTaskRetryDelay", "push_retry_delay_ms", again, "2.0.1"),
    ):
        kind = Kind.MILLISECONDS if field.endswith("_ms") else Kind.FLAG
        yield Setting(f"nacos.naming.{key}", kind, (f"profile.{field}",), text, since)


def _node() -> Iterable[Setting]:
    yield Setting("server.port", Kind.PORT, ("node.port",), "The main port P.", until="2.5.1")
    yield Setting("nacos.server.main.port", Kind.PORT, ("node.port",), "The main port P.", "3.0.0")
    address = "The address that the node listens on and is known by."
    yield Setting("nacos.inetutils.ip-address", Kind.TEXT, ("node.ip",), address)
    yield Setting("nacos.member.list", Kind.LIST, ("node.members",), "The members, `ip:port`.")
    yield Setting("nacos.standalone", Kind.FLAG, ("node.standalone",), "The node is alone; excludes a member list.")
    failures = "So many failed reports in a row leave a member SUSPICIOUS, one more makes it DOWN."
    count = ("profile.member_fail_access_count",)
    yield Setting("nacos.core.member.fail-access-cnt", Kind.COUNT, count, failures)
    drain = "A stopping node deregisters its clients at the other members first; a real server does not."
    yield Setting("distrocheck.stop.drain", Kind.FLAG, ("options.drains_on_stop",), drain)


def _grpc() -> Iterable[Setting]:
    for server in ("sdk", "cluster"):
        ms, port = Kind.MILLISECONDS, "SDK" if server == "sdk" else "cluster"
        for name, kind, field, text in (
            ("max-inbound-message-size", Kind.BYTES, "max_inbound_bytes", f"Largest message on the {port} port."),
            ("keep-alive-time", ms, "keep_alive_ms", f"Between two pings of the {port} server."),
            ("keep-alive-timeout", ms, "keep_alive_timeout_ms", "How long the answer to a ping may take."),
            ("permit-keep-alive-time", ms, "permit_keep_alive_ms", "Clients that ping more often are closed."),
        ):
            yield Setting(f"{_GRPC}.{server}.{name}", kind, (f"{server}_server.{field}",), text, "2.2.1")
    reply = "Longest answer of a member, a snapshot for instance (B11)."
    name = "nacos.remote.client.grpc.maxinbound.message.size"
    yield Setting(name, Kind.BYTES, ("profile.reply_bytes_max",), reply, "3.0.1")
    both = ("sdk_server.max_inbound_bytes", "cluster_server.max_inbound_bytes")
    yield Setting(f"{_GRPC}.maxinbound.message.size", Kind.BYTES, both, "Largest message on both ports.")


def _tls() -> Iterable[Setting]:
    for section, (prefix, since) in TLS_PREFIXES.items():
        port = "SDK port" if section == "sdk_tls" else "cluster port, and on connections to other members"
        for name, kind, field, text in (
            ("enableTls", Kind.FLAG, "enabled", f"TLS on the {port}."),
            (
                "compatibility",
                Kind.FLAG,
                "compatibility",
                "Plain text on the same port; only `false` is possible here.",
            ),
            ("mutualAuthEnable", Kind.FLAG, "mutual", "The other side must show a certificate too."),
            ("certChainFile", Kind.FILE, "cert_chain_file", "The certificate of this node and its chain, PEM."),
            ("certPrivateKey", Kind.FILE, "private_key_file", "The private key, PEM."),
            ("trustCollectionCertFile", Kind.FILE, "trust_collection_file", "Who is trusted, PEM."),
            ("trustAll", Kind.FLAG, "trust_all", "Trust any certificate; only `false` is possible here."),
            ("certPrivateKeyPassword", Kind.TEXT, "key_password", "Of an encrypted key; with the extra `tls`."),
        ):
            yield Setting(f"{prefix}.{name}", kind, (f"{section}.{field}",), text, since)

    for name, kind, field, text in (
        ("enabled", Kind.FLAG, "enabled", "HTTPS on the main port, and towards the main ports of other members."),
        ("certificate", Kind.FILE, "cert_chain_file", "The certificate of this node and its chain, PEM."),
        ("certificate-private-key", Kind.FILE, "private_key_file", "The private key, PEM."),
        ("key-password", Kind.TEXT, "key_password", "Of an encrypted key."),
        ("trust-certificate", Kind.FILE, "trust_collection_file", "Who is trusted, PEM."),
        ("client-auth", Kind.TEXT, "client_auth", "`need`: the other side must show a certificate too."),
    ):
        yield Setting(f"server.ssl.{name}", kind, (f"http_tls.{field}",), text)


def _auth() -> Iterable[Setting]:
    yield Setting(f"{_AUTH}.enabled", Kind.FLAG, ("auth.enabled",), "Clients need a token.")
    secret = "Base64 of the secret, at least 32 bytes, that signs tokens; the same on all members."
    token = f"{_AUTH}.plugin.nacos.token"
    yield Setting(f"{token}.secret.key", Kind.TEXT, ("auth.secret",), secret, "2.1.0")
    yield Setting(f"{_AUTH}.default.token.secret.key", Kind.TEXT, ("auth.secret",), secret, until="2.1.2")
    life = "How long a token is valid."
    yield Setting(f"{token}.expire.seconds", Kind.SECONDS, ("auth.token_seconds",), life, "2.1.0")
    yield Setting(f"{_AUTH}.default.token.expire.seconds", Kind.SECONDS, ("auth.token_seconds",), life, until="2.1.2")
    agent = "HTTP requests that call themselves Nacos-Server need no token."
    white = ("auth.trusts_server_user_agent",)
    yield Setting(f"{_AUTH}.enable.userAgentAuthWhite", Kind.FLAG, white, agent, until="2.5.1")
    users = """Who may log in: `name:password`, an administrator; `name:password:r`, may only read;
    `name:password:r@dev;rw@test`, in these namespaces. Plain text."""
    yield Setting("distrocheck.auth.users", Kind.LIST, ("auth.users",), users)
    name = "Name of the header by which the members of a cluster know each other."
    yield Setting(f"{_AUTH}.server.identity.key", Kind.TEXT, ("identity.key",), name)
    yield Setting(f"{_AUTH}.server.identity.value", Kind.TEXT, ("identity.value",), "Its value.")


SETTINGS: Mapping[str, Setting] = {
    setting.key: setting for group in (_node, _distro, _naming, _grpc, _tls, _auth) for setting in group()
}
