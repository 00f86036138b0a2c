"""Faults of a node's links and of the node itself, from its rows: when each began and ended, and who left its list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from distro_spark.history import Row
from distro_traces.event import Kind

BREAKS = ("cut", "black hole", "held", "paused")
MENDS = {"healed": ("cut", "black hole"), "released": ("held",), "resumed": ("paused",)}
LINK_FAULTS = (*BREAKS, *MENDS)
"""Faults that change whether a link, or the node itself, works; the others affect single calls."""


class Fault(NamedTuple):
    """From `at_ms` on the link to the peer is broken or not; `left`: the peer has left the node's list; `back`: it is
    listed again."""

    at_ms: int
    is_broken: bool
    left: bool = False
    back: bool = False


def faults_of(g: int, marks: Sequence[Row], members: Mapping[str, int]) -> Iterator[tuple[int, Fault]]:
    """Faults of links, of the node itself, and members that have left its list or are back. A link with one healed
    fault may still have another."""
    gone: set[str] = set()
    broken: defaultdict[int, set[str]] = defaultdict(set)
    for row in marks:
        if row.kind == Kind.LINK_FAULT:
            peer, fault = members.get(row.peer, -1) if row.peer else g, row.detail or ""
            broken[peer] = broken[peer] | {fault} if fault in BREAKS else broken[peer].difference(MENDS[fault])
            yield peer, Fault(row.at_ms, bool(broken[peer]))
        elif row.kind == Kind.MEMBERS_CHANGED:
            listed = set((row.detail or "").split(","))
            for name, peer in members.items():
                if (name not in listed) != (name in gone):
                    left = name not in listed
                    broken[peer] = broken[peer] | {"left"} if left else broken[peer] - {"left"}
                    yield peer, Fault(row.at_ms, bool(broken[peer]), left, not left)
            gone = set(members) - listed
