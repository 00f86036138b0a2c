"""Finding main ports for nodes: each node needs P (its identity), P+1000 and P+1001.

Below the range from which the kernel takes the ports of outgoing connections, so that no client can sit on one of them
while a node restarts.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator

from distro_impl.config import CLUSTER_PORT_OFFSET, SDK_PORT_OFFSET

MAX_PORT = 65_535
LOWEST, HIGHEST = 12_000, 31_000
STEP = 10
"""Between the main ports of the nodes of one cluster; the gRPC ports of neighbours stay apart."""

_cursor = random.randrange(0, HIGHEST - LOWEST, STEP)


class PortInUseError(OSError):
    """A port that a node needs is taken. The message names the port and what it is for."""

    def __init__(self, port: int, purpose: str) -> None:
        super().__init__(f"port {port} ({purpose}) is in use; stop what listens there or choose another main port")
        self.port = port


class NotOurAddressError(OSError):
    """A node was to listen on an address that is not of this machine. The message names it."""

    def __init__(self, ip: str) -> None:
        super().__init__(f"{ip} is no IPv4 address of this machine; a node listens on the address it is known by")


def free_main_ports(count: int, ip: str = "127.0.0.1") -> tuple[int, ...]:
    """Main ports for `count` nodes, free at this moment. Raises OSError when the whole range is taken."""
    found = []
    for port in _candidates():
        if all(is_free(ip, port + offset) for offset in (0, SDK_PORT_OFFSET, CLUSTER_PORT_OFFSET)):
            found.append(port)
        if len(found) == count:
            return tuple(found)
    raise OSError(f"no {count} free main ports between {LOWEST} and {HIGHEST}")


def _candidates() -> Iterator[int]:
    """Goes on where the last search ended, and starts elsewhere in another process: runs side by side do not meet."""
    global _cursor  # noqa: PLW0603 - a process-wide cursor is the point
    for _ in range((HIGHEST - LOWEST) // STEP):
        _cursor = (_cursor + STEP) % (HIGHEST - LOWEST)
        yield LOWEST + _cursor


def is_free(ip: str, port: int) -> bool:
    """Raises NotOurAddressError."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise NotOurAddressError(ip) from error
            return False
        return True
