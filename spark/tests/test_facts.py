"""What the driver knows of the nodes: of faults and starts the right ones are found, in runs of whatever length."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from distro_spark.check import check
from distro_spark.facts import BREAKS, Node, facts_of
from distro_spark.invariants.expire import CHECK_MS, LASTS_MS, is_over
from distro_spark.invariants.pace import EXCUSED_MS, is_excused
from distro_spark.rows import Facts, first_from
from distro_spark.story import Row
from distro_traces.event import Kind
from distro_traces.header import Header
from distro_traces.ndjson import Recorder

HEADER = Header(run="r", profile="strict", target="test", clock="virtual", nodes=("a", "b", "c"))
NODES = [Node("r", name, place, 0, 0, 0, 10**9, 0) for place, name in enumerate("abc")]
OPPOSITE = {"cut": "healed", "held": "released", "paused": "resumed"}


def faulty(random: Random) -> tuple[Facts, list[tuple[int, str, str, bool]]]:
    """Faults of links and pauses of three nodes that were checked once: (at_ms, node, other, is it broken now?)."""
    told: list[tuple[int, str, str, bool]] = []
    marks: dict[str, list[Row]] = {name: [Row(name, 1, 0, Kind.CHECKPOINT, detail="1")] for name in "abc"}
    at_ms, state = 0, dict[tuple[str, str, str], bool]()
    for seq in range(2, random.randint(3, 40)):
        at_ms += random.choice((1, 1000, 20_000, 90_000))
        node, other = random.choice("abc"), random.choice("abc")
        breaks = random.choice(BREAKS[:2] if node != other else BREAKS[2:])
        detail = random.choice((breaks, OPPOSITE[breaks]))
        peer = None if node == other else other
        marks[node].append(Row(node, seq, at_ms, Kind.LINK_FAULT, peer=peer, detail=detail))
        state[node, other, breaks] = detail in BREAKS
        told.append((at_ms, node, other, any(state.get((node, other, way), False) for way in BREAKS)))
    return facts_of(NODES, {"r": marks}, {"r": HEADER}), told


@pytest.mark.parametrize("seed", range(40))
def test_a_peer_is_excused_by_what_was_broken_then_and_by_nothing_else(seed: int) -> None:
    random = Random(seed)
    facts, told = faulty(random)
    for _ in range(50):
        since_ms = random.randint(0, 10**6)
        until_ms = since_ms + random.choice((0, 1000, 60_000))
        from_ms = since_ms - EXCUSED_MS
        expected = False
        for pair in ("ab", "ba", "aa", "bb"):
            of_pair = [(at, broken) for at, node, other, broken in told if node + other == pair and at <= until_ms]
            expected |= any(at >= from_ms for at, _ in of_pair) or (bool(of_pair) and of_pair[-1][1])
        assert is_excused(facts, 0, 1, since_ms, until_ms) == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_lease_ends_in_time_unless_the_node_itself_is_paused(seed: int) -> None:
    random = Random(seed)
    facts, told = faulty(random)
    for _ in range(50):
        renewed_ms = random.randint(0, 10**6)
        due_ms, is_paused = renewed_ms + LASTS_MS, False
        for at, _, _, broken in (each for each in told if each[1:3] == ("a", "a")):
            if at <= due_ms or is_paused:
                is_paused = broken
                due_ms = due_ms if broken else max(due_ms, at + CHECK_MS)
        for now_ms in (due_ms - 1, due_ms, due_ms + 1, due_ms + 10**6):
            assert is_over(facts, 0, renewed_ms, now_ms) == (now_ms > due_ms and not is_paused)


def test_a_place_among_numbers_is_searched_from_where_one_is() -> None:
    facts, _ = faulty(Random(1))
    numbers = facts.check_seq[:0]
    assert first_from(numbers, 0, 0, 5) == 0
    assert [first_from(facts.nodes_of, 1, 3, least) for least in (0, 1, 2, 3)] == [1, 1, 2, 3]


@pytest.mark.spark
def test_numbers_that_come_twice_in_place_of_as_many_with_the_same_sums_are_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    """1 + 5 + 6 = 2 + 3 + 7, and so are the sums of their squares."""
    with Recorder(tmp_path, "r1", profile="strict", target="test", nodes=["a"]) as recorder:
        for at_ms in range(8):
            recorder.record("a", Kind.CHECKPOINT, at_ms=at_ms, detail=str(at_ms))
    header, *lines = recorder.path.read_text().splitlines(keepends=True)
    rows = [lines[seq - 1] for seq in (1, 1, 4, 5, 5, 6, 6, 8)]
    recorder.path.write_text(header + "".join(rows))
    found = check(spark, recorder.path, invariants=["INV-OWNER"])
    assert (found.events, found.missing, found.doubled) == (8, 3, 3)
