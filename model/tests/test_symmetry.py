"""Symmetry: renaming commutes with every transition, wherever it is offered; and it is refused where it would not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.symmetry import NoSymmetryError, symmetry_of
from distro_model.profiles import PROFILES, STRICT
from distro_model.search.readable import search_readably
from distro_model.search.system import orbit, transitions

ROWS = 400


def renamed(system, row, permutation):
    """A row under a permutation."""
    moved = [
        system.symmetry.renamed(column, value, permutation) for column, value in zip(system.columns, row, strict=True)
    ]
    by_column = dict(moved)
    return tuple(by_column[column] for column in system.columns)


def some_rows(system, count):
    """The first rows of a depth-first walk: deep enough that everything has happened somewhere."""
    seen, waiting = {system.initial}, [system.initial]
    while waiting and len(seen) < count:
        after = [each.after for each in transitions(system, waiting.pop())]
        waiting += [row for row in dict.fromkeys(after) if row not in seen]
        seen.update(after)
    return seen


@pytest.mark.parametrize(
    "profile",  # the symmetry is that of the cluster: what a release does otherwise names no node
    [STRICT, pytest.param(PROFILES["nacos-2.2.4"], marks=pytest.mark.slow)],
    ids=lambda profile: profile.name,
)
@pytest.mark.parametrize(
    ("bounds", "size"),
    [
        (Bounds(nodes=3, changes=1, swallows=0), 2),
        (Bounds(clients=2, changes=1, late_replies=1, reorders=1, drops=0), 2),
        (Bounds(nodes=3, clients=3, changes=1, drops=0, lost_replies=1), 6),
        (Bounds(nodes=3, clients=2, periods=2, delays=1, swallows=0), 2),
    ],
    ids=str,
)
def test_renaming_and_then_moving_is_moving_and_then_renaming(bounds, size, profile):
    system = bounded_cluster(bounds, profile, symmetric=True)
    assert system.symmetry.size == size
    for permutation in range(size):
        assert renamed(system, system.initial, permutation) == system.initial
        for row in some_rows(system, ROWS // size):
            moved_first = Counter(renamed(system, each.after, permutation) for each in transitions(system, row))
            assert moved_first == Counter(each.after for each in transitions(system, renamed(system, row, permutation)))


@pytest.mark.parametrize(
    "bounds", [Bounds(nodes=3, changes=1, drops=0, swallows=0), Bounds(clients=2, changes=0, drops=0)], ids=str
)
@pytest.mark.slow
def test_the_reduced_search_counts_the_orbits_of_the_full_one(bounds):
    system = bounded_cluster(bounds, STRICT, symmetric=True)
    full = some_rows(system, 10**6)
    reduced = search_readably(system)
    assert len(full) == search_readably(replace(system, symmetry=None)).distinct_states
    assert reduced.distinct_states == len({orbit(system, row) for row in full}) < len(full)
    assert set(reduced.runs) == set(search_readably(replace(system, symmetry=None)).runs)


def test_the_identity_is_number_0():
    system = bounded_cluster(Bounds(nodes=3, clients=3), STRICT, symmetric=True)
    assert all(renamed(system, row, 0) == row for row in some_rows(system, 200))


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (Bounds(nodes=3, crashes=1), "ascending order"),
        (Bounds(clients=3), "the order of their names"),
        (Bounds(), "there is no other arrangement"),
    ],
    ids=str,
)
def test_it_is_refused_with_the_reason(bounds, reason):
    with pytest.raises(NoSymmetryError, match=reason):
        symmetry_of(bounds)


def test_the_refusals_are_needed():
    """With two clients at one node, renaming does not commute: the order of their verifies on a link is seen."""
    from distro_model.bounded import symmetry  # noqa: PLC0415

    bounds = Bounds(clients=3, nodes=2, changes=0, drops=0, swallows=0)
    homes = {"a": "c1", "b": "c2"}
    assert [bounds.home(number) for number in range(3)] == ["a", "b", "a"]
    names = {"a": "a", "b": "b", "c1": "c3", "c3": "c1", "c2": homes["b"]}
    system = bounded_cluster(bounds, STRICT)
    columns = {"client c1": "client c3", "client c3": "client c1"}

    def swapped(row):
        by_column = {
            columns.get(column, column): symmetry._renamed(value, names)
            for column, value in zip(system.columns, row, strict=True)
        }
        return tuple(by_column[column] for column in system.columns)

    assert any(
        Counter(swapped(each.after) for each in transitions(system, row))
        != Counter(each.after for each in transitions(system, swapped(row)))
        for row in some_rows(system, 200)
    )
