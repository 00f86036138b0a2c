"""What clients ask for: registrations, lists, the HTTP API."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, instead, left_out, mutant
from distro_impl.http import distro_filter, instance_parameters, instances
from distro_impl.http.distro_filter import DistroFilter
from distro_impl.http.instances import InstanceOperations
from distro_impl.naming import ip_port_client, naming_handlers, service_storage
from distro_impl.naming.beats import Beats
from distro_impl.naming.client import DEFAULT_NAMESPACE, Client, PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import BeatCode, InstanceOperator
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.naming.service_info import is_enabled
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.profiles import Profile


@mutant("m-first-registration-stays", ClientManager, "register")
def _first_stays(old: Any, self: Any, client: Client, service: Service, published: Any, **named: Any) -> None:
    """A second registration of a service is ignored."""
    if service not in client.publishers:
        old(self, client, service, published, **named)


@mutant("m-empty-namespace-is-public", naming_handlers, "_service")
def _of_public(old: Any, body: Any) -> Service:
    """A request that names an empty namespace is one about the namespace public."""
    service: Service = old(body)
    return service if service.namespace else service._replace(namespace=DEFAULT_NAMESPACE)


@mutant("m-deregistration-matches-the-address", NamingHandlers, "instance")
def _matching(old: Any, self: Any, request: Any) -> Any:
    """A deregistration that names another address removes nothing."""
    body = request.body
    client = self._clients.get(request.connection_id)
    if body.type == "deregisterInstance" and client is not None:
        held = {(each.ip, each.port) for kept in client.publishers.values() for each in kept.instances}
        if (body.instance.ip, body.instance.port) not in held:
            return "InstanceResponse", {"resultCode": 200, "errorCode": 0, "type": body.type, "success": True}
    return old(self, request)


@mutant("m-deregistration-removes-everything", NamingHandlers, "_deregister")
def _all_go(old: Any, self: Any, request: Any, _: Service) -> None:
    """A deregistration removes all that its client publishes."""
    client = self._clients.get(request.connection_id)
    for each in tuple(client.publishers) if client else ():
        old(self, request, each)


@mutant("m-weight-is-a-whole-number", PublishedInstance, "to_json")
def _plain_weight(old: Any, self: Any) -> Any:
    """A weight travels as an integer where it is one (D9)."""
    data = old(self)
    if (weight := data["extendDatum"].get("publishInstanceWeight")) is not None:
        data["extendDatum"]["publishInstanceWeight"] = int(weight)
    return data


@mutant("m-equal-registration-is-nothing", ClientManager, "register")
def _equal_is_nothing(old: Any, self: Any, client: Client, service: Service, published: Any, **named: Any) -> None:
    """A registration in which nothing differs leaves the revision."""
    if client.publishers.get(service) != published:
        old(self, client, service, published, **named)


@mutant("m-revision-stands-still", Client, "asked")
def _stands_still(_: Any, self: Client, now_ms: int, profile: Profile) -> None:  # noqa: ARG001
    """The revision of a client does not rise above 1."""
    self.revision = 1


@mutant("m-nameless-service", naming_handlers, "_service")
def _whatever_name(old: Any, body: Any) -> Service:
    """A service without a name is taken."""
    body.service_name = (body.service_name or "").strip() or "nameless"
    return old(body)  # type: ignore[no-any-return]


@mutant("m-one-namespace", naming_handlers, "_service")
def _one_namespace(old: Any, body: Any) -> Any:
    """Services of one name in different namespaces are one."""
    return Service("public", old(body).group, old(body).name)


@mutant("m-one-group", naming_handlers, "_service")
def _one_group(old: Any, body: Any) -> Any:
    """Services of one name in different groups are one."""
    return Service(old(body).namespace, "DEFAULT_GROUP", old(body).name)


def _with(**fixed: Any) -> Any:
    """A list that is asked for with other selectors than the client named."""

    def made(old: Any) -> Any:
        return lambda published, **named: old(published, **{**named, **fixed})

    return made


@mutant("m-two-clusters-are-one", service_storage, "shown")
def _first_cluster(old: Any, published: Any, **named: Any) -> Any:
    """Of several clusters that a query names only the first counts."""
    return old(published, **{**named, "clusters": (named.get("clusters") or "").partition(",")[0]})


@mutant("m-subscription-raises-the-revision", ClientManager, "subscribe")
def _subscription_counts(old: Any, self: Any, client: Client, *arguments: Any) -> None:
    """A subscription raises the revision of its client, which members do not learn by a CHANGE."""
    old(self, client, *arguments)
    client.asked(self._clock.now_ms(), self._profile)


@mutant("m-later-beat-of-unknown-succeeds", instances, "json_reply")
def _beat_of_whoever(old: Any, body: Any) -> Any:
    """A light beat of an unknown instance succeeds by the later version of the HTTP API."""
    return old({**body, "code": int(BeatCode.OK)} if "clientBeatInterval" in body else body)


@mutant("m-lists-show-the-disabled", service_storage, "shown")
def _shows_disabled(old: Any, published: Any, **named: Any) -> Any:
    """An instance that is not enabled is shown."""
    return old(published, **named) + [each for each in published if not is_enabled(each.extend_datum)]


@mutant("m-lists-show-own-clients", ClientManager, "publishers_of")
def _connected_only(old: Any, self: Any, service: Service) -> Any:
    """Copies are in no list."""
    own = {id(each) for client in self if client.native for each in _published(client, service)}
    return (each for each in old(self, service) if id(each) in own)


def _published(client: Client, service: Service) -> tuple[PublishedInstance, ...]:
    return client.publishers[service].instances if service in client.publishers else ()


@mutant("m-service-names-are-grouped", NamingHandlers, "list_services")
def _grouped(old: Any, self: Any, request: Any) -> Any:
    """The list of services has grouped names."""
    type_name, body = old(self, request)
    names = [f"{request.body.group_name}@@{name}" for name in body["serviceNames"]]
    return type_name, {**body, "serviceNames": names}


@mutant("m-empty-service-is-an-error", NamingHandlers, "query")
def _unknown_is_an_error(old: Any, self: Any, request: Any) -> Any:
    """A query of a service without publishers fails."""
    type_name, body = old(self, request)
    is_empty = not self._storage.count(naming_handlers._service(request.body))
    is_first, self._has_been_asked = not getattr(self, "_has_been_asked", False), True
    is_empty = is_empty and not is_first  # the first asks whether the node serves at all
    return type_name, {**body, "resultCode": 500, "errorCode": 500, "success": False} if is_empty else body


@mutant("B13", ClientManager, "_remove")
def _index_keeps(old: Any, self: Any, client_id: str, *arguments: Any) -> None:
    """The index keeps a client that is gone."""
    client = self._clients.get(client_id)
    old(self, client_id, *arguments)
    for service in client.publishers if client else ():
        self._publishers.add(service, client)


@mutant("m-subscription-is-answered-empty", NamingHandlers, "subscribe")
def _empty_answer(old: Any, self: Any, request: Any) -> Any:
    """The answer to a subscription shows no hosts."""
    type_name, body = old(self, request)
    info = self._storage.info(naming_handlers._service(request.body), clusters=request.body.clusters)
    return type_name, {**body, "serviceInfo": {**info, "hosts": []}}


def _seen_once(old: Any) -> Any:
    return lambda self, service: self._views[service] if self._views.get(service) else old(self, service)


@mutant("m-deregistrations-are-not-passed-on", DistroFilter, "forwarding")
def _deregisters_here(old: Any, self: Any, handler: Any) -> Any:
    """A deregistration over HTTP is handled by the node that received it, owner or not."""
    forwarded = old(self, handler)

    async def chosen(request: Any) -> Any:
        return await (handler if request.method == "DELETE" else forwarded)(request)

    return chosen


@mutant("m-beat-registers-nobody", InstanceOperator, "beat")
def _beat_registers_nobody(old: Any, self: Any, service: Service, ip: str, port: int, info: Any) -> Any:
    """A whole beat of an unknown instance is answered that it is unknown."""
    client = self._client(ip, port)
    if client is None or service not in client.singles:
        return BeatCode.RESOURCE_NOT_FOUND, self._switches.client_beat_interval_ms
    return old(self, service, ip, port, info)


@mutant("m-beat-interval-is-the-default", InstanceOperator, "_beat_interval_ms")
def _default_interval(_: Any, self: Any, __: Any) -> int:
    """The answer to a beat names the default interval, whatever the metadata of the instance say."""
    return int(self._switches.client_beat_interval_ms)


@mutant("m-beat-heals-nobody", ClientManager, "beat")
def _beat_heals_nobody(_: Any, self: Any, client: Any, service: Service) -> None:
    """An unhealthy instance stays so when it beats."""
    client.renewed_ms = client.heart_beats_ms[service] = self._clock.now_ms()


@mutant("m-http-list-has-plain-names", InstanceOperations, "instances")
def _plain_list(old: Any, self: Any, *arguments: Any, **named: Any) -> Any:
    """A list over HTTP has the plain name."""
    found = old(self, *arguments, **named)
    return {**found, "name": found["name"].rpartition("@@")[2]}


left_out("m-beats-are-never-missed", Beats, "check", "Missing beats have no effect.")
left_out("m-beat-renews-nothing", ClientManager, "beat", "A beat counts for nothing.")
left_out(
    "m-http-deregistration-is-forgotten",
    InstanceOperator,
    "deregister",
    "A deregistration over HTTP is acknowledged and dropped.",
)

add(
    Mutant(
        "m-lists-show-the-unhealthy",
        "A query for healthy instances shows all.",
        changes=(Change(service_storage, "shown", _with(healthy_only=False)),),
    ),
    Mutant(
        "m-lists-show-every-cluster",
        "A query for one cluster shows all.",
        changes=(Change(service_storage, "shown", _with(clusters="")),),
    ),
    Mutant(
        "m-queries-keep-their-first-view",
        "A query shows what the first one saw.",
        changes=(instead(ServiceStorage, "_drop_view", lambda *_: None), Change(ServiceStorage, "refresh", _seen_once)),
    ),
    Mutant(
        "m-ip-port-clients-are-called-otherwise",
        "A client of the HTTP API has another name in Distro.",
        changes=(instead(ip_port_client, "EPHEMERAL", "#ephemeral"),),
    ),
    Mutant(
        "m-http-metadata-is-lost",
        "Metadata of a registration over HTTP are lost.",
        changes=(instead(instance_parameters, "metadata_of", lambda _: {}),),
    ),
    Mutant(
        "m-second-hop",
        "What a member has passed on is passed on again.",
        changes=(instead(distro_filter, "SERVER_AGENT", "no agent has this name"),),
    ),
)
