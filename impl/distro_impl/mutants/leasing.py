"""Leases: what ends by silence, and what renews."""

from __future__ import annotations

from typing import Any

from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.mutants.mutant import Change, Mutant, instead
from distro_impl.naming.client import Client, PublishedBatch
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient


def _renews_all(old: Any) -> Any:
    def process_verify(self: Any, client_id: str, revision: int) -> bool:
        if (client := self._clients.get(client_id)) is not None:
            self._clients.verified(client)
        return bool(old(self, client_id, revision))

    return process_verify


def _native_too(self: Client, now_ms: int, profile: Any) -> bool:
    return bool(now_ms - self.renewed_ms > profile.client_expired_ms)


def _half_a_batch(old: Any) -> Any:
    def to_json(self: Any) -> Any:
        data = old(self)
        return {**data, "instancePublishInfos": data["instancePublishInfos"][:1]}

    return to_json


MUTANTS = (
    Mutant(
        "m-copies-stay",
        "A copy that nobody verifies stays.",
        changes=(instead(ClientManager, "remove_expired", lambda _: None),),
    ),
    Mutant(
        "m-verify-renews-nothing",
        "A verify that succeeds renews no lease.",
        changes=(instead(ClientManager, "verified", lambda *_: None),),
    ),
    Mutant(
        "m-failed-verify-renews",
        "A verify that fails renews the lease.",
        changes=(Change(DistroClientDataProcessor, "process_verify", _renews_all),),
    ),
    Mutant(
        "m-cleaner-drops-native",
        "The cleaner removes clients that are connected here.",
        changes=(instead(Client, "is_expired", _native_too),),
    ),
    Mutant(
        "m-ipport-verify-no-beat-renew",
        "A verify does not renew a copy of a client of the HTTP API.",
        changes=(instead(IpPortClient, "renew", lambda *_: None),),
    ),
    Mutant(
        "m-half-a-batch",
        "Of a batch the first instance is sent.",
        changes=(Change(PublishedBatch, "to_json", _half_a_batch),),
    ),
)
