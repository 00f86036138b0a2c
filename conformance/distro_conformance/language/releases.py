"""Nodes of different releases in one run: a cluster that is upgraded node by node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeRelease:
    """From its next start on the node behaves as this release: `crash a`, `node a nacos-2.3.2`, `restart a` is one turn
    of a rolling upgrade."""

    node: str
    release: str

    def __str__(self) -> str:
        return f"node {self.node} {self.release}"
