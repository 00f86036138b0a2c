"""The speed of the validation of a trace against the model, and the share of altered traces that it rejects.

    python bench/validate.py --json [--quick]

The traces are made by the simulator, with all faults. Each alteration changes one row: a value is altered, or the row
is dropped, doubled, or moved within its node. Then the rows are renumbered, so that no gap shows the alteration. An
altered trace may be accepted only if no trace can show that kind of alteration (`UNOBSERVABLE`); others count as
unexplained.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.profiles import profile_named
from distro_model.simulation.faults import faults_named
from distro_traces.event import Event, Kind, Outcome
from distro_traces.header import Header
from distro_traces.ndjson import TraceFile
from distro_traces.reading import read_run
from distro_validation.validate import validate

PROFILE = "nacos-2.2.4"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="within a minute")
    parser.add_argument("--alterations", type=int, help="of each kind; default 1000, quick 100")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        one = _made(Path(directory, "large"), duration_s=1_000, clients=10, seed=1)
        large = replace(one, events=_chained(one, 100_000 if options.quick else 1_000_000))
        small = [_made(Path(directory, f"small-{n}"), duration_s=60, clients=3, seed=n) for n in range(5)]
    began_s = time.process_time()
    judged = validate(large.header, large.events, profile_named(PROFILE))
    processor_s = time.process_time() - began_s
    assert judged.accepted, judged.rejection
    assert not judged.doubts, judged.doubts
    figures: dict[str, float] = {
        "events": judged.events,
        "seconds": round(judged.seconds, 3),
        "events_per_s": round(judged.events / judged.seconds),
        "events_per_processor_s": round(judged.events / processor_s),
    }
    began_s = time.process_time()
    tenth = validate(large.header, _first_tenth(large.events), profile_named(PROFILE))
    tenth_s = time.process_time() - began_s
    ratios = {"cost_per_event_whole_over_tenth": (processor_s / judged.events) / (tenth_s / tenth.events)}
    each = options.alterations or (100 if options.quick else 1_000)
    for name, alter in ALTERATIONS.items():
        found, missed = _tried(name, alter, small, each)
        figures[f"{name}_rejected"] = found
        figures[f"{name}_tried"] = each
        unexplained = [count for kind, count in missed.items() if (name, kind) not in UNOBSERVABLE]
        figures[f"{name}_unexplained"] = sum(unexplained)
        ratios[f"{name}_rejected"] = found / each
        if not options.json:
            print(f"{name}: {found} of {each}")
            for kind, count in missed.most_common():
                print(f"  {count} of {kind}: {UNOBSERVABLE.get((name, kind), 'NOT EXPLAINED')}")
    print(json.dumps({"bench": "validate", "figures": figures, "ratios": {k: round(v, 3) for k, v in ratios.items()}}))


def _made(out: Path, *, duration_s: float, clients: int, seed: int) -> TraceFile:
    simulate(
        SimulationOptions(
            out=out,
            nodes=3,
            clients=clients,
            duration_s=duration_s,
            seed=seed,
            faults=faults_named("all"),
            profile=PROFILE,
            mutant=None,
        ),
        lambda _: None,
    )
    run = sorted(out.glob("run=*"))[0]
    return read_run(run)


def _chained(trace: TraceFile, rows: int) -> tuple[Event, ...]:
    """One run of that number of rows: the trace repeated, with other clients and a restart of all nodes each time."""
    lasts_ms = max(event.at_ms for event in trace.events) + 1
    steps = [event for event in trace.events if event.kind is not Kind.RUN_STARTED]
    steps += [replace(steps[0], node=node, at_ms=lasts_ms - 1, kind=Kind.NODE_STOPPED) for node in trace.header.nodes]
    events = list(_renumbered(trace.header, steps))
    last = {event.node: event.seq for event in events}
    return tuple(
        replace(
            event,
            seq=event.seq + lap * last[event.node],
            at_ms=event.at_ms + lap * lasts_ms,
            message=event.message and f"{lap}-{event.message}",
            client=event.client and f"{event.client}-{lap}",
        )
        for lap in range(-(-rows // len(events)))
        for event in events
    )


def _first_tenth(events: Sequence[Event]) -> list[Event]:
    last_ms = max(event.at_ms for event in events) // 10
    return [event for event in events if event.at_ms <= last_ms]


Alter = Callable[[random.Random, list[Event], int], list[Event] | None]


def _tried(name: str, alter: Alter, traces: Sequence[TraceFile], times: int) -> tuple[int, Counter[Kind]]:
    """The number of rejected alterations, and the kinds of altered rows of the others."""
    choose = random.Random(name)
    found, missed, done = 0, Counter[Kind](), 0
    while done < times:
        trace = choose.choice(traces)
        at = choose.randrange(len(trace.events))
        kind = trace.events[at].kind
        if kind in (Kind.CHECKPOINT, Kind.RUN_STARTED):
            continue  # not steps of a cluster
        altered = alter(choose, list(trace.events), at)
        if altered is None:
            continue
        done += 1
        rows = list(_renumbered(trace.header, altered))
        judged = validate(trace.header, rows, profile_named(PROFILE), shorten=False)
        if judged.accepted and not judged.doubts:
            missed[kind] += 1
        else:
            found += 1
    return found, missed


def _renumbered(header: Header, events: Sequence[Event]) -> Iterator[Event]:
    numbers = dict.fromkeys(header.nodes, 0)
    for event in events:
        numbers[event.node] += 1
        yield replace(event, seq=numbers[event.node])


def _dropped(_: random.Random, events: list[Event], at: int) -> list[Event]:
    return events[:at] + events[at + 1 :]


def _doubled(_: random.Random, events: list[Event], at: int) -> list[Event]:
    return [*events[: at + 1], events[at], *events[at + 1 :]]


def _moved(choose: random.Random, events: list[Event], at: int) -> list[Event] | None:
    """Move a row to another place among the rows of its node."""
    node = events[at].node
    places = [place for place, event in enumerate(events) if event.node == node and abs(place - at) > 1]
    event = events.pop(at)
    events.insert(choose.choice(places), event)
    return events


def _altered(choose: random.Random, events: list[Event], at: int) -> list[Event] | None:
    """Replace one value by another one of its kind."""
    event = events[at]
    names = [name for name in _VALUES if getattr(event, name) is not None]
    if not names:
        return None
    name = choose.choice(names)
    events[at] = replace(event, **{name: _another(choose, getattr(event, name))})
    return events


_VALUES = ("client", "revision", "digest", "outcome", "owned", "message")


def _another(choose: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, Outcome):
        return choose.choice([outcome for outcome in Outcome if outcome is not value])
    return value + 1 if isinstance(value, int) else f"{value}x"


ALTERATIONS: dict[str, Alter] = {"altered": _altered, "dropped": _dropped, "moved": _moved, "doubled": _doubled}

_FAULT = "the row of a fault allows consequences, and requires none"
_UNSEEN = "a content that is replaced before it is sent reaches no other node"
_NEAR = "nothing happens to the client between the old and the new place of the row"
_RESTART = "the next start of the node also shows that it was down"
UNOBSERVABLE: dict[tuple[str, Kind], str] = {
    **{(name, Kind.LINK_FAULT): _FAULT for name in ALTERATIONS},
    ("altered", Kind.REPLY_RECEIVED): "an answer may be lost on a link that has faults",
    ("altered", Kind.CLIENT_CHANGED): _UNSEEN,
    ("altered", Kind.REPLICA_APPLIED): "a snapshot may be of any revision that its source has held",
    ("dropped", Kind.REPLICA_APPLIED): "applying a copy again without a change has no effect",
    ("dropped", Kind.REPLICA_REMOVED): "the end of a lease depends on time, which INV-EXPIRE checks",
    ("dropped", Kind.REPLY_RECEIVED): "a call may be open when the run or its caller ends",
    ("dropped", Kind.CLIENT_CHANGED): _UNSEEN,
    ("dropped", Kind.NODE_STARTED): "a node without a recorded stop is assumed to run",
    ("dropped", Kind.NODE_STOPPED): _RESTART,
    **{("moved", kind): _NEAR for kind in (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED, Kind.REPLY_SENT)},
    ("doubled", Kind.CLIENT_CONNECTED): "the trace does not show what the node held before",
    ("doubled", Kind.CLIENT_CHANGED): "in this release a batch with the same content does not raise the revision",
    ("doubled", Kind.REPLICA_APPLIED): "a snapshot may bring a copy again",
    ("doubled", Kind.NODE_STARTED): _RESTART,
    ("doubled", Kind.NODE_STOPPED): _RESTART,
}
"""By alteration and kind of row, the reason why a trace cannot show it."""

if __name__ == "__main__":
    main()
