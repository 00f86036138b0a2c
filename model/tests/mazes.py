"""Systems drawn by hand: one column that holds a place, and chains that are tables of where one may go from it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from distro_model.search.system import Chain, Check, Fairness, Finding, Kind, Lookup, System

Doors = Mapping[int, tuple[int, ...]]
"""Place -> the places that lie behind its doors."""


def maze(
    *,
    fair: Mapping[str, Doors] = {},
    unfair: Mapping[str, Doors] = {},
    goal: set[int] = frozenset(),
    strong: Set[str] = frozenset(),
) -> System:
    """Begins in place 0. The property GOAL is met in the places of `goal`. Fair is weakly fair, unless in `strong`."""

    def not_at_the_goal(place: int) -> list[tuple[Finding]]:
        return [] if place in goal else [(Finding("GOAL", f"place {place} is not the goal"),)]

    chains = [_chain(name, doors, Fairness.STRONG if name in strong else Fairness.WEAK) for name, doors in fair.items()]
    chains += [_chain(name, doors, Fairness.NONE) for name, doors in unfair.items()]
    check = Check("GOAL", Kind.EVENTUALLY, (Lookup("at the goal", not_at_the_goal, ("place",), ("found",)),), "found")
    return System(("place",), (0,), tuple(chains), (check,))


def _chain(name: str, doors: Doors, fair: Fairness) -> Chain:
    def through(place: int) -> list[tuple[int]]:
        return [(then,) for then in doors.get(place, ())]

    lookup = Lookup(f"no {name} here", through, ("place",), ("then",))
    return Chain(name, name, (lookup,), {"place": "then"}, lambda ends: f"{name} to {ends['then']}", fair=fair)


def counters(count: int, most: int) -> System:
    """Counters from 0 to `most` that go up, go down, and change places with their neighbour."""

    def up(value: int) -> list[tuple[int]]:
        return [(value + 1,)] if value < most else []

    def down(value: int) -> list[tuple[int]]:
        return [(value - 1,)] if value > 0 else []

    def change(value: int, other: int) -> list[tuple[int, int]]:
        return [(other, value)] if value != other else []

    chains = []
    for place in range(count):
        here, beside = f"c{place}", f"c{(place + 1) % count}"
        chains.append(Chain(f"up {here}", "up", (Lookup("full", up, (here,), ("new",)),), {here: "new"}))
        chains.append(Chain(f"down {here}", "down", (Lookup("empty", down, (here,), ("new",)),), {here: "new"}))
        swap = Lookup("the same", change, (here, beside), ("new", "other"))
        chains.append(Chain(f"change {here}", "change", (swap,), {here: "new", beside: "other"}))
    return System(tuple(f"c{place}" for place in range(count)), (0,) * count, tuple(chains))
