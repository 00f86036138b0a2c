"""What a request names and an answer shows, where most clients ask for the default and read the hosts alone: pages,
clusters, namespaces, ids in a batch, the status of a refusal; and who else is sent a change, or its end."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import mutant
from distro_impl.naming import service_storage
from distro_impl.naming.client import Client, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.naming.service_info import published_instance


@mutant("m-every-page-is-the-first", NamingHandlers, "list_services")
def _first_page(old: Any, self: Any, request: Any) -> Any:
    """Each page of a list of services is the first."""
    request.body.page_no = 1
    return old(self, request)


@mutant("m-list-names-no-cluster", service_storage, "service_info")
def _names_no_cluster(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list of one cluster does not name the cluster."""
    return {**old(*arguments, **named), "clusters": ""}


@mutant("m-subscription-answer-has-every-cluster", NamingHandlers, "subscribe")
def _answer_has_every_cluster(old: Any, self: Any, request: Any) -> Any:
    """The answer to a subscription to one cluster shows the instances of all."""
    kind, body = old(self, request)
    hosts = self._storage.info(_service_of(request))["hosts"]
    return kind, {**body, "serviceInfo": {**body["serviceInfo"], "hosts": hosts}} if request.body.clusters else body


@mutant("m-first-subscription-stays", ClientManager, "subscribe")
def _first_subscription_stays(
    old: Any, self: Any, client: Client, service: Service, clusters: str, *agent: Any
) -> None:
    """A second subscription of a client to a service leaves the clusters of the first."""
    old(self, client, service, client.subscribers.get(service, clusters), *agent)


@mutant("m-batch-has-no-ids", NamingHandlers, "_published")
def _no_ids(old: Any, self: Any, service: Service, instance: Any, *, checked: bool = True) -> Any:
    """The instances of a batch that are registered without ids get none."""
    if checked:
        return old(self, service, instance)
    return published_instance(instance, instance.instance_id)


def _service_of(request: Any) -> Service:
    return Service(request.body.namespace, request.body.group_name, request.body.service_name)
