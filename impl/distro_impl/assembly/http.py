"""The HTTP server of a node: all routes, and the filters that stand before them, by the release that it plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aiohttp import web
from aiohttp.typedefs import Middleware

from distro_impl.assembly.distro import Distro
from distro_impl.assembly.membership import Membership
from distro_impl.assembly.naming import Naming
from distro_impl.assembly.remote import Remote
from distro_impl.http.auth import HttpAuthFilter, login_routes
from distro_impl.http.clients import ClientInfo, client_routes
from distro_impl.http.cluster import cluster_routes
from distro_impl.http.console import console_routes
from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.filters import close_old_apis, revise_traffic
from distro_impl.http.instances import InstanceOperations, instance_routes
from distro_impl.http.metrics import NodeMetrics, metrics_routes
from distro_impl.http.operator import Operator, operator_routes
from distro_impl.http.server import HttpServer
from distro_impl.http.services import service_routes


def http_server(
    remote: Remote, membership: Membership, naming: Naming, distro: Distro, status: Callable[[], str]
) -> HttpServer:
    """`status` says whether naming is UP."""
    config = remote.core.config
    return HttpServer(
        ip=config.ip,
        port=config.port,
        purpose=f"HTTP of node {config.address}",
        routes=_routes(remote, membership, naming, distro, status),
        filters=_filters(remote, status),
        tls=config.options.http_tls,
        transport=remote.core.transport,
    )


def _routes(
    remote: Remote, membership: Membership, naming: Naming, distro: Distro, status: Callable[[], str]
) -> Iterable[web.RouteDef]:
    core, profile, members, clients = remote.core, remote.core.profile, membership.members, naming.clients
    distro_filter = DistroFilter(core, naming.mapper, membership.http_client)
    operations = InstanceOperations(naming.instances, clients, naming.switches)
    yield from instance_routes(profile, operations, distro_filter)
    yield from service_routes(clients)
    yield from operator_routes(profile, Operator(clients, members, naming.mapper, naming.switches, status))
    yield from cluster_routes(profile, members)
    yield from login_routes(profile, remote.tokens)
    yield from console_routes(core.config, status)
    yield from client_routes(profile, ClientInfo(profile, clients, remote.connections))
    yield from metrics_routes(
        NodeMetrics(clients, remote.connections, members, distro=distro.log.record, pushes=naming.log.pushes)
    )


def _filters(remote: Remote, status: Callable[[], str]) -> Iterable[Middleware]:
    """In the order in which a request meets them."""
    profile, auth = remote.core.profile, remote.core.config.options.auth
    yield revise_traffic(status)
    if profile.http_v3_api:
        yield close_old_apis(remote.inner_api)
    yield HttpAuthFilter(profile, auth, remote.tokens, remote.inner_api).middleware()
