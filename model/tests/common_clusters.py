"""The common clusters: bounds that were not chosen for one mutant, a few for each subject of the protocol, with all
faults of one kind at once. `strict` breaks nothing in any of them."""

from __future__ import annotations

from collections.abc import Mapping

from distro_model.bounded.bounds import Bounds

_QUIET = {"drops": 0, "swallows": 0}
_HTTP = {"clients": 0, "ip_clients": 1, "in_flight": 1}

CLUSTERS: Mapping[str, Bounds] = {
    "changes": Bounds(retry_waits=1, cluster_changes=1),
    "batches": Bounds(changes=1, batches=2, drops=0),
    "parts": Bounds(torn=1, drops=0),
    "network": Bounds(changes=1, **_QUIET, reorders=1, delays=1, garbles=1, raises=1, id_collisions=1),
    "restarts": Bounds(changes=1, **_QUIET, crashes=2, late_replies=1, raises=1, in_flight=1),
    "leases": Bounds(swallows=0, periods=3, lease_periods=1, pauses=1, in_flight=1),
    "inside": Bounds(**_QUIET, event_queue=1, index=1, lost_events=1, slow_requests=1, slow_setups=1, in_flight=1),
    "connections": Bounds(nodes=1, clients=2, changes=1, **_QUIET, idle_spells=2, silences=1, operator_changes=1),
    "three": Bounds(nodes=3, changes=1, drops=0, leaves=1, in_flight=1),
    "http": Bounds(**_HTTP, changes=2, **_QUIET, flips=1, lapses=1, crashes=1),
    "http members": Bounds(**_HTTP, changes=1, **_QUIET, crashes=1, leaves=1, joins=1, refreshes=1, v2_requests=1),
    "http restarts": Bounds(**_HTTP, changes=1, **_QUIET, crashes=1, refreshes=1, v2_requests=1),
    "http periods": Bounds(**_HTTP, changes=1, **_QUIET, flips=1, periods=3),
}
