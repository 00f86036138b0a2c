"""A service list that can be compared: its order is not guaranteed (docs/protocol #naming-requests)."""

from __future__ import annotations

from collections.abc import Iterable

from distro_conformance.node.player import Host

Listing = tuple[Host, ...]
"""By address."""


def listing(hosts: Iterable[Host]) -> Listing:
    return tuple(sorted(hosts, key=lambda host: (host.ip, host.port)))


def addresses(hosts: Listing) -> tuple[str, ...]:
    return tuple(host.address for host in hosts)


def shown(hosts: Listing) -> str:
    """For the reason of a failure."""
    return ", ".join(f"{h.address} {h.cluster} {h.weight} {dict(h.metadata)}" for h in hosts) or "nothing"
