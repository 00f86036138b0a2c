"""A run becomes an ITF document that its grammar accepts, and from which every value can be read again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mazes import maze

from distro_model.search.graph import state_graph
from distro_model.search.itf import expression, itf
from distro_model.search.liveness import search_liveness
from distro_model.search.results import Run
from distro_model.search.system import ContradictionError, Finding, System


class Health(StrEnum):
    UP = "up"


class Colour(Enum):
    RED = 1


class Rank(IntEnum):
    FIRST = 1


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Client:
    name: str
    revision: int | None = None
    cached: int = field(default=0, compare=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("web", "web"),
        (True, True),
        (7, {"#bigint": "7"}),
        (-(10**30), {"#bigint": "-1" + "0" * 30}),
        (None, {"tag": "None", "value": {"#tup": []}}),
        ((1, "a"), {"#tup": [{"#bigint": "1"}, "a"]}),
        ((), {"#tup": []}),
        (["a"], ["a"]),
        (frozenset({"b", "a"}), {"#set": ["a", "b"]}),
        (MappingProxyType({(1,): "a"}), {"#map": [[{"#tup": [{"#bigint": "1"}]}, "a"]]}),
        (Health.UP, "up"),
        (Colour.RED, "RED"),
        (Rank.FIRST, "FIRST"),
        (Point(1, 2), {"tag": "Point", "value": {"x": {"#bigint": "1"}, "y": {"#bigint": "2"}}}),
        (Client("c", 3, 9), {"tag": "Client", "value": {"name": "c", "revision": {"#bigint": "3"}}}),
        (1.5, {"#unserializable": "1.5"}),
    ],
)
def test_each_kind_of_value_has_its_expression(value, expected):
    assert expression(value) == expected


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.builds(Client, st.text(max_size=3), st.none() | st.integers())
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_values_can_be_read_again(value):
    assert read(json.loads(json.dumps(expression(value)))) == value


def test_a_run_is_a_document_of_its_states():
    graph = state_graph(maze(fair={"go": {0: (1,), 1: (2,)}}))
    document = itf(graph.system, graph.run(graph.path_to(2), Finding("P", "what was found")), source="a maze")
    assert_is_itf(document)
    assert "loop" not in document
    assert document["#meta"]["property"] == "P"
    assert (document["#meta"]["source"], document["#meta"]["description"]) == ("a maze", "what was found")
    assert document["vars"] == ["place"]
    assert document["states"] == [
        {"#meta": {"index": 0}, "place": {"#bigint": "0"}},
        {"#meta": {"index": 1, "action": "go", "label": "go to 1"}, "place": {"#bigint": "1"}},
        {"#meta": {"index": 2, "action": "go", "label": "go to 2"}, "place": {"#bigint": "2"}},
    ]


def test_a_lasso_says_where_its_loop_begins():
    graph = state_graph(maze(fair={"go": {0: (1,)}, "round": {1: (2,), 2: (1,)}}))
    document = itf(graph.system, search_liveness(graph)["GOAL"])
    assert_is_itf(document)
    assert document["loop"] == 1
    assert document["states"][-1]["place"] == document["states"][1]["place"]


def test_a_column_that_the_format_cannot_name_is_refused():
    system = System(("#meta",), (0,), ())
    with pytest.raises(ContradictionError, match=r"column #meta: .* must not begin with #"):
        itf(system, Run(Finding("P", ""), ((0,),), ()))


def assert_is_itf(document: dict) -> None:
    """The grammar of ADR-015, and that JSON can carry it."""
    assert json.loads(json.dumps(document)) == document
    assert set(document) <= {"#meta", "params", "vars", "states", "loop"}
    for state in document["states"]:
        assert set(state) == {"#meta", *document["vars"]}
        for variable in document["vars"]:
            read(state[variable])
    if "loop" in document:
        assert 0 <= document["loop"] < len(document["states"])


def read(said: object) -> object:
    """An ITF expression as a value; our variants as the classes above. Raises AssertionError where it is none."""
    match said:
        case bool() | str():
            return said
        case {"#bigint": str(digits)} if len(said) == 1:
            return int(digits)
        case {"#tup": list(items)} if len(said) == 1:
            return tuple(read(each) for each in items)
        case {"#set": list(items)} if len(said) == 1:
            return frozenset(read(each) for each in items)
        case {"tag": "None", "value": {"#tup": []}}:
            return None
        case {"tag": "Client", "value": dict(members)}:
            return Client(**{name: read(each) for name, each in members.items()})
    raise AssertionError(f"not an ITF expression: {said}")
