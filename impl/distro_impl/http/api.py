"""All of a node's HTTP API: which routes it has and which filters stand before them, by the release that it plays."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from distro_impl.clocks.clock import Clock
from distro_impl.config import NodeConfig
from distro_impl.distro.mapper import DistroMapper
from distro_impl.http.client import HttpClient
from distro_impl.http.clients import ClientInfo, client_routes
from distro_impl.http.console import console_routes
from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.filters import close_old_apis, revise_traffic
from distro_impl.http.instances import InstanceOperations, instance_routes
from distro_impl.http.instances_v2 import instance_routes_v2
from distro_impl.http.nodes import node_routes
from distro_impl.http.operator import Operator, operator_routes
from distro_impl.http.server import CONTEXT_PATH
from distro_impl.http.services import service_routes
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import InstanceOperator
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.profiles import Profile
from distro_impl.remote.connection_manager import ConnectionManager


def api_routes(
    *,
    config: NodeConfig,
    clock: Clock,
    clients: ClientManager,
    connections: ConnectionManager,
    members: ServerMemberManager,
    mapper: DistroMapper,
    instances: InstanceOperator,
    switches: SwitchDomain,
    http_client: HttpClient,
    status: Callable[[], str],
) -> list[web.RouteDef]:
    profile = config.profile
    distro_filter = DistroFilter(config, clock, mapper, http_client)
    operations = InstanceOperations(instances, clients, switches)
    operator = Operator(clients=clients, members=members, mapper=mapper, switches=switches, status=status)
    return [
        *instance_routes(operations, distro_filter),
        *instance_routes_v2(profile, operations, distro_filter),
        *service_routes(clients),
        *operator_routes(profile, operator),
        *client_routes(profile, ClientInfo(profile, clients, connections)),
        *node_routes(profile, members),
        *console_routes(config, status),
    ]


def api_filters(profile: Profile, status: Callable[[], str]) -> list[Middleware]:
    """In the order in which a request meets them."""
    filters = [revise_traffic(CONTEXT_PATH, status)]
    return [*filters, close_old_apis(CONTEXT_PATH)] if profile.http_v3_api else filters
