"""What clients ask for: registrations, lists, the HTTP API."""

from __future__ import annotations

from typing import Any

from distro_impl.http import distro_filter
from distro_impl.http.instances import InstanceOperations
from distro_impl.mutants.mutant import Change, Mutant, instead
from distro_impl.naming import ip_port_client, naming_handlers, service_storage
from distro_impl.naming.beats import Beats
from distro_impl.naming.client import Client, PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import BeatCode, InstanceOperator
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.naming.service_info import is_enabled
from distro_impl.naming.service_storage import ServiceStorage


def _first_stays(old: Any) -> Any:
    def register(self: Any, client: Client, service: Service, published: Any, **named: Any) -> None:
        if service not in client.publishers:
            old(self, client, service, published, **named)

    return register


def _matching(old: Any) -> Any:
    def instance(self: Any, request: Any) -> Any:
        body = request.body
        client = self._clients.get(request.connection_id)
        if body.type == "deregisterInstance" and client is not None:
            held = {(each.ip, each.port) for kept in client.publishers.values() for each in kept.instances}
            if (body.instance.ip, body.instance.port) not in held:
                return "InstanceResponse", {"resultCode": 200, "errorCode": 0, "type": body.type, "success": True}
        return old(self, request)

    return instance


def _all_go(old: Any) -> Any:
    def deregister(self: Any, request: Any, _: Service) -> None:
        client = self._clients.get(request.connection_id)
        for each in tuple(client.publishers) if client else ():
            old(self, request, each)

    return deregister


def _plain_weight(old: Any) -> Any:
    def to_json(self: Any) -> Any:
        data = old(self)
        if (weight := data["extendDatum"].get("publishInstanceWeight")) is not None:
            data["extendDatum"]["publishInstanceWeight"] = int(weight)
        return data

    return to_json


def _equal_is_nothing(old: Any) -> Any:
    def register(self: Any, client: Client, service: Service, published: Any, **named: Any) -> None:
        if client.publishers.get(service) != published:
            old(self, client, service, published, **named)

    return register


def _stands_still(_: Any) -> Any:
    def asked(self: Client, now_ms: int) -> None:  # noqa: ARG001 - in the place of a method that may use it
        self.revision = 1

    return asked


def _whatever_name(old: Any) -> Any:
    def service(body: Any) -> Service:
        body.service_name = (body.service_name or "").strip() or "nameless"
        return old(body)  # type: ignore[no-any-return]

    return service


def _one_namespace(old: Any) -> Any:
    return lambda body: Service("public", old(body).group, old(body).name)


def _one_group(old: Any) -> Any:
    return lambda body: Service(old(body).namespace, "DEFAULT_GROUP", old(body).name)


def _with(**fixed: Any) -> Any:
    """A list that is asked for with other selectors than the client named."""

    def made(old: Any) -> Any:
        return lambda published, **named: old(published, **{**named, **fixed})

    return made


def _shows_disabled(old: Any) -> Any:
    def shown(published: Any, **named: Any) -> Any:
        return old(published, **named) + [each for each in published if not is_enabled(each.extend_datum)]

    return shown


def _connected_only(old: Any) -> Any:
    def publishers_of(self: Any, service: Service) -> Any:
        own = {id(each) for client in self if client.native for each in _published(client, service)}
        return (each for each in old(self, service) if id(each) in own)

    return publishers_of


def _published(client: Client, service: Service) -> tuple[PublishedInstance, ...]:
    return client.publishers[service].instances if service in client.publishers else ()


def _grouped(old: Any) -> Any:
    def list_services(self: Any, request: Any) -> Any:
        type_name, body = old(self, request)
        names = [f"{request.body.group_name}@@{name}" for name in body["serviceNames"]]
        return type_name, {**body, "serviceNames": names}

    return list_services


def _unknown_is_an_error(old: Any) -> Any:
    def query(self: Any, request: Any) -> Any:
        type_name, body = old(self, request)
        is_empty = not self._storage.count(naming_handlers._service(request.body))
        is_first, self._has_been_asked = not getattr(self, "_has_been_asked", False), True
        is_empty = is_empty and not is_first  # the first asks whether the node serves at all
        return type_name, {**body, "resultCode": 500, "errorCode": 500, "success": False} if is_empty else body

    return query


def _index_keeps(old: Any) -> Any:
    def remove(self: Any, client_id: str, *arguments: Any) -> None:
        client = self._clients.get(client_id)
        old(self, client_id, *arguments)
        for service in client.publishers if client else ():
            self._publishers.setdefault(service, {})[client_id] = client

    return remove


def _empty_answer(old: Any) -> Any:
    def subscribe(self: Any, request: Any) -> Any:
        type_name, body = old(self, request)
        return type_name, {**body, "serviceInfo": {**body["serviceInfo"], "hosts": []}}

    return subscribe


def _seen_once(old: Any) -> Any:
    return lambda self, service: self._views[service] if self._views.get(service) else old(self, service)


def _beat_registers_nobody(old: Any) -> Any:
    def beat(self: Any, service: Service, ip: str, port: int, info: Any) -> Any:
        client = self._client(ip, port)
        if client is None or service not in client.singles:
            return BeatCode.RESOURCE_NOT_FOUND, self._switches.client_beat_interval_ms
        return old(self, service, ip, port, info)

    return beat


def _beat_heals_nobody(_: Any) -> Any:
    def beat(self: Any, client: Any, service: Service) -> None:
        client.renewed_ms = client.heart_beats_ms[service] = self._clock.now_ms()

    return beat


def _plain_list(old: Any) -> Any:
    def instances(self: Any, *arguments: Any, **named: Any) -> Any:
        found = old(self, *arguments, **named)
        return {**found, "name": found["name"].rpartition("@@")[2]}

    return instances


MUTANTS = (
    Mutant(
        "m-first-registration-stays",
        "A second registration of a service is ignored.",
        changes=(Change(ClientManager, "register", _first_stays),),
    ),
    Mutant(
        "m-deregistration-matches-the-address",
        "A deregistration that names another address removes nothing.",
        changes=(Change(NamingHandlers, "instance", _matching),),
    ),
    Mutant(
        "m-deregistration-removes-everything",
        "A deregistration removes all that its client publishes.",
        changes=(Change(NamingHandlers, "_deregister", _all_go),),
    ),
    Mutant(
        "m-weight-is-a-whole-number",
        "A weight travels as an integer where it is one (D9).",
        changes=(Change(PublishedInstance, "to_json", _plain_weight),),
    ),
    Mutant(
        "m-equal-registration-is-nothing",
        "A registration in which nothing differs leaves the revision.",
        changes=(Change(ClientManager, "register", _equal_is_nothing),),
    ),
    Mutant(
        "m-revision-stands-still",
        "The revision of a client does not rise above 1.",
        changes=(Change(Client, "asked", _stands_still),),
    ),
    Mutant(
        "m-nameless-service",
        "A service without a name is taken.",
        changes=(Change(naming_handlers, "_service", _whatever_name),),
    ),
    Mutant(
        "m-one-namespace",
        "Services of one name in different namespaces are one.",
        changes=(Change(naming_handlers, "_service", _one_namespace),),
    ),
    Mutant(
        "m-one-group",
        "Services of one name in different groups are one.",
        changes=(Change(naming_handlers, "_service", _one_group),),
    ),
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
        "m-lists-show-the-disabled",
        "An instance that is not enabled is shown.",
        changes=(Change(service_storage, "shown", _shows_disabled),),
    ),
    Mutant(
        "m-lists-show-own-clients",
        "Copies are in no list.",
        changes=(Change(ClientManager, "publishers_of", _connected_only),),
    ),
    Mutant(
        "m-service-names-are-grouped",
        "The list of services has grouped names.",
        changes=(Change(NamingHandlers, "list_services", _grouped),),
    ),
    Mutant(
        "m-empty-service-is-an-error",
        "A query of what nobody publishes fails.",
        changes=(Change(NamingHandlers, "query", _unknown_is_an_error),),
    ),
    Mutant(
        "B13",
        "The index keeps a client that is gone.",
        changes=(Change(ClientManager, "_remove", _index_keeps),),
    ),
    Mutant(
        "m-subscription-is-answered-empty",
        "The answer to a subscription shows no hosts.",
        changes=(Change(NamingHandlers, "subscribe", _empty_answer),),
    ),
    Mutant(
        "m-queries-keep-their-first-view",
        "A query shows what the first one saw.",
        changes=(instead(ServiceStorage, "_drop_view", lambda *_: None), Change(ServiceStorage, "refresh", _seen_once)),
    ),
    Mutant(
        "m-beats-are-never-missed",
        "Nobody looks whether beats come.",
        changes=(instead(Beats, "check", lambda *_: None),),
    ),
    Mutant(
        "m-beat-registers-nobody",
        "A whole beat of an unknown instance is told that it is unknown.",
        changes=(Change(InstanceOperator, "beat", _beat_registers_nobody),),
    ),
    Mutant(
        "m-beat-heals-nobody",
        "An unhealthy instance stays so when it beats.",
        changes=(Change(ClientManager, "beat", _beat_heals_nobody),),
    ),
    Mutant(
        "m-beat-renews-nothing",
        "A beat counts for nothing.",
        changes=(instead(ClientManager, "beat", lambda *_: None),),
    ),
    Mutant(
        "m-http-deregistration-is-forgotten",
        "A deregistration over HTTP is acknowledged and dropped.",
        changes=(instead(InstanceOperator, "deregister", lambda *_: None),),
    ),
    Mutant(
        "m-ip-port-clients-are-called-otherwise",
        "A client of the HTTP API has another name in Distro.",
        changes=(instead(ip_port_client, "EPHEMERAL", "#ephemeral"),),
    ),
    Mutant(
        "m-second-hop",
        "What a member has passed on is passed on again.",
        changes=(instead(distro_filter, "SERVER_AGENT", "nobody says this of himself"),),
    ),
    Mutant(
        "m-http-list-has-plain-names",
        "A list over HTTP has the plain name.",
        changes=(Change(InstanceOperations, "instances", _plain_list),),
    ),
)
