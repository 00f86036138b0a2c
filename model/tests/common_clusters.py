"""The common clusters: bounds that were not chosen for one mutant, a few for each subject of the protocol.

A mutant's own bounds are the smallest in which it shows, and prove that its property can detect it. Whether a search
that was not made for it finds it is another question, which these clusters answer: each has all faults of one kind at
once. `NOTICED_IN` gives the cluster in which a mutant breaks a property, `UNNOTICED` the mutants that show within their
own bounds only. Both are measured, and make no claim about a mutant that is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from distro_model.bounded.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Cluster:
    name: str
    sentence: str
    bounds: Bounds


_QUIET = {"drops": 0, "swallows": 0}
_HTTP = {"clients": 0, "ip_clients": 1, "in_flight": 1}

CLUSTERS: Mapping[str, Cluster] = MappingProxyType(
    {
        each.name: each
        for each in (
            Cluster(
                "changes",
                "Two changes, one of them perhaps of nothing but a cluster, and one request of each kind is lost.",
                Bounds(retry_waits=1, cluster_changes=1),
            ),
            Cluster("batches", "Batches and single instances take turns.", Bounds(changes=1, batches=2, drops=0)),
            Cluster("parts", "What a release reads and applies in parts.", Bounds(torn=1, drops=0)),
            Cluster(
                "network",
                "Requests arrive late, reordered or unexpectedly, are answered with an unreadable reply, or raise.",
                Bounds(changes=1, **_QUIET, reorders=1, delays=1, garbles=1, raises=1, strays=1),
            ),
            Cluster(
                "restarts",
                "Nodes crash and load, while replies are late and loads are interrupted.",
                Bounds(changes=1, **_QUIET, crashes=2, late_replies=1, raises=1, in_flight=1),
            ),
            Cluster(
                "leases",
                "Periods pass, a node sleeps, a request is lost.",
                Bounds(swallows=0, periods=3, lease_periods=1, pauses=1, in_flight=1),
            ),
            Cluster(
                "inside",
                "Events wait in queues, requests and set-ups take two steps, and the index may miss an event.",
                Bounds(**_QUIET, event_queue=1, index=1, lost_events=1, slow_requests=1, slow_setups=1, in_flight=1),
            ),
            Cluster(
                "connections",
                "Two clients of one node are idle or silent, and an operator sets metadata.",
                Bounds(nodes=1, clients=2, changes=1, **_QUIET, idle_spells=2, silences=1, operator_changes=1),
            ),
            Cluster(
                "three",
                "Three nodes, of which one leaves the list of another.",
                Bounds(nodes=3, changes=1, drops=0, leaves=1, in_flight=1),
            ),
            Cluster(
                "http",
                "A client of the HTTP API, a crash, a silence, and a node that believes a running one DOWN.",
                Bounds(**_HTTP, changes=2, **_QUIET, flips=1, lapses=1, crashes=1),
            ),
            Cluster(
                "http members",
                "A client of the HTTP API, of either version, and a list of members that changes or is read again.",
                Bounds(**_HTTP, changes=1, **_QUIET, crashes=1, leaves=1, joins=1, refreshes=1, v2_requests=1),
            ),
            Cluster(
                "http restarts",
                "A client of the HTTP API, of either version, a crash, and a list of members that is read again.",
                Bounds(**_HTTP, changes=1, **_QUIET, crashes=1, refreshes=1, v2_requests=1),
            ),
            Cluster(
                "http periods",
                "A client of the HTTP API that beats in every period.",
                Bounds(**_HTTP, changes=1, **_QUIET, flips=1, periods=3),
            ),
        )
    }
)

_NOTICED = {
    "changes": "B02 B07 B24 D4 m-delete-retried-as-change m-merge-keeps-max-delay m-unknown-delete-fails"
    " no-anti-entropy revision-beyond-int32",
    "batches": "B18 B19",
    "parts": "B05 B05-sender",
    "network": "B16 B16-unhandled B26 B41 B42 m-query-creates native-connect-onto-synced revision-zero-wildcard",
    "restarts": "B11 B27 B32 B33 load-exception-no-retry",
    "leases": "B10 B17 B23 B31 m-cleaner-drops-native m-refusal-renews",
    "inside": "B08 B12 B13 B14 B25 B28 B40 B44 m-verifies-copies",
    "connections": "B03 B39 B43",
    "three": "B37 B37-fall-through m-add-after-fail-to-all m-one-worker m-verify-to-one",
    "http": "B06 m-owner-includes-down v1-checksum-dual-owner-delete",
    "http members": "B36 B36-refresh",
    "http restarts": "D7 snapshot-range-after-jitter",
    "http periods": "m-ipport-verify-no-beat-renew",
}

NOTICED_IN: Mapping[str, Cluster] = MappingProxyType(
    {mutant: CLUSTERS[name] for name, mutants in _NOTICED.items() for mutant in mutants.split()}
)
"""Mutant -> the common cluster in which it breaks a property."""

UNNOTICED = frozenset(
    {"B01", "B15", "B22", "B30", "B35", "m-load-waits-for-down", "m-verify-only-if-all-up"}
    | {"single-member-never-initialised", "m-check-asks-one", "m-check-renews", "m-no-lease-ends"}
    | {"m-held-change-fails", "m-held-delete-fails", "m-resends-after-success"}
)
"""Mutants that break no property in any of them."""
