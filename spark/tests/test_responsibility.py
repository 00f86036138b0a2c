"""Who claimed a client, over time: one member, or for how long none or several."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engines import on_both
from pyspark.sql import SparkSession

from distro_spark.responsibility import ROUNDS_MS
from distro_spark.result import ClaimedInterval, Responsibility
from distro_traces.content import digest
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder
from distro_traces.observed import EVERYTHING, Observed

pytestmark = pytest.mark.spark

EMPTY = digest(())
WEB = "10.0.0.1:8080#true"


class Teller:
    def __init__(self, place: Path, observed: Observed = EVERYTHING) -> None:
        nodes = ("a", "b", "c")
        self._recorder = Recorder(place, "r", profile="strict", target="test", nodes=nodes, observed=observed)
        for node in "abc":
            self.row(node, Kind.NODE_STARTED, 0, detail="a,b,c")

    def row(self, node: str, kind: Kind, at_ms: int, **fields: Any) -> None:
        self._recorder.record(node, kind, at_ms=at_ms, **fields)

    def owns(self, node: str, at_ms: int, client: str = "c1") -> None:
        self.row(node, Kind.CLIENT_CONNECTED, at_ms, client=client, owned=True, revision=0, digest=EMPTY)

    def copies(self, node: str, at_ms: int, client: str = "c1") -> None:
        self.row(node, Kind.REPLICA_APPLIED, at_ms, client=client, owned=False, revision=1, digest=EMPTY)

    def drops(self, node: str, at_ms: int, client: str = "c1") -> None:
        self.row(node, Kind.REPLICA_REMOVED, at_ms, client=client)

    def verifies(self, node: str, peer: str, at_ms: int, client: str) -> None:
        fields = {"message": f"m{at_ms}", "operation": "VERIFY", "client": client, "revision": 1}
        self.row(node, Kind.REQUEST_SENT, at_ms, peer=peer, **fields)

    def ends(self, at_ms: int) -> None:
        for node in "abc":
            self.row(node, Kind.CHECKPOINT, at_ms, detail="1")
        self._recorder.close()


def measured(spark: SparkSession, place: Path) -> Responsibility:
    found = on_both(spark, place, invariants=["INV-REV"], responsibility=True).responsibility
    assert found is not None
    return found


def test_a_client_has_one_claimer_until_its_node_lets_go(spark: SparkSession, tmp_path: Path) -> None:
    """The copy that stays is nobody's until it goes too."""
    run = Teller(tmp_path / "run")
    run.owns("a", 1000)
    run.copies("b", 1500)
    run.row("a", Kind.CLIENT_DISCONNECTED, 9000, client="c1")
    run.drops("b", 9700)
    run.ends(20_000)
    nobody = ClaimedInterval("r", "c1", 9000, 9700, 0, ())
    assert measured(spark, tmp_path / "run") == Responsibility(1, 0, 700, 8000, 0, (nobody,), 0)


def test_what_a_stopped_node_claimed_is_claimed_by_nobody(spark: SparkSession, tmp_path: Path) -> None:
    run = Teller(tmp_path / "run")
    run.owns("a", 1000)
    run.copies("b", 1500)
    run.row("a", Kind.NODE_STOPPED, 4000, detail="crash")
    run.ends(30_000)
    nobody = ClaimedInterval("r", "c1", 4000, 30_000, 0, ())
    assert measured(spark, tmp_path / "run") == Responsibility(1, 0, 26_000, 3000, 0, (nobody,), 0)


def test_two_owners_are_named_with_the_time_in_which_both_were(spark: SparkSession, tmp_path: Path) -> None:
    run = Teller(tmp_path / "run")
    run.owns("a", 1000)
    run.owns("c", 3000)
    run.copies("c", 8000)
    run.owns("a", 1000, "c2")
    run.ends(10_000)
    both = ClaimedInterval("r", "c1", 3000, 8000, 2, ("a", "c"))
    found = measured(spark, tmp_path / "run")
    assert set(found.intervals[0].nodes) == {"a", "c"}
    assert (found.clients, found.several_ms, found.one_ms, found.none_ms) == (2, 5000, 13_000, 0)
    assert (found.intervals[0].from_ms, found.intervals[0].until_ms) == (both.from_ms, both.until_ms)


def test_a_client_of_an_address_is_claimed_by_who_acts_for_it(spark: SparkSession, tmp_path: Path) -> None:
    """No row says that it has changed hands: the first owner's claim ends two rounds after its last verify."""
    run = Teller(tmp_path / "run")
    run.row("a", Kind.CLIENT_CHANGED, 1000, client=WEB, owned=True, revision=1, digest=EMPTY)
    run.copies("b", 1500, WEB)
    for at_ms in range(5000, 21_000, 5000):
        run.verifies("a", "b", at_ms, WEB)
    for at_ms in range(25_000, 61_000, 5000):
        run.verifies("b", "a", at_ms, WEB)
    run.ends(62_000)
    found = measured(spark, tmp_path / "run")
    assert [(each.claimers, each.from_ms, each.until_ms) for each in found.intervals] == [
        (2, 25_000, 20_000 + ROUNDS_MS)
    ]
    assert (found.none_ms, found.several_ms) == (0, ROUNDS_MS - 5000)


def test_where_nobody_saw_what_is_sent_clients_of_an_address_cannot_be_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = Teller(tmp_path / "run", replace(EVERYTHING, sent=()))
    run.row("a", Kind.CLIENT_CHANGED, 1000, client=WEB, owned=True, revision=1, digest=EMPTY)
    run.owns("a", 1000)
    run.ends(62_000)
    assert measured(spark, tmp_path / "run") == Responsibility(1, 1, 0, 61_000, 0, (), 0)


def test_it_is_not_measured_unasked(spark: SparkSession, tmp_path: Path) -> None:
    run = Teller(tmp_path / "run")
    run.owns("a", 1000)
    run.ends(2000)
    assert on_both(spark, tmp_path / "run", invariants=["INV-REV"]).responsibility is None
