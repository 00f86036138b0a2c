"""Search on Spark: what it counts and finds is what the readable search does, also after a restart."""

from __future__ import annotations

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.profiles import PROFILES
from distro_model.search.readable import search_readably
from distro_model.search.results import Limits, Stopped
from distro_spark.errors import CheckpointError
from distro_spark.search.engine import search_on_spark
from distro_spark.search.stepper import Stepper, ValueCollisionError, fingerprint, number_of

pytestmark = pytest.mark.spark

BOUNDS = Bounds(changes=1, drops=0, swallows=1)
SYSTEM = bounded_cluster(BOUNDS, PROFILES["nacos-2.0.4"])


def lengths(search):
    return {name: len(run.transitions) for name, run in search.runs.items()}


def same(found, expected):
    assert (found.distinct_states, found.transitions) == (expected.distinct_states, expected.transitions)
    assert found.levels == expected.levels
    assert (found.taken, found.refused) == (expected.taken, expected.refused)
    assert lengths(found) == lengths(expected)


@pytest.mark.slow
def test_a_search_that_was_stopped_goes_on_and_counts_what_the_readable_search_does(spark, tmp_path):
    """Stopped after level 3, with a level 4 that was cut short on disk and that the saved state does not count."""
    checkpoint = tmp_path / "checkpoint"
    stopped = search_on_spark(spark, SYSTEM, checkpoint, "test", watch=lambda progress: progress.level == 3)
    assert (stopped.stopped, len(stopped.levels)) == (Stopped.ASKED, 4)
    half_written = checkpoint / "rows" / "level=00004"
    half_written.mkdir()
    (half_written / "part-0.parquet").write_bytes(b"not a whole file")
    levels_seen = []
    found = search_on_spark(
        spark, SYSTEM, checkpoint, "test", watch=lambda progress: bool(levels_seen.append(progress.level))
    )
    assert levels_seen[0] == 3
    same(found, search_readably(SYSTEM))
    assert found.complete
    assert "INV-VERIFY" in found.runs
    assert 0 < found.collision_probability < 1e-9


def test_max_states_is_a_limit(spark, tmp_path):
    found = search_on_spark(spark, SYSTEM, tmp_path / "checkpoint", "test", Limits(max_states=3))
    assert found.stopped is Stopped.MAX_STATES
    assert 3 < found.distinct_states < 30


def test_the_checkpoint_of_another_search_is_not_touched(spark, tmp_path):
    search_on_spark(spark, SYSTEM, tmp_path / "checkpoint", "one", watch=lambda _: True)
    with pytest.raises(CheckpointError, match=r"holds another search \(one\)"):
        search_on_spark(spark, SYSTEM, tmp_path / "checkpoint", "two")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="is not empty and no checkpoint"):
        search_on_spark(spark, SYSTEM, tmp_path / "other", "one")


def test_two_values_with_one_number_are_noticed():
    stepper = Stepper(SYSTEM, {number_of("a"): "b"})
    with pytest.raises(ValueCollisionError, match="'a' and 'b'"):
        stepper.number("a")


def test_equal_values_have_equal_numbers_and_columns_count():
    assert number_of(SYSTEM.initial) == number_of(bounded_cluster(BOUNDS, PROFILES["nacos-2.0.4"]).initial)
    assert fingerprint((1, 2)) != fingerprint((2, 1))
