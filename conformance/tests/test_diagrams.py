"""Pictures of runs: what a reader must find in them, and what must not be drawn."""

from __future__ import annotations

import re
from pathlib import Path

from distro_conformance.diagrams.charts import bars, busy, histogram, matrix
from distro_conformance.diagrams.sequence import Delivery, Fault, Message, Note
from distro_conformance.diagrams.svg import svg
from distro_conformance.diagrams.trace import sequence_of_client
from distro_traces.event import Event, Kind, Outcome
from distro_traces.reading import read_run

RECORDED = Path(__file__).parent / "data" / "real-cluster-2.2.4"


def row(node: str, seq: int, kind: Kind, **fields: object) -> Event:
    return Event(run="r", node=node, seq=seq, at_ms=seq * 10, kind=kind, **fields)  # type: ignore[arg-type]


def call(
    message: str, outcome: Outcome | None, *, arrives: bool, operation: str = "CHANGE", seq: int = 1
) -> list[Event]:
    """One request from a to b about c1, as far as it was recorded."""
    about = {"message": message, "operation": operation, "client": "c1"}
    rows = [row("a", seq, Kind.REQUEST_SENT, peer="b", revision=1, **about)]
    rows += [row("b", seq, Kind.REQUEST_RECEIVED, peer="a", **about)] if arrives else []
    rows += [row("a", seq + 1, Kind.REPLY_RECEIVED, peer="b", outcome=outcome, **about)] if outcome else []
    return rows


def test_the_end_of_a_message_is_read_from_both_sides() -> None:
    events = [
        *call("m1", Outcome.SUCCESS, arrives=True, seq=1),
        *call("m2", Outcome.SUCCESS, arrives=False, seq=3),
        *call("m3", Outcome.FAIL, arrives=True, seq=5),
        *call("m4", None, arrives=False, seq=7),
    ]
    drawn = sequence_of_client(events, "c1").items
    assert [item.delivery for item in drawn if isinstance(item, Message)] == [
        Delivery.ARRIVED,
        Delivery.SWALLOWED,
        Delivery.FAILED,
        Delivery.LOST,
    ]
    assert isinstance(drawn[-1], Message)
    assert drawn[-1].reply == "no answer"


def test_a_verify_that_succeeded_is_left_out_unless_it_is_the_violation() -> None:
    events = call("m1", Outcome.SUCCESS, arrives=True, operation="VERIFY")
    assert sequence_of_client(events, "c1").items == ()
    (bad,) = sequence_of_client(events, "c1", ("a", 1)).items
    assert bad.bad


def test_other_clients_are_not_drawn_and_faults_are() -> None:
    events = [
        row("a", 1, Kind.CLIENT_CHANGED, client="c2", digest="0123456789abcdef"),
        row("a", 2, Kind.LINK_FAULT, peer="b", detail="cut"),
        row("b", 1, Kind.REPLICA_APPLIED, client="c1", revision=1, digest="0123456789abcdef"),
    ]
    drawn = sequence_of_client(events, "c1", ("b", 1))
    assert drawn.items == (
        Fault("link a to b: cut"),
        Note("b", "replica applied revision 1 01234567", bad=True),
    ) or drawn.items == (
        Note("b", "replica applied revision 1 01234567", bad=True),
        Fault("link a to b: cut"),
    )


def test_a_real_recording_is_drawn_around_its_bad_event() -> None:
    events = read_run(RECORDED).events
    bad = next(event for event in events if event.kind is Kind.REPLICA_APPLIED)
    assert bad.client is not None
    drawn = sequence_of_client(events, bad.client, (bad.node, bad.seq))
    assert drawn.lifelines == (f"…{bad.client.rpartition('_')[2]}", "a", "b", "c")
    assert [item.bad for item in drawn.items].count(True) == 1
    assert svg(drawn).count('class="bad"') == 1


def test_a_histogram_counts_every_value_and_says_how_many() -> None:
    drawn = histogram([500, 510, 1000, 4062], title="How long")
    assert "4 from 500 to 4,062 ms; half within 755 ms" in drawn
    assert histogram([], title="How long") == ""
    assert "1 from 7 to 7 ms" in histogram([7], title="How long")


def test_a_chart_has_a_text_and_takes_its_colours_from_the_page() -> None:
    for drawn in (
        bars({"explore": 3.5, "<check>": 1200}, title="Seconds", bad=["explore"]),
        busy((0, 60_000), {"a": [3, 0, 1], "b": [0, 0, 2]}, [30_000], title="Rows"),
        matrix(
            ["B02"], ["INV-CONV", "INV-REV"], lambda _, column: 0.5 if column == "INV-CONV" else None, title="Kills"
        ),
    ):
        assert drawn.startswith('<svg class="chart" role="img" aria-label="')
        assert "var(--" in drawn
        assert not re.search(r"#0\d0\d0\d|<style|<check>|<script", drawn)
