"""`/v2/ns/client`: the clients that this node knows, its own and the copies, and what they publish and subscribe.

The best look into a real server from outside. Source: docs/protocol #http-admin, ClientInfoControllerV2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiohttp import web

from distro_impl.http.parameters import Parameters, answered, service_of
from distro_impl.http.replies import ApiError, ErrorCode
from distro_impl.naming.client import Client, PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port, responsible_tag
from distro_impl.profiles import Profile
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.errors import SERVER_ERROR, NacosError
from distro_protos import Json
from distro_protos.addresses import split_address


class ClientInfo:
    def __init__(self, profile: Profile, clients: ClientManager, connections: ConnectionManager) -> None:
        self._profile, self._clients, self._connections = profile, clients, connections

    def client_ids(self, _: Parameters) -> list[str]:
        return [client.id for client in self._clients]

    def detail(self, parameters: Parameters) -> Json:
        client = self._client(parameters)
        detail = {"clientId": client.id, "ephemeral": True, "lastUpdatedTime": client.renewed_ms}
        if is_ip_port(client.id):
            ip, port = split_address(responsible_tag(client.id))
            return {**detail, "clientType": "ipPort", "clientIp": ip, "clientPort": port}
        return {**detail, "clientType": "connection", **self._connection(client)}

    def published(self, parameters: Parameters) -> list[Json]:
        return [
            {
                **_service(service),
                "registeredInstance": {"ip": instance.ip, "port": instance.port, "cluster": instance.cluster},
            }
            for service, published in self._client(parameters).publishers.items()
            for instance in published.instances
        ]

    def subscribed(self, parameters: Parameters) -> list[Json]:
        client = self._client(parameters)
        subscriber = self._subscriber(client)
        return [{**_service(service), "subscriberInfo": subscriber} for service in client.subscribers]

    def publishers(self, parameters: Parameters) -> list[Json]:
        service = service_of(parameters)
        published = (
            (client, instance)
            for client in self._clients
            if service in client.publishers
            for instance in client.publishers[service].instances
        )
        return self._having_address(
            parameters,
            (
                {"clientId": client.id, "ip": instance.ip, "port": instance.port, **self._cluster_shown(instance)}
                for client, instance in published
            ),
        )

    def subscribers(self, parameters: Parameters) -> list[Json]:
        service = service_of(parameters)
        subscribed = ((client, _address(client)) for client in self._clients.subscribers_of(service))
        return self._having_address(
            parameters, ({"clientId": client.id, "ip": ip, "port": port} for client, (ip, port) in subscribed)
        )

    def _subscriber(self, client: Client) -> Json:
        ip, port = _address(client)
        if isinstance(client, IpPortClient):
            return {"app": client.agent.app, "agent": client.agent.name, "addr": f"{ip}:{port}"}
        connection = self._connections.get(client.id)
        return {"app": "unknown", "agent": connection.meta.version if connection else "", "addr": ip}

    def _cluster_shown(self, instance: PublishedInstance) -> Json:
        return {"cluster": instance.cluster} if self._profile.publishers_show_cluster else {}

    def _having_address(self, parameters: Parameters, found: Iterable[Json]) -> list[Json]:
        """Those at the address of the parameters. In releases none match when only half of it is given (D20)."""
        ip, port = parameters.text("ip"), parameters.port() if parameters.text("port") else None
        optional = self._profile.client_queries_repaired
        return [
            each
            for each in found
            if (each["ip"] == ip or (optional and not ip)) and (each["port"] == port or (optional and port is None))
        ]

    def _connection(self, client: Client) -> Json:
        connection = self._connections.get(client.id)
        if connection is None and not self._profile.client_queries_repaired:
            raise NacosError(SERVER_ERROR, f"client {client.id} is connected to another member (D20)")
        ip, port = _address(client)
        seen = {"appName": connection.meta.app_name, "version": connection.meta.version} if connection else {}
        return {"connectType": "GRPC", **seen, "clientIp": ip, "clientPort": str(port)}

    def _client(self, parameters: Parameters) -> Client:
        client_id = parameters.required("clientId")
        client = self._clients.get(client_id)
        if client is None:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"clientId [ {client_id} ] not exist")
        return client


def client_routes(profile: Profile, info: ClientInfo) -> Iterable[web.RouteDef]:
    if not profile.http_v2_api:
        return
    path = "/v2/ns/client"
    yield web.get(path, answered(info.detail))
    yield web.get(f"{path}/list", answered(info.client_ids))
    yield web.get(f"{path}/publish/list", answered(info.published))
    yield web.get(f"{path}/subscribe/list", answered(info.subscribed))
    yield web.get(f"{path}/service/publisher/list", answered(info.publishers))
    yield web.get(f"{path}/service/subscriber/list", answered(info.subscribers))


def _service(service: Service) -> dict[str, Any]:
    return {"namespace": service.namespace, "group": service.group, "serviceName": service.name}


def _address(client: Client) -> tuple[str, int]:
    """Where the client is: `<ip>:<port>#true` or `<millis>_<ip>_<port>`."""
    if is_ip_port(client.id):
        ip, port = split_address(responsible_tag(client.id))
    else:
        ip, _, port = client.id.partition("_")[2].rpartition("_")
    return ip, int(port) if port.isdecimal() else 0
