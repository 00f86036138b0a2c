"""Runs that operators described in public reports, as scenarios: each ends on the nodes as it does in the model."""

from __future__ import annotations

from pathlib import Path
from zlib import adler32

import pytest

from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.language.replay import Replay, replay
from distro_conformance.language.text import ScenarioError, parse, read
from distro_conformance.verdict import Verdict

CASES = Path(__file__).parent / "data" / "cases"
TARGETS = ("model", "embedded")
CONFORMS, VIOLATES, INCONCLUSIVE = Verdict.CONFORMS, Verdict.VIOLATES, Verdict.INCONCLUSIVE

ENDS = {
    "01a": (CONFORMS, "shows nothing"),
    "11a": (VIOLATES, "10.0.0.1:80#true: a shows svc-a 10.0.0.1:80 (unhealthy)"),
    "11b": (VIOLATES, "a shows svc-a as nothing"),
    "11c": (VIOLATES, "a shows svc-a as nothing; it never held from 46.0 s to 56.0 s"),
    "16a": (VIOLATES, "a shows svc-a as nothing or b shows svc-a as nothing"),
    "16b": (VIOLATES, "a shows svc-a as nothing or b shows svc-a as nothing"),
    "18a": (VIOLATES, "192.168.1.5:8080#true: a shows svc-a 192.168.1.5:8080, b shows"),
    "18b": (VIOLATES, "192.168.1.5:8080#true: a shows svc-a 192.168.1.5:8080, b shows"),
    "20a": (VIOLATES, "b shows svc-a as 10.0.0.1:80 and 10.0.0.1:80 instanceId=10.0.0.1#80#DEFAULT#svc-a"),
    "20a2": (VIOLATES, "b shows svc-a as 10.0.0.1:80 and 10.0.0.1:80 instanceId=10.0.0.1#80#DEFAULT#svc-a"),
    "20c": (CONFORMS, "shows 10.0.0.1:80 v=2"),
    "21a": (CONFORMS, "holds"),
    "21b": (CONFORMS, "holds"),
    "21c": (VIOLATES, "d shows svc-a as nothing; it held from 22.0 s to "),
    "22a": (VIOLATES, "a shows svc-a as nothing or b shows svc-a as nothing; it never held from "),
    "22b": (CONFORMS, "holds"),
    "22c": (VIOLATES, "a shows svc-a as 10.0.0.6:8080 or b shows svc-a as 10.0.0.6:8080; it never held from 1.0 s"),
}
"""How each ends, and how the outcome of its last line begins."""


def played(name: str, target: str) -> Replay:
    return replay(read(CASES / f"{name}.scenario"), target=target)


@pytest.mark.wire
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (adler32(each.encode()) % 3 > 0))  # a third in `make test`
        for each in ENDS
    ],
)
def test_a_reported_run_ends_alike_in_the_model_and_on_nodes(name: str) -> None:
    on_model, on_nodes = (played(name, target) for target in TARGETS)
    assert on_model.steps == on_nodes.steps
    verdict, outcome = ENDS[name]
    assert on_nodes.verdict is verdict
    assert on_nodes.steps[-1].outcome.startswith(outcome)
    lines = [line.number for line in read(CASES / f"{name}.scenario").lines]
    assert [step.line for step in on_nodes.steps] == lines[: len(on_nodes.steps)], "every step up to the end is kept"


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_member_that_is_not_the_owner_refuses_what_is_passed_on_to_it_and_the_run_goes_on(target: str) -> None:
    """Member a passes the request on to c, which it takes for the owner and which takes b for DOWN."""
    steps = played("18a", target).steps
    asked = [(step.outcome, step.verdict) for step in steps if step.text.startswith("http")]
    assert ("refused: 400", VIOLATES) in asked
    assert asked[-1] == ("done", CONFORMS)


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_client_whose_connection_was_ended_has_nothing_to_answer(target: str) -> None:
    steps = played("22a", target).steps
    (answers,) = [step for step in steps if step.text == "answers app"]
    assert (answers.outcome, answers.verdict) == ("nothing to do: app is no longer connected", CONFORMS)


def test_two_releases_in_the_list_of_nodes_are_refused_with_the_way_to_write_them() -> None:
    with pytest.raises(ScenarioError, match=r"'node a nacos-2\.2\.4'"):
        read(CASES / "20b.scenario")


PARTITION = """
nodes a b c
profile nacos-2.2.4
cut b->c
cut c->b
expect within 60s: b counts c DOWN
expect within 60s: c counts b DOWN
"""


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_refusal_that_is_expected_conforms_and_one_that_does_not_come_violates(target: str) -> None:
    refused = replay(parse(f"{PARTITION}http register web 192.168.1.4:8080 at a\nexpect refused\n"), target=target)
    assert refused.verdict is CONFORMS
    code = replay(parse(f"{PARTITION}http register web 192.168.1.4:8080 at a\nexpect answer 400\n"), target=target)
    assert code.verdict is CONFORMS
    other = replay(parse(f"{PARTITION}http register web 192.168.1.3:8080 at b\nexpect refused\n"), target=target)
    assert (other.verdict, other.steps[-1].outcome) == (VIOLATES, "it was carried out: 200")


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("lines", "outcomes"),
    [
        (
            "http light-beat web 10.0.0.1:80 at a\nexpect answer 20404\nhttp register web 10.0.0.1:80 at b\n"
            "expect answer 200\nhttp light-beat web 10.0.0.1:80 at a\nexpect answer 10200\n",
            ["answered 20404: the instance is not registered there", "holds", "done", "holds", "done", "holds"],
        ),
        (
            "http light-beat web 10.0.0.1:80 at a\nexpect all agree\n",
            ["answered 20404: the instance is not registered there", "holds"],
        ),
        (
            "crash c\nhttp beat web 10.0.0.1:80 at c\nexpect refused\nexpect answer unreachable\n",
            ["done", "refused: unreachable", "holds", "holds"],
        ),
        (
            "connect c1 a\nregister c1 web 10.0.0.1:80\nexpect answer 200\ncrash a\nregister c1 web 10.0.0.2:80\n"
            "expect refused\n",
            ["done", "done", "holds", "done", "refused: unreachable", "holds"],
        ),
    ],
)
def test_the_answer_of_a_request_can_be_expected(lines: str, outcomes: list[str], target: str) -> None:
    result = replay(parse(f"profile nacos-2.2.4\nnodes a b c\n{lines}"), target=target)
    assert [step.outcome for step in result.steps] == outcomes
    assert result.verdict is CONFORMS


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("profile", ["nacos-2.2.4", "nacos-3.0.3"])
def test_a_light_beat_by_the_later_api_is_answered_in_its_own_codes(profile: str, target: str) -> None:
    later = {"nacos-2.2.4": ("20404", "10200"), "nacos-3.0.3": ("21003", "0")}
    unknown, taken = later[profile]
    lines = [
        "http light-beat web 10.0.0.1:80 at a by v2",
        f"expect answer {unknown}",
        "http register web 10.0.0.1:80 at a by v2",
        "expect answer 0",
        "http light-beat web 10.0.0.1:80 at a by v2",
        f"expect answer {taken}",
    ]
    result = replay(parse("\n".join(["nodes a b", *lines])), target=target, options=ClusterOptions(profile=profile))
    assert [step.outcome for step in result.steps if step.text.startswith("expect")] == ["holds"] * 3


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_beat_that_repeats_keeps_its_instance_until_it_is_stopped(target: str) -> None:
    text = """
    profile nacos-2.2.4
    nodes a b c
    http register web 10.0.0.1:80 at a
    http beat web 10.0.0.1:80 at b c every 5s
    advance 4s
    expect for 2m: query web everywhere shows 10.0.0.1:80
    http stop web 10.0.0.1:80
    expect within 40s: query web everywhere shows nothing
    expect for 1m: query web everywhere shows nothing
    http stop web 10.0.0.1:80
    """
    result = replay(parse(text), target=target)
    assert result.verdict is CONFORMS
    assert result.steps[-1].outcome == "nothing to do: no beat of 10.0.0.1:80 for web repeats"


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_repeated_beat_equals_as_many_single_beats(target: str) -> None:
    head = "profile nacos-2.2.4\nnodes a b\nhttp register web 10.0.0.1:80 at a\n"
    end = "expect query web everywhere shows 10.0.0.1:80\n"
    beat = "http beat web 10.0.0.1:80 at b\nadvance 5s\n"
    single = f"{head}{6 * beat}{end}"
    repeated = f"{head}http beat web 10.0.0.1:80 at b every 5s\nadvance 30s\n{end}"
    ends = [replay(parse(text), target=target) for text in (single, repeated)]
    assert [(each.verdict, each.steps[-1].at_ms) for each in ends] == [(CONFORMS, 30_000)] * 2


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_beats_that_are_refused_are_counted_in_the_line_in_which_they_were_sent(target: str) -> None:
    text = "nodes a b\nhttp beat web 10.0.0.1:80 at b every 5s\nadvance 4s\ncrash b\nadvance 10s\nexpect all agree\n"
    result = replay(parse(text), target=target)
    assert result.steps[-2].outcome == "done; 2 of its beats refused: unreachable, b is down"
    assert result.verdict is CONFORMS


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_instances_deregistered_with_the_batch_are_not_deregistered_twice(target: str) -> None:
    text = """
    nodes a b
    connect c1 a
    batch c1 web 10.0.0.1:80, 10.0.0.2:80
    deregister c1 web 10.0.0.1:80
    expect within 5s: query web everywhere shows nothing
    deregister c1 web 10.0.0.2:80
    """
    result = replay(parse(text), target=target)
    assert result.verdict is CONFORMS
    assert result.steps[-1].outcome == "nothing to do: c1 publishes nothing under web any more"


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_client_that_has_disconnected_can_do_no_more(target: str) -> None:
    with pytest.raises(ScenarioError, match="line 4: 'disconnect c1' makes no sense here: c1 is no longer connected"):
        replay(parse("nodes a b\nconnect c1 a\ndisconnect c1\ndisconnect c1"), target=target)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("http update web 10.0.0.1:80 weight=0 at a", "travel by Raft"),
        ("http metadata web 10.0.0.1:80 v=2 at a", "they are no part of Distro"),
        ("http register web 10.0.0.1:80 at a every 5s", "'register' does not repeat; beat and light-beat do"),
        ("http beat web 10.0.0.1:80 at a b", "only a beat that repeats"),
        ("expect answer", "takes a code such as 200, 20404 or 400, or 'unreachable'"),
        ("expect answer maybe", "takes a code such as"),
    ],
)
def test_an_impossible_scenario_line_is_refused_with_the_reason(line: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        parse(f"nodes a b\n{line}")


UPGRADE = """
profile nacos-2.0.4
nodes a b c
node c nacos-2.2.3
connect c1 a
register c1 web 10.0.0.1:80
expect within 5s: query web everywhere shows 10.0.0.1:80
crash a
node a nacos-2.2.3
restart a
connect c2 a
batch c2 web 10.0.0.2:80, 10.0.0.3:80
expect within 90s: query web everywhere shows 10.0.0.2:80 and 10.0.0.3:80
"""


@pytest.mark.wire
def test_a_rolling_upgrade_has_nodes_of_two_releases_at_once() -> None:
    """Batches are known from 2.1.0 on: the node takes one once it has been started with the later release."""
    result = replay(parse(UPGRADE), target="embedded")
    assert result.steps[4].outcome == "done"
    before = UPGRADE.replace("node a nacos-2.2.3\n", "")
    refused = replay(parse(before), target="embedded")
    (batch,) = [step for step in refused.steps if step.text.startswith("batch")]
    assert (batch.verdict, batch.outcome) == (VIOLATES, "refused: 302")


@pytest.mark.wire
def test_a_target_with_one_release_for_all_nodes_is_inconclusive() -> None:
    result = replay(parse(UPGRADE), target="model")
    assert result.verdict is INCONCLUSIVE
    assert "the model has one release for all nodes" in result.steps[-1].outcome
    later = UPGRADE.replace("node c nacos-2.2.3\n", "")
    assert replay(parse(later), target="model").steps[-1].text == "node a nacos-2.2.3"


def test_a_release_of_a_node_is_printed_and_read_back() -> None:
    scenario = parse(UPGRADE)
    assert [str(each) for each in scenario.releases] == ["node c nacos-2.2.3"]
    assert "node a nacos-2.2.3" in [line.text for line in scenario.lines]
    assert parse(scenario.render()).render() == scenario.render()
    with pytest.raises(ScenarioError, match="line 2: "):
        parse("nodes a b\nnode a nacos-9.9.9")


BEATEN_AT_B = """
profile nacos-2.0.4
nodes a b c
http register svc-a 192.168.1.5:8080 at a
advance 3s
cut b->c
cut c->b
expect within 60s: b counts c DOWN
expect within 60s: c counts b DOWN
http beat svc-a 192.168.1.5:8080 at b every 5s
advance 121s
query svc-a at a
query svc-a at b
query svc-a at c
"""


@pytest.mark.wire
@pytest.mark.parametrize("target", TARGETS)
def test_a_report_of_two_hundred_lines_becomes_a_scenario_of_twelve(target: str) -> None:
    """Case 01 with one beat that repeats in place of 24 beats with queries between them."""
    long, short = played("01a", target), replay(parse(BEATEN_AT_B), target=target)
    assert [step.outcome for step in short.steps[-3:]] == [step.outcome for step in long.steps[-3:]]
    assert short.verdict is long.verdict is CONFORMS
