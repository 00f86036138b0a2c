"""Leases: what ends by silence, and what renews."""

from __future__ import annotations

from typing import Any

from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.mutants.mutant import left_out, mutant
from distro_impl.naming.client import Client, PublishedBatch
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient


@mutant("m-failed-verify-renews", DistroClientDataProcessor, "process_verify")
def _renews_all(old: Any, self: Any, client_id: str, revision: int) -> bool:
    """A verify that fails renews the lease."""
    if (client := self._clients.get(client_id)) is not None:
        self._clients.verified(client)
    return bool(old(self, client_id, revision))


@mutant("m-cleaner-drops-native", Client, "is_expired")
def _native_too(_: Any, self: Client, now_ms: int, profile: Any) -> bool:
    """The cleaner removes clients that are connected here."""
    return bool(now_ms - self.renewed_ms > profile.client_expired_ms)


@mutant("m-half-a-batch", PublishedBatch, "to_json")
def _half_a_batch(old: Any, self: Any) -> Any:
    """Of a batch the first instance is sent."""
    data = old(self)
    return {**data, "instancePublishInfos": data["instancePublishInfos"][:1]}


left_out("m-copies-stay", ClientManager, "remove_expired", "A copy that nobody verifies stays.")
left_out("m-verify-renews-nothing", ClientManager, "verified", "A verify that succeeds renews no lease.")
left_out(
    "m-ipport-verify-no-beat-renew",
    IpPortClient,
    "renew",
    "A verify does not renew a copy of a client of the HTTP API.",
)
