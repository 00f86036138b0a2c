"""Ephemeral naming over gRPC: what an SDK may ask of a node.

Each handler takes the decoded request and the id of the connection it came on, and gives the type and the body of the
reply. Source: docs/protocol #client-batch, #client-request, #client-unknown, #naming-names and #naming-requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.naming.client import Client, Published, PublishedBatch, PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_id import InstanceIdGenerator
from distro_impl.naming.param_check import error_in
from distro_impl.naming.service_info import NOT_PERSISTENT, check_ephemeral, published_by
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.profiles import MissingClient, Profile
from distro_impl.remote.errors import CLIENT_DISCONNECT, INVALID_PARAM, SERVER_ERROR, NacosError, failure, success
from distro_impl.remote.handlers import Handler, Reply, Request, response_type
from distro_impl.remote.payloads import (
    BatchInstanceRequest,
    Instance,
    InstanceRequest,
    NamingBody,
    ServiceListRequest,
    ServiceQueryRequest,
    SubscribeServiceRequest,
)

REGISTER, DEREGISTER, BATCH_REGISTER = "registerInstance", "deregisterInstance", "batchRegisterInstance"


class NamingHandlers:
    def __init__(
        self,
        profile: Profile,
        clients: ClientManager,
        storage: ServiceStorage,
        ids: InstanceIdGenerator,
    ) -> None:
        self._profile, self._clients, self._storage, self._ids = profile, clients, storage, ids

    def table(self) -> Mapping[str, Handler]:
        """Request type -> handler, of what this release has a handler for."""
        handlers: dict[str, Handler] = {
            "InstanceRequest": self.instance,
            "SubscribeServiceRequest": self.subscribe,
            "ServiceQueryRequest": self.query,
            "ServiceListRequest": self.list_services,
        }
        if self._profile.batch_registration:
            handlers["BatchInstanceRequest"] = self.batch
        if self._profile.persistent_over_grpc:
            handlers["PersistentInstanceRequest"] = self.persistent_instance
        if self._profile.parameters_checked:
            return {name: _checked(handler, response_type(name)) for name, handler in handlers.items()}
        return handlers

    def instance(self, request: Request) -> Reply:
        """Register or deregister. One entry per connection and service; deregistering ignores ip, port, cluster."""
        body: InstanceRequest = request.body
        service, instance, operation = _service(body), body.instance, body.type
        if operation is None:
            raise NacosError(SERVER_ERROR, "Param 'type' is missing")
        if instance is None and operation == DEREGISTER and not self._profile.instances_checked:
            instance = Instance()
        if instance is None:
            is_checked = operation == REGISTER and self._profile.parameters_checked
            raise NacosError(INVALID_PARAM if is_checked else SERVER_ERROR, "Instance can not be null.")
        if operation == REGISTER:
            published = self._published(service, instance)
            self._register(request, service, published, bumps_revision=True)
        elif operation == DEREGISTER:
            check_ephemeral(instance)
            self._deregister(request, service)
        else:
            raise NacosError(INVALID_PARAM, f"Unsupported request type {operation}")
        return "InstanceResponse", success(type=operation if self._profile.instance_response_has_type else None)

    def batch(self, request: Request) -> Reply:
        """Replaces whatever the connection has in the service; an empty batch is a batch. Its instances are not
        checked as a single one is."""
        body: BatchInstanceRequest = request.body
        service = _service(body)
        if body.type != BATCH_REGISTER:
            raise NacosError(INVALID_PARAM, f"Unsupported request type {body.type}")
        if body.instances is None:
            raise NacosError(SERVER_ERROR, "Param 'instances' is missing")
        published = PublishedBatch(tuple(self._published(service, each, checked=False) for each in body.instances))
        self._register(request, service, published, bumps_revision=self._profile.batch_bumps_revision)
        return "BatchInstanceResponse", success(type=BATCH_REGISTER)

    def persistent_instance(self, request: Request) -> Reply:
        raise NacosError(INVALID_PARAM, f"{request.type}: {NOT_PERSISTENT}")

    def subscribe(self, request: Request) -> Reply:
        body: SubscribeServiceRequest = request.body
        service, clusters = _service(body), body.clusters
        client = self._client(request)
        if client is not None:
            if body.subscribe:
                self._clients.subscribe(client, service, clusters or "")
            else:
                self._clients.unsubscribe(client, service)
        storage, hides_disabled = self._storage, self._profile.subscription_hides_disabled
        info = (storage.written_info if hides_disabled else storage.info_with_disabled)(service, clusters=clusters)
        return "SubscribeServiceResponse", success(message="success", serviceInfo=info)

    def query(self, request: Request) -> Reply:
        body: ServiceQueryRequest = request.body
        service, healthy_only = _service(body), body.healthy_only
        info = self._storage.written_info(service, clusters=body.cluster or "", healthy_only=healthy_only)
        return "QueryServiceResponse", success(serviceInfo=info)

    def list_services(self, request: Request) -> Reply:
        """`count` is the total, `serviceNames` the page, plain names."""
        body: ServiceListRequest = request.body
        if body.namespace is None:
            raise NacosError(SERVER_ERROR, "Param 'namespace' is missing")
        names = self._clients.service_names(body.namespace, body.group_name)
        page_no, page_size = body.page_no, body.page_size
        start = max(0, (page_no - 1) * page_size)
        if page_size < 0 and start < len(names):
            raise NacosError(SERVER_ERROR, f"fromIndex({start}) > toIndex({start + page_size})")
        page = names[start : start + max(0, page_size)]
        return "ServiceListResponse", success(count=len(names), serviceNames=page)

    def _client(self, request: Request) -> Client | None:
        """None where the release silently does nothing for a connection without naming client. What is held under its
        id may be a copy, which a release changes as if it were its own."""
        client = self._clients.get(request.connection_id)
        if client is not None and not client.native and self._profile.connection_replaces_copy:
            client = None
        if client is None and self._profile.missing_client is MissingClient.REFUSED:
            raise NacosError(
                CLIENT_DISCONNECT,
                f"errCode: {CLIENT_DISCONNECT}, errMsg: Client [{request.connection_id}] "
                "connection already disconnect, can't register ephemeral instance. ",
            )
        if client is None and self._profile.missing_client is MissingClient.EXCEPTION:
            raise NacosError(SERVER_ERROR, f"no client of connection {request.connection_id}")
        return client

    def _published(self, service: Service, instance: Instance, *, checked: bool = True) -> PublishedInstance:
        check_ephemeral(instance)
        ids = self._ids if self._profile.instance_id_generated else None
        return published_by(instance, service, ids, checked=checked and self._profile.instances_checked)

    def _register(self, request: Request, service: Service, published: Published, *, bumps_revision: bool) -> None:
        self._clients.make_known(service)
        client = self._client(request)
        if client is not None:
            self._clients.register(client, service, published, bumps_revision=bumps_revision)

    def _deregister(self, request: Request, service: Service) -> None:
        """The revision moves even when nothing was removed; only an unknown service is left out."""
        client = self._client(request) if self._clients.is_known(service) else None
        if client is not None:
            self._clients.deregister(client, service)


def _checked(handler: Handler, answered_with: str) -> Handler:
    """The handler behind the parameter check."""

    def handle(request: Request) -> Reply:
        problem = error_in(request.body)
        if problem is not None:
            return answered_with, failure(SERVER_ERROR, INVALID_PARAM, f"Param check invalid:{problem}")
        return handler(request)

    return handle


def _service(body: NamingBody) -> Service:
    """An empty namespace is one of its own, not `public`: SDKs before 3.0 send it when none was configured.

    Up to 2.2.4 a blank name can be registered, and then no list of its group can be written any more. Here it is
    refused everywhere, in the words that a query gets.
    """
    group, name = body.group_name or "", body.service_name or ""
    for key, value in (("groupName", group), ("serviceName", name)):
        if not value.strip():
            raise NacosError(SERVER_ERROR, f"Param '{key}' is illegal, {key} is blank")
    if body.namespace is None:
        raise NacosError(SERVER_ERROR, "Param 'namespace' is illegal, it must be there")
    return Service(body.namespace, group, name)
