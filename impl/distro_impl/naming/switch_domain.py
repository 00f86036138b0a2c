"""The switches that an operator may turn while a node runs (`/v1/ns/operator/switches`).

They belong to this node alone; a real server spreads them by raft. Source: docs/protocol #settings-keys.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SwitchDomain:
    distro_enabled: bool = True
    """Off: every node takes itself for the owner of every ip:port client."""
    health_check_enabled: bool = True
    """Off: nobody becomes unhealthy, and nobody is removed, for want of beats."""
    client_beat_interval_ms: int = 5_000
    push_enabled: bool = True
    """Off: subscribers are not told of changes until it is on again."""
    light_beat_enabled: bool = True
    """Clients are told that they need not send the whole instance with every beat."""
