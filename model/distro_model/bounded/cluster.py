"""The bounded cluster as a `search.System`: all columns, all chains, and the checks of the wanted properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.clients import client_chains
from distro_model.bounded.clock import clock_chains
from distro_model.bounded.draft import BUDGET, CLOCK, STALE, Layout, client_column, ip_column, link_column, node_column
from distro_model.bounded.ip_clients import ip_client_chains
from distro_model.bounded.links import link_chains
from distro_model.bounded.members import member_chains
from distro_model.bounded.nodes import node_chains
from distro_model.bounded.values import Budget, Clock, IpLife, Life, Link
from distro_model.node import NodeState, fresh_node
from distro_model.profiles import Profile
from distro_model.properties import PROPERTIES, Property
from distro_model.search.system import Check, System


def bounded_cluster(
    bounds: Bounds, profile: Profile, properties: Iterable[Property] = tuple(PROPERTIES.values())
) -> System:
    """The system that a search explores. At the beginning every node runs and is loaded, and nobody is connected."""
    lease_ms = bounds.lease_periods * profile.verify_interval_ms if bounds.periods else profile.lease_ms
    scaled = replace(profile.without_time(), lease_ms=lease_ms)
    if bounds.periods:  # a time-out of beats is one period, and two remove the instance
        period_ms = profile.verify_interval_ms
        scaled = replace(scaled, beat_timeout_ms=period_ms, beat_delete_ms=2 * period_ms)
    if bounds.watches_members:
        scaled = replace(scaled, failures_until_down=0)
    layout = Layout(bounds, scaled)
    beginning = {
        **{node_column(name): _loaded(name, layout.others(name)) for name in layout.nodes},
        **{link_column(*ends): Link() for ends in layout.links},
        **{client_column(name): _life(bounds, name) for name in layout.clients},
        BUDGET: Budget(**{name: getattr(bounds, name) for name in Budget.__dataclass_fields__}),
        CLOCK: Clock(),
        **{ip_column(name): IpLife(name, bounds.changes) for name in layout.ip_clients},
        **({STALE: ()} if bounds.watches_members else {}),
    }
    chains = (*client_chains(layout), *node_chains(layout), *link_chains(layout), *clock_chains(layout))
    chains += (*ip_client_chains(layout), *member_chains(layout))
    return System(
        tuple(beginning),
        tuple(beginning.values()),
        chains,
        tuple(
            Check(each.id, each.kind, lookups, "found")
            for each in properties
            if each.applies(bounds)
            for lookups in each.looks(layout)
        ),
    )


def _loaded(name: str, others: tuple[str, ...]) -> NodeState:
    return replace(fresh_node(name, others, 0), loaded=True)


def _life(bounds: Bounds, client: str) -> Life:
    return Life(client, bounds.home(bounds.client_names.index(client)), ((),), bounds.changes)
