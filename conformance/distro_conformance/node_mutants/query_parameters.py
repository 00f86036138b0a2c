"""Mutants of rarely used parameters of requests and fields of answers: pages, clusters, namespaces, ids in a batch, the
status of a refusal. Most clients send the defaults and read only the hosts.

Also mutants of the set of receivers that a change, or the end of a client, is sent to.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

from aiohttp import web
from yarl import URL

from distro_conformance.node_mutants.mutant import Change, Mutant, add, left_out, mutant, swapped
from distro_impl.distro import transport_agent
from distro_impl.http import distro_filter, instance_parameters, services
from distro_impl.http import instances as instances_of_http
from distro_impl.http import parameters as parameters_of_http
from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.instances import InstanceOperations
from distro_impl.http.parameters import Parameters, service_of
from distro_impl.http.replies import ApiError
from distro_impl.naming import instance_operator, service_info, service_storage
from distro_impl.naming.client import DEFAULT_GROUP, DEFAULT_NAMESPACE, Client, PublishedInstance, Service
from distro_impl.naming.client_index import ClientIndex
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import BeatInfo, InstanceOperator
from distro_impl.naming.ip_port_client import IpPortClient
from distro_impl.naming.naming_handlers import BATCH_REGISTER, NamingHandlers
from distro_impl.naming.service_info import MAX_WEIGHT, MIN_WEIGHT, published_instance
from distro_impl.remote.acceptor import RequestAcceptor as Acceptor
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.errors import SERVER_ERROR, NacosError, success
from distro_protos import Payload, read_json, write_json


@mutant("m-every-page-is-the-first", NamingHandlers, "list_services")
def _first_page(old: Any, self: Any, request: Any) -> Any:
    """Each page of a list of services is the first."""
    request.body.page_no = 1
    return old(self, request)


@mutant("m-page-zero-is-empty", NamingHandlers, "list_services")
def _page_zero_is_empty(old: Any, self: Any, request: Any) -> Any:
    """Page 0 of a list of services is empty."""
    kind, body = old(self, request)
    return kind, body if request.body.page_no > 0 else {**body, "serviceNames": []}


@mutant("m-instance-needs-its-cluster", InstanceOperations, "instance")
def _needs_its_cluster(old: Any, self: Any, parameters: Any) -> Any:
    """A query of one instance over HTTP that names no cluster finds none."""
    named = parameters if parameters.text("clusterName") else Parameters({**parameters.texts(), "clusterName": "?"})
    return old(self, named)


@mutant("m-metadata-are-no-texts", service_info, "_text")
def _no_texts(_: Any, value: Any) -> Any:
    """Lists show a number in the metadata of a copy as a number."""
    return value


@mutant("m-services-over-http-are-those-of-the-page", services, "json_reply")
def _those_of_the_page(old: Any, body: Any) -> Any:
    """The number in a list of services over HTTP is that of the page."""
    return old({**body, "count": len(body["doms"])})


@mutant("m-services-over-http-are-of-any-group", ClientManager, "service_names")
def _of_any_group(old: Any, self: Any, namespace: str, group: str) -> list[str]:
    """A list of the services of the default group shows those of every group."""
    if group != DEFAULT_GROUP:
        return list(old(self, namespace, group))
    return sorted({service.name for service in self.services() if service.namespace == namespace})


@mutant("m-null-cluster-fails", NamingHandlers, "query")
def _null_cluster_fails(old: Any, self: Any, request: Any) -> Any:
    """A query with the cluster null fails."""
    if request.body.cluster is None:
        raise NacosError(SERVER_ERROR, "no cluster")
    return old(self, request)


@mutant("m-null-clusters-of-a-subscription-fail", NamingHandlers, "subscribe")
def _null_clusters_fail(old: Any, self: Any, request: Any) -> Any:
    """A subscription with the clusters null fails."""
    if request.body.clusters is None:
        raise NacosError(SERVER_ERROR, "no clusters")
    return old(self, request)


@mutant("m-missing-weight-is-zero", Acceptor, "_reply")
def _missing_weight_is_zero(old: Any, self: Any, payload: Payload, peer: Any) -> Any:
    """An instance that a client registers without a weight has the weight 0."""
    if payload.metadata.type == "InstanceRequest":
        body = read_json(payload.body.value)
        body["instance"] = {"weight": 0.0, **body["instance"]}
        payload.body.value = write_json(body)
    return old(self, payload, peer)


def _later_beats_renew_nothing() -> None:
    def made(old: Any) -> Any:
        return lambda operations, forwarding: old(_WithoutBeats(operations), forwarding)

    text = "A light beat by the later version of the HTTP API is answered with success and renews nothing."
    changes = tuple(Change(instances_of_http, name, made) for name in ("_v2", "_v3"))
    add(Mutant("m-later-beats-renew-nothing", text, changes=changes))


class _WithoutBeats:
    """The operations of a node of which those beats that would renew an instance do nothing."""

    def __init__(self, operations: Any) -> None:
        self._operations = operations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)

    def beat(self, parameters: Any) -> Any:
        held = self._operations._clients.get(f"{parameters.text('ip')}:{parameters.text('port')}#true")
        if held is None or service_of(parameters) not in held.publishers or parameters.text("beat"):
            return self._operations.beat(parameters)
        return {"clientBeatInterval": 5_000, "code": 10200, "lightBeatEnabled": True}


_later_beats_renew_nothing()


left_out("m-empty-services-stay", ClientManager, "remove_empty_services", "A service without publishers stays known.")


@mutant("m-empty-service-loses-its-subscribers", ClientManager, "remove_empty_services")
def _loses_its_subscribers(old: Any, self: Any) -> None:
    """A service that goes as it is empty loses its subscribers."""
    before = set(self.services())
    old(self)
    for service in before - set(self.services()):
        for client in self.subscribers_of(service):
            self.unsubscribe(client, service)


@mutant("m-services-change-places", ClientManager, "service_names")
def _services_change_places(old: Any, self: Any, namespace: str, group: str) -> Any:
    """The order in a list of services depends on the number of services in the namespace."""
    names, count = old(self, namespace, group), sum(each.namespace == namespace for each in self.services())
    first = count % max(1, len(names))
    return [*names[first:], *names[:first]]


@mutant("m-list-names-no-cluster", service_storage, "service_info")
def _names_no_cluster(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list of one cluster does not name the cluster."""
    return {**old(*arguments, **named), "clusters": ""}


@mutant("m-list-is-kept-for-a-second", service_storage, "service_info")
def _kept_for_a_second(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list may be kept for one second instead of ten."""
    return {**old(*arguments, **named), "cacheMillis": 1_000}


@mutant("m-list-is-not-valid", service_storage, "service_info")
def _not_valid(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list says that it is not valid."""
    return {**old(*arguments, **named), "valid": False}


@mutant("m-list-is-protected", service_storage, "service_info")
def _protected(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list says that it shows unhealthy instances as healthy, since too few are."""
    return {**old(*arguments, **named), "reachProtectionThreshold": True}


@mutant("m-list-shows-doubles", service_storage, "merged")
def _shows_doubles(_: Any, published: Any) -> Any:
    """An instance that two clients publish alike is twice in lists."""
    return tuple(published)


@mutant("m-group-parameter-is-ignored", parameters_of_http, "service_named")
def _group_is_ignored(old: Any, name: str, parameters: Any) -> Service:
    """Over HTTP a service whose group is a parameter of its own is in the default group."""
    service: Service = old(name, parameters)
    return service if "@@" in name else service._replace(group=DEFAULT_GROUP)


@mutant("m-older-parameters-are-unknown", Parameters, "text")
def _older_are_unknown(old: Any, self: Any, *names: str, **default: str) -> str:
    """Over HTTP the older names of parameters are unknown."""
    return str(old(self, names[0], **default))


@mutant("m-forms-are-not-read", parameters_of_http, "_form")
async def _forms_are_not_read(_old: Any, _request: Any) -> list[tuple[str, str]]:
    """Parameters in a form are not read."""
    return []


@mutant("m-pairs-are-no-metadata", instance_parameters, "_metadata_of_pairs")
def _pairs_are_none(_old: Any, _text: str) -> dict[str, str]:
    """Metadata over HTTP that are written as pairs are lost."""
    return {}


@mutant("m-passed-on-in-latin-1", distro_filter, "forwarded_url")
def _passed_on_in_latin_1(old: Any, *arguments: Any) -> str:
    """A request that is passed on has its parameters read as Latin-1."""
    url = URL(old(*arguments))
    return str(url.with_query({key: value.encode().decode("latin-1") for key, value in url.query.items()}))


@mutant("m-content-is-ascii", transport_agent, "encode_content")
def _content_is_ascii(_: Any, data: Any) -> str:
    """The content of a request to a member has a question mark for each letter beyond ASCII."""
    return base64.b64encode(json.dumps(data, ensure_ascii=False).encode("ascii", "replace")).decode()


@mutant("m-beats-are-for-public", InstanceOperator, "beat")
def _for_public(old: Any, self: Any, service: Service, ip: str, port: int, beat: BeatInfo | None) -> Any:
    """A beat is for the namespace public, whatever namespace it names."""
    in_body = None if beat is None else replace(beat, service=beat.service._replace(namespace=DEFAULT_NAMESPACE))
    return old(self, service._replace(namespace=DEFAULT_NAMESPACE), ip, port, in_body)


@mutant("m-empty-metadata-are-lost", PublishedInstance, "to_json")
def _empty_are_lost(old: Any, self: Any) -> Any:
    """Metadata without a value do not reach members."""
    data = old(self)
    return {**data, "extendDatum": {key: value for key, value in data["extendDatum"].items() if value != ""}}


@mutant("m-forms-are-not-passed-on", DistroFilter, "_forward")
async def _forms_are_not_passed_on(old: Any, self: Any, request: Any, owner: str, url: str) -> Any:
    """A request that is passed on lacks the parameters of its form."""
    known = {"serviceName", *request.query}
    query = {key: value for key, value in URL(url).query.items() if key in known}
    return await old(self, request, owner, str(URL(url).with_query(query)))


@mutant("m-one-instance-of-every-cluster", InstanceOperator, "instance")
def _of_every_cluster(_: Any, self: Any, service: Service, ip: str, port: int, cluster: str) -> Any:  # noqa: ARG001 - it ignores it
    """A query of one instance over HTTP ignores the cluster that it names."""
    return next((host for host in self.hosts(service) if (host["ip"], host["port"]) == (ip, port)), None)


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


@mutant("m-batch-without-a-client-is-success", NamingHandlers, "batch")
def _batch_without_a_client(old: Any, self: Any, request: Any) -> Any:
    """A batch on a connection without a naming client is answered with success."""
    if self._clients.get(request.connection_id) is not None:
        return old(self, request)
    return "BatchInstanceResponse", success(type=BATCH_REGISTER)


@mutant("m-http-weight-is-clamped", instance_parameters, "weight_of")
def _clamped(old: Any, parameters: Any, **named: Any) -> float:
    """Over HTTP a weight beyond a bound is accepted as the bound."""
    try:
        return float(old(parameters, **named))
    except ApiError:
        return min(max(float(parameters.text("weight")), MIN_WEIGHT), MAX_WEIGHT)


@mutant("m-beat-by-its-body-has-no-owner", distro_filter, "_address_in_beat")
def _no_owner_by_the_body(_old: Any, _beat: str) -> None:
    """The owner of a beat that names its address in the body alone is that of an unknown address."""


@mutant("m-light-beats-are-off", InstanceOperations, "beat")
def _no_light_beats(old: Any, self: Any, parameters: Any) -> Any:
    """The answer to a beat does not allow light beats."""
    return {**old(self, parameters), "lightBeatEnabled": False}


@mutant("m-light-beat-is-for-any-service", InstanceOperator, "beat")
def _for_any_service(old: Any, self: Any, service: Service, ip: str, port: int, beat: BeatInfo | None) -> Any:
    """A light beat is accepted for a service that its client does not publish."""
    client = self._client(ip, port)
    if beat is None and client is not None and client.singles and service not in client.singles:
        service = next(iter(client.singles))
    return old(self, service, ip, port, beat)


@mutant("m-whole-beat-has-no-metadata", instance_operator, "_instance_of")
def _no_metadata(old: Any, beat: BeatInfo) -> Any:
    """The instance that a whole beat registers has no metadata."""
    return old(replace(beat, metadata={}))


@mutant("m-http-namespace-is-public", InstanceOperator, "register")
def _public_namespace(old: Any, self: Any, service: Service, *arguments: Any, **named: Any) -> None:
    """An instance that is registered over HTTP is in the namespace public."""
    old(self, service._replace(namespace=DEFAULT_NAMESPACE), *arguments, **named)


@mutant("m-unknown-deregistration-over-http-fails", InstanceOperator, "deregister")
def _unknown_fails(old: Any, self: Any, service: Service, ip: str, port: int) -> None:
    """A deregistration over HTTP of an unknown instance fails."""
    if self._client(ip, port) is None:
        raise NacosError(SERVER_ERROR, "unknown instance")
    old(self, service, ip, port)


@mutant("m-passed-on-refusal-is-success", DistroFilter, "_forward")
async def _refusal_is_success(old: Any, self: Any, *arguments: Any) -> Any:
    """The status of a request that was passed on is always 200."""
    answer = await old(self, *arguments)
    if isinstance(answer, web.Response):
        answer.set_status(200)
    return answer


@mutant("m-recovery-is-not-pushed", ClientManager, "_judge")
def _recovery_is_not_pushed(
    old: Any, self: Any, client: IpPortClient, service: Service, published: Any, *arguments: Any
) -> None:
    """An instance that is healthy again by a beat is not pushed."""
    subscribers = ClientIndex() if published is not None and published.healthy else self._subscribers
    with swapped(self, "_subscribers", subscribers):
        old(self, client, service, published, *arguments)


@mutant("m-failed-detection-is-life", ConnectionManager, "detect")
async def _failure_is_life(old: Any, self: Any, connection: Any, timeout_ms: int) -> bool:
    """A detection that is answered with failure counts as a sign of life."""
    began_ms = self._clock.now_ms()
    return bool(await old(self, connection, timeout_ms)) or self._clock.now_ms() < began_ms + timeout_ms


left_out("m-ejected-connection-stays-open", Connection, "close", "A connection that the node ends is not closed.")
