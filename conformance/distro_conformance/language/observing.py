"""Steps that only observe: a query, a subscription, a mark in the recording.

A scenario has them beside the model's actions. Conditions are evaluated on what they observe (`expectations.py`).
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
    """Into the recording: faults are healed and time enough has passed; the nodes that are up are held to agree."""

    def __str__(self) -> str:
        return "checkpoint"


Look = Query | Subscribe | Checkpoint
