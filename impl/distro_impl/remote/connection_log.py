"""What a node writes about connections, in the words of a real server: `remote-digest`, and from 2.2.0 on
`plugin-control-connection`.

The words are those of running servers of 2.0.4, 2.2.4 and 2.3.2; what they never showed is from docs/protocol
#log-lines. The spaces at the end are in the originals.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import partial

from distro_impl.logs import NodeLog, line, logger
from distro_impl.profiles import Profile
from distro_impl.remote.connection import ConnectionMeta

digest, control = logger("remote-digest"), logger("plugin-control-connection")


class ConnectionLog(NodeLog):
    def __init__(self, node: str, profile: Profile) -> None:
        super().__init__(node)
        self._registrations = control if profile.http_v2_api else digest  # both since 2.2.0

    transport_ready = line(digest, logging.INFO, "Connection transportReady,connectionId = %s ")
    transport_terminated = line(digest, logging.INFO, "Connection transportTerminated,connectionId = %s ")
    not_registered = line(digest, logging.WARNING, "[grpc] Invalid connection Id ,connection [%s] is un registered ,")
    no_handler = line(digest, logging.WARNING, "[grpc] No handler for request type : %s :")

    def registered(self, meta: ConnectionMeta) -> None:
        text = "new connection registered successfully, connectionId = %s,connection=%s "
        self.write(self._registrations, logging.INFO, text, meta.id, partial(_connection, meta), client=meta.id)

    def unregistered(self, connection_id: str) -> None:
        text = "[%s]Connection unregistered successfully. "
        self.write(self._registrations, logging.INFO, text, connection_id, client=connection_id)


def _connection(meta: ConnectionMeta) -> str:
    created = datetime.fromtimestamp(meta.created_ms / 1000, UTC)
    labels = ", ".join(f"{name}={value}" for name, value in meta.labels.items())
    return (
        f"Connection{{traced=false, abilities=null, metaInfo=ConnectionMeta{{connectType='GRPC', "
        f"clientIp='{meta.client_ip}', remoteIp='{meta.client_ip}', remotePort={meta.remote_port}, "
        f"localPort={meta.local_port}, version='{meta.version}', connectionId='{meta.id}', "
        f"createTime={created:%a %b %d %H:%M:%S UTC %Y}, lastActiveTime={meta.created_ms}, "
        f"appName='{meta.app_name}', tenant='{meta.tenant or 'null'}', labels={{{labels}}}}}}}"
    )
