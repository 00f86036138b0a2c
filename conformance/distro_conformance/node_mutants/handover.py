"""Who goes on sending for a client of the HTTP API when its owner changes."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, instead, mutant, swapped
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.distro.unacknowledged import UnacknowledgedChanges
from distro_impl.naming.beats import Beats
from distro_impl.naming.ip_port_client import IpPortClient


@mutant("m-heir-verifies-nothing", DistroClientDataProcessor, "owned_clients")
def _what_was_accepted(old: Any, self: Any) -> list[str]:
    """A client of the HTTP API is verified by who accepted it, and by no later owner."""
    clients = ((each, self._clients.get(each)) for each in old(self))
    return [each for each, client in clients if not isinstance(client, IpPortClient) or client.accepted_here]


def _and_what_was_accepted(old: Any) -> Any:
    def owned_clients(self: Any) -> list[str]:
        accepted = (client.id for client in self._clients if isinstance(client, IpPortClient) and client.accepted_here)
        return [*{**dict.fromkeys(old(self)), **dict.fromkeys(accepted)}]

    return owned_clients


def _of_anything(old: Any) -> Any:
    def revision_of(self: Any, client_id: str) -> int | None:
        client = self._clients.get(client_id)
        return client.revision if isinstance(client, IpPortClient) else old(self, client_id)

    return revision_of


@mutant("m-former-owner-judges", Beats, "check")
def _judges(old: Any, self: Any, client: IpPortClient) -> None:
    """Who accepted a client of the HTTP API goes on looking for its beats, which go to another owner by now."""
    if client.accepted_here and not client.responsible:
        with swapped(client, "ownership", _Owner()):
            old(self, client)
    else:
        old(self, client)


class _Owner:
    def responsible(self, tag: str) -> bool:  # noqa: ARG002 - of the protocol
        return True

    def is_followed_by(self, tag: str, member: str | None) -> bool:  # noqa: ARG002 - of the protocol
        return False


def _while_it_is_pending(old: Any) -> Any:
    return lambda self, client_id, revision: client_id in self._pending and old(self, client_id, revision)


add(
    Mutant(
        "m-conclusions-are-handed-over",
        "A member that joins is sent what was concluded here from beats that went to it.",
        changes=(instead(DistroProtocol, "_is_handed_over", lambda _, client: isinstance(client, IpPortClient)),),
    ),
    Mutant(
        "m-former-owner-drops-what-waits",
        "What waits to be sent of a client of the HTTP API is dropped once the client has another owner.",
        changes=(instead(UnacknowledgedChanges, "is_pending", lambda *_: False),),
    ),
    Mutant(
        "m-joined-member-is-sent-nothing",
        "A member that joins is not sent what a client of the HTTP API has asked of this node.",
        changes=(instead(DistroProtocol, "_is_handed_over", lambda *_: False),),
    ),
    Mutant(
        "m-replaced-content-is-applied",
        "A member that has not acknowledged a change of a client of the HTTP API replaces it with what was before.",
        changes=(instead(UnacknowledgedChanges, "is_superseded", lambda *_: False),),
    ),
    Mutant(
        "m-acknowledgement-ends-the-memory",
        "A member that has acknowledged a change of a client of the HTTP API replaces it with what was before.",
        changes=(Change(UnacknowledgedChanges, "is_superseded", _while_it_is_pending),),
    ),
    Mutant("B22", "A change of a client of the HTTP API is lost when its owner changes.", {"owner_hands_over": False}),
    Mutant(
        "m-former-owner-verifies",
        "Who accepted a client of the HTTP API verifies it for ever.",
        changes=(
            Change(DistroClientDataProcessor, "owned_clients", _and_what_was_accepted),
            Change(DistroClientDataProcessor, "revision_of", _of_anything),
        ),
    ),
)
