"""The switches that an operator may turn while a node runs (`/v1/ns/operator/switches`).

They belong to this node alone; a real server spreads them by raft. Source: docs/protocol #settings-switches.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SwitchDomain:
    distro_enabled: bool = True
    """Off: every node takes itself for the owner of every ip:port client."""
    health_check_enabled: bool = True
    """Off: no instance becomes unhealthy or is removed for missing beats."""
    client_beat_interval_ms: int = 5_000
    push_enabled: bool = True
    """Off: pushes wait until it is on again."""
    light_beat_enabled: bool = True
    """The answer to a beat says that the next one need not carry the whole instance."""
