"""Base ports whose whole family is free, and that this module hands out to no other process.

A Nacos member is named after one port and listens on up to four: P (HTTP), P+1000 (SDK), P+1001 (cluster) and
P-1000 (JRaft). So two members on one host can collide although their base ports differ, and a check of P alone is not
enough. A family that is free now may be taken a moment later: so each process chooses from its own slice
(`distro_impl.ports`). Source: docs/protocol #wire-limits, docs/real-servers.md#starting.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator

from distro_conformance.verdict import TargetError
from distro_impl.ports import MAIN_PORTS, MAX_PORT, PERIOD, SLICE, is_free, owned_slice
from distro_protos.addresses import parse_address

SDK_OFFSET, CLUSTER_OFFSET, RAFT_OFFSET = 1000, 1001, -1000
_OFFSETS = {0: "HTTP", SDK_OFFSET: "SDK gRPC", CLUSTER_OFFSET: "cluster gRPC", RAFT_OFFSET: "JRaft"}
_LOWEST, _HIGHEST = 11_000, 29_000  # the highest of a family stays below the ports that systems give to outgoing calls
_random = random.SystemRandom()  # tests that seed `random` would get the same ports again
_handed_out: deque[int] = deque(maxlen=100)
"""Base ports that were handed out lately. A server binds its ports only when its process is up, seconds later; clusters
that are started side by side would otherwise get overlapping families in the meantime."""


def family(base: int) -> frozenset[int]:
    """All ports that a member named after `base` may bind."""
    return frozenset(base + offset for offset in _OFFSETS)


def with_offset(address: str, offset: int) -> str:
    """From `host:P` of a member to the address of another of its ports."""
    return str(parse_address(address).moved(offset))


def free_base_ports(count: int = 1, *, beside: Collection[int] = (), above: int = 0) -> tuple[int, ...]:
    """Base ports whose families are free now and do not overlap with recent ones or with those of `beside`.

    All are higher than `above`, which may be any port that this function returns. Raises TargetError when there are not
    enough free families.
    """
    lowest, highest = (above - above % PERIOD, _HIGHEST + PERIOD) if above else (_LOWEST, _HIGHEST)
    candidates = [
        base + each for base in range(lowest, highest, PERIOD) for each in _remainders() if base + each > above
    ]
    while True:
        chosen = _apart(_in_random_order(candidates), count, (*beside, *_handed_out))
        if len(chosen) == count:
            _handed_out.extend(chosen)
            return chosen
        if not _handed_out:
            raise TargetError(f"no {count} free port families above {max(lowest, above)}; stop what listens there")
        _handed_out.popleft()  # its server has bound it by now, or was never started


def _apart(candidates: Iterable[int], count: int, others: Iterable[int]) -> tuple[int, ...]:
    """The first `count` candidates, or fewer, that are free and whose families overlap with no other one."""
    used = set[int]().union(*map(family, others))
    chosen: list[int] = []
    for base in candidates:
        if len(chosen) == count:
            break
        if used.isdisjoint(family(base)) and first_taken(base) is None:
            chosen.append(base)
            used |= family(base)
    return tuple(chosen)


def _in_random_order(candidates: Iterable[int]) -> Iterator[int]:
    """Each is chosen when it is asked for: most callers need one of a thousand."""
    left = list(candidates)
    while left:
        index = _random.randrange(len(left))
        left[index], left[-1] = left[-1], left[index]
        yield left.pop()


def _remainders() -> range:
    """The remainders whose families stay in the slice of this process, beside its own nodes; all if it has no slice."""
    owned = owned_slice()
    return range(PERIOD) if owned is None else range(owned + MAIN_PORTS, owned + SLICE - 1)


def first_taken(base: int) -> int | None:
    """The first port of the family that another process holds, or None."""
    return next((port for port in sorted(family(base)) if not _is_free(port)), None)


def require_free(base: int) -> None:
    """Raises TargetError with the port and its use."""
    taken = first_taken(base)
    if taken is not None:
        use = _OFFSETS[taken - base]
        raise TargetError(f"port {taken} is in use (a member at {base} needs it for {use}); choose another base port")


def _is_free(port: int) -> bool:
    """Free on the wildcard address and on loopback: real servers bind both."""
    return 0 <= port <= MAX_PORT and all(is_free(host, port) for host in ("0.0.0.0", "127.0.0.1"))
