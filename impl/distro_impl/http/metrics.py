"""`/nacos/actuator/prometheus`: the metrics of a node, for Prometheus.

All values are read from the node when they are requested, so metrics cost nothing before. A metric that Nacos has, too,
has the name of Nacos; others begin with `distrocheck_`. Each node has a registry of its own, since several nodes may
run in one process. Source: docs/protocol #http-admin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from distro_impl.distro.record import DistroRecord
from distro_impl.membership.member import MemberState
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.client import Client
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import is_ip_port
from distro_impl.naming.naming_log import PushRecord
from distro_impl.remote.connection_manager import ConnectionManager


@dataclass(frozen=True, slots=True, eq=False)
class NodeMetrics(Collector):
    """All metrics of one node."""

    clients: ClientManager
    connections: ConnectionManager
    members: ServerMemberManager
    distro: DistroRecord
    pushes: PushRecord

    def collect(self) -> Iterator[Metric]:
        clients = tuple(self.clients)
        yield self._monitor(clients)
        yield _by_version("nacos_naming_publisher", "Services published, by kind of client", clients, "publishers")
        yield _by_version("nacos_naming_subscriber", "Subscriptions, by kind of client", clients, "subscribers")
        yield from self._distro()
        states = GaugeMetricFamily("distrocheck_members", "Other members, by state", labels=["state"])
        for state in MemberState:
            count = sum(member.state is state for member in self.members.others.values())
            states.add_metric([state], count)
        yield states

    def _monitor(self, clients: tuple[Client, ...]) -> Metric:
        values = (
            ("naming", "serviceCount", len(self.clients.services())),
            ("naming", "ipCount", sum(len(client.publishers) for client in clients)),
            ("naming", "subscriberCount", sum(len(client.subscribers) for client in clients)),
            ("naming", "totalPush", self.pushes.total),
            ("naming", "failedPush", self.pushes.failed),
            ("core", "longConnection", len(self.connections)),
        )
        monitor = GaugeMetricFamily("nacos_monitor", "The metrics of a Nacos server", labels=["module", "name"])
        for module, name, value in values:
            monitor.add_metric([module, name], value)
        return monitor

    def _distro(self) -> Iterator[Metric]:
        syncs = CounterMetricFamily("distrocheck_distro_syncs", "CHANGE and DELETE to a member", labels=["result"])
        syncs.add_metric(["success"], self.distro.sync_successes)
        syncs.add_metric(["failure"], self.distro.sync_failures)
        yield syncs
        yield CounterMetricFamily("distrocheck_distro_verifies", "VERIFY to a member", self.distro.verifies)
        failures = "VERIFY to a member without success"
        yield CounterMetricFamily("distrocheck_distro_verify_failures", failures, self.distro.verify_failures)
        late = "Verify rounds to a member that had to wait for the end of the one before"
        yield CounterMetricFamily("distrocheck_distro_verify_rounds_late", late, self.distro.verify_rounds_late)
        if self.distro.load_ms is not None:
            seconds = self.distro.load_ms / 1000
            yield GaugeMetricFamily("distrocheck_distro_load_seconds", "From the start to the end of the load", seconds)


def metrics_routes(metrics: NodeMetrics) -> Iterable[web.RouteDef]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)

    async def prometheus(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    yield web.get("/actuator/prometheus", prometheus)


def _by_version(name: str, text: str, clients: Iterable[Client], field: str) -> Metric:
    """The metric with a label for the kind of client. `v1`: clients without a connection, identified by ip and port."""
    counts = {"v1": 0, "v2": 0}
    for client in clients:
        counts["v1" if is_ip_port(client.id) else "v2"] += len(getattr(client, field))
    family = GaugeMetricFamily(name, text, labels=["version"])
    for version, count in counts.items():
        family.add_metric([version], count)
    return family
