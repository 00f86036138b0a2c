"""Mutants of `rules/verify.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.events import ClientConnected, LeaseCheckDue, RequestReceived, Send, VerifyDue
from distro_model.messages import Change, OwnedList, Verify
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules import clients, verify
from distro_model.rules.owners import is_ip_client
from distro_model.rules.receive import fresh_copy
from distro_model.rules.rule import RULES, instead_of
from distro_model.rules.sync import is_reachable


@instead_of(verify.repaired_members)
def all_members(node: NodeState, _failed: str, _: Profile) -> tuple[str, ...]:
    """A failed verify brings a full sync to every member."""
    return node.others


@instead_of(verify.is_expired)
def is_expired_native_too(client: Client, at_ms: int, profile: Profile) -> bool:
    """The lease check covers native clients too."""
    return verify.is_over(client, at_ms, profile)


@instead_of(clients.fresh_native)
def native_with_lease(event: ClientConnected, _: Profile) -> Client:
    """A native client has a lease, which is never renewed."""
    return Client(event.client, native=True, revision=0, content=(), renewed_ms=event.at_ms)


@instead_of(verify.of_unknown)
def created_empty(node: NodeState, request: Verify, at_ms: int, profile: Profile) -> NodeState:
    """A VERIFY of an unknown client creates it, without content."""
    return node.with_client(fresh_copy(Change(request.client, 0, ()), at_ms, profile))


@instead_of(verify.verified_members)
def one_member(node: NodeState, profile: Profile) -> tuple[str, ...]:
    """A verify round goes to the first member that requests are sent to."""
    return tuple(target for target in node.others if is_reachable(node, target, profile))[:1]


@instead_of(verify.verified_members)
def while_all_are_up(node: NodeState, profile: Profile) -> tuple[str, ...]:
    """A verify round goes to no member while one of them is not UP."""
    reachable = tuple(target for target in node.others if is_reachable(node, target, profile))
    return reachable if reachable == node.others else ()


@instead_of(verify.verified_members)
def no_members(_node: NodeState, _: Profile) -> tuple[str, ...]:
    """A verify round goes to no member."""
    return ()


@instead_of(verify.lists_sent)
def one_list_each(owned: Sequence[Client], targets: Sequence[str], _: Profile) -> tuple[Send, ...]:
    """Each member is sent the list of all ip:port clients that this node owns."""
    names = tuple(client.name for client in owned if is_ip_client(client.name))
    return tuple(Send(target, OwnedList(names)) for target in targets)


@instead_of(verify.on_verify)
def refused_and_renewed(node: NodeState, event: RequestReceived, request: Verify, profile: Profile) -> Step:
    """A verify renews the lease of the copy that it is about, even where it is refused."""
    done: Step = RULES["confirm"].own(node, event, request, profile)
    held = done.node.client(request.client)
    if held is None or held.native:
        return done
    return Step(done.node.with_client(replace(held, renewed_ms=event.at_ms)), done.outputs)


@instead_of(verify.on_verify_due)
def copies_too(node: NodeState, event: VerifyDue, profile: Profile) -> Step:
    """A verify round is about copies too."""
    done: Step = RULES["verify"].own(node, event, profile)
    if not node.loaded:
        return done
    targets = verify.verified_members(node, profile)
    copies = [each for each in node.clients if not each.native and not is_ip_client(each.name)]
    verifies = tuple(Send(target, Verify(each.name, each.revision)) for each in copies for target in targets)
    return Step(done.node, (*done.outputs, *verifies))


@instead_of(verify.is_expired)
def never_expires(_client: Client, _at_ms: int, _: Profile) -> bool:
    """No lease is ever over."""
    return False


@instead_of(verify.on_lease_check_due)
def renewed_by_the_check(node: NodeState, event: LeaseCheckDue, profile: Profile) -> Step:
    """A check renews the leases that it finds over."""
    over = [each for each in node.clients if verify.is_expired(each, event.at_ms, profile)]
    for each in over:
        node = node.with_client(replace(each, renewed_ms=event.at_ms))
    done: Step = RULES["end-leases"].own(node, event, profile)
    return done


MUTANTS = (
    # --8<-- [start:B02]
    Mutant(
        "B02",
        rules=(verify.existence_is_enough,),
        breaks=("INV-CONV", "INV-VERIFY"),
    ),
    # --8<-- [end:B02]
    Mutant(
        "B23",
        rules=(verify.checks_always,),
        breaks=("INV-LIVE",),
        bounds=Bounds(changes=1, drops=0, swallows=0, periods=2, lease_periods=1, pauses=1),
    ),
    Mutant(
        "B31",
        parameters={"lease_ms": 30000},
        breaks=("INV-LIVE",),
        bounds=Bounds(changes=1, swallows=0, periods=3, lease_periods=2),
    ),
    Mutant(
        "m-add-after-fail-to-all",
        "A failed verify brings a full sync to every member, not only to the one that failed it.",
        rules=(all_members,),
        breaks=("INV-AIM",),
        bounds=Bounds(nodes=3, changes=0, drops=0, swallows=0),
    ),
    Mutant(
        "m-check-renews",
        "The lease check renews the leases that are over: a copy whose DELETE was swallowed stays for good.",
        rules=(renewed_by_the_check,),
        breaks=("INV-RESURRECT",),
        bounds=Bounds(changes=0, drops=0, swallows=1, periods=7, lease_periods=1),
    ),
    Mutant(
        "m-cleaner-drops-native",
        "The lease check removes native clients too.",
        rules=(is_expired_native_too, native_with_lease),
        breaks=("INV-LIVE", "INV-OWNER"),
        bounds=Bounds(changes=0, drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "m-no-lease-ends",
        "No lease ever ends: the copies of a node that has crashed stay for good.",
        rules=(never_expires,),
        breaks=("INV-EXPIRE",),
        bounds=Bounds(changes=0, drops=0, swallows=0, crashes=1, periods=5, lease_periods=1, in_flight=1),
    ),
    Mutant(
        "m-query-creates",
        "A VERIFY of an unknown client creates it, with nothing.",
        rules=(created_empty,),
        breaks=("INV-DELETE",),
        bounds=Bounds(changes=0, drops=0, swallows=0, delays=1),
    ),
    Mutant(
        "m-refusal-renews",
        "A verify that is refused renews the lease of the copy nevertheless.",
        rules=(refused_and_renewed,),
        breaks=("INV-RENEW",),
        bounds=Bounds(changes=1, drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "m-verifies-copies",
        "A verify round is about copies too: nodes that hold a copy keep it alive for each other.",
        rules=(copies_too,),
        breaks=("INV-SOURCE",),
        bounds=Bounds(clients=2, changes=0, drops=0, swallows=0),
    ),
    Mutant(
        "m-verify-only-if-all-up",
        "There is no verify while a member is not UP: lost syncs between the others are not repaired.",
        rules=(while_all_are_up,),
        breaks=("INV-CONV", "EVENTUALLY-CONV"),
        bounds=Bounds(nodes=3, changes=1, crashes=1, stays_down=1, drops=0, swallows=1, in_flight=1),
    ),
    Mutant(
        "m-verify-to-one",
        "Each verify round goes to one member only.",
        rules=(one_member,),
        breaks=("INV-LIVE",),
        bounds=Bounds(nodes=3, changes=1, drops=0, swallows=0, periods=2, lease_periods=1, in_flight=1),
    ),
    Mutant(
        "no-anti-entropy",
        "There is no verify: lost syncs are never repaired.",
        rules=(no_members,),
        breaks=("INV-CONV",),
        bounds=Bounds(changes=1, drops=0),
    ),
    Mutant(
        "revision-zero-wildcard",
        rules=(verify.zero_always_matches,),
        breaks=("INV-VERIFY", "INV-CONV"),
        bounds=Bounds(changes=0, drops=0, swallows=0, id_collisions=1),
    ),
    Mutant(
        "v1-checksum-dual-owner-delete",
        "A verify lists its sender's clients; unlisted clients that the receiver attributes to the sender are deleted.",
        rules=(one_list_each,),
        breaks=("INV-LIVE",),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, in_flight=1),
    ),
)
