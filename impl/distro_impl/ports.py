"""Finding main ports for nodes: each node needs P (its identity), P+1000 and P+1001.

Below the range from which the kernel takes the ports of outgoing connections, so that no client can sit on one of them
while a node restarts. Nor can another run: a port that is free now may be in use while a node is down, so each
process chooses from a slice of the ports that it holds for as long as it lives: by a port of its own, since that is
held among exactly those processes that could get in each other's way, whatever directories or users they have.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator
from functools import cache

from distro_impl.config import CLUSTER_PORT_OFFSET, SDK_PORT_OFFSET
from distro_protos.addresses import without_brackets

MAX_PORT = 65_535
LOWEST, HIGHEST = 12_000, 31_000
STEP = 10
"""Between the main ports of the nodes of one cluster; the gRPC ports of neighbours stay apart."""

PERIOD, SLICE = 1_000, 100
"""The ports of a node are the same modulo the period, or one more; a slice is that many remainders side by side."""
MAIN_PORTS = 40
"""The first remainders of a slice are for the nodes of this process, in every second period, so that no main port is
the gRPC port of another; those after them are for programs that it starts."""
HOLDERS = 32_100
"""Who has bound the nth port from here on, above those of all nodes, has the nth slice."""

_cursor = random.randrange(0, HIGHEST - LOWEST, STEP)


class PortInUseError(OSError):
    """A port that a node needs is taken. The message names the port and what it is for."""

    def __init__(self, port: int, purpose: str) -> None:
        super().__init__(f"port {port} ({purpose}) is in use; stop what listens there or choose another main port")
        self.port = port


class NotOurAddressError(OSError):
    """A node was to listen on an address that is not of this machine. The message names it."""

    def __init__(self, ip: str) -> None:
        super().__init__(f"{ip} is no address of this machine; a node listens on the address it is known by")


def free_main_ports(count: int, ip: str = "127.0.0.1") -> tuple[int, ...]:
    """Main ports for `count` nodes, ascending, free at this moment. Raises OSError when the whole range is taken.

    In the order of addresses members are asked for a snapshot and own clients of the HTTP API.
    """
    found = []
    for port in _candidates():
        if all(is_free(ip, port + offset) for offset in (0, SDK_PORT_OFFSET, CLUSTER_PORT_OFFSET)):
            found.append(port)
        if len(found) == count:
            return tuple(sorted(found))
    raise OSError(f"no {count} free main ports between {LOWEST} and {HIGHEST}")


def _candidates() -> Iterator[int]:
    """Goes on where the last search ended. All ports, where other processes own all slices."""
    global _cursor  # noqa: PLW0603 - a process-wide cursor is the point
    owned = owned_slice()
    for _ in range((HIGHEST - LOWEST) // STEP):
        _cursor = (_cursor + STEP) % (HIGHEST - LOWEST)
        period, remainder = divmod(LOWEST + _cursor, PERIOD)
        if owned is None or (period % 2 == 0 and 0 <= remainder - owned < MAIN_PORTS):
            yield LOWEST + _cursor


def owned_slice() -> int | None:
    """The first remainder of the slice of this process, or None."""
    held = _held_slice()
    return None if held is None else held[0]


@cache
def _held_slice() -> tuple[int, socket.socket] | None:
    """One that no other process has, and what holds it, which ends with this process."""
    for number, first in enumerate(range(0, PERIOD, SLICE)):
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", HOLDERS + number))
        except OSError:
            holder.close()
            continue
        return first, holder
    return None


def is_free(ip: str, port: int) -> bool:
    """Raises NotOurAddressError."""
    host = without_brackets(ip)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise NotOurAddressError(ip) from error
            return False
        return True
