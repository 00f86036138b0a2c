"""All pairs of budgets: what two things that may happen do to each other, in the smallest cluster that allows both.

Every bug of `strict` that was found late was found so: each budget had been searched alone, and never beside this other
one. A pair is one search; what a budget cannot do without comes with it, and a pair that contradicts itself is named
with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from distro_model.bounded.bounds import Bounds

BASE: Mapping[str, int] = MappingProxyType(
    {"clients": 0, "ip_clients": 0, "changes": 1, "drops": 0, "swallows": 0, "in_flight": 1}
)

_PERIODS = {"periods": 3, "lease_periods": 1}
_CRASHES = {"crashes": 1}
_EVENTS = {"event_queue": 1, "index": 1, "lost_events": 1}

CONNECTION, HTTP = "a connection", "the HTTP API"


def _once(names: str) -> Mapping[str, Mapping[str, int]]:
    return {name: {name: 1} for name in names.split()}


OF_EVERY_CLIENT: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        **_once("drops lost_replies swallows late_replies garbles raises retry_waits flips leaves refreshes"),
        "reorders": {"reorders": 1, "in_flight": 2},
        "delays": {"delays": 1, "in_flight": 2},  # else nothing comes before what is late
        "joins": {"leaves": 1, "joins": 1},
        "changes": {"changes": 2},
        "services": {"services": 2, "changes": 2},
        "periods": _PERIODS,
        "pauses": {**_PERIODS, "pauses": 1},
        "crashes": _CRASHES,
        "stays_down": {**_CRASHES, "stays_down": 1},
    }
)
"""Budget -> the bounds needed to use it once, for clients of either kind: such a pair is two searches."""

OF_CONNECTIONS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        **_once("id_collisions batches silences idle_spells half_open operator_changes torn index event_queue"),
        **_once("slow_requests slow_setups"),
        "cluster_changes": {"cluster_changes": 1, "changes": 2},
        "lost_events": _EVENTS,
        "clients": {"clients": 2, "in_flight": 2},
    }
)
OF_HTTP: Mapping[str, Mapping[str, int]] = MappingProxyType({"lapses": {"lapses": 2}, **_once("races v2_requests")})

BUDGETS = (*OF_EVERY_CLIENT, *OF_CONNECTIONS, *OF_HTTP)


@dataclass(frozen=True, slots=True)
class Job:
    """One search of a cluster."""

    name: str
    bounds: Bounds | None
    contradiction: str | None = None
    """Why there is no such cluster."""


def pairs(**more: int) -> Iterator[Job]:
    """Each two budgets, for each kind of client that both may concern; `more` are bounds that hold for all."""
    for one, other in combinations(BUDGETS, 2):
        for kinds in _kinds(one, other):
            wanted = {**BASE, **_of(one), **_of(other), **more}
            for name, least in (("clients", CONNECTION in kinds), ("ip_clients", HTTP in kinds)):
                wanted[name] = max(wanted[name], int(least))
            for name in ("changes", "in_flight"):
                wanted[name] = max(each.get(name, 0) for each in (BASE, _of(one), _of(other), more))
            wanted["in_flight"] = max(wanted["in_flight"], wanted["clients"] + wanted["ip_clients"])
            name = f"{one} + {other}, a client of {' and one of '.join(kinds)}"
            try:
                yield Job(name, Bounds(**wanted))
            except ValueError as contradiction:
                yield Job(name, None, str(contradiction).removeprefix("bounds: "))


def _of(budget: str) -> Mapping[str, int]:
    return {**OF_EVERY_CLIENT, **OF_CONNECTIONS, **OF_HTTP}[budget]


def _kinds(one: str, other: str) -> tuple[tuple[str, ...], ...]:
    needed = ({one, other} & OF_CONNECTIONS.keys(), {one, other} & OF_HTTP.keys())
    kinds = tuple(kind for kind, names in zip((CONNECTION, HTTP), needed, strict=True) if names)
    return (kinds,) if kinds else ((CONNECTION,), (HTTP,))
