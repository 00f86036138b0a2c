"""`/v1/ns/instance`: how clients of the 1.x generation register, beat and look up.

Writes are forwarded to the owner of the client that they are about; reads are answered from what this node knows.
Success is a plain `ok`, or JSON without a wrapper. Source: docs/protocol #http-v1, InstanceController.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.instance_parameters import address_of, beat_of, cluster_of, instance_of
from distro_impl.http.parameters import Parameters, read_parameters
from distro_impl.http.replies import ApiError, ErrorCode, json_reply, text
from distro_impl.http.service_names import GROUP_SEPARATOR, UNGROUPED, service_named, service_of
from distro_impl.naming.client import DEFAULT_CLUSTER, DEFAULT_NAMESPACE, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import InstanceOperator
from distro_impl.naming.ip_port_client import Agent, ip_port_client_id
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.naming.udp_push import can_be_pushed_to
from distro_impl.remote.errors import SERVER_ERROR, NacosError
from distro_protos import Json

NAMESPACE_SEPARATOR = "##"


class InstanceOperations:
    """What the v1, v2 and v3 APIs do; they differ in how they say it."""

    def __init__(self, operator: InstanceOperator, clients: ClientManager, switches: SwitchDomain) -> None:
        self._operator, self._clients, self._switches = operator, clients, switches

    def register(self, parameters: Parameters, *, has_id: bool = True) -> None:
        service = service_of(parameters)
        instance = instance_of(parameters, service)
        self._operator.register(service, instance if has_id else replace(instance, instance_id=None), has_id=has_id)

    def deregister(self, parameters: Parameters) -> None:
        """What is not there is gone already; so is every persistent instance, since this node keeps none."""
        service = service_of(parameters)
        if instance_of(parameters, service).ephemeral:
            self._operator.deregister(service, *address_of(parameters))

    def update(self, parameters: Parameters) -> None:
        """A real server keeps weight, enabled and metadata that were updated by raft, apart from the instance.

        Without raft this node changes the instance itself, which only an HTTP client's own registration can be.
        """
        service, (ip, port) = service_of(parameters), address_of(parameters)
        instance = instance_of(parameters, service)
        if not self._clients.is_known(service):
            raise ApiError(
                ErrorCode.INSTANCE_ERROR,
                f"service not found, namespace: {service.namespace}, service: {service.grouped_name}",
            )
        client = self._clients.get(ip_port_client_id(ip, port))
        if client is None or service not in client.publishers:
            raise NacosError(
                SERVER_ERROR,
                f"the instance {ip}:{port} of {service.grouped_name} was not registered over "
                "HTTP; its metadata would be kept by raft, which this node does not have",
            )
        known = self._operator.instance(service, ip, port, cluster_of(parameters)) or {}
        self._operator.register(service, replace(instance, healthy=known.get("healthy", True)))

    def beat(self, parameters: Parameters) -> Json:
        """A full beat names the instance itself, a light one by parameters."""
        service, beat = service_of(parameters), beat_of(parameters)
        if beat is None:
            ip, port = parameters.required("ip"), parameters.port(default=0)
        else:
            ip, port = beat.ip, beat.port
        code, interval_ms = self._operator.beat(service, ip, port, beat)
        return {
            "clientBeatInterval": interval_ms,
            "code": int(code),
            "lightBeatEnabled": self._switches.light_beat_enabled,
        }

    def instances(
        self,
        parameters: Parameters,
        clusters: str,
        agent: str = "",
        *,
        caller_ip: str = "",
        listens_at: tuple[str, str] = ("clientIP", "udpPort"),
    ) -> Json:
        """ServiceInfo under the grouped name, which old clients take for the key of their cache.

        A client that names the port where it listens for pushes subscribes by asking; `listens_at` are the names of
        those two parameters.
        """
        service = service_of(parameters)
        ip, port = parameters.text(listens_at[0]), parameters.whole_number(listens_at[1], default=0)
        if can_be_pushed_to(agent, ip, port, caller_ip):
            seen = Agent(agent, parameters.text("app"))
            self._operator.subscribe(service, ip, port, clusters, seen)
        info = self._operator.instances(
            service, clusters=clusters, healthy_only=parameters.flag("healthyOnly", default=False)
        )
        return {**info, "name": service.grouped_name}

    def instance(self, parameters: Parameters) -> Json:
        """The `Instance`; raises RESOURCE_NOT_FOUND."""
        service, cluster = service_of(parameters), parameters.text("clusterName", default=DEFAULT_CLUSTER)
        instance = self._operator.instance(service, parameters.required("ip"), parameters.port(), cluster)
        if instance is None:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, self._why_not_found(service, cluster))
        return instance

    def statuses(self, service: Service) -> Json:
        """`ip:port_healthy` of every instance."""
        hosts: list[dict[str, Any]] = self._operator.instances(service, clusters="", healthy_only=False)["hosts"]
        return {"ips": [f"{host['ip']}:{host['port']}_{str(host['healthy']).lower()}" for host in hosts]}

    def _why_not_found(self, service: Service, cluster: str) -> str:
        if self._operator.hosts(service):
            return "no matched ip found!"
        return f"no ips found for cluster {cluster} in service {service.grouped_name}"


def instance_routes(operations: InstanceOperations, distro_filter: DistroFilter) -> Iterable[web.RouteDef]:
    async def register(request: web.Request) -> web.Response:
        operations.register(await read_parameters(request))
        return text()

    async def deregister(request: web.Request) -> web.Response:
        operations.deregister(await read_parameters(request))
        return text()

    async def update(request: web.Request) -> web.Response:
        operations.update(await read_parameters(request))
        return text()

    async def beat(request: web.Request) -> web.Response:
        return json_reply(operations.beat(await read_parameters(request)))

    async def instances(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        clusters, agent = parameters.text("clusters"), user_agent(request)
        return json_reply(operations.instances(parameters, clusters, agent, caller_ip=request.remote or ""))

    async def instance(request: web.Request) -> web.Response:
        parameters = await read_parameters(request)
        return json_reply(
            {"service": service_of(parameters).grouped_name, **instance_detail(operations.instance(parameters))}
        )

    async def statuses(request: web.Request) -> web.Response:
        """The parameter `key` is `namespace##group@@service`, the namespace being optional."""
        parameters = await read_parameters(request)
        namespace, separator, name = parameters.required("key").rpartition(NAMESPACE_SEPARATOR)
        if GROUP_SEPARATOR not in name:
            raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, UNGROUPED)
        service = service_named(name, parameters)._replace(namespace=namespace if separator else DEFAULT_NAMESPACE)
        return json_reply(operations.statuses(service))

    path = "/v1/ns/instance"
    yield web.post(path, distro_filter.forwarding(register))
    yield web.delete(path, distro_filter.forwarding(deregister))
    yield web.put(path, distro_filter.forwarding(update))
    yield web.put(f"{path}/beat", distro_filter.forwarding(beat))
    yield web.get(f"{path}/list", instances)
    yield web.get(f"{path}/statuses", statuses)
    yield web.get(path, instance)


def user_agent(request: web.Request) -> str:
    """What the client calls itself; some can only say it elsewhere."""
    headers = request.headers
    return headers.get("User-Agent", "") or headers.get("Client-Version", "")


def instance_detail(instance: Json) -> Json:
    """What the detail APIs show of an `Instance`."""
    shown = ("ip", "port", "clusterName", "weight", "healthy", "instanceId", "metadata")
    return {name: instance.get(name) for name in shown}
