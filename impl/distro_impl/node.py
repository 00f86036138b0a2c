"""A node: its parts, how they are put together, and the two ways to end.

Everything that a node knows hangs on one `Node` object and everything that it does runs on its `Lifetime`; after a
crash neither speaks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiohttp.typedefs import Middleware

from distro_impl.clocks.clock import Clock
from distro_impl.clocks.lifetime import Lifetime
from distro_impl.config import CLUSTER_PORT_OFFSET, SDK_PORT_OFFSET, NodeConfig
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_handler import DistroDataRequestHandler
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.mapper import DistroMapper
from distro_impl.distro.record import DistroRecord
from distro_impl.distro.transport_agent import DISTRO_DATA, DistroTransportAgent
from distro_impl.distro.verify_task import VerifyTask
from distro_impl.events import NodeEventKind, Observer, Watch
from distro_impl.http.api import api_filters, api_routes
from distro_impl.http.auth import auth_filter, login_routes
from distro_impl.http.client import HttpClient
from distro_impl.http.cluster import cluster_routes
from distro_impl.http.filters import UP
from distro_impl.http.loader import loader_routes
from distro_impl.http.metrics import NodeMetrics, metrics_routes
from distro_impl.http.server import CONTEXT_PATH, HttpServer
from distro_impl.membership.lookup import POLL_MS, FileMemberLookup, MemberListError
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import MemberReportTask
from distro_impl.membership.upgrade import UpgradeJudgement
from distro_impl.naming.beats import Beats
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_id import InstanceIdGenerator
from distro_impl.naming.instance_operator import InstanceOperator
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.naming.push import PushRecord, PushService
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.notify_center import NotifyCenter
from distro_impl.options import GrpcServerOptions
from distro_impl.remote.acceptor import RequestAcceptor
from distro_impl.remote.cluster_clients import ClusterRpcClientProxy, Interceptors
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.ejector import ConnectionEjector
from distro_impl.remote.grpc_server import Health
from distro_impl.remote.handlers import Handler, core_handlers
from distro_impl.remote.limits import ConnectionLimits
from distro_impl.remote.loader import ServerLoader
from distro_impl.security.request_filter import InnerApi, RemoteRequestAuthFilter
from distro_impl.security.tokens import TokenManager
from distro_impl.settings.errors import SettingError
from distro_impl.tasks.execute_engine import ExecuteTaskEngine

STOP_GRACE_S = 1.0
DRAIN_TIMEOUT_S = 2.0
"""How long a draining node waits for the other members, in real time."""
PEER_LOST_TIMEOUT_S = 10.0


class Node:
    """One node, one life: a crashed or stopped node is not started again, a new one takes its address."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        clock: Clock,
        observer: Observer | None = None,
        interceptors: Interceptors | None = None,
    ) -> None:
        """Raises MemberListError when the file with the members cannot be used."""
        self.config = config
        self.address: str = config.address
        self._begun = False
        self._distro: DistroProtocol | None = None
        profile = config.profile
        self._lifetime = clock = Lifetime(clock)
        self._watch = Watch(self.address, clock, observer, profile)
        self._notify_center = NotifyCenter()
        self._connections = ConnectionManager(
            clock, profile, config.connection_limits, self._on_connected, self._on_disconnected
        )
        self._ejector = ConnectionEjector(clock, profile, self._connections)
        self._http_client = HttpClient()
        self._lookup = FileMemberLookup(config.member_list_file, config.port) if config.member_list_file else None
        self._members = ServerMemberManager(config, self._notify_center, self._other_members())
        self._switches = SwitchDomain()
        self._mapper = DistroMapper(
            profile, self._members, self._switches, self._notify_center, standalone=config.is_standalone
        )
        self._clients = ClientManager(clock, profile, self._notify_center, self._watch, self._mapper.responsible)
        self._peers = ClusterRpcClientProxy(config, clock, self._members, self._notify_center, interceptors)
        self._reports = MemberReportTask(clock, profile, self._members, self._peers, self._http_client)
        self._loader = ServerLoader(clock, self._members, self._peers, self._connections, self._ejector)
        self._agent = DistroTransportAgent(profile, self._members, self._peers)
        self._log = DistroLog(self.address, shows_revision=profile.revision_sent)
        self._processor = DistroClientDataProcessor(clock, profile, self._clients, self._watch, self._log)
        self.record = DistroRecord()
        self._load_task = LoadTask(
            clock,
            profile,
            self._members,
            self._processor,
            self._agent,
            self.record,
            self._log,
            standalone=config.is_standalone,
        )
        self._storage = ServiceStorage(clock, profile, self._clients, self._notify_center)
        self._instance_ids = InstanceIdGenerator(clock, self.address)
        self._instances = self._instance_operator()
        self._push_record = PushRecord()
        self._tokens = TokenManager(config.options.auth, clock) if config.options.auth else None
        self._inner_api = InnerApi(profile, config.options.identity, self._members)
        self._health = Health()
        self._servers: tuple[RequestAcceptor | HttpServer, ...] = (
            self._acceptor(
                SDK_PORT_OFFSET,
                "SDK gRPC",
                config.options.sdk_server,
                refuses_cluster_requests=not profile.distro_on_sdk_port,
            ),
            self._acceptor(
                CLUSTER_PORT_OFFSET, "cluster gRPC", config.options.cluster_server, refuses_cluster_requests=False
            ),
            self._http_server(),
        )

    # Life

    async def start(self) -> None:
        """Bind all ports, then begin. Raises PortInUseError."""
        await self.bind()
        self.begin()

    async def bind(self) -> None:
        """Open all servers; until `begin` they answer that the server is starting. Raises PortInUseError."""
        await self._health.set_serving(False)
        try:
            for server in self._servers:
                await server.start()
        except (OSError, SettingError):
            await self.crash()
            raise

    def begin(self) -> None:
        """Start the initial load and the timers; all of them, and the ticks of the engines, count from now."""
        clock, profile = self._lifetime, self.config.profile
        execute_engine = ExecuteTaskEngine(clock)
        verify_task = VerifyTask(
            members=self._members,
            processor=self._processor,
            agent=self._agent,
            load_task=self._load_task,
            record=self.record,
            log=self._log,
            execute_engine=execute_engine,
            notify_center=self._notify_center,
        )
        PushService(
            clock=clock,
            profile=profile,
            clients=self._clients,
            storage=self._storage,
            connections=self._connections,
            switches=self._switches,
            notify_center=self._notify_center,
            record=self._push_record,
        )
        self._distro = DistroProtocol(
            clock=clock,
            profile=profile,
            members=self._members,
            mapper=self._mapper,
            clients=self._clients,
            processor=self._processor,
            agent=self._agent,
            record=self.record,
            log=self._log,
            execute_engine=execute_engine,
            notify_center=self._notify_center,
        )
        now_ms = clock.now_ms()
        cleaner_ms, verify_ms = profile.client_clean_period_ms, profile.verify_interval_ms
        clock.every(cleaner_ms, self._clients.remove_expired, first_ms=now_ms, name="expired client cleaner")
        clock.every(
            profile.empty_service_clean_period_ms,
            self._clients.remove_empty_services,
            first_ms=now_ms + profile.empty_service_clean_first_ms,
            name="empty service cleaner",
        )
        if not self.config.is_standalone:
            clock.every(verify_ms, verify_task.run, first_ms=now_ms + verify_ms, name="verify round")
            clock.every(
                profile.report_period_ms,
                self._reports.report_to_next,
                first_ms=now_ms + profile.report_first_ms,
                name="member report",
            )
            if profile.reports_to_members_not_up:
                period_ms = profile.report_not_up_period_ms
                clock.every(
                    period_ms,
                    self._reports.report_to_those_not_up,
                    first_ms=now_ms + period_ms,
                    name="report to members that are not UP",
                )
        if self._lookup:
            clock.every(POLL_MS, self._reload_members, first_ms=now_ms + POLL_MS, name="member list")
        self._begun = True
        self._ejector.start()
        clock.spawn(self._health.set_serving(True), f"health of {self.address}")
        clock.spawn(self._load_task.run(), f"initial load of {self.address}")

    async def stop(self) -> None:
        """Answer what is under way, close every connection and end.

        Peers are told nothing about our clients, as real servers do not, unless the options say `drains_on_stop`.
        """
        if self.config.options.drains_on_stop and self._distro is not None:
            await self._drain(self._distro)
        await self._end(STOP_GRACE_S)

    async def _drain(self, distro: DistroProtocol) -> None:
        """Let nobody in, disconnect everybody, and tell the other members; what they answer is not waited for long."""
        await self._health.set_serving(False)
        await asyncio.gather(*(server.stop(STOP_GRACE_S) for server in self._servers))
        flushed = self._lifetime.spawn(distro.flush(), f"last syncs of {self.address}")
        await asyncio.wait({flushed}, timeout=DRAIN_TIMEOUT_S)

    async def crash(self) -> None:
        """End at once: nothing more is said or observed, all memory is gone."""
        await self._end(None)

    async def _end(self, grace_s: float | None) -> None:
        self._begun = False
        self._watch.close()
        await self._lifetime.end()
        await asyncio.gather(
            *(server.stop(grace_s) for server in self._servers), self._peers.close(), self._http_client.close()
        )

    @property
    def members(self) -> ServerMemberManager:
        """Who the members are, and in which state this node sees them."""
        return self._members

    def change_members(self, addresses: Iterable[str]) -> None:
        """From now on these are the members, as if the file with the list had been changed."""
        self._members.change_list(addresses)

    def limit_connections(self, limits: ConnectionLimits) -> None:
        """From now on these are the limits; where the release does that, what is above them is asked to go."""
        self._connections.limits = limits

    def _reload_members(self) -> None:
        listed = self._lookup.read_if_changed() if self._lookup else None
        if listed is not None:
            self._members.change_list(listed)

    # Waiting

    async def wait_disconnected(self, client_id: str) -> None:
        """Until the stream of that client has ended and its removal was handled."""
        await self._connections.wait_gone(client_id)

    async def wait_peer_lost(self, peer: str) -> None:
        """Until no cluster connection of ours to `peer` is open. Raises TimeoutError after 10 s of real time."""
        await asyncio.wait_for(self._peers.wait_lost(peer), PEER_LOST_TIMEOUT_S)

    # Parts

    def _other_members(self) -> tuple[str, ...]:
        """Those of the configuration, or of the file. Raises MemberListError."""
        if self._lookup is None:
            return self.config.other_members
        listed = self._lookup.read()
        if self.address not in listed:
            raise MemberListError(
                f"the member list {self.config.member_list_file} lacks the node itself, {self.address}"
            )
        return tuple(member for member in listed if member != self.address)

    def _acceptor(
        self, offset: int, purpose: str, options: GrpcServerOptions, *, refuses_cluster_requests: bool
    ) -> RequestAcceptor:
        return RequestAcceptor(
            ip=self.config.ip,
            port=self.config.port + offset,
            purpose=f"{purpose} of node {self.address}",
            options=options,
            refuses_cluster_requests=refuses_cluster_requests,
            clock=self._lifetime,
            profile=self.config.profile,
            connections=self._connections,
            handlers=self._handlers(),
            auth_filter=RemoteRequestAuthFilter(self._inner_api, self._tokens),
            health=self._health,
            is_started=lambda: self._begun,
        )

    def _instance_operator(self) -> InstanceOperator:
        beats = Beats(
            clock=self._lifetime,
            profile=self.config.profile,
            clients=self._clients,
            switches=self._switches,
            notify_center=self._notify_center,
            watch=self._watch,
        )
        return InstanceOperator(
            clock=self._lifetime,
            clients=self._clients,
            storage=self._storage,
            ids=self._instance_ids,
            beats=beats,
            switches=self._switches,
            watch=self._watch,
        )

    def _http_server(self) -> HttpServer:
        return HttpServer(
            ip=self.config.ip,
            port=self.config.port,
            purpose=f"HTTP of node {self.address}",
            routes=[
                *api_routes(
                    config=self.config,
                    clock=self._lifetime,
                    clients=self._clients,
                    connections=self._connections,
                    members=self._members,
                    mapper=self._mapper,
                    instances=self._instances,
                    switches=self._switches,
                    http_client=self._http_client,
                    status=self._server_status,
                ),
                *cluster_routes(self._members, self.config.profile),
                *loader_routes(self._loader),
                *login_routes(self.config.profile, self._tokens),
                *metrics_routes(self._metrics()),
            ],
            filters=[*api_filters(self.config.profile, self._server_status), *self._auth_filters()],
        )

    def _server_status(self) -> str:
        """As ServerStatusManager has it: with data warm-up a node is DOWN until its initial load is complete."""
        if not self._begun:
            return "STARTING"
        is_cold = self.config.profile.data_warmup and not self._load_task.finished_initial
        return "DOWN" if is_cold else UP

    def _metrics(self) -> NodeMetrics:
        return NodeMetrics(
            clients=self._clients,
            connections=self._connections,
            members=self._members,
            distro=self.record,
            pushes=self._push_record,
        )

    def _auth_filters(self) -> tuple[Middleware, ...]:
        auth = self.config.options.auth
        if auth is None or self._tokens is None:
            return ()
        return (auth_filter(CONTEXT_PATH, self.config.profile, auth, self._tokens, self._inner_api),)

    def _handlers(self) -> dict[str, Handler]:
        profile = self.config.profile
        naming = NamingHandlers(profile, self._clients, self._storage, self._instance_ids, self._watch)
        distro = DistroDataRequestHandler(profile, self._processor, self._log, lambda: self._load_task.finished_initial)
        return {
            **core_handlers(self._members),
            **self._loader.handlers(),
            **UpgradeJudgement(profile, self._members).guarded(naming.table()),
            DISTRO_DATA: distro.handle,
        }

    def _on_connected(self, connection: Connection) -> None:
        if connection.meta.is_naming:
            self._clients.client_connected(connection.id)

    def _on_disconnected(self, connection: Connection) -> None:
        if self._begun:
            self._clients.delete(connection.id, NodeEventKind.CLIENT_DISCONNECTED)
