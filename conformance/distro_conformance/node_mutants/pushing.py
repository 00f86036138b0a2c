"""Pushes to subscribers."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, left_out, mutant
from distro_conformance.node_mutants.other_fields import info_in
from distro_impl.naming import push, udp_push
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_operator import InstanceOperator
from distro_impl.naming.push import PushService
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.naming.udp_push import UdpPushService
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.tasks.delay_engine import DelayTaskEngine


@mutant("m-synced-changes-are-not-pushed", ClientManager, "_publish_change")
def _own_changes_only(old: Any, self: Any, client: Any, services: Any, *cause: Any) -> None:
    """What a member says changes no list that was pushed before."""
    old(self, client, services if client.responsible else (), *cause)


@mutant("m-lists-have-one-time", ServiceStorage, "_last_ref_time")
def _same_time(old: Any, self: Any, service: Any) -> Any:
    """Every list has the same time, and SDKs drop what is not newer."""
    return min(old(self, service), 1_700_000_000_000)


@mutant("m-acknowledgements-are-not-heard", ConnectionManager, "push")
async def _never_acknowledged(old: Any, self: Any, *arguments: Any) -> bool:
    """A push is repeated although it was acknowledged."""
    await old(self, *arguments)
    return False


@mutant("m-list-has-the-time-of-its-view", ServiceStorage, "_last_ref_time")
def _time_of_the_view(old: Any, self: Any, service: Any) -> Any:
    """A list has the time at which its service changed last."""
    return self._stamps_ms.get(service) or old(self, service)


@mutant("m-changes-postpone-the-push", DelayTaskEngine, "add")
def _postpone_the_push(old: Any, self: Any, key: Any, action: Any, delay_ms: int) -> None:
    """Each change of a service begins the push delay anew."""
    pending = self._tasks.get(key) if self._name == "push tasks" else None
    if pending is not None:
        action = self._merge(action, self._tasks.pop(key).action)
    old(self, key, action, delay_ms)


@mutant("m-subscription-is-pushed-to-all", PushService, "_on_subscribed")
def _pushed_to_all(_: Any, self: Any, event: Any) -> None:
    """When a client subscribes, all subscribers of the service are pushed the list."""
    self._add(event.service, None)


add(
    Mutant(
        "m-packets-are-sent-once",
        "A push over UDP that is not answered is not repeated.",
        changes=(Change(udp_push, "TRIES", lambda _: 1),),
    )
)


@mutant("m-answers-to-packets-are-not-read", UdpPushService, "_receive")
def _answers_are_not_read(_old: Any, _self: Any, _data: bytes, _addr: Any) -> None:
    """A push over UDP is repeated although it was answered."""


@mutant("m-packets-are-of-every-cluster", InstanceOperator, "subscribe")
def _packets_of_every_cluster(
    old: Any, self: Any, service: Any, ip: str, port: int, _clusters: str, agent: Any
) -> None:
    """A push over UDP shows the instances of every cluster."""
    old(self, service, ip, port, "", agent)


@mutant("m-refused-push-is-delivered", ConnectionManager, "acknowledge")
def _refused_is_delivered(old: Any, self: Any, connection_id: str, request_id: Any, succeeded: bool) -> None:  # noqa: ARG001
    """A push that the client answers with failure counts as delivered."""
    old(self, connection_id, request_id, True)


@mutant("m-two-subscriptions-one-push", push, "_merged")
def _last_subscription(old: Any, new: Any, pending: Any) -> Any:
    """Of two clients that subscribe within the push delay only the last is pushed the list."""
    return old(new, pending) if new is None or pending is None else new


@mutant("m-push-is-repeated-once", PushService, "_try_again")
def _once_more(old: Any, self: Any, service: Any, client: Any) -> None:
    """A push that is not acknowledged is repeated once, and no more."""
    known = self.__dict__.setdefault("_repeated", set())
    if (service, client.id) not in known:
        known.add((service, client.id))
        old(self, service, client)


@mutant("m-repeated-push-is-of-the-healthy", ConnectionManager, "push")
async def _of_the_healthy(old: Any, self: Any, connection: Any, type_name: str, body: Any, timeout_ms: int) -> Any:
    """The repetition of a push contains the healthy instances alone."""
    failed = self.__dict__.setdefault("_failed_pushes", set())
    if type_name == push.NOTIFY_SUBSCRIBER and connection.id in failed:
        info = info_in(body)
        body = {**body, "serviceInfo": {**info, "hosts": [each for each in info["hosts"] if each["healthy"]]}}
    succeeded = await old(self, connection, type_name, body, timeout_ms)
    (failed.discard if succeeded else failed.add)(connection.id)
    return succeeded


@mutant("m-second-subscription-is-ignored", ClientManager, "subscribe")
def _once_subscribed(old: Any, self: Any, client: Any, service: Any, *arguments: Any) -> None:
    """A client that has unsubscribed from a service cannot subscribe to it again."""
    known = self.__dict__.setdefault("_once_subscribed", set())
    if (client.id, service) not in known or service in client.subscribers:
        old(self, client, service, *arguments)
    known.add((client.id, service))


@mutant("m-lists-are-one-behind", ServiceStorage, "_see")
def _one_behind(old: Any, self: Any, service: Any) -> Any:
    """A list shows a service as it was the time before."""
    seen = self.__dict__.setdefault("_seen", {})
    now = old(self, service)
    before, seen[service] = seen.get(service, now), now
    self._views[service] = before
    return before


def _as_the_first() -> None:
    first: dict[str, Any] = {}

    def begun(old: Any) -> Any:
        def push_to(self: Any, service: Any, targets: Any) -> None:
            first.pop(service.name, None)
            old(self, service, targets)

        return push_to

    def sent(old: Any) -> Any:
        async def push_first(self: Any, connection: Any, type_name: str, body: Any, timeout_ms: int) -> Any:
            if type_name == push.NOTIFY_SUBSCRIBER:
                body = first.setdefault(info_in(body)["name"], body)
            return await old(self, connection, type_name, body, timeout_ms)

        return push_first

    text = "All subscribers of a service are pushed the list of the clusters that the first of them subscribes to."
    changes = (Change(PushService, "_push_to", begun), Change(ConnectionManager, "push", sent))
    add(Mutant("m-push-is-of-the-first-subscriber", text, changes=changes))


_as_the_first()
left_out("m-nobody-is-told", PushService, "_on_service_changed", "A change is not pushed.")
left_out("m-unsubscribed-is-told", ClientManager, "unsubscribe", "A client that unsubscribes stays subscribed.")


def _pushed_to_who_has_unsubscribed() -> None:
    def kept(old: Any) -> Any:
        def method(self: Any, client: Any, service: Any) -> None:
            old(self, client, service)
            if self.subscribers_of(service):
                self._subscribers.add(service, client)

        return method

    def repeated(old: Any) -> Any:
        def method(self: Any, service: Any, targets: Any) -> None:
            old(self, service, targets)
            if any(service not in client.subscribers for client in self._clients.subscribers_of(service)):
                self._delayed.add(service, targets, self._profile.push_retry_delay_ms)

        return method

    text = "While one of several subscribers of a service has unsubscribed, each push to the others is repeated."
    changes = (Change(ClientManager, "unsubscribe", kept), Change(PushService, "_push_to", repeated))
    add(Mutant("m-push-is-repeated-for-who-unsubscribed", text, changes=changes))


_pushed_to_who_has_unsubscribed()
