"""The observable part of the calls between nodes once they have ended, by the names of the nodes.

Clusters that differ only in this are different: an observer is compared by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from distro_model.messages import CallResult, Operation
from distro_model.rules.owners import is_ip_client


class Traffic(NamedTuple):
    """One finished Distro call (no reports), with the end that its sender observed. A tuple, because long runs count
    thousands."""

    source: str
    target: str
    operation: Operation
    client: str | None
    revision: int | None
    outcome: CallResult

    @property
    def is_seen(self) -> bool:
        """Whether it is observable outside of the sender: without a connection, a request never leaves it."""
        return self.outcome is not CallResult.UNREACHABLE

    @property
    def request(self) -> str:
        """The sender, the target and the request."""
        about = "" if self.client is None else f" {self.client}"
        revision = "" if self.revision is None else f" revision {self.revision}"
        return f"{self.operation} {self.source}->{self.target}{about}{revision}"

    def __str__(self) -> str:
        return f"{self.request}: {self.outcome}"


def seen_calls(traffic: Iterable[Traffic]) -> Counter[Traffic]:
    """The number of each; their order does not matter."""
    return Counter(call for call in traffic if call.is_seen)


class Ended(NamedTuple):
    """A call that was observed to end this long after its action had begun."""

    after_ms: int
    call: Traffic


def compared_revision(client: str | None, revision: int | None) -> int | None:
    """None for an ip:port client: its revision is a hash that each node computes in its own way, so two of them cannot
    be compared."""
    return None if client is not None and is_ip_client(client) else revision
