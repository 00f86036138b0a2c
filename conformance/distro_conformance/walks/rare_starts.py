"""Start states for random runs: states that random runs seldom reach by themselves.

From a small state graph the rows are taken that a uniform random walk visits least often; the shortest path to each,
with times assigned, is a beginning. The graph has two nodes. With a third node, which sees no fault, the same actions
lead the two nodes to the same state: only the owner sends messages about a client, to each peer separately. This also
holds for a client of the HTTP API, as long as its hash names the same node among three as among two. A graph of three
nodes is searched as quickly, but times can be assigned to hardly any of its rarest rows: two tasks of an owner run at
one instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

from distro_conformance.walks.machine import BEGINNINGS_MAX
from distro_model.actions import Action
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.profiles import Profile, beside_nodes, profile_named
from distro_model.repeating import joined
from distro_model.rules import ip_clients
from distro_model.search.graph import state_graph
from distro_model.search.results import Run
from distro_model.search.tours import rarest
from distro_model.timing import NoTimesError, Timing, whole

BOUNDS = Bounds(changes=2, drops=1, swallows=1, in_flight=1)
HTTP_BOUNDS = replace(BOUNDS, clients=0, ip_clients=1, lapses=1)
RARE = 100
"""This many rows count as rare; a seed chooses among them."""

STARTS = BEGINNINGS_MAX
"""Beginnings of one search: each is drawn often enough to be continued in different ways."""


@cache
def rare_starts(profile: str, seed: int, *, http: bool = False) -> tuple[tuple[Action, ...], ...]:
    """Up to STARTS beginnings, the same for the same seed; `http`: with a client of the HTTP API. Raises
    UnknownProfileError."""
    rules, bounds = on_a_clock(profile), HTTP_BOUNDS if http else BOUNDS
    runs = list(_rarest(rules, bounds))
    Random(seed).shuffle(runs)
    found: dict[tuple[Action, ...], None] = {}
    for actions in _timed(rules, bounds, runs):
        found[actions] = None
        if len(found) == STARTS:
            break
    return tuple(found)


def on_a_clock(profile: str) -> Profile:
    """A release looks up the owner of a changed client one step later (B22); on a clock both steps are at the same
    instant. A search delays the second step in all its rarest rows, so no times could be assigned to them."""
    return beside_nodes(profile_named(profile)).with_rules(ip_clients.changed)


@cache
def _rarest(profile: Profile, bounds: Bounds) -> tuple[Run, ...]:
    return tuple(rarest(state_graph(bounded_cluster(bounds, profile, ())), RARE))


def _timed(profile: Profile, bounds: Bounds, runs: list[Run]) -> Iterator[tuple[Action, ...]]:
    """The actions of the runs to which times can be assigned up to their end."""
    clock = Timing(bounds, profile)
    for run in runs:
        try:
            yield tuple(joined(whole(clock.timed(run)).actions))
        except NoTimesError:
            continue
