"""What subscribers are told."""

from __future__ import annotations

from typing import Any

from distro_impl.mutants.mutant import Change, Mutant, instead
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.push import PushService
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.remote.connection_manager import ConnectionManager


def _own_changes_only(old: Any) -> Any:
    def publish_change(self: Any, client: Any, services: Any) -> None:
        old(self, client, services if client.responsible else ())

    return publish_change


def _same_time(old: Any) -> Any:
    return lambda self, service: min(old(self, service), 1_700_000_000_000)


def _never_acknowledged(old: Any) -> Any:
    async def push(self: Any, *arguments: Any) -> bool:
        await old(self, *arguments)
        return False

    return push


def _one_behind(old: Any) -> Any:
    def see(self: Any, service: Any) -> Any:
        seen = self.__dict__.setdefault("_seen", {})
        now = old(self, service)
        before, seen[service] = seen.get(service, now), now
        self._views[service] = before
        return before

    return see


MUTANTS = (
    Mutant(
        "m-nobody-is-told",
        "A change is pushed to nobody.",
        changes=(instead(PushService, "_on_service_changed", lambda *_: None),),
    ),
    Mutant(
        "m-synced-changes-are-not-pushed",
        "What a member says changes no list that was pushed before.",
        changes=(Change(ClientManager, "_publish_change", _own_changes_only),),
    ),
    Mutant(
        "m-unsubscribed-is-told",
        "Who unsubscribes stays subscribed.",
        changes=(instead(ClientManager, "unsubscribe", lambda *_: None),),
    ),
    Mutant(
        "m-lists-have-one-time",
        "Every list has the same time, and SDKs drop what is not newer.",
        changes=(Change(ServiceStorage, "_last_ref_time", _same_time),),
    ),
    Mutant(
        "m-acknowledgements-are-not-heard",
        "A push is repeated although it was acknowledged.",
        changes=(Change(ConnectionManager, "push", _never_acknowledged),),
    ),
    Mutant(
        "m-lists-are-one-behind",
        "A list shows a service as it was the time before.",
        changes=(Change(ServiceStorage, "_see", _one_behind),),
    ),
)
