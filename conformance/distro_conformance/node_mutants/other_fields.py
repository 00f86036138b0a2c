"""Mutants that a check of names and ports alone does not find.

They change other fields of an answer or a message, services outside of the default namespace and group, or the second
effect of an event whose first effect is checked.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

from msgspec import Raw, structs
from yarl import URL

from distro_conformance.node_mutants.mutant import Change, Mutant, add, mutant, swapped
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.http import distro_filter
from distro_impl.http.instances import InstanceOperations
from distro_impl.membership.member import Member
from distro_impl.naming import client, service_info, service_storage
from distro_impl.naming.changes import ClientChanged
from distro_impl.naming.client import DEFAULT_NAMESPACE, Client, Published, PublishedBatch, Service
from distro_impl.naming.client_index import ClientIndex
from distro_impl.naming.client_manager import LEASE, ClientManager
from distro_impl.naming.instance_operator import BeatCode, InstanceOperator
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port
from distro_impl.naming.naming_handlers import DEREGISTER, REGISTER, NamingHandlers
from distro_impl.naming.push import NOTIFY_SUBSCRIBER, PushService
from distro_impl.naming.service_info import DEFAULT_HEART_BEAT, WEIGHT
from distro_impl.notify_center import NotifyCenter
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.remote.ejector import ConnectionEjector
from distro_impl.remote.payloads import DataOperation
from distro_protos import read_json

_DEFAULT_GROUP = "DEFAULT_GROUP"


@mutant("m-copies-weigh-one", ClientManager, "publishers_of")
def _copies_weigh_one(_: Any, self: Any, service: Service) -> Any:
    """A list shows the instances of copies with the weight 1."""
    for each in self._publishers.of(service):
        for instance in each.publishers[service].instances:
            datum = {key: value for key, value in instance.extend_datum.items() if key != WEIGHT or each.native}
            yield structs.replace(instance, extend_datum=datum)


@mutant("m-list-names-no-group", service_storage, "service_info")
def _names_no_group(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list does not name the group of its service."""
    return {**old(*arguments, **named), "groupName": ""}


@mutant("m-hosts-name-the-plain-service", service_info, "_instance")
def _plain_service(old: Any, service: Service, instance: Any) -> Any:
    """An instance in a list names its service without the group."""
    return {**old(service, instance), "serviceName": service.name}


@mutant("m-hosts-have-the-default-time-outs", service_info, "_instance")
def _default_time_outs(old: Any, *arguments: Any) -> Any:
    """An instance in a list has the default time-outs, whatever its metadata say."""
    return {**old(*arguments), **DEFAULT_HEART_BEAT}


def info_in(body: Any) -> Any:
    """The list in a push or an answer; a push may have it as JSON."""
    info = body["serviceInfo"]
    return read_json(bytes(info)) if isinstance(info, Raw) else info


def _plain_hosts(info: Any) -> Any:
    return {**info, "hosts": [{**host, "metadata": {}} for host in info["hosts"]]}


@mutant("m-push-has-no-metadata", ConnectionManager, "push")
async def _no_metadata(old: Any, self: Any, connection: Any, type_name: str, body: Any, timeout_ms: int) -> Any:
    """A push shows instances without their metadata."""
    if type_name == NOTIFY_SUBSCRIBER:
        body = {**body, "serviceInfo": _plain_hosts(info_in(body))}
    return await old(self, connection, type_name, body, timeout_ms)


@mutant("m-other-metadata-are-not-pushed", ClientManager, "register")
def _own_metadata(old: Any, self: Any, of: Client, service: Service, published: Published, **named: Any) -> None:
    """A registration that changes only the metadata of an instance is not pushed."""
    subscribers = ClientIndex() if _differs_in_metadata(of.publishers.get(service), published) else self._subscribers
    with swapped(self, "_subscribers", subscribers):
        old(self, of, service, published, **named)


@mutant("m-other-metadata-of-copies-are-not-pushed", ClientManager, "apply")
def _received_metadata(old: Any, self: Any, sync: Any, **named: Any) -> None:
    """A CHANGE that changes only the metadata of instances is not pushed."""
    held = self.get(sync.client_id)
    is_alike = (
        held is not None
        and sync.publishers.keys() == held.publishers.keys()
        and all(
            _differs_in_metadata(held.publishers.get(service), published)
            for service, published in sync.publishers.items()
        )
    )
    with swapped(self, "_subscribers", ClientIndex() if is_alike else self._subscribers):
        old(self, sync, **named)


def _differs_in_metadata(before: Published | None, after: Published) -> bool:
    if before is None or before == after or len(before.instances) != len(after.instances):
        return False
    pairs = zip(before.instances, after.instances, strict=True)
    return all(structs.replace(one, extend_datum=other.extend_datum) == other for one, other in pairs)


@mutant("m-change-names-one-namespace", client, "_names")
def _sends_one_namespace(old: Any, services: Any) -> Any:
    """A CHANGE names the namespace of its first service for all."""
    names = old(services)
    return {**names, "namespaces": names["namespaces"][:1] * len(names["namespaces"])}


@mutant("m-received-namespaces-are-one", client._Services, "read")
def _reads_one_namespace(_: Any, self: Any) -> Any:
    """All services of a CHANGE are in the namespace of its first one."""
    return list(
        map(Service, repeat(self.namespaces[0] if self.namespaces else ""), self.group_names, self.service_names)
    )


@mutant("m-snapshot-has-no-metadata", DistroClientDataProcessor, "snapshot")
def _snapshot_has_no_metadata(old: Any, self: Any) -> Any:
    """A SNAPSHOT has the instances of clients without their metadata."""
    return {"clientSyncDataList": [_without_metadata(each) for each in old(self)["clientSyncDataList"]]}


@mutant("m-loaded-metadata-are-lost", DistroClientDataProcessor, "process_snapshot")
def _loaded_metadata_are_lost(old: Any, self: Any, elements: Any, sender: str) -> None:
    """The instances of a SNAPSHOT are applied without their metadata."""
    old(self, [_without_metadata(each) for each in elements], sender)


def _without_metadata(data: Any) -> Any:
    return {
        **data,
        "instancePublishInfos": [{**each, "extendDatum": {}} for each in data.get("instancePublishInfos", ())],
    }


@mutant("m-load-takes-no-http-clients", DistroClientDataProcessor, "process_snapshot")
def _loads_no_http_clients(old: Any, self: Any, elements: Any, sender: str) -> None:
    """The clients of the HTTP API in a SNAPSHOT are not applied."""
    old(self, [each for each in elements if not is_ip_port(str(each.get("clientId")))], sender)


@mutant("m-expired-instance-is-not-announced", ClientManager, "expire_instance")
def _not_announced(old: Any, self: Any, *arguments: Any) -> None:
    """The removal of an instance without beats is not sent to members."""
    with swapped(self, "_notify", _Without(self._notify)):
        old(self, *arguments)


class _Without:
    """A notify center that publishes all but changes of clients."""

    def __init__(self, center: NotifyCenter) -> None:
        self._center = center

    def publish(self, event: Any) -> None:
        if not isinstance(event, ClientChanged):
            self._center.publish(event)


@mutant("m-expired-instance-is-not-pushed", ClientManager, "expire_instance")
def _not_pushed(old: Any, self: Any, *arguments: Any) -> None:
    """The removal of an instance without beats is not pushed."""
    with swapped(self, "_subscribers", ClientIndex()):
        old(self, *arguments)


@mutant("m-http-deregistration-is-not-pushed", ClientManager, "deregister")
def _deregistration_is_not_pushed(old: Any, self: Any, of: Client, service: Service) -> None:
    """A deregistration over HTTP is not pushed."""
    with swapped(self, "_subscribers", ClientIndex() if isinstance(of, IpPortClient) else self._subscribers):
        old(self, of, service)


@mutant("m-passed-on-without-metadata", distro_filter, "forwarded_url")
def _passed_on_without_metadata(old: Any, *arguments: Any) -> Any:
    """A registration that is passed on lacks the metadata."""
    url = URL(old(*arguments))
    return str(url.with_query({key: value for key, value in url.query.items() if key != "metadata"}))


@mutant("m-http-list-has-no-metadata", InstanceOperations, "instances")
def _list_has_no_metadata(old: Any, *arguments: Any, **named: Any) -> Any:
    """A list over HTTP shows instances without their metadata."""
    return _plain_hosts(old(*arguments, **named))


@mutant("m-later-list-of-every-cluster", InstanceOperations, "instances")
def _later_list_of_every_cluster(old: Any, self: Any, parameters: Any, clusters: str, *more: Any, **named: Any) -> Any:
    """A list of one cluster by the later version of the HTTP API shows all."""
    return old(self, parameters, clusters if parameters.text("clusters") else "", *more, **named)


def _ejected_in_silence() -> None:
    ejected: set[str] = set()

    def eject(old: Any) -> Any:
        def method(self: Any, connection: Any, why: str) -> None:
            ejected.add(connection.id)
            old(self, connection, why)

        return method

    def removed(old: Any) -> Any:
        return lambda self, event: None if event.client.id in ejected else old(self, event)

    text = "The end of a client whose connection the node ends is not sent to members."
    changes = (Change(ConnectionEjector, "_eject", eject), Change(DistroProtocol, "_on_client_removed", removed))
    add(Mutant("m-ejected-client-is-not-announced", text, changes=changes))


_ejected_in_silence()


@mutant("m-report-says-down", Member, "to_json")
def _says_down(old: Any, self: Any) -> Any:
    """A member object has the state DOWN."""
    return {**old(self), "state": "DOWN"}


@mutant("m-report-without-abilities", Member, "to_json")
def _without_abilities(old: Any, self: Any) -> Any:
    """A member object names no abilities: some releases connect to no such member."""
    return {**old(self), "abilities": {}}


@mutant("m-default-group-alone-is-pushed", PushService, "_add")
def _default_group_alone(old: Any, self: Any, service: Service, targets: Any) -> None:
    """Services of other groups are not pushed."""
    if service.group == _DEFAULT_GROUP:
        old(self, service, targets)


@mutant("m-public-alone-is-pushed", PushService, "_add")
def _public_alone(old: Any, self: Any, service: Service, targets: Any) -> None:
    """Services of other namespaces are not pushed."""
    if service.namespace == DEFAULT_NAMESPACE:
        old(self, service, targets)


@mutant("m-push-of-the-first-cluster", ClientManager, "subscribe")
def _first_cluster(old: Any, self: Any, of: Client, service: Service, clusters: str, *agent: Any) -> None:
    """A subscription to several clusters is one to the first of them."""
    old(self, of, service, clusters.partition(",")[0], *agent)


@mutant("m-service-list-of-every-namespace", ClientManager, "service_names")
def _every_namespace(_: Any, self: Any, namespace: str, group: str) -> list[str]:  # noqa: ARG001 - it ignores it
    """A list of the services of a group shows those of every namespace."""
    return sorted({service.name for service in self.services() if service.group == group})


@mutant("m-light-beat-heals-nobody", InstanceOperator, "beat")
def _light_beat_heals_nobody(old: Any, self: Any, service: Service, ip: str, port: int, beat: Any) -> Any:
    """A light beat keeps an instance as it is: unhealthy if it was."""
    of = self._client(ip, port) if beat is None else None
    if of is None or service not in of.singles or of.singles[service].healthy:
        return old(self, service, ip, port, beat)
    of.renewed_ms = of.heart_beats_ms[service] = self._clock.now_ms()
    return BeatCode.OK, self._beat_interval_ms(of.singles[service])


@mutant("m-unknown-request-registers", NamingHandlers, "instance")
def _unknown_registers(old: Any, self: Any, request: Any) -> Any:
    """An InstanceRequest of a type that is neither a registration nor a deregistration registers."""
    if request.body.type not in (None, REGISTER, DEREGISTER):
        request.body.type = REGISTER
    return old(self, request)


@mutant("m-subscription-answer-has-no-metadata", NamingHandlers, "subscribe")
def _answer_has_no_metadata(old: Any, self: Any, request: Any) -> Any:
    """The answer to a subscription shows instances without their metadata."""
    kind, body = old(self, request)
    return kind, {**body, "serviceInfo": _plain_hosts(info_in(body))}


@mutant("m-expired-http-copy-is-not-pushed", ClientManager, "_remove")
def _http_copy_is_not_pushed(old: Any, self: Any, client_id: str, kind: Any, reason: str | None) -> None:
    """The end of the lease of a copy of a client of the HTTP API is not pushed."""
    is_silent = reason == LEASE and is_ip_port(client_id)
    with swapped(self, "_subscribers", ClientIndex() if is_silent else self._subscribers):
        old(self, client_id, kind, reason)


@mutant("m-http-registration-is-not-pushed", InstanceOperator, "register")
def _registration_is_not_pushed(old: Any, self: Any, *arguments: Any, **named: Any) -> None:
    """A registration over HTTP is not pushed."""
    with swapped(self._clients, "_subscribers", ClientIndex()):
        old(self, *arguments, **named)


@mutant("m-healthy-of-every-cluster", service_storage, "shown")
def _healthy_of_every_cluster(old: Any, published: Any, *, clusters: Any = "", healthy_only: bool = False) -> Any:
    """A query for the healthy instances of one cluster shows those of every cluster."""
    return old(published, clusters="" if healthy_only else clusters, healthy_only=healthy_only)


@mutant("m-empty-list-has-no-name", NamingHandlers, "query")
def _empty_has_no_name(old: Any, self: Any, request: Any) -> Any:
    """The answer to a query of a service without hosts does not name the service."""
    kind, body = old(self, request)
    info = info_in(body)
    return kind, body if info["hosts"] else {**body, "serviceInfo": {**info, "name": ""}}


@mutant("m-add-of-a-copy-is-ignored", DistroClientDataProcessor, "process_change")
def _add_is_ignored(old: Any, self: Any, data: Any, reason: str, sender: str | None) -> Any:
    """An ADD of a client that is known is acknowledged and changes nothing."""
    is_known = self._clients.get(str(data.get("clientId"))) is not None
    return True if reason == DataOperation.ADD and is_known else old(self, data, reason, sender)


@mutant("m-single-joins-the-batch", ClientManager, "register")
def _joins_the_batch(old: Any, self: Any, of: Client, service: Service, published: Published, **named: Any) -> None:
    """A single instance that replaces a batch joins it."""
    held = of.publishers.get(service)
    if isinstance(held, PublishedBatch) and not isinstance(published, PublishedBatch):
        published = PublishedBatch((*held.instances, published))
    old(self, of, service, published, **named)


@mutant("m-empty-batch-is-ignored", ClientManager, "register")
def _empty_batch(old: Any, self: Any, of: Client, service: Service, published: Published, **named: Any) -> None:
    """An empty batch of a client changes nothing."""
    if published.instances:
        old(self, of, service, published, **named)


@mutant("m-batch-joins-the-single", ClientManager, "register")
def _joins_the_single(old: Any, self: Any, of: Client, service: Service, published: Published, **named: Any) -> None:
    """A batch that replaces a single instance keeps that instance."""
    held = of.singles.get(service)
    if held is not None and isinstance(published, PublishedBatch):
        published = PublishedBatch((held, *published.instances))
    old(self, of, service, published, **named)
