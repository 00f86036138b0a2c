"""Base ports whose whole family is free, and which no other process that chooses by this module is given.

A Nacos member is named after one port and listens on up to four: P (HTTP), P+1000 (SDK), P+1001 (cluster) and
P-1000 (JRaft). So two members on one host can collide although their base ports differ, and "is P free" is the wrong
question. A family that is free now may be somebody else's a moment later: so each process chooses from a slice of its
own (`distro_impl.ports`). Source: docs/protocol #wire-limits, docs/real-servers.md#starting.
"""

from __future__ import annotations

import random
import socket
from collections import deque

from distro_conformance.verdict import TargetError
from distro_impl.ports import MAIN_PORTS, PERIOD, SLICE, owned_slice

SDK_OFFSET, CLUSTER_OFFSET, RAFT_OFFSET = 1000, 1001, -1000
_OFFSETS = {0: "HTTP", SDK_OFFSET: "SDK gRPC", CLUSTER_OFFSET: "cluster gRPC", RAFT_OFFSET: "JRaft"}
_LOWEST, _HIGHEST = 11_000, 29_000  # the highest of a family stays below the ports that systems give to outgoing calls
_ATTEMPTS = 500
_random = random.SystemRandom()  # whoever seeds the other one, as property tests do, would get the same ports again
_handed_out: deque[int] = deque(maxlen=100)
"""Base ports that were given lately. Who got one binds it only when its process is up, seconds later; clusters that are
started side by side would else be given overlapping families in the meantime."""


def family(base: int) -> frozenset[int]:
    """All ports that a member named after `base` may bind."""
    return frozenset(base + offset for offset in _OFFSETS)


def with_offset(address: str, offset: int) -> str:
    """`host:P` of a member to the address of another of its servers."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + offset}"


def free_base_ports(count: int = 1) -> tuple[int, ...]:
    """Base ports whose families are free now and overlap with none that was given lately.

    Raises TargetError when none are to be found.
    """
    chosen: list[int] = []
    for _ in range(_ATTEMPTS):
        base = _random.randrange(_LOWEST, _HIGHEST, PERIOD) + _remainder()
        if any(family(base) & family(other) for other in (*chosen, *_handed_out)) or first_taken(base) is not None:
            continue
        chosen.append(base)
        if len(chosen) == count:
            _handed_out.extend(chosen)
            return tuple(chosen)
    raise TargetError(f"no {count} free port families between {_LOWEST} and {_HIGHEST}; stop what listens there")


def _remainder() -> int:
    """One whose families stay in the slice of this process, beside those of its own nodes; any where it has none."""
    owned = owned_slice()
    return _random.randrange(PERIOD) if owned is None else owned + _random.randrange(MAIN_PORTS, SLICE - 1)


def first_taken(base: int) -> int | None:
    """The first port of the family that somebody else holds, or None."""
    return next((port for port in sorted(family(base)) if not _is_free(port)), None)


def require_free(base: int) -> None:
    """Raises TargetError that names the port and what it is needed for."""
    taken = first_taken(base)
    if taken is not None:
        use = _OFFSETS[taken - base]
        raise TargetError(f"port {taken} is in use (a member at {base} needs it for {use}); choose another base port")


def _is_free(port: int) -> bool:
    """On the wildcard address and on loopback: real servers bind both."""
    for host in ("0.0.0.0", "127.0.0.1"):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except (OSError, OverflowError):
                return False
    return True
