"""Steps that a scenario has beside the model's actions: those that only observe, and the release of a single node.

Conditions are evaluated on what they observe (`expectations.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """Ask the node for the list of a service; the outcome of the line is what it shows."""

    service: str
    node: str

    def __str__(self) -> str:
        return f"query {self.service} at {self.node}"


@dataclass(frozen=True, slots=True)
class Subscribe:
    """From now on the client's node sends it the list whenever it changes. Who registers has subscribed already."""

    client: str
    service: str

    def __str__(self) -> str:
        return f"subscribe {self.client} {self.service}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Into the recording: faults are healed and time enough has passed; the nodes that are up are held to agree.
    Nothing is written while a link is broken or a fault is armed."""

    def __str__(self) -> str:
        return "checkpoint"


@dataclass(frozen=True, slots=True)
class NodeRelease:
    """From its next start on the node behaves as this release: `crash a`, `node a nacos-2.3.2`, `restart a` is one turn
    of a rolling upgrade."""

    node: str
    release: str

    def __str__(self) -> str:
        return f"node {self.node} {self.release}"


ReadStep = Query | Subscribe | Checkpoint
