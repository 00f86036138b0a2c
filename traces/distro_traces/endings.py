"""Members that differ about a client when a recording ends, even where no call failed.

For each client the last state in each node's rows is kept, and compared with that of its owner, or of the node that
changed last. A member lacks a client only if its state was recorded from the client's first row to the end
(`Observed.covers_to_end`); a change shortly before the end of either recording is in transit and no difference. This is
no verdict: a server under load drops log records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from distro_traces.event import GONE_KINDS, HELD_KINDS, RESET_KINDS, Event, Kind
from distro_traces.observed import EVERYTHING, Observed

SETTLES_MS = 20_000
"""A change reaches every member within this time, even if the first call for it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """`node` differs from `reference` about `client` since `from_ms`."""

    run: str
    client: str
    node: str
    reference: str
    from_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class _Last:
    """The last state of a client in a node's rows; `digest` null: it is gone."""

    at_ms: int
    digest: str | None
    owned: bool | None


class Endings:
    """Takes the events of runs in any order that keeps each node's own."""

    def __init__(self, observed: Observed = EVERYTHING) -> None:
        self._observed = observed
        self._clients: dict[tuple[str, str], dict[str, _Last]] = {}  # run, client: by node
        self._came: dict[tuple[str, str], int] = {}  # run, client: its first row
        self._ends: dict[str, dict[str, int]] = {}  # run: by node its last row
        self._at_rest: set[str] = set()

    def take(self, event: Event) -> None:
        run, node, client = event.run, event.node, event.client
        self._ends.setdefault(run, {})[node] = event.at_ms
        if event.kind is Kind.CHECKPOINT:
            self._at_rest.add(run)
        elif event.kind in RESET_KINDS:
            self.forget(run, node)
        if client is None:
            return
        if event.kind in HELD_KINDS and event.digest is not None:
            self._came.setdefault((run, client), event.at_ms)
            self._clients.setdefault((run, client), {})[node] = _Last(event.at_ms, event.digest, event.owned)
        elif event.kind in (*GONE_KINDS, Kind.OBSERVED):
            self._gone((run, client), node, event.at_ms)

    def forget(self, run: str, node: str) -> None:
        """The state of the node is unknown from now on."""
        for (its_run, _), by_node in self._clients.items():
            if its_run == run:
                by_node.pop(node, None)

    def _gone(self, key: tuple[str, str], node: str, at_ms: int) -> None:
        by_node = self._clients.get(key)
        if by_node is None:
            return
        before = by_node.get(node)
        by_node[node] = _Last(at_ms, None, None if before is None else before.owned)
        if all(last.digest is None for last in by_node.values()):
            del self._clients[key], self._came[key]

    def found(self) -> Iterator[Differs]:
        """The differences, in order of time."""
        found = [each for key, by_node in self._clients.items() for each in self._of(*key, by_node)]
        yield from sorted(found, key=lambda each: (each.from_ms, each.client, each.node))

    def _of(self, run: str, client: str, by_node: Mapping[str, _Last]) -> Iterator[Differs]:
        if run in self._at_rest or not by_node:
            return
        settled = max(last.at_ms for last in by_node.values()) + SETTLES_MS
        came = self._came[run, client]
        known = dict(by_node)
        for node in {*self._ends[run], *(each.node for each in self._observed.covered)}:
            if node not in known and self._observed.covers_to_end(node, "state", came):
                known[node] = _Last(came, None, None)
        known = {node: last for node, last in known.items() if self._is_known(run, node, last, settled)}
        if not known:
            return
        reference = max(known, key=lambda node: (known[node].owned is True, known[node].at_ms, node))
        for node, last in known.items():
            if last.digest != known[reference].digest:
                from_ms = max(last.at_ms, known[reference].at_ms)
                text = _text(client, last, reference, known[reference])
                yield Differs(run=run, client=client, node=node, reference=reference, from_ms=from_ms, text=text)

    def _is_known(self, run: str, node: str, last: _Last, settled: int) -> bool:
        end_ms = max(self._ends[run].get(node, 0), self._observed.until_ms(node, "state") or 0)
        return end_ms >= settled and self._observed.covers_to_end(node, "state", last.at_ms)


def _text(client: str, last: _Last, reference: str, other: _Last) -> str:
    if last.digest is None:
        return f"does not hold {client} at the end, which {reference} holds since {other.at_ms} ms"
    if other.digest is None:
        return f"still holds {client} at the end, which is gone at {reference} since {other.at_ms} ms"
    return (
        f"holds {client} at the end as it was at {last.at_ms} ms; {reference} changed it at {other.at_ms} ms, and the "
        "services differ"
    )
