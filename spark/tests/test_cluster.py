"""Facts about nodes: faults and starts are found at the right times, in runs of any length."""

import pickle
from dataclasses import replace
from pathlib import Path
from random import Random

import polars as pl
import pytest
from engines import on_both
from pyspark.sql import SparkSession

from distro_model.release import STRICT
from distro_spark.cluster import EXCUSED_MS, MARK_COLUMNS, MEASURES, Cluster, cluster_of
from distro_spark.frames import EVENT_TYPES
from distro_spark.history import BREAKS, MENDS
from distro_spark.invariants.leases import CHECK_MS, LASTS_MS
from distro_spark.timeline import SORTED, timeline
from distro_traces.event import Kind
from distro_traces.header import Header
from distro_traces.ndjson import Recorder

HEADER = Header(run="r", profile=STRICT, target="test", clock="virtual", nodes=("a", "b", "c"))
OPPOSITE = {"cut": "healed", "black hole": "healed", "held": "released", "paused": "resumed"}


def faulty(random: Random, profile: str = STRICT) -> tuple[Cluster, list[tuple[int, str, str, bool]]]:
    """Faults of links and pauses of three nodes that were checked once: (at_ms, node, other, is it broken now?)."""
    faults: list[tuple[int, str, str, bool]] = []
    marks = [{"run": "r", "node": name, "seq": 1, "at_ms": 0, "kind": "checkpoint", "detail": "1"} for name in "abc"]
    at_ms, state = 0, dict[tuple[str, str, str], bool]()
    for seq in range(2, random.randint(3, 40)):
        at_ms += random.choice((1, 1000, 20_000, 90_000))
        node, other = random.choice("abc"), random.choice("abc")
        breaks = random.choice(BREAKS[:-1] if node != other else BREAKS[-1:])
        detail = random.choice((breaks, OPPOSITE[breaks]))
        row = {"run": "r", "node": node, "seq": seq, "at_ms": at_ms, "kind": "link_fault", "detail": detail}
        marks.append({**row, "peer": None if node == other else other})
        for each in (breaks,) if detail in BREAKS else MENDS[detail]:
            state[node, other, each] = detail in BREAKS
        faults.append((at_ms, node, other, any(state.get((node, other, way), False) for way in BREAKS)))
    measures = dict.fromkeys(MEASURES, 0)
    nodes = pl.DataFrame([{"run": "r", "node": name, **measures, "last_ms": 10**9} for name in "abc"])
    frame = pl.DataFrame(marks, {name: EVENT_TYPES[name] for name in MARK_COLUMNS})
    return cluster_of(nodes, frame, {"r": replace(HEADER, profile=profile)}, {}, {}), faults


def test_a_worker_keeps_the_last_cluster_that_a_task_brings() -> None:
    (one, _), (other, _) = faulty(Random(1)), faulty(Random(2))
    at_first = received(one)
    assert received(one) is at_first
    assert at_first.marks.equals(one.marks)
    assert received(other).marks.equals(other.marks)
    assert received(one) is not at_first, "a worker holds one cluster"


def received(cluster: Cluster) -> Cluster:
    found: Cluster = pickle.loads(pickle.dumps(cluster))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_peer_is_excused_only_by_faults_of_that_time(seed: int) -> None:
    random = Random(seed)
    cluster, faults = faulty(random)
    for _ in range(50):
        since_ms = random.randint(0, 10**6)
        until_ms = since_ms + random.choice((0, 1000, 60_000))
        from_ms = since_ms - EXCUSED_MS
        expected = False
        for pair in ("ab", "ba", "aa", "bb"):
            of_pair = [(at, broken) for at, node, other, broken in faults if node + other == pair and at <= until_ms]
            expected |= any(at >= from_ms for at, _ in of_pair) or (bool(of_pair) and of_pair[-1][1])
        assert cluster.is_excused(0, 1, since_ms, until_ms) == expected


@pytest.mark.parametrize("profile", [STRICT, "nacos-3.0.3"])
@pytest.mark.parametrize("seed", range(20))
def test_a_lease_ends_in_time_unless_the_node_itself_is_paused(seed: int, profile: str) -> None:
    """In `strict` it begins anew after a pause that may have covered a whole check."""
    random = Random(seed)
    cluster, faults = faulty(random, profile)
    for _ in range(50):
        renewed_ms = random.randint(0, 10**6)
        due_ms, paused_ms = renewed_ms + LASTS_MS, None
        for at, _, _, broken in (each for each in faults if each[1:3] == ("a", "a")):
            if at > due_ms and paused_ms is None:
                break
            if broken:
                paused_ms = at if paused_ms is None else paused_ms
            elif paused_ms is not None:
                is_anew = profile == STRICT and at - paused_ms > 5_000
                due_ms, paused_ms = max(due_ms, at + (LASTS_MS if is_anew else CHECK_MS)), None
        for now_ms in (due_ms - 1, due_ms, due_ms + 1, due_ms + 10**6):
            is_over = cluster.is_over(0, renewed_ms + LASTS_MS, now_ms, CHECK_MS, LASTS_MS)
            assert is_over == (now_ms > due_ms and paused_ms is None)


def test_rows_of_nodes_that_came_after_the_survey_are_left_out() -> None:
    """A table may grow between the survey of the nodes and the judgement of the clients."""
    cluster, _ = faulty(Random(0))
    places = [("q", "a", "b"), ("r", "a", "b"), ("r", "b", "d"), ("r", "d", "a"), ("s", "a", "b")]
    rows = [
        {"run": run, "client": "c1", "node": node, "peer": peer, "seq": 1, "at_ms": 1, "kind": "request_sent"}
        for run, node, peer in places
    ]
    t = timeline(pl.DataFrame(rows, EVENT_TYPES).sort(SORTED), cluster)
    assert t.rows.select("run", "node", "g", "to").rows() == [("r", "a", 0, 1), ("r", "b", 1, None)]
    assert (t.clients, t.spans) == (["c1"], [(0, 2)])


@pytest.mark.spark
def test_duplicate_numbers_with_the_same_sums_are_found(spark: SparkSession, tmp_path: Path) -> None:
    """1 + 5 + 6 = 2 + 3 + 7, and so are the sums of their squares."""
    with Recorder(tmp_path, "r1", profile="strict", target="test", nodes=["a"]) as recorder:
        for at_ms in range(8):
            recorder.record("a", Kind.CHECKPOINT, at_ms=at_ms, detail=str(at_ms))
    header, *lines = recorder.path.read_text().splitlines(keepends=True)
    rows = [lines[seq - 1] for seq in (1, 1, 4, 5, 5, 6, 6, 8)]
    recorder.path.write_text(header + "".join(rows))
    found = on_both(spark, recorder.path, invariants=["INV-OWNER"])
    assert (found.events, found.missing, found.doubled) == (8, 3, 3)
