"""Time in periods: one verify interval passes when everything that it asks for has been done.

Only with `Bounds.periods`. Within a period everything may happen in any order; at its end nothing is on its way, no
task is queued, and every running node has started its verify round and checked its leases once. So a lease ends only
where the protocol let it end, and never because the search chose to be slow. A run stops after the last period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from distro_model.bounded.draft import (
    CLOCK,
    STALE,
    Draft,
    Function,
    Layout,
    client_column,
    ip_column,
    link_column,
    node_column,
)
from distro_model.bounded.half_open import all_tested
from distro_model.bounded.ip_clients import beat_mark
from distro_model.bounded.nodes import due_verify
from distro_model.bounded.values import Clock, Connection, IpLife, Life, Link
from distro_model.node import MemberState, NodeState
from distro_model.profiles import Profile
from distro_model.search.system import Alternative, Chain, Fairness, Finding
from distro_model.transitions import PeriodPasses


def clock_chains(layout: Layout) -> Iterator[Chain]:
    if not layout.bounds.periods:
        return
    draft = Draft(layout, "period", "")
    for source, target in layout.links:
        draft.look(f"something is on its way on {source}->{target}", is_empty, (link_column(source, target),))
    for node in layout.nodes:
        draft.look(f"{node} has something to do", is_done(layout.profile), (node_column(node), CLOCK))
    if layout.bounds.half_open:
        for source, target in layout.links:
            reads = (node_column(source), link_column(source, target), CLOCK)
            draft.look(f"{source}->{target} was not tested", all_tested(target, layout.profile), reads)
    for client in layout.ip_clients:
        draft.look(f"{client} has not beaten", has_beaten, (ip_column(client), CLOCK))
    if layout.bounds.watches_members:
        for node, other in layout.links:
            draft.look(f"{node} has not found out about {other}", is_known(node, other), (STALE,))
    draft.look("no periods are left", _passed(layout.bounds.periods), (CLOCK,), (CLOCK,))
    for node in layout.nodes:
        for client in layout.clients:
            draft.alarm(_overdue(layout), (node_column(node), client_column(client), CLOCK))
    yield draft.chain(lambda _: PeriodPasses(), fair=Fairness.WEAK)


def is_empty(link: Link) -> Sequence[Alternative]:
    return () if link.calls else ((),)


def has_work(node: NodeState) -> bool:
    """Something that the node has begun is not finished inside it."""
    return bool(node.reads or node.applies or node.unannounced or node.entered) or node.local.is_busy


@cache
def is_done(profile: Profile) -> Function:
    due = due_verify(profile)

    def done(node: NodeState | None, clock: Clock) -> Sequence[Alternative]:
        if node is None:
            return ((),)
        up = {member.name for member in node.members if member.state is MemberState.UP}  # nobody waits for the others
        waits = has_work(node) or any(task.target in up for task in node.tasks)
        tried = node.load_at_ms is None or node.name in clock.loaded
        rounds = tried and node.name in clock.checked and (not due(node) or node.name in clock.verified)
        return ((),) if rounds and not waits else ()

    return done


def has_beaten(life: IpLife, clock: Clock) -> Sequence[Alternative]:
    return ((),) if not life.published or beat_mark(life.client) in clock.done else ()


@cache
def is_known(node: str, other: str) -> Function:
    return lambda stale: () if (node, other) in stale else ((),)


def _passed(periods: int) -> Function:
    def passed(clock: Clock) -> Sequence[Alternative]:
        return ((Clock(clock.period + 1, slept=clock.slept),),) if clock.period < periods else ()

    return passed


def _overdue(layout: Layout) -> Function:
    """At the end of a period: a copy whose lease is over by more than a period, or of a client long gone."""
    interval_ms, lease = layout.profile.verify_interval_ms, layout.bounds.lease_periods

    def overdue(node: NodeState | None, life: Life, clock: Clock) -> Sequence[Alternative]:
        held = None if node is None else node.client(life.client)
        if node is None or held is None or node.name in clock.slept:
            return ((None,),)
        if life.connection is Connection.ENDED and clock.period - life.ended_period > lease + 2:
            what = f"{node.name} still has {life.client}, gone for {clock.period - life.ended_period} periods"
            return ((Finding("INV-RESURRECT", what),),)
        unverified = clock.period - held.renewed_ms // interval_ms
        if not held.native and unverified > lease + 2:
            return ((Finding("INV-EXPIRE", f"{node.name} has {life.client}, unverified for {unverified} periods"),),)
        return ((None,),)

    return overdue
