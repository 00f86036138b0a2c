"""The grammar of scenarios: what is printed is read back, and what is wrong is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distro_conformance.language.text import (
    OPERATIONS,
    Expect,
    ExpectModel,
    ScenarioError,
    build,
    duration_ms,
    parse,
    read,
)
from distro_model import actions

NODES = ("a", "b", "c")
clients = st.sampled_from(("c1", "c2"))
services = st.sampled_from(("web", "api"))
instances = st.sampled_from(("10.0.0.1:80", "10.0.0.1:80 version=1", "10.0.0.2:8080 version=2 zone=x"))
nodes = st.sampled_from(NODES)
links = st.permutations(NODES).map(lambda order: (order[0], order[1]))
durations = st.integers(1, 1_000_000)
operations = st.none() | st.sampled_from(OPERATIONS)

steps = st.one_of(
    st.builds(actions.Connect, clients, nodes),
    st.builds(actions.Register, clients, services, instances),
    st.builds(actions.Deregister, clients, services),
    st.builds(actions.Disconnect, clients),
    st.builds(actions.Advance, durations),
    *(links.map(lambda link, kind=kind: kind(*link)) for kind in (actions.Cut, actions.Heal, actions.Hold)),
    *(
        st.tuples(links, operations, st.none() | clients).map(
            lambda drawn, kind=kind: kind(*drawn[0], drawn[1], drawn[2] if drawn[1] else None)
        )
        for kind in (actions.Drop, actions.Swallow)
    ),
    st.builds(actions.Crash, nodes),
    st.builds(actions.Restart, nodes),
    st.builds(Expect, st.just(0) | durations, nodes, clients, st.booleans()),
    st.builds(Expect, st.just(0) | durations, nodes, clients, st.just(True), services, instances),
    st.builds(Expect, st.just(0) | durations),
    st.just(ExpectModel()),
)


@given(st.lists(steps, max_size=8), st.none() | st.just("nacos-2.0.4"), st.none() | st.just("B02"))
def test_what_is_printed_is_read_back(written: list[object], profile: str | None, mutant: str | None) -> None:
    scenario = build(written, nodes=NODES, profile=profile, mutant=mutant, comment="Found so.\nAnd so.")
    assert parse(scenario.render()) == scenario


def test_the_example_of_the_design_is_read() -> None:
    text = """
    # B24: a DELETE is swallowed by the retry of an older CHANGE
    nodes a b c
    connect c1 a
    hold a->b                      # b does not answer
    register c1 web 10.0.0.1:80
    advance 2.5s
    disconnect c1
    release a->b
    expect within 15s: b has no c1
    """
    scenario = parse(text)
    assert scenario.comment == "B24: a DELETE is swallowed by the retry of an older CHANGE"
    assert scenario.steps[1] == actions.Hold("a", "b")
    assert scenario.steps[-1] == Expect(15_000, "b", "c1", present=False)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nodes a b\nconect c1 a", "line 2: unknown verb"),
        ("connect c1", "line 1: 'connect' misses its node"),
        ("connect c1 d", "there is no node 'd'; the nodes are a b c"),
        ("connect c1 a b", "'connect' does not take 'b'"),
        ("cut ab", "takes a link such as a->b"),
        ("cut a->a", "a link has two ends"),
        ("drop a->b CHANG", "'CHANG' is no operation"),
        ("advance 5", "'5' is no duration such as"),
        ("advance 0.5ms", "'0.5ms' is no duration"),
        ("register c1 web 10.0.0.1", "'10.0.0.1' is no instance"),
        ("register c1 web 10.0.0.1:80 zone", "metadata is written key=value"),
        ("expect b is gone", "expected 'NODE has CLIENT'"),
        ("connect c1 a\nnodes a b", "line 2: the header"),
        ("nodes a", "two or more different names"),
        ("nodes b a", "ascending order"),
        ("profile", "'profile' takes one name"),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=r"^scenario line \d+: ") as error:
        parse(text)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot read the scenario"):
        read(tmp_path / "missing.scenario")
    (tmp_path / "binary.scenario").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="cannot read the scenario"):
        read(tmp_path / "binary.scenario")


@pytest.mark.parametrize(("text", "ms"), [("300ms", 300), ("2.5s", 2500), ("3m", 180_000)])
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms
