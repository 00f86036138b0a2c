"""Ephemeral naming over gRPC: what an SDK may ask of a node.

Each handler takes the decoded request and the id of the connection it came on, and gives the type and the body of the
reply. Source: wire-protocol.md sections 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distro_impl.events import NodeEventKind, Watch
from distro_impl.naming.client import Client, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.push import ServiceStorage
from distro_impl.naming.service_info import published_instance
from distro_impl.profiles import MissingClient, Profile
from distro_impl.remote.errors import CLIENT_DISCONNECT, INVALID_PARAM, SERVER_ERROR, NacosError, success
from distro_impl.remote.handlers import Handler, Reply, Request

REGISTER, DEREGISTER = "registerInstance", "deregisterInstance"


class NamingHandlers:
    def __init__(self, profile: Profile, clients: ClientManager, storage: ServiceStorage, watch: Watch) -> None:
        self._profile, self._clients, self._storage, self._watch = profile, clients, storage, watch

    def table(self) -> Mapping[str, Handler]:
        """Request type -> handler."""
        return {
            "InstanceRequest": self.instance,
            "BatchInstanceRequest": _not_implemented("batch registration"),
            "PersistentInstanceRequest": _not_implemented("persistent instances"),
            "SubscribeServiceRequest": self.subscribe,
            "ServiceQueryRequest": self.query,
            "ServiceListRequest": self.list_services,
        }

    def instance(self, request: Request) -> Reply:
        """Register or deregister. One entry per connection and service; deregistering ignores ip, port, cluster."""
        service = _service(request.body)
        instance = request.body.get("instance") or {}
        if not instance.get("ephemeral", True):
            raise NacosError(INVALID_PARAM, "persistent instances are not supported by this node, only ephemeral ones")
        operation = request.body.get("type")
        if operation not in (REGISTER, DEREGISTER):
            raise NacosError(INVALID_PARAM, f"unsupported request type {operation!r} of InstanceRequest")
        client = self._client(request)
        if client is not None:
            if operation == REGISTER:
                self._register(client, service, instance)
            else:
                self._deregister(client, service)
        return "InstanceResponse", success(type=operation if self._profile.instance_response_has_type else None)

    def subscribe(self, request: Request) -> Reply:
        service = _service(request.body)
        clusters = request.body.get("clusters") or ""
        client = self._client(request)
        if client is not None:
            if request.body.get("subscribe"):
                self._clients.subscribe(client, service, clusters)
            else:
                self._clients.unsubscribe(client, service)
        info = self._storage.info(service, clusters=clusters)
        return "SubscribeServiceResponse", success(message="success", serviceInfo=info)

    def query(self, request: Request) -> Reply:
        info = self._storage.info(
            _service(request.body),
            clusters=request.body.get("cluster") or "",
            healthy_only=bool(request.body.get("healthyOnly", False)),
        )
        return "QueryServiceResponse", success(serviceInfo=info)

    def list_services(self, request: Request) -> Reply:
        """`count` is the total, `serviceNames` the page, plain names."""
        body = request.body
        names = [
            service.name
            for service in self._clients.services()
            if (service.namespace, service.group) == (body.get("namespace"), body.get("groupName"))
        ]
        page_no, page_size = int(body.get("pageNo", 1)), int(body.get("pageSize", 10))
        start = max(0, page_no - 1) * page_size
        page = names[start : start + page_size]
        return "ServiceListResponse", success(message="success", count=len(names), serviceNames=page)

    def _client(self, request: Request) -> Client | None:
        """None where the release silently does nothing for a connection without naming client."""
        client = self._clients.get(request.connection_id)
        if client is None and self._profile.missing_client is MissingClient.REFUSED:
            raise NacosError(CLIENT_DISCONNECT, f"Client id {request.connection_id} doesn't exist.")
        if client is None and self._profile.missing_client is MissingClient.EXCEPTION:
            raise NacosError(SERVER_ERROR, f"no client of connection {request.connection_id}")
        return client

    def _register(self, client: Client, service: Service, instance: Mapping[str, Any]) -> None:
        try:
            published = published_instance(instance, service, generate_id=self._profile.instance_id_generated)
        except (KeyError, TypeError, ValueError) as error:
            raise NacosError(INVALID_PARAM, f"illegal instance: {type(error).__name__} at {error}") from error
        self._clients.publish(client, service, published)
        self._changed(client)

    def _deregister(self, client: Client, service: Service) -> None:
        """The revision moves even when nothing was removed; only a service that nobody knows is left out."""
        if self._clients.is_known(service):
            self._clients.unpublish(client, service)
            self._changed(client)

    def _changed(self, client: Client) -> None:
        client.revision += 1
        self._watch.tell(NodeEventKind.CLIENT_CHANGED, client)


def _service(body: Mapping[str, Any]) -> Service:
    for key in ("namespace", "groupName", "serviceName"):
        if not body.get(key):
            raise NacosError(INVALID_PARAM, f"Param '{key}' is illegal, it must not be blank")
    return Service(body["namespace"], body["groupName"], body["serviceName"])


def _not_implemented(what: str) -> Handler:
    def refuse(request: Request) -> Reply:
        raise NacosError(INVALID_PARAM, f"{request.type}: {what} is not supported by this node")

    return refuse
