"""A trace against the model: row by row in causal order, each by the slice of its client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from distro_model.profile import Profile
from distro_spark.validation.client import ClientRows
from distro_spark.validation.cluster import ClusterRows
from distro_spark.validation.minimal import minimal
from distro_spark.validation.verdict import Rejection, rejected
from distro_traces.event import Event
from distro_traces.exports.causal import causal_order
from distro_traces.header import Header


@dataclass(frozen=True, slots=True)
class Validated:
    """`undecided` rows were not judged: their node's state was not known or not observed, or they are of clients whose
    rules need more than a trace has. A trace is accepted only together with that number."""

    accepted: bool
    events: int
    undecided: int
    seconds: float
    rejection: Rejection | None


def validate(header: Header, events: Sequence[Event], profile: Profile, *, shorten: bool = True) -> Validated:
    """Whether every row is a step that the model allows. `shorten` finds the minimal rows of a rejection."""
    began = time.perf_counter()
    ordered = causal_order(events)
    rejection, undecided = _first_rejection(header, ordered, profile)
    if rejection is not None and shorten:
        found = rejection
        subject = found.event.client
        slice_ = [event for event in ordered if event.client in (None, subject) or event.message == found.event.message]

        def still(rows: Sequence[Event]) -> bool:
            again, _ = _first_rejection(header, rows, profile, whole=False)
            return again is not None and again.event == found.event and again.guards == found.guards

        rejection = replace(found, minimal=minimal(slice_, still) if still(slice_) else tuple(slice_))
    return Validated(rejection is None, len(ordered), undecided, time.perf_counter() - began, rejection)


def _first_rejection(
    header: Header, ordered: Sequence[Event], profile: Profile, *, whole: bool = True
) -> tuple[Rejection | None, int]:
    """`whole`: the rows are all there are, so their numbers have no gaps."""
    cluster = ClusterRows(header)
    clients: dict[str, ClientRows] = {}
    numbers: dict[str, int] = {}
    rejection = None
    for event in ordered:
        if whole and header.observed.lossless:
            expected = numbers.get(event.node, 0) + 1
            if event.seq != expected:
                rejection = rejected(event, "any", "rows have no gap", f"number {expected}", f"number {event.seq}")
                break
            numbers[event.node] = expected
        rejection = cluster.take(event) or _of_client(event, clients, profile, cluster, header)
        if rejection is not None:
            break
    if rejection is None and whole:
        rejection = cluster.finish(max((event.at_ms for event in ordered), default=0))
    return rejection, sum(rows.undecided for rows in clients.values())


def _of_client(
    event: Event, clients: dict[str, ClientRows], profile: Profile, cluster: ClusterRows, header: Header
) -> Rejection | None:
    if event.client is None:
        return None
    rows = clients.get(event.client)
    if rows is None:
        rows = clients[event.client] = ClientRows(event.client, profile, cluster, header.clock)
    return rows.take(event)
