"""The bounded cluster as a `search.System`: all columns, all chains, and the checks of the wanted properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.chains import Chains
from distro_model.bounded.layout import BUDGET, CLOCK, STALE, Layout, client_column, ip_column, link_column, node_column
from distro_model.bounded.placed import placed
from distro_model.cluster.budget import Budget, Clock
from distro_model.cluster.values import IpLife, Life, Link
from distro_model.node import NodeState, fresh_node
from distro_model.profiles import Profile
from distro_model.properties import PROPERTIES, Property
from distro_model.rules import receive, sync
from distro_model.search.system import Check, System

DOCUMENTED_LEASE_MS = 180_000


def bounded_cluster(
    bounds: Bounds,
    profile: Profile,
    properties: Iterable[Property] = tuple(PROPERTIES.values()),
) -> System:
    """The system that a search explores. At first every node runs and is loaded, and no client is connected."""
    lease_ms = _scaled_lease_ms(bounds, profile) if bounds.periods else profile.lease_ms
    scaled = replace(
        profile.without_time(),
        lease_ms=lease_ms,
        empty_lease_ms=-1,  # the time for which a client was empty is not counted
        event_queue=bounds.event_queue,
        keeps_index=bounds.index > 0,
        retry_delay_ms=profile.retry_delay_ms if bounds.retry_waits else 0,
        sending_counts_as_activity=profile.sending_counts_as_activity and bounds.half_open > 0,
    )
    if bounds.periods:  # longer than one period without a beat is a time-out, and longer than two removes the instance
        period_ms = profile.verify_interval_ms
        scaled = replace(scaled, beat_timeout_ms=period_ms + 1, beat_delete_ms=2 * period_ms + 1)
    if bounds.watches_members:
        scaled = replace(scaled, failures_until_down=bounds.suspicions)
    if not bounds.torn:
        scaled = scaled.with_rules(receive.on_change, sync.on_task_due)
    layout = Layout(bounds, scaled)
    everything = tuple(placed(layout))
    costs = {transition.cost for transition, _ in everything if transition.cost} | {"idle_spells"}
    beginning = {
        **{node_column(name): _loaded(name, layout) for name in layout.nodes},
        **{link_column(*ends): Link() for ends in layout.links},
        **{client_column(name): _life(bounds, name) for name in layout.clients},
        BUDGET: Budget(tuple((name, getattr(bounds, name)) for name in sorted(costs))),
        CLOCK: Clock(),
        **{ip_column(name): IpLife(name, bounds.changes) for name in layout.ip_clients},
        **({STALE: ()} if bounds.watches_members else {}),
    }
    chains = Chains(layout)
    return System(
        tuple(beginning),
        tuple(beginning.values()),
        tuple(chains.chain(transition, place) for transition, place in everything),
        tuple(
            Check(each.id, each.kind, lookups, "found")
            for each in properties
            if each.applies(bounds)
            for lookups in each.lookup_chains(layout)
        ),
    )


def _scaled_lease_ms(bounds: Bounds, profile: Profile) -> int:
    """`lease_length` stands for the documented lease; a profile with a shorter one gets fewer periods (B31)."""
    return max(1, bounds.lease_length * profile.lease_ms // DOCUMENTED_LEASE_MS) * profile.verify_interval_ms


def _loaded(name: str, layout: Layout) -> NodeState:
    return replace(fresh_node(name, layout.others(name), 0, layout.addresses), loaded=True)


def _life(bounds: Bounds, client: str) -> Life:
    number = 1 if bounds.operator_changes else bounds.client_names.index(client) + 1
    return Life(
        client, bounds.home(bounds.client_names.index(client)), ((),), bounds.changes, address=f"10.0.0.{number}:80"
    )
