"""A trace against the model: row by row in causal order, each by the slice of its client.

`validate` looks for the first rejection of a run. `Slices` can also judge only some of the clients, so that many
machines can share a run (`distro_spark.replay`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from distro_model.profile import Profile
from distro_traces.event import Event
from distro_traces.exports.causal import causal_order
from distro_traces.header import Header
from distro_traces.invalid import doubled, invalid, missing
from distro_validation.client import ClientRows
from distro_validation.cluster import ClusterRows
from distro_validation.minimal import minimal
from distro_validation.verdict import Rejection


@dataclass(frozen=True, slots=True)
class Validated:
    """`undecided` rows were not judged: their node's state was not known or not observed, or they are of clients whose
    rules need more than a trace has (`undecided_by` reason). `doubts`: what is wrong with the recording. A trace is
    accepted only together with both."""

    accepted: bool
    events: int
    undecided: int
    seconds: float
    rejection: Rejection | None
    doubts: tuple[str, ...] = ()
    undecided_by: Mapping[str, int] = field(default_factory=dict)  # the most frequent first


def validate(header: Header, events: Sequence[Event], profile: Profile, *, shorten: bool = True) -> Validated:
    """Check that every row is a step that the model allows. `shorten` finds the minimal rows of a rejection.

    Where rows are missing, nothing is rejected for want of one; an invalid recording is not judged.
    """
    began = time.perf_counter()
    once = {(event.node, event.seq): event for event in events}
    gaps = sum(dict(sorted(once)).values()) - len(once)  # the last number of each node
    fault = invalid(header, events, has_gaps=gaps > 0)
    if fault is not None:
        doubt = f"run {header.run} is not judged: {fault}"
        return Validated(True, len(events), len(events), time.perf_counter() - began, None, (doubt,))
    again = len(events) - len(once)
    doubts = (missing(gaps),) * bool(gaps) + (doubled(again),) * bool(again)
    header = header.with_gaps() if gaps else header
    ordered = causal_order(once.values())
    slices = Slices(header, profile)
    until_ms = max((event.at_ms for event in ordered), default=0)
    rejection = next(slices.rejections(ordered, until_ms=until_ms), None)
    if rejection is not None and shorten:
        found = rejection
        subject = found.event.client
        slice_ = [event for event in ordered if event.client in (None, subject) or event.message == found.event.message]

        def still(rows: Sequence[Event]) -> bool:
            again = next(Slices(header, profile).rejections(rows), None)
            return again is not None and again.event == found.event and again.guards == found.guards

        rejection = replace(found, minimal=minimal(slice_, still) if still(slice_) else ())
    seconds, reasons = time.perf_counter() - began, dict(slices.undecided_by.most_common())
    return Validated(rejection is None, len(ordered), slices.undecided, seconds, rejection, doubts, reasons)


class Slices:
    """Clients of a run side by side, all of them or some, with the rows that are about none."""

    def __init__(self, header: Header, profile: Profile) -> None:
        self._header, self._profile = header, profile
        self._cluster = ClusterRows(header)
        self._clients: dict[str, ClientRows] = {}

    @property
    def undecided(self) -> int:
        return self.undecided_by.total()

    @property
    def undecided_by(self) -> Counter[str]:
        return sum((rows.undecided for rows in self._clients.values()), Counter[str]())

    def rejections(self, ordered: Sequence[Event], *, until_ms: int | None = None) -> Iterator[Rejection]:
        """The first of each client, and of the rows about none. Rows come in causal order.

        `until_ms`: when the run ended, and every call must have (None: these are not all of a client's rows).
        """
        judged: set[str | None] = set()
        for event in ordered:
            if event.client is not None and event.client in judged:
                continue
            rejection = self._take(event)
            if rejection is not None and event.client not in judged:
                judged.add(event.client)
                yield rejection
        left = [rejection for rows in self._clients.values() if (rejection := rows.finish()) is not None]
        for rejection in (*left, *(() if until_ms is None else self._cluster.finish(until_ms))):
            if rejection.event.client not in judged:
                judged.add(rejection.event.client)
                yield rejection

    def _take(self, event: Event) -> Rejection | None:
        rejection = self._cluster.take(event)
        if rejection is not None or event.client is None:
            return rejection
        rows = self._clients.get(event.client)
        if rows is None:
            rows = self._clients[event.client] = ClientRows(
                event.client, self._profile, self._cluster, self._header.clock
            )
        return rows.take(event)
