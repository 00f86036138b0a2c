"""The parts that only a search has: time in periods, sleep, silence, and the connections that it finds idle.

A verify interval passes when all its events have happened. Within a period events may happen in any order; at its end
no call is in transit, no task is queued, and every running node has started its verify round and checked its leases
once. So a lease ends only where the protocol lets it end, and never because the search delayed an event. The last
period does not end, and timers go on in it. A lapse of a client of the HTTP API costs a budget: its beats age by more
than a time-out, at every node, while nothing else happens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.cluster import connections
from distro_model.cluster.budget import Budget, Clock
from distro_model.cluster.half_open import tests
from distro_model.cluster.nodes import has_something_to_verify
from distro_model.cluster.statement import Transition, chooses, watches, writes
from distro_model.cluster.values import Connection, IpLife, Life, Link
from distro_model.node import MemberState, NodeState
from distro_model.profiles import Profile
from distro_model.search.system import NO_GUARD, Fairness, Finding
from distro_model.transitions import Cause, Happens

# A period passes


def is_empty(any_link: Link) -> bool:
    return not any_link.calls


def has_work(node: NodeState) -> bool:
    """Work that the node has begun is not finished inside it."""
    return bool(node.reads or node.applies or node.unannounced or node.entered) or node.local.is_busy


def has_tasks_to_run(node: NodeState) -> bool:
    """Tasks for members that are believed UP. Tasks for others wait until their targets are UP."""
    up = {member.name for member in node.members if member.state is MemberState.UP}
    return any(task.target in up for task in node.tasks)


def is_done(every_node: NodeState | None, clock: Clock, profile: Profile) -> bool:
    node = every_node
    if node is None:
        return True
    if has_work(node) or has_tasks_to_run(node):
        return False
    tried = node.load_at_ms is None or node.name in clock.loaded
    idle = not (node.loaded and has_something_to_verify(node, profile))
    return tried and node.name in clock.checked and (idle or node.name in clock.verified)


def is_tested(any_source: NodeState | None, any_link: Link, now: int, any_target_name: str, profile: Profile) -> bool:
    """No health check that is due would find this connection broken."""
    return not (any_link.half_open and tests(any_source, now, any_target_name, profile))


def has_beaten(ip_life: IpLife, clock: Clock) -> bool:
    """A client that has lapsed may beat again at any time."""
    return not ip_life.published or ip_life.silence > 0 or f"beat {ip_life.client}" in clock.done


def is_known(stale: tuple[tuple[str, str], ...], any_source_name: str, any_target_name: str) -> bool:
    return (any_source_name, any_target_name) not in stale


def next_period(clock: Clock, periods: int) -> Clock | None:
    return Clock(clock.period + 1, slept=clock.slept) if clock.period < periods else None


def overdue(
    holder: NodeState | None, held: Life, clock: Clock, lease_length: int, crashes: int, profile: Profile
) -> Finding | None:
    """At the end of a period: a copy whose lease is over by more than a period, or of a client that has been gone for
    long.

    A snapshot does not carry the age of a lease: a node that loads starts it again, once after each crash.
    """
    copy = None if holder is None else holder.client(held.client)
    if holder is None or copy is None or holder.name in clock.slept:
        return None
    longest = lease_length + 2 + crashes * (lease_length + 1)
    if held.connection is Connection.ENDED and clock.period - held.ended_period > longest:
        what = f"{holder.name} still has {held.client}, gone for {clock.period - held.ended_period} periods"
        return Finding("INV-RESURRECT", what)
    unverified = clock.period - copy.renewed_ms // profile.verify_interval_ms
    if not copy.native and unverified > lease_length + 2:
        return Finding("INV-EXPIRE", f"{holder.name} has {held.client}, unverified for {unverified} periods")
    return None


_PASSES = (
    writes(is_empty, "something is on its way"),
    writes(is_done, "a node has something to do"),
    writes(is_tested, "a connection was not tested"),
    writes(has_beaten, "a client has not beaten"),
    writes(is_known, "{any_source_name} has not detected {any_target_name}"),
    writes(next_period, "no periods are left"),
    watches(overdue),
)
PERIOD = Transition("period", _PASSES, lambda: Happens("", "a verify period passes", Cause.TIMER), fair=Fairness.WEAK)
NOT_TESTED = replace(PERIOD, steps=tuple(each for each in PERIOD.steps if each.function is not is_tested))
"""The same guard where no connection can be half-open."""


# A node sleeps


class Slept(NamedTuple):
    node: NodeState
    clock: Clock


def sleep(node: NodeState | None, clock: Clock, slept_ms: int) -> Slept | None:
    """For longer than a lease, while the others go on: from its view, all its stamps have aged."""
    if node is None:
        return None
    clients = tuple(replace(client, renewed_ms=client.renewed_ms - slept_ms) for client in node.clients)
    gone = tuple((client, since_ms - slept_ms) for client, since_ms in node.gone)
    sleepers = tuple(sorted({*clock.slept, node.name}))
    return Slept(replace(node, clients=clients, gone=gone), replace(clock, slept=sleepers))


PAUSE = Transition(
    "pause",
    (writes(sleep, "{node_name} is down"),),
    lambda node_name: Happens(node_name, "sleeps for longer than a lease"),
    cost="pauses",
)


# A client of the HTTP API is silent


class Aged(NamedTuple):
    every_node: NodeState | None


def fall_silent(ip_life: IpLife) -> IpLife | None:
    if not ip_life.published or ip_life.silence == 2:
        return None
    return replace(ip_life, silence=ip_life.silence + 1, sure=False)


def age(every_node: NodeState | None, client: str, profile: Profile) -> Aged:
    """The requests of the client that each node has handled are unspecified."""
    held = None if every_node is None else every_node.client(client)
    if every_node is None or held is None:
        return Aged(every_node)
    beats = tuple((service, beat_ms - profile.beat_timeout_ms) for service, beat_ms in held.beats)
    return Aged(every_node.with_client(replace(held, beats=beats)))


LAPSE = Transition(
    "lapse",
    (writes(fall_silent, "it publishes nothing, or is long silent"), writes(age)),
    lambda client: Happens(client, "is silent for longer than a time-out", Cause.LEASE),
    cost="lapses",
)


# Connections are idle


class FoundIdle(NamedTuple):
    idle: tuple[str, ...]
    budget: Budget


def find_idle(idle: tuple[str, ...], home_client: Life, budget: Budget) -> list[FoundIdle]:
    """The connections found idle so far, with or without this one; a living client costs a budget."""
    with_it = (*idle, home_client.client)
    if home_client.connection is Connection.OPEN and home_client.silent:
        return [FoundIdle(with_it, budget)]
    less = budget.less("idle_spells") if home_client.acts else None
    without = FoundIdle(idle, budget)
    return [without] if less is None else [without, FoundIdle(with_it, less)]


CHECK_CONNECTIONS = replace(
    connections.CHECK_CONNECTIONS,
    steps=(
        connections.CHECK_CONNECTIONS.steps[0],
        chooses(find_idle, NO_GUARD),
        *connections.CHECK_CONNECTIONS.steps[1:],
    ),
)
