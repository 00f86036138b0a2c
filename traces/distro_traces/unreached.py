"""Changes that had not reached a member when a recording ended, according to the calls that carry them.

A CHANGE or DELETE is sent to each member until it succeeds. If, for a client and a member, the last calls failed or
were not answered, the member does not have the change, unless another message brought it. That no later call succeeded,
and that the member does not hold the client in the end, must be covered by the recording (`Observed.covers_to_end`): a
missing log file may contain the success. A call without an answer is open if its node runs for longer than calls last;
else it was in transit when the recording ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from distro_traces.event import GONE_KINDS, HELD_KINDS, RESET_KINDS, Event, Kind, Outcome
from distro_traces.observed import EVERYTHING, Observed

CALL_LASTS_MS = 5_000
"""A call times out after 3 s."""
_OWN = (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.CLIENT_DISCONNECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """`changed_ms`: when the client changed at `node`; `failed`: calls to `member` since then that failed, the last
    one after `last_ms` (null: its start is not there); `open_since_ms`: the call that has no answer; `is_there`: does
    the member hold the client in the end (null: its state is not recorded)."""

    run: str
    client: str
    operation: str
    node: str
    member: str
    changed_ms: int
    first_ms: int
    until_ms: int
    failed: int
    last_ms: int | None
    open_since_ms: int | None
    is_there: bool | None

    def __str__(self) -> str:
        change = "change" if self.operation == "CHANGE" else "end"
        text = f"{self.client}'s {change} at {self.node}, {self.changed_ms} ms, never reached {self.member}"
        if self.failed:
            took = "" if self.last_ms is None else f", the last after {self.last_ms} ms"
            text += f"; {self.failed} call{'s' if self.failed > 1 else ''} failed{took}"
        if self.open_since_ms is not None:
            text += f"; a call sent at {self.open_since_ms} ms is still open"
        if self.is_there is not None and self.operation == "CHANGE":
            text += f"; it is still {'there in an older form' if self.is_there else 'not there'} at the end of the logs"
        elif self.is_there:
            text += "; it is still there at the end of the logs"
        return text


@dataclass(slots=True)
class _Row:
    """The calls of one node for one client to one member since the last that succeeded."""

    operation: str
    changed_ms: int
    first_ms: int
    failed: int = 0
    started_ms: int | None = None
    last_ms: int | None = None
    until_ms: int = 0


class Unreachables:
    """Takes the events of runs in any order that keeps each node's own. Keeps open calls and held clients."""

    def __init__(self, observed: Observed = EVERYTHING) -> None:
        self._observed = observed
        self._ends: dict[tuple[str, str], int] = {}  # run, node: its last row, ms
        self._rows: dict[tuple[str, str, str, str], _Row] = {}  # run, node, client, member
        self._changed: dict[tuple[str, str, str], int] = {}  # run, node, client: ms
        self._held: dict[tuple[str, str], dict[str, str]] = {}  # run, node: client to digest
        self.at_rest: set[str] = set()  # runs with a checkpoint

    def take(self, event: Event) -> None:
        run, node, client = event.run, event.node, event.client
        self._ends[run, node] = max(event.at_ms, self._ends.get((run, node), 0))
        if event.kind in RESET_KINDS:
            self._held[run, node] = {}
            self._rows = {key: row for key, row in self._rows.items() if key[:2] != (run, node)}
        elif event.kind is Kind.CHECKPOINT:
            self.at_rest.add(run)
        if client is None:
            return
        if event.kind in _OWN:
            self._changed[run, node, client] = event.at_ms
        if event.kind in HELD_KINDS and event.digest is not None:
            self._held.setdefault((run, node), {})[client] = event.digest
        elif event.kind in (*GONE_KINDS, Kind.OBSERVED):
            self._held.setdefault((run, node), {}).pop(client, None)
        if event.operation in ("CHANGE", "DELETE") and event.peer is not None:
            self._call(event, (run, node, client, event.peer))

    def forget(self, run: str, node: str) -> None:
        """The outcomes of the node's calls, and its state, are unknown from now on."""
        self._rows = {key: row for key, row in self._rows.items() if key[:2] != (run, node)}
        self._held.pop((run, node), None)

    def _call(self, event: Event, key: tuple[str, str, str, str]) -> None:
        row = self._rows.get(key)
        if event.kind is Kind.REQUEST_SENT:
            if row is None or row.operation != event.operation:
                changed_ms = self._changed.get(key[:3], event.at_ms)
                row = self._rows[key] = _Row(event.operation or "", changed_ms, event.at_ms)
            row.started_ms = row.until_ms = event.at_ms
        elif event.kind is Kind.REPLY_RECEIVED and row is not None:
            if event.outcome is Outcome.SUCCESS:
                del self._rows[key]
                if event.operation == "DELETE":
                    self._changed.pop(key[:3], None)
                return
            row.failed += 1
            row.last_ms = None if row.started_ms is None else event.at_ms - row.started_ms
            row.started_ms, row.until_ms = None, event.at_ms

    def found(self) -> Iterator[Unreached]:
        """The open calls, in order of time."""
        for (run, node, client, member), row in sorted(self._rows.items(), key=lambda item: item[1].first_ms):
            if not self._observed.covers_to_end(node, "sent", row.first_ms):
                continue
            if not row.failed and self._end_ms(run, node, "sent") - row.until_ms < CALL_LASTS_MS:
                continue  # in transit
            held = self._held.get((run, member))
            own = self._held.get((run, node), {}).get(client)
            if held is not None and row.operation == "CHANGE" and own is not None and held.get(client) == own:
                continue  # another message brought it
            if held is not None and row.operation == "DELETE" and client not in held and not row.failed:
                continue
            if held is not None and client not in held:
                held = held if self._observed.covers_to_end(member, "state", row.changed_ms) else None
            yield Unreached(
                run=run,
                client=client,
                operation=row.operation,
                node=node,
                member=member,
                changed_ms=row.changed_ms,
                first_ms=row.first_ms,
                until_ms=row.until_ms,
                failed=row.failed,
                last_ms=row.last_ms,
                open_since_ms=row.started_ms,
                is_there=None if held is None else client in held,
            )

    def _end_ms(self, run: str, node: str, fact: str) -> int:
        return max(self._ends.get((run, node), 0), self._observed.until_ms(node, fact) or 0)


def unreached(events: Iterable[Event], observed: Observed = EVERYTHING) -> list[Unreached]:
    """The unreached changes at the end of runs without a checkpoint; with one, INV-CONV judges them."""
    open_calls = Unreachables(observed)
    for event in events:
        open_calls.take(event)
    return [each for each in open_calls.found() if each.run not in open_calls.at_rest]
