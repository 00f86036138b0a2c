"""The arrays of a chunk: whatever looks through them lets go of them."""

import sys

import numpy as np
import pytest

from distro_spark.compiling import fast
from distro_spark.facts import Node, facts_of
from distro_spark.invariants import INVARIANTS
from distro_spark.invariants.registry import Finder
from distro_spark.responsibility import NEEDS, claimed
from distro_spark.rows import Facts, Integers, Past, Rows, past_of
from distro_traces.event import Kind
from distro_traces.header import Header

HEADER = Header(run="r", profile="strict", target="test", clock="virtual", nodes=("a", "b"))
NODES = [Node("r", name, place, 0, 0, 0, 10**9, 0) for place, name in enumerate("ab")]


def rows(count: int) -> Rows:
    """Of ten clients, on two nodes in turn; kinds and operations as they come."""

    def some(below: int) -> Integers:
        return np.random.default_rng(below).integers(0, below, count)

    each = np.arange(count)
    client, node = each * 10 // count, each * 20 // count % 2
    what = some(len(Kind)), some(4), some(3), some(8)
    return Rows(client, node, each, each * 1000, *what, 1 - node, some(50), some(5), some(9))


@pytest.mark.slow  # what is not compiled yet takes half a minute
def test_no_invariant_keeps_the_rows_of_a_chunk() -> None:
    """Compiled, a generator kept the arrays that it was given: a hundred million events took 5 GiB in each worker."""
    chunk = rows(2000)
    facts = facts_of(NODES, {"r": {name: [] for name in "ab"}}, {"r": HEADER})
    past = fast(past_of)(chunk, facts)
    first, last = np.empty(2000, np.int64), np.empty(2000, np.int64)
    before = [sys.getrefcount(column) for column in chunk]
    for invariant, decides in zip(INVARIANTS.values(), facts.decides, strict=True):
        if invariant.find is not None:
            fast(invariant.find)(chunk, facts, past, np.ones_like(decides), first, last)
    fast(claimed)(chunk, facts, np.ones((len(NEEDS), 2), np.bool_))
    assert [sys.getrefcount(column) for column in chunk] == before


@pytest.mark.slow
def test_who_claims_a_client_is_the_same_in_both_speeds() -> None:
    chunk = rows(300)
    facts = facts_of(NODES, {"r": {name: [] for name in "ab"}}, {"r": HEADER})
    observed = np.ones((len(NEEDS), 2), np.bool_)
    found = claimed(chunk, facts, observed)
    assert fast(claimed)(chunk, facts, observed) == found
    assert {count for _, _, _, count, _, _ in found} == {0, 1, 2}


@pytest.mark.slow
def test_each_invariant_finds_the_same_in_both_speeds() -> None:
    chunk = rows(2000)
    facts = facts_of(NODES, {"r": {name: [] for name in "ab"}}, {"r": HEADER})
    past = past_of(chunk, facts)
    found = {}
    for name, invariant in INVARIANTS.items():
        if invariant.find is not None:
            found[name] = positions(invariant.find, chunk, facts, past)
            assert positions(fast(invariant.find), chunk, facts, past) == found[name], name
    assert {name for name, places in found.items() if places} >= {"INV-ACK", "INV-EXPIRE", "INV-NATIVE", "INV-REV"}


def positions(find: Finder, chunk: Rows, facts: Facts, past: Past) -> list[int]:
    first, last = np.empty(len(chunk.seq), np.int64), np.empty(len(chunk.seq), np.int64)
    with np.errstate(over="ignore"):  # sums of hashes, as they are when compiled
        count = find(chunk, facts, past, np.ones(2, np.bool_), first, last)
    return [*first[:count].tolist(), *last[:count].tolist()]
