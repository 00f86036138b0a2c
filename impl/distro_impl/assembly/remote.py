"""The side of a node that others connect to: who is connected, who may be, and the two gRPC servers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Self

from distro_impl.assembly.core import Core
from distro_impl.assembly.distro import Distro
from distro_impl.assembly.membership import Membership
from distro_impl.assembly.naming import Naming
from distro_impl.config import CLUSTER_PORT_OFFSET, SDK_PORT_OFFSET
from distro_impl.distro.distro_handler import DistroDataRequestHandler
from distro_impl.distro.transport_agent import DISTRO_DATA
from distro_impl.events import NodeEventKind
from distro_impl.membership.report_handler import report_handlers
from distro_impl.membership.upgrade import UpgradeJudgement
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.options import GrpcServerOptions
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Remote:
    core: Core
    connections: ConnectionManager
    ejector: ConnectionEjector
    health: Health
    tokens: TokenManager | None
    """None where authentication is off."""
    inner_api: InnerApi

    @classmethod
    def of(cls, core: Core, membership: Membership, naming: Naming) -> Self:
        clock, profile, options = core.clock, core.profile, core.config.options

        def connected(connection: Connection) -> None:
            if connection.meta.is_naming:
                naming.clients.client_connected(connection.id)

        def disconnected(connection: Connection) -> None:
            if clock.is_running:
                naming.clients.delete(connection.id, NodeEventKind.CLIENT_DISCONNECTED)

        log = ConnectionLog(core.config.address, profile)
        connections = ConnectionManager(clock, profile, core.config.connection_limits, connected, disconnected, log)
        ejector = ConnectionEjector(clock, profile, connections)
        return cls(
            core=core,
            connections=connections,
            ejector=ejector,
            health=Health(),
            tokens=TokenManager(options.auth, clock) if options.auth else None,
            inner_api=InnerApi(profile, options.identity, membership.members),
        )

    def begin(self) -> None:
        """Start to look after the connections, and say that the node serves."""
        self.ejector.start()
        self.core.clock.spawn(self.health.set_serving(True), f"health of {self.core.config.address}")


def grpc_servers(
    remote: Remote, membership: Membership, naming: Naming, distro: Distro
) -> tuple[RequestAcceptor, RequestAcceptor]:
    """For SDKs and for members."""
    core, options = remote.core, remote.core.config.options
    handlers = _handlers(remote, membership, naming, distro)

    refusal = RemoteRequestAuthFilter(remote.inner_api, remote.tokens).refusal

    def server(
        offset: int,
        purpose: str,
        options: GrpcServerOptions,
        is_member: Callable[[str], bool],
        forbidden: Collection[str] = (),
    ) -> RequestAcceptor:
        return RequestAcceptor(
            ip=core.config.ip,
            port=core.config.port + offset,
            purpose=f"{purpose} gRPC of node {core.config.address}",
            options=options,
            transport=core.transport,
            forbidden=forbidden,
            clock=core.clock,
            profile=core.profile,
            connections=remote.connections,
            handlers=handlers,
            refusal=refusal,
            health=remote.health,
            is_started=lambda: core.clock.is_running,
            is_member=is_member,
        )

    forbidden = () if core.profile.distro_on_sdk_port else CLUSTER_ONLY
    return (
        server(SDK_PORT_OFFSET, "SDK", options.sdk_server, lambda _: False, forbidden),
        server(CLUSTER_PORT_OFFSET, "cluster", options.cluster_server, remote.inner_api.may_be_member),
    )


def _handlers(remote: Remote, membership: Membership, naming: Naming, distro: Distro) -> dict[str, Handler]:
    """Request type -> handler, the same on both servers."""
    profile, members = remote.core.profile, membership.members
    naming_handlers = NamingHandlers(profile, naming.clients, naming.storage, naming.instance_ids)
    distro_handler = DistroDataRequestHandler(profile, distro.processor, distro.log, lambda: distro.is_loaded)
    return {
        **CORE_HANDLERS,
        **report_handlers(members, profile),
        **UpgradeJudgement(profile, members).guarded(naming_handlers.table()),
        DISTRO_DATA: distro_handler.handle,
    }
