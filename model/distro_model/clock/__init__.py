"""The cluster with a clock: whatever is due happens, in every order that one instant allows.

Clients, faults and time itself are actions (`distro_model.actions`), chosen by whoever drives it.
"""

from distro_model.clock.cluster import (
    ClusterState,
    IllegalActionError,
    Outcome,
    View,
    apply,
    enabled,
    observe,
    start,
)
from distro_model.clock.turn import Plan, Traffic

__all__ = [
    "ClusterState",
    "IllegalActionError",
    "Outcome",
    "Plan",
    "Traffic",
    "View",
    "apply",
    "enabled",
    "observe",
    "start",
]
