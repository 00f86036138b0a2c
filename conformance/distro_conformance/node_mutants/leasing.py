"""Leases: what ends by silence, and what renews."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, left_out, mutant, swapped
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroKey, DistroProtocol
from distro_impl.naming import beats
from distro_impl.naming.beats import Beats
from distro_impl.naming.changes import ServiceChanged
from distro_impl.naming.client import Client, PublishedBatch
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port


@mutant("m-failed-verify-renews", DistroClientDataProcessor, "process_verify")
def _renews_all(old: Any, self: Any, client_id: str, revision: int, sender: str | None) -> bool:
    """A verify that fails renews the lease."""
    if (client := self._clients.get(client_id)) is not None:
        self._clients.verified(client, sender)
    return bool(old(self, client_id, revision, sender))


@mutant("m-exempt-instance-is-checked", beats, "is_exempt")
def _nothing_is_exempt(*_: Any) -> bool:
    """An instance that its metadata exempt from beats is checked for them."""
    return False


@mutant("m-cleaner-drops-native", Client, "is_expired")
def _native_too(_: Any, self: Client, now_ms: int, profile: Any) -> bool:
    """The cleaner removes clients that are connected here."""
    return bool(now_ms - self.renewed_ms > profile.client_expired_ms)


@mutant("m-copy-with-a-batch-never-expires", Client, "is_expired")
def _keeps_batches(old: Any, self: Client, now_ms: int, profile: Any) -> bool:
    """A copy that has a batch does not expire."""
    has_batch = any(isinstance(published, PublishedBatch) for published in self.publishers.values())
    return not has_batch and bool(old(self, now_ms, profile))


@mutant("m-one-copy-expires-a-round", ClientManager, "remove_expired")
def _one_a_round(old: Any, self: Any) -> None:
    """Of several expired copies one is removed in a round."""
    expired: list[str] = []
    remove = self._remove

    def remove_one(client_id: str, *arguments: Any) -> None:
        expired.append(client_id)
        if len(expired) == 1:
            remove(client_id, *arguments)

    with swapped(self, "_remove", remove_one):
        old(self)


@mutant("m-second-life-is-not-checked", Beats, "_on_created")
def _first_life_alone(old: Any, self: Any, event: Any) -> None:
    """A client of the HTTP API that has ended and comes again is not checked for beats."""
    known = self.__dict__.setdefault("_known_before", set())
    if event.client.id not in known:
        old(self, event)
    known.add(event.client.id)


def _endless_second_life() -> None:
    deleted: set[str] = set()

    def noted(old: Any) -> Any:
        def delete(self: Any, client_id: str, *arguments: Any) -> None:
            deleted.add(client_id)
            old(self, client_id, *arguments)

        return delete

    def renewed(old: Any) -> Any:
        def remove_expired(self: Any) -> None:
            for client in (each for each in self if is_ip_port(each.id) and each.id in deleted):
                client.renewed_ms = self._clock.now_ms()
            old(self)

        return remove_expired

    text = "A copy of a client of the HTTP API that comes again after its DELETE never expires."
    changes = (Change(ClientManager, "delete", noted), Change(ClientManager, "remove_expired", renewed))
    add(Mutant("m-second-life-of-a-copy-has-no-end", text, changes=changes))


_endless_second_life()


@mutant("m-empty-clients-stay", IpPortClient, "is_expired")
def _empty_stays(_: Any, self: IpPortClient, now_ms: int, profile: Any) -> bool:
    """A client of the HTTP API that has left every service stays, and is verified for ever."""
    return bool(profile.ip_port_lease and now_ms - self.renewed_ms > profile.client_expired_ms)


@mutant("m-beat-does-not-touch-the-client", ClientManager, "beat")
def _instance_only(old: Any, self: Any, client: IpPortClient, service: Any) -> None:
    """A beat renews the instance and not its client, which expires while it beats."""
    renewed_ms = client.renewed_ms
    old(self, client, service)
    client.renewed_ms = renewed_ms


@mutant("m-change-renews-no-ip-port-client", ClientManager, "_renewed_by_sync")
def _connected_only(old: Any, self: Any, client: Client) -> None:
    """A CHANGE renews no copy of a client of the HTTP API."""
    if not isinstance(client, IpPortClient):
        old(self, client)


@mutant("m-beat-is-for-all-services", ClientManager, "beat")
def _for_all(old: Any, self: Any, client: IpPortClient, service: Any) -> None:
    """A beat of one instance counts for all of its client."""
    client.renew(self._clock.now_ms())
    old(self, client, service)


@mutant("m-expiry-is-not-pushed", ClientManager, "remove_expired")
def _ends_quietly(old: Any, self: Any) -> None:
    """Subscribers get no push when a lease ends."""
    with swapped(self, "_notify", _ButServices(self._notify)):
        old(self)


class _ButServices:
    def __init__(self, notify: Any) -> None:
        self._notify = notify

    def publish(self, event: Any) -> None:
        if not isinstance(event, ServiceChanged):
            self._notify.publish(event)


@mutant("m-half-a-batch", PublishedBatch, "to_json")
def _half_a_batch(old: Any, self: Any) -> Any:
    """Of a batch the first instance is sent."""
    data = old(self)
    return {**data, "instancePublishInfos": data["instancePublishInfos"][:1]}


left_out("m-copies-stay", ClientManager, "remove_expired", "A copy that is not verified stays.")


def _keeps_lease(old: Any) -> Any:
    """A pause gives copies of clients of the HTTP API no new lease."""

    def method(self: Any, argument: Any) -> None:
        renewed_ms = {client.id: client.renewed_ms for client in self if isinstance(client, IpPortClient)}
        old(self, argument)
        for client in self:
            client.renewed_ms = renewed_ms.get(client.id, client.renewed_ms)

    return method


add(
    Mutant(
        "m-pause-ends-copies-of-http-clients",
        "After a suspension the leases of copies begin again, but for those of clients of the HTTP API.",
        changes=tuple(Change(ClientManager, name, _keeps_lease) for name in ("_restart_leases", "renew_after_pause")),
    )
)
left_out("m-verify-renews-nothing", ClientManager, "verified", "A verify that succeeds renews no lease.")
left_out(
    "m-ipport-verify-no-beat-renew",
    IpPortClient,
    "renew",
    "A verify does not renew a copy of a client of the HTTP API.",
)


@mutant("m-verify-is-a-beat-of-one-instance", ClientManager, "verified")
def _beat_of_one(old: Any, self: Any, client: Client, sender: str | None) -> None:
    """A VERIFY counts as a beat of one of the instances of its client, and not of the others."""
    before = dict(client.heart_beats_ms) if isinstance(client, IpPortClient) else {}
    old(self, client, sender)
    if isinstance(client, IpPortClient):
        client.heart_beats_ms.update(list(before.items())[1:])


def _announces(old: Any) -> Any:
    def on_client_removed(self: Any, event: Any) -> None:
        old(self, event)
        now_ms = self._clock.now_ms()
        if not event.client.responsible and now_ms - event.client.renewed_ms > self._profile.client_expired_ms:
            for peer in self._members.other_addresses():
                deletion = self._sync_delete(DistroKey(event.client.id, peer))
                self._clock.spawn(deletion, f"DELETE of {event.client.id} to {peer}")

    return on_client_removed


add(
    Mutant(
        "m-expiry-is-announced",
        "A copy whose lease ends is deleted at all members.",
        changes=(Change(DistroProtocol, "_on_client_removed", _announces),),
    )
)
