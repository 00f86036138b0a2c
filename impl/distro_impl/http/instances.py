"""`/v1/ns/instance`, `/v2/ns/instance` and `/v3/client/ns/instance`: how clients register, beat and look up over HTTP.

In v1 writes are forwarded to the owner of the client that they are about; reads are answered from what this node knows.
In every release the paths of v2 and v3 are outside of the DistroFilter: what is registered at a node that does not own
the client stays there, unknown to the others, until it expires (D7). `strict` forwards them. Source: docs/protocol
#http-v1, #http-v2; InstanceController, InstanceControllerV2 (2.2.4, 2.5.1), InstanceOpenApiController (3.x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec.structs import replace

from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.instance_parameters import address_of, beat_of, cluster_of, instance_of
from distro_impl.http.parameters import GROUP_SEPARATOR, UNGROUPED, Parameters, answered, service_named, service_of
from distro_impl.http.replies import ApiError, ErrorCode, json_reply, wrapped
from distro_impl.naming.client import DEFAULT_CLUSTER, DEFAULT_NAMESPACE, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import BeatCode, InstanceOperator
from distro_impl.naming.ip_port_client import Agent, ip_port_client_id
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.naming.udp_push import can_be_pushed_to
from distro_impl.profiles import Profile
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

    def instances(self, parameters: Parameters, clusters: str, *, listens_at: tuple[str, str] | None = None) -> Json:
        """ServiceInfo under the grouped name, which old clients take for the key of their cache.

        A client that names the port where it listens for pushes subscribes by asking; `listens_at` are the names of
        those two parameters.
        """
        service = service_of(parameters)
        if listens_at is not None:
            ip, port = parameters.text(listens_at[0]), parameters.whole_number(listens_at[1], default=0)
            if can_be_pushed_to(parameters.agent, ip, port, parameters.caller_ip):
                agent = Agent(parameters.agent, parameters.text("app"))
                self._operator.subscribe(service, ip, port, clusters, agent)
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


def instance_routes(
    profile: Profile, operations: InstanceOperations, distro_filter: DistroFilter
) -> Iterable[web.RouteDef]:
    yield from _v1(operations, distro_filter.forwarding)
    forwarding = distro_filter.forwarding if profile.every_write_forwarded else lambda handler: handler
    if profile.http_v2_api:
        yield from _v2(operations, forwarding)
    if profile.http_v3_api:
        yield from _v3(operations, forwarding)


Forwarding = Callable[[Handler], Handler]


def _v1(operations: InstanceOperations, forwarding: Forwarding) -> Iterable[web.RouteDef]:
    def instances(parameters: Parameters) -> Json:
        return operations.instances(parameters, parameters.text("clusters"), listens_at=("clientIP", "udpPort"))

    def instance(parameters: Parameters) -> Json:
        return {"service": service_of(parameters).grouped_name, **_detail(operations.instance(parameters))}

    def statuses(parameters: Parameters) -> Json:
        """The parameter `key` is `namespace##group@@service`, the namespace being optional."""
        namespace, separator, name = parameters.required("key").rpartition(NAMESPACE_SEPARATOR)
        if GROUP_SEPARATOR not in name:
            raise ApiError(ErrorCode.PARAMETER_VALIDATE_ERROR, UNGROUPED)
        service = service_named(name, parameters)._replace(namespace=namespace if separator else DEFAULT_NAMESPACE)
        return operations.statuses(service)

    path = "/v1/ns/instance"
    yield web.post(path, forwarding(answered(operations.register)))
    yield web.delete(path, forwarding(answered(operations.deregister)))
    yield web.put(path, forwarding(answered(operations.update)))
    yield web.put(f"{path}/beat", forwarding(answered(operations.beat)))
    yield web.get(f"{path}/list", answered(instances))
    yield web.get(f"{path}/statuses", answered(statuses))
    yield web.get(path, answered(instance))


def _v2(operations: InstanceOperations, forwarding: Forwarding) -> Iterable[web.RouteDef]:
    def beat(parameters: Parameters) -> web.Response:
        """Without a wrapper."""
        return json_reply(operations.beat(parameters))

    def instances(parameters: Parameters) -> Json:
        return operations.instances(parameters, parameters.text("clusterName"), listens_at=("ip", "port"))

    def instance(parameters: Parameters) -> Json:
        return {"serviceName": service_of(parameters).grouped_name, **_detail(operations.instance(parameters))}

    path = "/v2/ns/instance"
    register = partial(operations.register, has_id=False)  # other than in v1 and v3 (seen on 2.2.4 and 2.3.2)
    yield web.post(path, forwarding(answered(register)))
    yield web.delete(path, forwarding(answered(operations.deregister)))
    yield web.put(path, forwarding(answered(operations.update)))
    yield web.put(f"{path}/beat", forwarding(answered(beat)))
    yield web.get(f"{path}/list", answered(instances))
    yield web.get(path, answered(instance))


def _v3(operations: InstanceOperations, forwarding: Forwarding) -> Iterable[web.RouteDef]:
    def register_or_beat(parameters: Parameters) -> web.Response | None:
        """`heartBeat=true` makes a light beat of it."""
        if not parameters.flag("heartBeat", default=False):
            operations.register(parameters)
        elif operations.beat(parameters)["code"] != BeatCode.OK:
            return wrapped(None, ErrorCode.INSTANCE_NOT_FOUND)
        return None

    def hosts(parameters: Parameters) -> list[Json]:
        found: list[Json] = operations.instances(parameters, parameters.text("clusterName"))["hosts"]
        return found

    path = "/v3/client/ns/instance"
    yield web.post(path, forwarding(answered(register_or_beat)))
    yield web.delete(path, forwarding(answered(operations.deregister)))
    yield web.get(f"{path}/list", answered(hosts))


def _detail(instance: Json) -> Json:
    """What the detail APIs show of an `Instance`."""
    shown = ("ip", "port", "clusterName", "weight", "healthy", "instanceId", "metadata")
    return {name: instance.get(name) for name in shown}
