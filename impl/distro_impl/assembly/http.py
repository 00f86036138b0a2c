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
from distro_impl.http.server import CONTEXT_PATH, HttpServer
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
        routes=[
            *_naming_routes(membership, naming, status),
            *_core_routes(remote, membership),
            *console_routes(config, status),
            *client_routes(config.profile, ClientInfo(config.profile, naming.clients, remote.connections)),
            *metrics_routes(_metrics(remote, membership, naming, distro)),
        ],
        filters=_filters(remote, status),
        tls=config.options.http_tls,
        transport=remote.core.transport,
    )


def _naming_routes(membership: Membership, naming: Naming, status: Callable[[], str]) -> Iterable[web.RouteDef]:
    core, profile = naming.core, naming.core.profile
    distro_filter = DistroFilter(core, naming.mapper, membership.http_client)
    operations = InstanceOperations(naming.instances, naming.clients, naming.switches)
    operator = Operator(
        clients=naming.clients,
        members=membership.members,
        mapper=naming.mapper,
        switches=naming.switches,
        status=status,
    )
    yield from instance_routes(profile, operations, distro_filter)
    yield from service_routes(naming.clients)
    yield from operator_routes(profile, operator)


def _core_routes(remote: Remote, membership: Membership) -> Iterable[web.RouteDef]:
    profile = remote.core.profile
    yield from cluster_routes(profile, membership.members)
    yield from login_routes(profile, remote.tokens)


def _metrics(remote: Remote, membership: Membership, naming: Naming, distro: Distro) -> NodeMetrics:
    return NodeMetrics(
        clients=naming.clients,
        connections=remote.connections,
        members=membership.members,
        distro=distro.record,
        pushes=naming.push_record,
    )


def _filters(remote: Remote, status: Callable[[], str]) -> Iterable[Middleware]:
    """In the order in which a request meets them."""
    profile, auth = remote.core.profile, remote.core.config.options.auth
    yield revise_traffic(CONTEXT_PATH, status)
    if profile.http_v3_api:
        yield close_old_apis(CONTEXT_PATH, remote.inner_api)
    yield HttpAuthFilter(CONTEXT_PATH, profile, auth, remote.tokens, remote.inner_api).middleware()
