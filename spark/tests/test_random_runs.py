"""The invariants against an oracle: many random runs, judged by these and by plain loops over the same rows.

A run is a small simulated cluster in which replication sometimes loses, repeats, mislabels or forgets. The oracle is
written from the sentences of the invariants, one client at a time and independently of the invariants. Seeds are fixed;
a failure names the run, and its recording is in the test's directory.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from engines import in_process

from distro_spark.tally import LISTED_MAX
from distro_traces.content import digest
from distro_traces.event import STATE_KINDS, Event, Kind
from distro_traces.ndjson import Recorder, read_ndjson

RUNS = 60
EMPTY = digest(())
GONE = (Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED)
RESETS = (Kind.NODE_STARTED, Kind.NODE_STOPPED)

Found = tuple[str, str, str, str, tuple[str, int], tuple[str, int]]  # invariant, run, client, node, first, last


def oracle(events: Sequence[Event]) -> Iterator[Found]:
    for client in sorted({event.client for event in events if event.client}):
        yield from owner_oracle(client, events)
        yield from revision_oracle(client, events)
        yield from set(convergence_oracle(client, events))


def place(event: Event) -> tuple[str, int]:
    return (event.node, event.seq)


def owner_of(client: str, events: Sequence[Event]) -> dict[str, Event]:
    """The claimers with their first claims; in these runs the owner's comes first in time."""
    claims: dict[str, Event] = {}
    for event in sorted(events, key=lambda event: event.at_ms):
        if event.client == client and event.owned:
            claims.setdefault(event.node, event)
    return claims


def owner_oracle(client: str, events: Sequence[Event]) -> Iterator[Found]:
    (_, first), *others = owner_of(client, events).items()
    for node, claim in others:
        yield ("INV-OWNER", first.run, client, node, place(first), place(claim))


def revision_oracle(client: str, events: Sequence[Event]) -> Iterator[Found]:
    rows = [event for event in events if event.client == client and event.revision is not None]
    for revision in {event.revision for event in rows}:
        same = sorted(
            (event for event in rows if event.revision == revision), key=lambda event: (not event.owned, event.at_ms)
        )
        reported = set()
        for event in same:
            if event.digest != same[0].digest and (event.node, event.digest) not in reported:
                reported.add((event.node, event.digest))
                earliest = min(
                    (each for each in same if (each.node, each.digest) == (event.node, event.digest)),
                    key=lambda each: each.seq,
                )
                yield ("INV-REV", event.run, client, event.node, place(same[0]), place(earliest))


def convergence_oracle(client: str, events: Sequence[Event]) -> Iterator[Found]:
    owner = next(iter(owner_of(client, events)))
    last_sent: dict[tuple[str, tuple[str, int]], Event] = {}
    for number in sorted({event.detail for event in events if event.kind is Kind.CHECKPOINT}):
        checkpoints = [event for event in events if event.kind is Kind.CHECKPOINT and event.detail == number]
        views = {point.node: view_at(client, point, events) for point in checkpoints}
        if len(set(views.values())) == 1:
            continue
        own = next(point for point in checkpoints if point.node == owner)
        is_owned = is_native(client, own, events)
        truth = views[owner] if is_owned else None
        for point in checkpoints:
            if views[point.node] != truth and (is_owned or not is_leased(client, point, events)):
                first = since(client, point, own, truth, events)
                last_sent[point.node, place(first)] = point
    for (node, first_place), last in last_sent.items():
        yield ("INV-CONV", last.run, client, node, first_place, place(last))


def until(client: str, point: Event, events: Sequence[Event]) -> list[Event]:
    """The events of the client on the checkpoint's node before it."""
    return [
        event
        for event in events
        if event.node == point.node
        and event.seq < point.seq
        and ((event.client == client and event.kind in STATE_KINDS) or event.kind in RESETS)
    ]


def view_of(event: Event) -> str | None:
    return None if event.kind in (*GONE, *RESETS) or event.digest == EMPTY else event.digest


def view_at(client: str, point: Event, events: Sequence[Event]) -> str | None:
    before = until(client, point, events)
    return view_of(before[-1]) if before else None


def is_native(client: str, point: Event, events: Sequence[Event]) -> bool:
    native = False
    for event in until(client, point, events):
        native = event.kind not in RESETS and (native or bool(event.owned))
    return native


def is_leased(client: str, point: Event, events: Sequence[Event]) -> bool:
    applied = [event.at_ms for event in until(client, point, events) if event.kind is Kind.REPLICA_APPLIED]
    return bool(applied) and point.at_ms - applied[-1] <= 186_000


def since(client: str, point: Event, own: Event, truth: str | None, events: Sequence[Event]) -> Event:
    """Compare both views over time, and keep the latest view of the owner that this node shared."""
    mine, owners = until(client, point, events), until(client, own, events)
    views: dict[str, str | None] = {point.node: None, own.node: None}
    owners_views: list[str | None] = [None]
    turns: list[Event] = []  # with which the owner took each view but the first
    reached = 0
    left: Event | None = None
    for event in sorted((*mine, *owners), key=lambda event: event.at_ms):
        before = dict(views)
        views[event.node] = view_of(event)
        if views == before:
            continue
        if event.node == own.node:
            turns.append(event)
            owners_views.append(views[own.node])
        elif before[point.node] == before[own.node]:
            left = event
        shared = [number for number, view in enumerate(owners_views) if view == views[point.node]]
        reached = max([reached, *shared])
    if reached == len(turns) and view_at(client, own, events) == truth:
        assert left is not None, "it shared the owner's present view and does not any more"
        return left
    return turns[reached]


@pytest.mark.quality
def test_the_check_and_the_oracle_find_the_same_in_random_runs(
    tmp_path: Path, simulate: Callable[[Recorder, Random], None]
) -> None:
    expected: set[Found] = set()
    broken = set()
    for seed in range(RUNS):
        with Recorder(tmp_path, f"seed {seed}", profile="strict", target="simulated") as recorder:
            simulate(recorder, Random(seed))
        found = set(oracle(read_ndjson(recorder.path).events))
        expected |= found
        if found:
            broken.add(seed)
    result = in_process(tmp_path, invariants=["INV-CONV", "INV-OWNER", "INV-REV"])
    assert result.violations_left_out == 0, f"more than {LISTED_MAX} of one invariant: choose fewer runs"
    found = {
        (
            each.invariant,
            each.run,
            each.client,
            each.node,
            (each.first_event.node, each.first_event.seq),
            (each.last_event.node, each.last_event.seq),
        )
        for each in result.violations
    }
    assert found == expected
    # Many runs are healthy, many are not, and each invariant is violated in some run.
    assert RUNS / 4 < len(broken) < RUNS * 3 / 4
    assert {each[0] for each in expected} == {"INV-CONV", "INV-OWNER", "INV-REV"}
