"""The fast engine against the readable search, on toy systems and on random ones, in every field that they share."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.profiles import STRICT
from distro_model.search import engine, known
from distro_model.search.engine import search
from distro_model.search.readable import search_readably
from distro_model.search.results import Limits, Progress, Search, Stopped, never_stop
from distro_model.search.system import (
    NO_GUARD,
    Chain,
    Check,
    ContradictionError,
    Finding,
    Kind,
    Lookup,
    System,
    transitions,
)

RED, LOUD = Finding("RED", "the light is red"), Finding("LOUD", "and the bell rings")
FULL = Finding("FULL", "the last place is full")


def positive(value):
    return [(value - 1,)] if value > 0 else []


def below(most):
    return lambda value: [(value + 1,)] if value < most else []


def moving(places: int, most: int, **more) -> System:
    """Tokens on a ring of places, moved one by one to the next place that is not full. All start in the first half."""
    take, put = positive, below(most)
    columns = tuple(f"p{place}" for place in range(places))
    chains = tuple(
        Chain(
            f"move {here}",
            "move",
            (
                Lookup("the place is empty", take, (here,), ("less",)),
                Lookup("the next is full", put, (there,), ("more",)),
            ),
            {here: "less", there: "more"},
        )
        for here, there in zip(columns, (*columns[1:], columns[0]), strict=True)
    )
    initial = (most,) * (places // 2) + (0,) * (places - places // 2)
    return System(columns, initial, chains, **more)


def token_ring(nodes: int) -> System:
    """The holder of the token may work (one of two colours), rest, or pass the token on."""

    def colours(state, has_token):
        return [("red",), ("green",)] if has_token and state == "idle" else []

    def alarm(colour):
        return [((RED, LOUD) if colour == "red" else None,)]

    def rest(state):
        return [("idle",)] if state != "idle" else []

    def give(has_token):
        return [(False, True)] if has_token else []

    columns = tuple(f"{what} {node}" for node in range(nodes) for what in ("state", "token"))
    chains = []
    for node in range(nodes):
        state, token, following = f"state {node}", f"token {node}", f"token {(node + 1) % nodes}"
        work = (
            Lookup("no token", colours, (state, token), ("colour",)),
            Lookup("never", alarm, ("colour",), ("bell",)),
        )
        chains += [
            Chain(f"work {node}", "work", work, {state: "colour"}, lambda end: end["colour"], ("bell",)),
            Chain(f"rest {node}", "rest", (Lookup("idle", rest, (state,), ("calm",)),), {state: "calm"}),
            Chain(
                f"pass {node}",
                "pass",
                (Lookup("none", give, (token,), ("gone", "got")),),
                {token: "gone", following: "got"},
            ),
        ]
    initial = tuple(value for node in range(nodes) for value in ("idle", node == 0))
    return System(columns, initial, tuple(chains))


def is_full(most):
    return lambda value: [(FULL,)] if value == most else [(None,)]


def watched(system: System, check: Callable, kind: Kind = Kind.ALWAYS, column: int = -1) -> System:
    column_name = system.columns[column]
    return replace(
        system, checks=(Check("FULL", kind, (Lookup("never", check, (column_name,), ("found",)),), "found"),)
    )


def same(fast: Search, readable: Search) -> None:
    """In every field; only the calls of functions are meant to differ."""
    assert fast.stopped == readable.stopped
    assert fast.levels == readable.levels
    assert fast.taken == readable.taken
    assert fast.refused == readable.refused
    assert fast.distinct_states == readable.distinct_states == sum(fast.levels)
    assert fast.transitions == readable.transitions
    assert fast.runs.keys() == readable.runs.keys()
    for property_id, run in fast.runs.items():
        other = readable.runs[property_id]
        assert (run.finding, run.rows, run.loop_from) == (other.finding, other.rows, None)
        assert [(each.chain.name, each.after, each.label, each.findings) for each in run.transitions] == [
            (each.chain.name, each.after, each.label, each.findings) for each in other.transitions
        ]


# Systems made of random tables. A function is a table over small numbers, so that any value may flow anywhere.

VALUES = 3


@st.composite
def random_systems(draw) -> System:
    columns = tuple("abcd"[: draw(st.integers(1, 4))])
    functions = {reads: [draw(random_functions(reads)) for _ in range(draw(st.integers(1, 3)))] for reads in (1, 2, 3)}
    chains = tuple(draw(random_chains(number, columns, functions)) for number in range(draw(st.integers(1, 6))))
    checks = tuple(
        Check(
            f"P{number}", kind, (*lookups, Lookup("never", to_finding(f"P{number}"), (register,), ("found",))), "found"
        )
        for number, kind in enumerate(draw(st.lists(st.sampled_from(Kind), max_size=2)))
        for lookups, register in [draw(random_lookups(columns, functions))]
    )
    return System(columns, draw(st.tuples(*[st.integers(0, VALUES - 1)] * len(columns))), chains, checks)


@st.composite
def random_functions(draw, reads: int):
    """Together with how many registers it writes, and with its guard: some never refuse, and say so."""
    writes = draw(st.integers(0, 2))
    fewest = draw(st.integers(0, 1))
    alternative = st.tuples(*[st.integers(0, VALUES - 1)] * writes)
    alternatives = st.lists(alternative, min_size=fewest, max_size=2)
    rows = draw(st.lists(alternatives, min_size=VALUES**reads, max_size=VALUES**reads))

    def function(*values):
        place = 0
        for value in values:
            place = place * VALUES + value
        return rows[place]

    return function, writes, NO_GUARD if fewest else "refused"


@st.composite
def random_lookups(draw, columns, functions):
    """Some look-ups, and one of the registers that are known after them."""
    known_registers, lookups = list(columns), []
    for number in range(draw(st.integers(0, 3))):
        reads = tuple(draw(st.lists(st.sampled_from(known_registers), min_size=1, max_size=3)))
        function, writes, guard = draw(st.sampled_from(functions[len(reads)]))
        written = tuple(f"t{number}{position}" for position in range(writes))
        lookups.append(Lookup(guard, function, reads, written))
        known_registers += written
    return tuple(lookups), draw(st.sampled_from(known_registers))


def to_finding(property_id: str):
    return lambda value: [(Finding(property_id, f"it is {value}") if value == 1 else None,)]


@st.composite
def random_chains(draw, number: int, columns, functions) -> Chain:
    lookups, register = draw(random_lookups(columns, functions))
    alarms: tuple[str, ...] = ()
    if draw(st.booleans()):
        lookups = (*lookups, Lookup("never", to_finding(f"A{number % 2}"), (register,), ("bell",)))
        alarms = ("bell",)
    written = [name for lookup in lookups for name in lookup.writes if name != "bell"]
    result = draw(st.dictionaries(st.sampled_from(columns), st.sampled_from([*columns, *written])))
    return Chain(f"chain {number}", "chain", lookups, result, lambda end: tuple(sorted(end.items(), key=str)), alarms)


@settings(max_examples=60, deadline=None)
@given(random_systems(), st.booleans())
def test_the_engine_says_what_the_readable_search_says_of_random_systems(system, exact):
    same(search(system, exact=exact), search_readably(system))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("system", [moving(6, 3), token_ring(4), watched(moving(5, 4), is_full(4))])
def test_the_engine_says_what_the_readable_search_says_of_toys(system, exact):
    same(search(system, exact=exact), search_readably(system))


def test_a_system_without_chains_has_one_state():
    lonely = System(("a",), (0,), ())
    same(search(lonely), search_readably(lonely))


def test_a_chain_without_lookups_can_swap_columns():
    swap = System(("a", "b"), (0, 1), (Chain("swap", "swap", (), {"a": "b", "b": "a"}),))
    assert search(swap).distinct_states == 2
    same(search(swap), search_readably(swap))


@pytest.fixture
def in_small_chunks(monkeypatch):
    """Many chunks, several threads in each, tables that outgrow their space: everything large runs, made small."""
    monkeypatch.setattr(engine, "CHUNK", 97)
    monkeypatch.setattr("distro_model.search.expander.WORTH_A_THREAD", 10)
    monkeypatch.setattr("distro_model.search.expander.FIRST_CAPACITY", 4)
    monkeypatch.setattr("distro_model.search.expander.LATELY", 2)
    monkeypatch.setattr("distro_model.search.expander.MISSES_AT_ONCE", 3)
    monkeypatch.setattr("distro_model.search.tables.LEAST_BITS", 0)
    monkeypatch.setattr("distro_model.search.tables.DENSE_BITS", 3)


@pytest.mark.usefixtures("in_small_chunks")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("exact", [False, True])
def test_nothing_depends_on_chunks_or_threads(threads, exact):
    for system in (watched(moving(6, 3), is_full(3)), token_ring(5)):
        same(search(system, exact=exact, threads=threads), search_readably(system))


def test_a_row_that_is_walked_again_keeps_its_place():
    """(2, 0) is new to the tables when (1, 1) is not; both lead to (2, 1), and (2, 0) comes first."""
    up = below(5)
    chains = tuple(Chain(name, "up", (Lookup("at most", up, (name,), ("more",)),), {name: "more"}) for name in "xy")
    meet = Lookup("elsewhere", lambda x, y: [(FULL,)] if (x, y) == (2, 1) else [], ("x", "y"), ("found",))
    system = System(("x", "y"), (0, 0), chains, (Check("FULL", Kind.ALWAYS, (meet,), "found"),))
    found = search(system)
    assert found.runs["FULL"].rows == ((0, 0), (1, 0), (2, 0), (2, 1))
    same(found, search_readably(system))


@pytest.mark.usefixtures("in_small_chunks")
@settings(max_examples=25, deadline=None)
@given(random_systems())
def test_nothing_depends_on_the_space_that_tables_have(system):
    same(search(system, threads=2), search_readably(system))


@pytest.mark.parametrize("exact", [False, True])
def test_the_set_of_known_states_grows(exact):
    """280,000 states: more than four times the initial size of the set."""
    found = search(moving(12, 3), Limits(max_states=280_000), exact=exact)
    assert found.stopped is Stopped.MAX_STATES
    assert found.distinct_states > 4 * known.FIRST_SLOTS
    assert found == replace(
        search(moving(12, 3), Limits(max_states=280_000), threads=1), collision_probability=found.collision_probability
    )
    assert (found.collision_probability == 0) == exact


def test_only_exact_comparison_survives_bad_fingerprints(monkeypatch):
    """Every fingerprint is the sum of numbers from 1 to 4, so that most states share one with another state."""
    good = search(moving(6, 3))
    monkeypatch.setattr(
        "distro_model.search.tables.fingerprints_of", lambda _, numbers: 1 + numbers.astype("uint64") % 4
    )
    assert search(moving(6, 3)).distinct_states < good.distinct_states
    same(search(moving(6, 3), exact=True), search_readably(moving(6, 3)))


def test_the_run_to_an_alarm_ends_with_the_transition_that_rang_it():
    runs = search(token_ring(3)).runs
    assert runs.keys() == {"RED", "LOUD"}
    run = runs["RED"]
    assert [each.label for each in run.transitions] == ["red"]
    assert run.finding == RED
    assert run.transitions[-1].findings == (RED, LOUD)


def test_the_run_to_a_state_is_a_shortest_one_and_can_be_replayed():
    system = watched(moving(6, 2), is_full(2))
    run = search(system).runs["FULL"]
    # 2 tokens from the third place to the last: 3 moves each.
    assert len(run.transitions) == 6
    assert run.rows[0] == system.initial
    assert run.rows[-1][-1] == 2
    for before, after in zip(run.rows, run.rows[1:], strict=False):
        assert after in {each.after for each in transitions(system, before)}


def test_a_run_goes_through_a_state_with_very_many_transitions():
    """More of them than a 16-bit number can count."""
    choose = Lookup(
        "chosen", lambda value: [(number,) for number in range(1, 70_001)] if value == 0 else [], ("a",), ("b",)
    )
    last = Lookup("another", lambda value: [(-1, RED)] if value == 70_000 else [], ("a",), ("b", "bell"))
    system = System(
        ("a",),
        (0,),
        (
            Chain("choose", "choose", (choose,), {"a": "b"}),
            Chain("last", "last", (last,), {"a": "b"}, alarms=("bell",)),
        ),
    )
    found = search(system)
    same(found, search_readably(system))
    assert found.runs["RED"].rows == ((0,), (70_000,), (-1,))


def test_questions_about_a_whole_run_are_not_asked_of_rows():
    system = watched(moving(4, 2), is_full(2), Kind.EVENTUALLY)
    assert search(system).runs == search_readably(system).runs == {}
    assert search(watched(moving(4, 2), is_full(2), Kind.SOMETIMES)).runs.keys() == {"FULL"}


def counting(most: int) -> System:
    return System(("n",), (0,), (Chain("up", "up", (Lookup("full", below(most), ("n",), ("m",)),), {"n": "m"}),))


def test_a_search_that_is_stopped_has_checked_every_state_that_it_found():
    found = search(watched(counting(9), is_full(5)), watch=lambda progress: progress.level == 5)
    assert (found.stopped, found.distinct_states, found.taken) == (Stopped.ASKED, 6, {"up": 5})
    assert found.runs["FULL"].rows == ((0,), (1,), (2,), (3,), (4,), (5,))
    assert found.refused == {"up": (0,)}


@pytest.mark.parametrize("chunk", [1, engine.CHUNK])
def test_a_finding_of_a_row_comes_before_those_of_the_transitions_of_its_level(chunk, monkeypatch):
    """One of the two rows of the first level leads to a transition that rings, and the other one is RED itself."""

    def ways(n):
        return {0: [(1, None), (2, None)], 1: [(3, RED)]}.get(n, [])

    way = Lookup("the end", ways, ("n",), ("m", "bell"))
    is_2 = Lookup("not 2", lambda n: [(RED,)] if n == 2 else [], ("n",), ("found",))
    check = Check("RED", Kind.ALWAYS, (is_2,), "found")
    system = System(("n",), (0,), (Chain("go", "go", (way,), {"n": "m"}, alarms=("bell",)),), (check,))
    monkeypatch.setattr(engine, "CHUNK", chunk)
    found = search(system)
    same(found, search_readably(system))
    assert found.runs["RED"].rows == ((0,), (2,))


def test_the_search_stops_soon_after_the_most_states():
    found = search(moving(10, 3), Limits(max_states=5_000))
    assert found.stopped is Stopped.MAX_STATES
    assert 5_000 < found.distinct_states < 15_000
    assert sum(found.levels) == found.distinct_states


def test_the_search_stops_before_its_memory_is_more_than_allowed():
    seen: list[Progress] = []
    limit = 12_000_000
    found = search(moving(12, 3), Limits(max_memory_bytes=limit), lambda progress: seen.append(progress) is not None)
    assert found.stopped is Stopped.MEMORY
    assert found.distinct_states == sum(found.levels) > 50_000
    assert max(progress.memory_bytes for progress in seen) <= limit
    assert search(moving(4, 2), Limits(max_memory_bytes=1_000)).distinct_states == 1


def test_the_set_of_known_states_does_not_grow_where_it_may_not():
    def refuse(_: int) -> None:
        raise known.OutOfRoomError

    states = known.KnownStates(columns=1, exact=False)
    with pytest.raises(known.OutOfRoomError):
        states.make_room(int(0.9 * known.FIRST_SLOTS), refuse)
    states.make_room(int(0.8 * known.FIRST_SLOTS), refuse)
    assert states.prints.size == known.FIRST_SLOTS


def test_the_search_stops_when_asked():
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 5

    found = search(moving(6, 3), watch=watch)
    assert found.stopped is Stopped.ASKED
    assert [each.level for each in seen] == [1, 2, 3, 4, 5]
    assert found.distinct_states == seen[-1].distinct_states
    assert found.transitions == seen[-1].transitions


def test_a_lookup_is_asked_once_for_each_combination_of_values():
    asked = []

    def count(value):
        asked.append(value)
        return positive(value)

    system = System(
        ("a", "b"),
        (5, 5),
        tuple(
            Chain(f"down {column}", "down", (Lookup("zero", count, (column,), ("less",)),), {column: "less"})
            for column in "ab"
        ),
    )
    found = search(system)
    assert found.distinct_states == 36
    assert sorted(asked) == [0, 1, 2, 3, 4, 5]
    assert found.function_calls == 6


def test_a_check_that_has_found_something_is_asked_no_longer():
    asked = []

    def is_two(value):
        asked.append(value)
        return [(FULL,)] if value == 2 else []

    up = Chain("up", "up", (Lookup("at most", below(5), ("a",), ("more",)),), {"a": "more"})
    check = Check("FULL", Kind.ALWAYS, (Lookup("never", is_two, ("a",), ("found",)),), "found")
    found = search(System(("a",), (0,), (up,), (check,)))
    assert found.distinct_states == 6
    assert found.runs["FULL"].rows == ((0,), (1,), (2,))
    assert set(asked) == {0, 1, 2}


def test_the_latest_of_several_choices_is_taken_first():
    """Two look-ups with three alternatives each, the second one refuses some: like nested loops, in their order."""
    three = Lookup("never", lambda _: [(1,), (2,), (3,)], ("a",), ("b",))
    three_again = Lookup("it was 2", lambda b: [(10 * b + c,) for c in (1, 2, 3)] if b != 2 else [], ("b",), ("c",))
    start = Lookup("begun", lambda a: [()] if a == 0 else [], ("a",), ())
    choose = Chain("choose", "choose", (start, three, three_again), {"a": "c"}, lambda end: end["c"])
    system = System(("a",), (0,), (choose,))
    found = search(system)
    assert found.distinct_states == 7
    assert found.refused == {"choose": (6, 0, 1)}
    same(found, search_readably(system))


def test_a_lookup_that_writes_what_it_did_not_promise_is_named():
    wrong = System(
        ("a",), (0,), (Chain("up", "up", (Lookup("never", lambda _: [(1, 2)], ("a",), ("b",)),), {"a": "b"}),)
    )
    with pytest.raises(ContradictionError, match=r"writes 1 registers, but gave \(1, 2\)"):
        search(wrong)


def test_threads_are_counted_from_one():
    with pytest.raises(ValueError, match="1 to 64 threads, not 0"):
        search(token_ring(2), threads=0)


def test_the_memory_of_a_search_is_counted_with_the_values_in_its_tables():
    system = bounded_cluster(Bounds(changes=3, crashes=1), STRICT)
    search(system)  # objects made once for all searches do not count
    tracemalloc.start()
    try:
        running = engine._Engine(system, Limits(), never_stop, exact=False, threads=1)
        running.run()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert running.memory_bytes == pytest.approx(taken, rel=0.03)
    running.close()


def test_garbage_is_looked_for_again_when_a_search_ends_or_breaks_off():
    def refuse(_: Progress) -> bool:
        assert not gc.isenabled()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(moving(4, 2), watch=refuse)
    assert gc.isenabled()
    search(moving(4, 2))
    assert gc.isenabled()


def test_nothing_that_a_search_knows_waits_for_the_next_look_for_garbage():
    class Mark:
        """Equal to no other; it can be seen to be gone."""

    made = []

    def mark(_):
        mark = Mark()
        made.append(ref(mark))
        return [(mark,)]

    gc.disable()
    try:
        search(
            System(
                ("mark",), (None,), (Chain("mark", "mark", (Lookup("", mark, ("mark",), ("new",)),), {"mark": "new"}),)
            ),
            Limits(20),
        )
        assert made
        assert not any(each() for each in made)
    finally:
        gc.enable()
