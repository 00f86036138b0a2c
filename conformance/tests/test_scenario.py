"""The grammar of scenarios: printed text is read back, and an error is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from distro_conformance.language.expectations import (
    STATES,
    AllAgree,
    AllUp,
    Counts,
    Expect,
    ExpectModel,
    LoadsFrom,
    NodeHolds,
    NodeLacks,
    QueryShows,
    SubscriptionShows,
)
from distro_conformance.language.steps import Checkpoint, Query, Subscribe
from distro_conformance.language.text import ScenarioError, build, parse, read
from distro_conformance.language.verbs import VERBS, VERSION
from distro_conformance.language.words import OPERATIONS, duration_ms
from distro_model import actions

NODES = ("a", "b", "c")
clients = st.sampled_from(("c1", "c2"))
services = st.sampled_from(("web", "api"))
instances = st.sampled_from(("10.0.0.1:80", "10.0.0.1:80 version=1", "10.0.0.2:8080 version=2 zone=x"))
nodes = st.sampled_from(NODES)
links = st.permutations(NODES).map(lambda order: (order[0], order[1]))
durations = st.integers(1, 1_000_000)
SHAPES = (actions.Delay, actions.Throttle)
operations = st.none() | st.sampled_from(OPERATIONS)

several = st.lists(instances, unique=True).map(lambda drawn: tuple(sorted(drawn)))
member_lists = st.sets(nodes, min_size=1).map(lambda drawn: tuple(sorted(drawn)))
conditions = st.one_of(
    st.sampled_from((AllAgree(), AllAgree(("c1", "c2")), AllUp())),
    st.builds(NodeHolds, nodes, clients),
    st.builds(NodeHolds, nodes, clients, services, instances),
    st.builds(NodeLacks, nodes, clients),
    st.builds(QueryShows, services, st.none() | nodes, several),
    st.builds(SubscriptionShows, clients, services, several),
    st.builds(Counts, nodes, nodes, st.sampled_from(STATES)),
    st.builds(LoadsFrom, nodes, member_lists),
)

steps = st.one_of(
    st.builds(actions.Connect, clients, nodes),
    st.builds(actions.Register, clients, services, instances),
    st.builds(actions.Deregister, clients, services),
    st.builds(actions.Disconnect, clients),
    st.builds(actions.Advance, durations),
    *(
        links.map(lambda link, kind=kind: kind(*link))
        for kind in (actions.Cut, actions.Heal, actions.Refuse, actions.Hold, actions.Release, actions.Blackhole)
    ),
    *(st.builds(lambda kind, link, ms: kind(*link, ms), st.just(kind), links, durations) for kind in SHAPES),
    *(
        st.tuples(links, operations, st.none() | clients).map(
            lambda drawn, kind=kind: kind(*drawn[0], drawn[1], drawn[2] if drawn[1] else None)
        )
        for kind in (actions.Deliver, actions.AnswerLate, actions.Reply)
    ),
    *(
        st.tuples(links, operations, st.none() | clients, st.booleans()).map(
            lambda drawn, kind=kind: kind(*drawn[0], drawn[1], drawn[2] if drawn[1] else None, held=drawn[3])
        )
        for kind in (
            actions.Drop,
            actions.Swallow,
            actions.LoseReply,
            actions.Garble,
            actions.Mistype,
            actions.Duplicate,
            actions.Reorder,
        )
    ),
    *(
        st.builds(kind, services, instances, nodes)
        for kind in (actions.HttpRegister, actions.HttpDeregister, actions.HttpBeat)
    ),
    st.builds(actions.RegisterBatch, clients, services, several.filter(lambda batch: len(batch) > 1)),
    *(st.builds(kind, clients) for kind in (actions.FallSilent, actions.AnswerAgain)),
    *(st.builds(kind, nodes) for kind in (actions.Crash, actions.Restart, actions.Pause, actions.Resume)),
    st.builds(actions.ListMembers, nodes, member_lists),
    st.builds(actions.Move, nodes, nodes),
    st.builds(Query, services, nodes),
    st.builds(Subscribe, clients, services),
    st.just(Checkpoint()),
    st.builds(lambda condition, ms: Expect(condition, within_ms=ms), conditions, st.just(0) | durations),
    st.builds(lambda condition, ms: Expect(condition, for_ms=ms), conditions, durations),
    st.just(ExpectModel()),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
@given(st.lists(steps, max_size=8), st.none() | st.just("nacos-2.0.4"), st.none() | st.just("B02"))
def test_printed_text_is_read_back(written: list[object], profile: str | None, mutant: str | None) -> None:
    scenario = build(written, nodes=NODES, profile=profile, mutant=mutant, comment="Found so.\nAnd so.")
    assert parse(scenario.render()) == scenario


def test_every_verb_says_how_it_is_used_and_what_it_means() -> None:
    for name, verb in VERBS.items():
        meaning = verb.kind.__doc__ or ""
        assert not meaning.startswith(f"{verb.kind.__name__}("), f"{name} has no documentation"


def test_a_text_of_the_first_version_is_read() -> None:
    """Whole, as it was saved then: all verbs that there were."""
    text = """
    profile nacos-2.0.4
    mutant B02
    nodes a b c
    connect c1 a
    register c1 web 10.0.0.1:80
    hold a->b
    drop a->c CHANGE c1
    swallow a->b CHANGE
    release a->b
    cut b->c
    heal b->c
    deregister c1 web
    crash c
    restart c
    advance 12s
    disconnect c1
    expect within 15s: b has no c1
    expect all agree
    expect model agrees
    """
    assert len(parse(text).steps) == 16
    assert parse(f"language {VERSION}\n{text}").steps == parse(text).steps


def test_a_spare_address_is_declared_before_a_node_comes_back_there() -> None:
    text = "nodes a b\nspare c\ncrash b\nmove b c\nmembers a: a c\nexpect c has no c1\n"
    assert parse(text).render() == text
    with pytest.raises(ScenarioError, match="there is no node 'c'"):
        parse(text.replace("spare c\n", ""))
    with pytest.raises(ScenarioError, match="differ from each other and from the nodes"):
        parse(text.replace("spare c", "spare b"))


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
    assert scenario.steps[-1] == Expect(NodeLacks("b", "c1"), 15_000)


@pytest.mark.parametrize(
    ("text", "problem"),
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
        ("register c1 web 10.0.0.1:80 weight=much", "weight=much: a weight is a number such as 2.5"),
        ("register c1 web 10.0.0.1:80 weight=1", "and 1 is left out"),
        ("register c1 web 10.0.0.1:80 enabled=true", "an instance is enabled unless it has enabled=false"),
        ("lose-reply held a->b CHANG", "'CHANG' is no operation"),
        ("batch c1 web 10.0.0.1:80", "a batch has two or more instances"),
        ("http put web 10.0.0.1:80 at a", "'put' is no request of the HTTP API; known are register, deregister, beat"),
        ("http beat web 10.0.0.1:80 to a", "metadata is written key=value"),
        ("query web to a", "'query' expects 'at' there"),
        ("expect a counts b GONE", "'GONE' is no state of a member; known are UP, SUSPICIOUS, DOWN"),
        ("expect b is gone", "expected 'NODE has CLIENT'"),
        ("connect c1 a\nnodes a b", "line 2: the header"),
        ("nodes a", "two or more different names"),
        ("nodes b a", "ascending order"),
        ("profile", "'profile' takes one name"),
        ("language 3", "this program reads the language up to version 2; a later release may read more"),
        ("delay a->b", "'delay' misses its duration"),
    ],
)
def test_a_wrong_line_is_named_with_what_was_expected(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=r"^scenario line \d+: ") as error:
        parse(text)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"cannot read the scenario .*missing.scenario: No such file or directory$"):
        read(tmp_path / "missing.scenario")
    (tmp_path / "binary.scenario").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match=r"binary.scenario: it is not UTF-8 \(invalid start byte at byte 0\)"):
        read(tmp_path / "binary.scenario")


@pytest.mark.parametrize(("text", "ms"), [("300ms", 300), ("2.5s", 2500), ("3m", 180_000)])
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms
