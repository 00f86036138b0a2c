"""Mutants of `rules/receive.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.messages import Change, Delete
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client, NodeState
from distro_model.profile import Profile
from distro_model.rules import load, receive
from distro_model.rules.owners import is_responsible
from distro_model.rules.rule import instead_of
from distro_model.rules.sync import is_reachable


@instead_of(receive.fresh_copy)
def native_copy(copy: Change, at_ms: int, _: Profile) -> Client:
    """A peer's CHANGE creates a native client instead of a copy."""
    return Client(copy.client, True, copy.revision, copy.content, at_ms)


@instead_of(receive.is_deletable)
def is_known(node: NodeState, _source: str, delete: Delete, _: Profile) -> bool:
    """Only a known client can be deleted."""
    return node.client(delete.client) is not None


@instead_of(receive.is_deletable)
def is_unknown(node: NodeState, _source: str, delete: Delete, _: Profile) -> bool:
    """Only an unknown client can be deleted."""
    return node.client(delete.client) is None


@instead_of(receive.is_applicable)
def is_not_held(node: NodeState, copy: Change, _: Profile) -> bool:
    """A CHANGE of a client that is held raises."""
    return node.client(copy.client) is None


@instead_of(receive.given_clients)
def own_range(node: NodeState, profile: Profile) -> tuple[Client, ...]:
    """A snapshot has the clients that its sender owns by now."""
    return tuple(client for client in node.clients if is_responsible(node, client, profile))


@instead_of(load.asked_further)
def all_others(node: NodeState, later: tuple[str, ...], profile: Profile) -> tuple[str, ...]:
    """Each member is asked for the clients that it owns, one after the other."""
    return tuple(peer for peer in later if is_reachable(node, peer, profile))


MUTANTS = (
    Mutant(
        "B01",
        rules=(receive.natives_are_unprotected,),
        breaks=("INV-NATIVE",),
        bounds=Bounds(swallows=0, crashes=1, in_flight=1),
    ),
    Mutant(
        "B07",
        rules=(native_copy,),
        breaks=("INV-OWNER",),
        bounds=Bounds(changes=1, drops=0, swallows=0),
    ),
    Mutant(
        "B10",
        # `strict` has a second line of defence (a sync renews the lease, B17) that keeps the copy alive.
        rules=(receive.revision_of_batches_only, receive.keeps_lease),
        breaks=("INV-REV", "INV-LIVE"),
        bounds=Bounds(drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "B16",
        rules=(receive.raised_unseen,),
        breaks=("INV-ACK", "INV-DELETE"),
        bounds=Bounds(changes=1, drops=0, swallows=0, raises=1),
    ),
    Mutant(
        "B16-unhandled",
        rules=(receive.unknown_unseen,),
        breaks=("INV-ACK", "INV-DELETE"),
        bounds=Bounds(changes=1, drops=0, swallows=0, raises=1),
    ),
    Mutant(
        "B17",
        rules=(receive.keeps_lease,),
        breaks=("INV-LIVE",),
        bounds=Bounds(drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "B19",
        rules=(receive.no_batch_over_single, receive.raised_unseen),
        breaks=("INV-ACK", "INV-CONV"),
        bounds=Bounds(changes=1, drops=0, swallows=0, batches=1),
    ),
    Mutant(
        "B26",
        rules=(receive.is_forgotten_at_once,),
        breaks=("INV-DELETE",),
        bounds=Bounds(changes=1, drops=0, swallows=0, reorders=1),
    ),
    Mutant(
        "B27",
        rules=(receive.is_forgotten_at_once,),
        breaks=("INV-DELETE",),
        bounds=Bounds(changes=1, drops=0, swallows=0, crashes=1, late_replies=1),
    ),
    Mutant(
        "B33",
        rules=(receive.gives_unloaded, load.refusals_fail, load.missing_none),
        breaks=("INV-INIT",),
        bounds=Bounds(changes=0, drops=0, swallows=0, crashes=2),
    ),
    Mutant(
        "B41",
        rules=(receive.natives_are_unprotected,),
        breaks=("INV-NATIVE", "INV-OWNER"),
        bounds=Bounds(changes=1, drops=0, swallows=0, id_collisions=1),
    ),
    Mutant(
        "D4",
        rules=(receive.differs_but_for_cluster,),
        breaks=("INV-ACK", "INV-CONV", "INV-REV"),
        bounds=Bounds(drops=0, swallows=0, cluster_changes=1),
    ),
    Mutant(
        "m-held-change-fails",
        "A CHANGE of a client that is held fails, and is retried for ever.",
        rules=(is_not_held,),
        breaks=("EVENTUALLY-CONV", "EVENTUALLY-QUIET"),
        bounds=Bounds(drops=0, swallows=0),
    ),
    Mutant(
        "m-held-delete-fails",
        "A DELETE of a client that is held fails, and is retried for ever.",
        rules=(is_unknown,),
        breaks=("EVENTUALLY-DELETE", "EVENTUALLY-QUIET"),
        bounds=Bounds(changes=1, drops=0, swallows=0),
    ),
    Mutant(
        "m-unknown-delete-fails",
        "A DELETE of an unknown client fails, and is retried for ever.",
        rules=(is_known,),
        breaks=("INV-GONE",),
        bounds=Bounds(changes=0, drops=0, swallows=0),
    ),
    Mutant(
        "revision-beyond-int32",
        "A revision beyond what can be read raises after the content was applied: FAIL, for ever, and"
        " it is not taken over.",
        parameters={"largest_revision": 1},
        breaks=("INV-REV",),
        bounds=Bounds(drops=0, swallows=0),
    ),
    Mutant(
        "snapshot-range-after-jitter",
        "A load asks each member for the clients that it owns by now; clients that no asked member owns are missing.",
        rules=(own_range, all_others),
        breaks=("INV-CONV",),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1),
    ),
)
