"""What a node writes about connections, in the words of a real server: `remote-digest`, and from 2.2.0 on
`plugin-control-connection`.

The words are those of running servers of 2.0.4, 2.2.4 and 2.3.2; what they never showed is from docs/protocol
#log-lines. The spaces at the end are in the originals.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from distro_impl.logs import NodeLog, logger
from distro_impl.profiles import Profile
from distro_impl.remote.connection import ConnectionMeta

digest, control = logger("remote-digest"), logger("plugin-control-connection")


class ConnectionLog(NodeLog):
    def __init__(self, node: str, profile: Profile) -> None:
        super().__init__(node)
        self._registrations = control if profile.http_v2_api else digest  # both since 2.2.0

    def transport_ready(self, connection_id: str) -> None:
        self.write(digest, logging.INFO, "Connection transportReady,connectionId = %s ", connection_id)

    def transport_terminated(self, connection_id: str) -> None:
        self.write(digest, logging.INFO, "Connection transportTerminated,connectionId = %s ", connection_id)

    def registered(self, meta: ConnectionMeta) -> None:
        text = "new connection registered successfully, connectionId = %s,connection=%s "
        self.write(self._registrations, logging.INFO, text, meta.id, _Connection(meta), client=meta.id)

    def unregistered(self, connection_id: str) -> None:
        text = "[%s]Connection unregistered successfully. "
        self.write(self._registrations, logging.INFO, text, connection_id, client=connection_id)

    def not_registered(self, connection_id: str) -> None:
        text = "[grpc] Invalid connection Id ,connection [%s] is un registered ,"
        self.write(digest, logging.WARNING, text, connection_id)

    def no_handler(self, type_name: str) -> None:
        self.write(digest, logging.WARNING, "[grpc] No handler for request type : %s :", type_name)


class _Connection:
    """Put into words only where a line is written."""

    __slots__ = ("_meta",)

    def __init__(self, meta: ConnectionMeta) -> None:
        self._meta = meta

    def __str__(self) -> str:
        meta, created = self._meta, datetime.fromtimestamp(self._meta.created_ms / 1000, UTC)
        labels = ", ".join(f"{name}={value}" for name, value in meta.labels.items())
        return (
            f"Connection{{traced=false, abilities=null, metaInfo=ConnectionMeta{{connectType='GRPC', "
            f"clientIp='{meta.client_ip}', remoteIp='{meta.client_ip}', remotePort={meta.remote_port}, "
            f"localPort={meta.local_port}, version='{meta.version}', connectionId='{meta.id}', "
            f"createTime={created:%a %b %d %H:%M:%S UTC %Y}, lastActiveTime={meta.created_ms}, "
            f"appName='{meta.app_name}', tenant='{meta.tenant or 'null'}', labels={{{labels}}}}}}}"
        )
