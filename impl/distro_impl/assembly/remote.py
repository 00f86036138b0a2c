"""The side of a node that others connect to: who is connected, who may be, and the two gRPC servers."""

from __future__ import annotations

from functools import partial

from distro_impl.assembly.distro import Distro
from distro_impl.assembly.membership import Membership
from distro_impl.assembly.naming import Naming
from distro_impl.config import CLUSTER_PORT_OFFSET, SDK_PORT_OFFSET
from distro_impl.core import Core
from distro_impl.distro.distro_handler import DistroDataRequestHandler
from distro_impl.distro.transport_agent import DISTRO_DATA
from distro_impl.events import NodeEventKind
from distro_impl.membership.report import report_handlers
from distro_impl.membership.upgrade import guarded
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.remote.acceptor import RequestAcceptor
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_log import ConnectionLog
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.ejector import ConnectionEjector
from distro_impl.remote.handlers import CORE_HANDLERS, Handler
from distro_impl.security.callers import CLUSTER_ONLY
from distro_impl.security.inner_api import InnerApi
from distro_impl.security.request_filter import RemoteRequestAuthFilter
from distro_impl.security.tokens import TokenManager
from distro_impl.transport.health import Health


class Remote:
    def __init__(self, core: Core, membership: Membership, naming: Naming) -> None:
        clock, profile, options, clients = core.clock, core.profile, core.config.options, naming.clients

        def connected(connection: Connection) -> None:
            if connection.meta.is_naming:
                clients.client_connected(connection.id)

        def disconnected(connection: Connection) -> None:
            if clock.is_running:
                clients.delete(connection.id, NodeEventKind.CLIENT_DISCONNECTED)

        log = ConnectionLog(core.config.address, profile)
        self.core = core
        self.connections = ConnectionManager(core, connected, disconnected, log)
        self._ejector = ConnectionEjector(core, self.connections)
        self.health = Health()
        self.tokens = TokenManager(options.auth, clock) if options.auth else None
        """None where authentication is off."""
        self.inner_api = InnerApi(profile, options.identity, membership.members)

    def begin(self) -> None:
        """Start to look after the connections, and say that the node serves."""
        self._ejector.start()
        self.core.clock.spawn(self.health.set_serving(True), f"health of {self.core.config.address}")


def grpc_servers(
    remote: Remote, membership: Membership, naming: Naming, distro: Distro
) -> tuple[RequestAcceptor, RequestAcceptor]:
    """For SDKs and for members."""
    core, options = remote.core, remote.core.config.options
    acceptor = partial(
        RequestAcceptor,
        core,
        connections=remote.connections,
        handlers=_handlers(remote, membership, naming, distro),
        refusal=RemoteRequestAuthFilter(remote.inner_api, remote.tokens).refusal,
        health=remote.health,
    )
    forbidden = () if core.profile.distro_on_sdk_port else CLUSTER_ONLY
    return (
        acceptor("SDK", SDK_PORT_OFFSET, options.sdk_server, forbidden=forbidden),
        acceptor("cluster", CLUSTER_PORT_OFFSET, options.cluster_server),
    )


def _handlers(remote: Remote, membership: Membership, naming: Naming, distro: Distro) -> dict[str, Handler]:
    """Request type -> handler, the same on both servers."""
    profile, members = remote.core.profile, membership.members
    naming_handlers = NamingHandlers(profile, naming.clients, naming.storage, naming.instance_ids)
    distro_handler = DistroDataRequestHandler(profile, distro.processor, distro.log, lambda: distro.is_loaded)
    return {
        **CORE_HANDLERS,
        **report_handlers(members, profile),
        **guarded(profile, members, naming_handlers.table()),
        DISTRO_DATA: distro_handler.handle,
    }
