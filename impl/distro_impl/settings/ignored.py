"""Keys of a full Nacos server that have nothing to configure in this node, and why.

By prefix, the longest one first. A file of a real server can so be taken as it is: what is listed here is named at
start and otherwise left alone; what is neither here nor in the registry is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_CONFIG = "the node has no configuration service"
_NO_DATABASE = "the node keeps everything in memory"
_NO_RAFT = "persistent instances and metadata need raft, which the node does not have"
_NO_SPRING = "the HTTP server is not Spring's"
_NO_CONSOLE = "the node has no console"
_NO_PLUGIN = "the node has no plug-ins"

IGNORED: Mapping[str, str] = {
    "address.server.": "members come from the list, not from an address server",
    "db.": _NO_DATABASE,
    "embeddedStorage": _NO_DATABASE,
    "management.": "metrics are always at /nacos/actuator/prometheus and go nowhere else",
    "nacos.cmdb.": _NO_PLUGIN,
    "nacos.config.": _NO_CONFIG,
    "nacos.console.": _NO_CONSOLE,
    "nacos.core.address-server.": "members come from the list, not from an address server",
    "nacos.core.auth.admin.enabled": _NO_CONSOLE,
    "nacos.core.auth.caching.enabled": "permissions are not cached",
    "nacos.core.auth.console.enabled": _NO_CONSOLE,
    "nacos.core.auth.ldap.": _NO_PLUGIN,
    "nacos.core.auth.nacos.": _NO_PLUGIN,
    "nacos.core.auth.plugin.nacos.token.cache.enable": "tokens are not cached",
    "nacos.core.auth.plugin.": _NO_PLUGIN,
    "nacos.core.auth.system.type": "there is one kind of user, named by distrocheck.auth.users",
    "nacos.core.inet.": "the address is nacos.inetutils.ip-address",
    "nacos.core.member.lookup.type": "members come from the list",
    "nacos.core.member.meta.": "the other members do not act on it",
    "nacos.core.monitor.": "only the metrics themselves are offered",
    "nacos.core.protocol.raft.": _NO_RAFT,
    "nacos.core.snowflake.": "there is one generator of ids",
    "nacos.core.sys.": "the node measures no load",
    "nacos.deployment.type": _NO_CONSOLE,
    "nacos.inetutils.": "the address is nacos.inetutils.ip-address",
    "nacos.istio.": _NO_PLUGIN,
    "nacos.k8s.": _NO_PLUGIN,
    "nacos.logs.": "logs go to standard error, and where `serve --log-dir` says",
    "nacos.plugin.": _NO_PLUGIN,
    "nacos.security.ignore.urls": "paths that need no token are fixed",
    "nacos.naming.clean.expired-metadata.": _NO_RAFT,
    "nacos.prometheus.": "metrics are always at /nacos/actuator/prometheus",
    "nacos.remote.server.rpc.tls.ciphers": "gRPC chooses the ciphers",
    "nacos.remote.server.rpc.tls.protocols": "gRPC speaks TLS 1.2 and 1.3",
    "nacos.remote.server.rpc.tls.ssl": "there is one TLS library, and certificates are read at start",
    "nacos.remote.peer.rpc.tls.ciphers": "gRPC chooses the ciphers",
    "nacos.remote.peer.rpc.tls.protocols": "gRPC speaks TLS 1.2 and 1.3",
    "nacos.remote.peer.rpc.tls.ssl": "there is one TLS library, and certificates are read at start",
    "server.address": "the node listens on nacos.inetutils.ip-address",
    "server.error.": _NO_SPRING,
    "server.max-http-": _NO_SPRING,
    "server.servlet.": "the context path is always /nacos",
    "server.tomcat.": _NO_SPRING,
    "spring.": _NO_SPRING,
}


def why_ignored(key: str) -> str | None:
    """None for a key that is not a known one without effect."""
    prefix = max((prefix for prefix in IGNORED if key.startswith(prefix)), key=len, default=None)
    return None if prefix is None else IGNORED[prefix]
