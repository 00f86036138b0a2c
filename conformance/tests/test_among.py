"""One node among played members: the model of one node explains its behaviour for all actions of the members."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY, AsyncMock, Mock

import pytest

from distro_conformance.drivers.clients import ConnectedClient, ConnectedClients
from distro_conformance.drivers.cluster import Lists
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.node_checker import NodeChecker, NodeReading
from distro_conformance.drivers.oracle import Oracle, OracleTraffic
from distro_conformance.drivers.peers import LATE_MS, SKEW_MS, PeersCluster
from distro_conformance.drivers.played import ANSWERS
from distro_conformance.drivers.reader import Reader
from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.drivers.tested_node import TargetUnderTest
from distro_conformance.findings import Judgement
from distro_conformance.language.recording import record
from distro_conformance.language.replay import replay
from distro_conformance.language.text import Scenario, parse
from distro_conformance.node.peer import PlayedPeer
from distro_conformance.report.page import page_of
from distro_conformance.report.walks import failure_of, report_of_walks
from distro_conformance.targets.nacos import LEASE_MS
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import TargetError, Verdict
from distro_conformance.waiting import RealClock
from distro_conformance.walks import side_by_side
from distro_conformance.walks.driver import Lockstep
from distro_conformance.walks.machine import Machine
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import FoundFailure, WalkOptions, WalkResult, finding_of
from distro_conformance.walks.side_by_side import Failed, SideBySide
from distro_conformance.walks.walk import ADDRESSES
from distro_conformance.wire.connection import UNREGISTERED, Connection
from distro_conformance.wire.links import Link
from distro_conformance.wire.messages import DISTRO_REQUEST, distro_request
from distro_conformance.wire.transports import TransportKind
from distro_model.actions import Action, Advance, Connect, PeerAnswer, PeerRequest, Register, Restart
from distro_model.clock.cluster import View
from distro_model.messages import CallResult
from distro_model.outside import NodeOutside, Slack, Unexplained
from distro_model.profiles import beside_nodes, profile_named
from distro_model.rules.rule import RULES
from distro_protos import Message, Payload, encode
from distro_traces.event import Kind, Outcome
from distro_traces.reading import read_run

SERVE = Path(__file__).parents[2] / "docs" / "examples" / "serve.toml"

LIFE = """
nodes a b c d
played b c d
connect c1 a
register c1 web 10.0.0.1:80
answer b CHANGE fail c1
answer c CHANGE unreadable c1
answer d CHANGE unheard c1
advance 5s
say b CHANGE f1 revision 3 web 10.0.0.2:80
say b VERIFY f1 revision 3
say c VERIFY f1 revision 4
say d CHANGE f1 revision 4 api 10.0.0.3:80
say d CHANGE f2 revision 1 api 10.0.0.4:80, 10.0.0.4:81 and web 10.0.0.4:80, 10.0.0.4:82
say d CHANGE f2 revision 2 api 10.0.0.4:80, 10.0.0.4:81 and web 10.0.0.4:80, 10.0.0.4:83
say c QUERY f1
say c NO-JSON f1
say c NO-BASE64 f1
hold a->c
register c1 api 10.0.0.1:81
advance 2.9s
release a->c
crash d
register c1 web 10.0.0.1:82
advance 40s
restart d
advance 10s
batch c1 web 10.0.0.1:83, 10.0.0.1:84
say b REPORT
disconnect c1
advance 190s
expect model agrees
"""


def lived(**about: str) -> Verdict:
    return replay(parse(LIFE), target="embedded", options=ClusterOptions(**about)).verdict


@pytest.mark.parametrize("profile", ["strict", "nacos-2.2.4", "nacos-2.5.1", "nacos-3.0.3"])
def test_a_life_among_members_that_fail_is_explained(profile: str) -> None:
    assert lived(profile=profile) is Verdict.CONFORMS


IN_LIFE = ["B02", "B07", "B18", "m-index-loses-the-others"]
IN_BATCHES_OF_MEMBERS = ["m-one-batch-is-received", "m-batches-of-one-length-are-equal"]


@pytest.mark.parametrize("mutant", [*IN_LIFE, *IN_BATCHES_OF_MEMBERS])
def test_a_changed_node_is_not(mutant: str) -> None:
    """The index shows in lists alone, which are compared after each long wait."""
    assert lived(mutant=mutant) is Verdict.VIOLATES


def test_a_request_that_the_model_does_not_have_is_named() -> None:
    """It reaches the member, whose log has it, too."""
    found = replay(parse(LIFE), target="embedded", options=ClusterOptions(mutant="m-send-add-for-change"))
    assert found.verdict is Verdict.VIOLATES
    assert "it sends ADD of c1 to b; the model expects CHANGE, DELETE, VERIFY or SNAPSHOT" in str(found)


def test_a_scenario_says_what_members_publish_as_batches() -> None:
    assert parse(parse(LIFE).render()).steps == parse(LIFE).steps


PUSHED = """
profile strict
nodes a b
played b
connect c1 a
connect c2 a
register c1 web 10.0.0.1:80
advance 2s
say b CHANGE f1 revision 1 web 10.0.0.2:80
advance 300ms
subscribe c2 web
advance 2s
register c1 web 10.0.0.1:80 enabled=false
advance 2s
register c1 web 10.0.0.1:80 weight=2.5
advance 2s
expect model agrees
"""


@pytest.mark.parametrize("mutant", [None, "m-subscription-takes-the-push", "m-enabled-once-hidden"])
def test_the_last_push_is_compared_with_what_the_node_holds(mutant: str | None) -> None:
    """A change is pushed to earlier subscribers also if another client subscribes within the push delay; a change of
    `enabled` or the weight alone is pushed too, and a disabled instance is in no list."""
    expected = Verdict.CONFORMS if mutant is None else Verdict.VIOLATES
    assert replay(parse(PUSHED), target="embedded", options=ClusterOptions(mutant=mutant)).verdict is expected


def test_a_life_among_played_members_is_recorded_with_what_they_say(tmp_path: Path) -> None:
    """The content of the members is known: they are played."""
    played = record(parse(LIFE), target="embedded", profile="strict", directory=tmp_path, run="life")
    assert played.verdict is Verdict.CONFORMS
    header, events = (recorded := read_run(tmp_path / "life.ndjson")).header, recorded.events
    assert header.observed.reported == ("a",)
    assert header.observed.limits == ("b c d are played",)
    of_f1 = [event for event in events if event.client == "f1"]
    assert [(event.kind, event.node, event.outcome) for event in of_f1[:5]] == [
        (Kind.REQUEST_SENT, "b", None),
        (Kind.REQUEST_RECEIVED, "a", None),
        (Kind.REPLICA_APPLIED, "a", None),
        (Kind.REPLY_SENT, "a", Outcome.SUCCESS),
        (Kind.REPLY_RECEIVED, "b", Outcome.SUCCESS),
    ]
    kinds = {event.kind for event in events if (event.node, event.client) == ("a", "c1")}
    assert kinds >= {Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.CLIENT_DISCONNECTED}
    assert [event.detail for event in events if event.node == "d" and event.kind is Kind.NODE_STOPPED] == ["crash"]


UNCOUNTED = """
profile strict
mutant B18
nodes a b
played b
connect c1 a
batch c1 web 10.0.0.1:91, 10.0.0.1:92
expect model agrees
"""


def test_a_failing_run_among_played_members_is_drawn_with_its_messages(tmp_path: Path) -> None:
    scenario = parse(UNCOUNTED)
    error = DivergedError(Advance(0), 0, "a shows c1 as revision 0; the model expects revision 1")
    found = FoundFailure(scenario, str(error), 2, 2, 0.1, error)
    result = WalkResult(WalkOptions(among_played=True, mutant="B18"), 2, 1, {"memory": 2}, 0.1, found)
    saved, pytest_file = tmp_path / "machine.scenario", tmp_path / "test_machine.py"
    finding = finding_of(result, "")
    failure = failure_of(result, found, saved, pytest_file)
    (section,) = page_of(report_of_walks(result, finding, failure), tmp_path).sections
    assert "answer: success" in section.picture
    assert 'class="bad"' in section.picture
    assert section.held == (), "the node stands alone: members that are played hold nothing"


def test_the_header_names_the_played_members() -> None:
    scenario = parse(LIFE)
    assert scenario.played == ("b", "c", "d")
    assert parse(scenario.render()).steps == scenario.steps


def test_messages_of_members_and_clients_at_one_instant_are_in_order() -> None:
    with Lockstep(("a", "b"), "strict", among_played=True) as driver:
        driver.perform(Connect("c1", "a"))
        driver.perform(Register("c1", "web", "10.0.0.1:80"))
        driver.perform(PeerRequest("b", "CHANGE", "c1", 7, (("web", "10.9.9.9:80"),)))  # strict refuses it
        driver.perform(PeerAnswer("b", "VERIFY", "fail", "c1"))
        driver.perform(Advance(12_000))


def test_a_node_that_says_nothing_is_found_out_when_it_should_have() -> None:
    with Lockstep(("a", "b"), "strict", "m-delete-retried-as-change", among_played=True) as driver:
        for action in parse_steps("connect c1 a", "answer b DELETE fail c1", "disconnect c1", "advance 1.1s"):
            driver.perform(action)  # type: ignore[arg-type]
        with pytest.raises(DivergedError, match="the model expects DELETE c1 to b by") as found:
            driver.perform(Advance(4_000))
    assert found.value.at_ms == 5_100
    assert "1000 ms: b answers DELETE c1 with fail after 0 ms" in found.value.history


def test_a_failing_run_is_kept_with_the_history_of_its_client() -> None:
    failure = searched(mutant="B02").failure
    assert failure is not None
    kept = failure.scenario.comment
    assert "Found by the machine" in kept
    assert re.search(r"ms: it answers say \w VERIFY .* with success", kept), kept


def parse_steps(*lines: str) -> Scenario:
    return parse("\n".join(["nodes a b", *lines])).steps  # type: ignore[return-value]


def searched(**options: object) -> WalkResult:
    wanted = {"among_played": True, "transport": TransportKind.MEMORY, "seed": 1, "seconds": 60.0, **options}
    return random_walks(WalkOptions(**wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize("profile", ["strict", "nacos-2.2.4"])
def test_random_runs_of_the_reference_node_are_explained(profile: str) -> None:
    done = searched(profile=profile, runs_max=4, steps_per_run=50)
    assert done.verdict is Verdict.CONFORMS, done.failure and done.failure.message
    guards, rules = done.coverage["guards beside nodes"], done.coverage["rules beside nodes"]
    assert guards["revision_matches: no"] > 0
    assert rules["confirm"] > rules["list-a-member"] == 0


@pytest.mark.parametrize(("profile", "batches"), [("strict", True), ("nacos-2.0.4", False)])
def test_a_rule_applies_where_the_node_among_played_members_can_do_its_actions(profile: str, *, batches: bool) -> None:
    """Before a client is connected no batch of it is possible; that says nothing about batches."""
    driver = Lockstep(("a", "b"), profile, among_played=True)
    with driver:
        members = {"start": staticmethod(lambda: driver), "nodes": ("a",), "played": ("b",)}
        walk = type("Walk", (Machine,), members)()
    assert (walk.can_batch, walk.can_fall_silent, walk.can_change_lists, walk.has_v2) == (batches, False, False, False)
    said = {client: walk._content(client, 15) for client in ("f1", f"{ADDRESSES[0]}#true")}
    assert [[", " in text for _, text in content] for content in said.values()] == [[batches] * 2, [False] * 2]


def test_the_search_finds_a_changed_node_and_makes_the_run_small() -> None:
    done = searched(mutant="B07", shrink_seconds=60.0)
    assert done.failure is not None
    assert done.failure.steps <= done.failure.steps_until_found
    finding = finding_of(done, "")
    assert finding.judgement is Judgement.VIOLATES
    assert (finding.node, finding.by) == ("a", "machine")
    assert finding.observed["rule"] in RULES
    again = replay(done.failure.scenario, target="embedded")
    assert again.reproduced


@pytest.mark.parametrize(("release", "lease_ms"), [("2.0.4", 180_000), ("2.2.4", LEASE_MS)])
def test_the_model_beside_a_real_server_has_the_lease_that_the_server_was_given(release: str, lease_ms: int) -> None:
    node = TargetUnderTest(resolve_target(f"nacos:{release}"), print)
    assert node.rules_of(f"nacos-{release}").lease_ms == lease_ms


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.usefixtures("_installed")
def test_runs_side_by_side_in_real_time_are_explained(tmp_path: Path) -> None:
    """For a node as `strict`: as a release it would still retry requests that a release gives up (B42)."""
    strict = tmp_path / "strict.toml"
    strict.write_text(SERVE.read_text(encoding="utf-8").replace("nacos-2.2.4", "strict"), encoding="utf-8")
    runs = SideBySide(WalkOptions(target=f"process:{strict}", among_played=True, seed=1, seconds=20)).run()
    assert runs.failure is None
    assert runs.steps > 24


LISTED = """
nodes a b
played b
connect c1 a
connect c2 a
register c1 web 10.0.0.1:80
register c2 web 10.0.0.2:80
advance 4s
say b CHANGE f1 revision 1 web 10.0.0.3:80
advance 4s
disconnect c2
advance 4s
expect model agrees
"""


@pytest.mark.slow
@pytest.mark.wire
@pytest.mark.parametrize(
    "mutant", [None, "m-nobody-is-told", "m-synced-changes-are-not-pushed", "m-index-loses-the-others"]
)
def test_lists_and_pushes_are_compared_in_real_time_too(tmp_path: Path, mutant: str | None) -> None:
    switched = (
        ""
        if mutant is None
        else f"from distro_conformance.node_mutants import MUTANTS; MUTANTS['{mutant}'].switch_on(); "
    )
    program = f"{switched}from distro_conformance.cli import main; main()"
    serve = tomllib.loads(SERVE.read_text(encoding="utf-8"))
    command = [sys.executable, "-c", program, *serve["command"][1:]]
    text = SERVE.read_text(encoding="utf-8").replace(json.dumps(serve["command"]), json.dumps(command))
    (tmp_path / "serve.toml").write_text(text.replace("nacos-2.2.4", "strict"), encoding="utf-8")
    found = replay(parse(LISTED), target=f"process:{tmp_path / 'serve.toml'}")
    assert found.verdict is (Verdict.CONFORMS if mutant is None else Verdict.VIOLATES), found


@pytest.mark.parametrize("why", ["late lists", "a request of unknown outcome"])
def test_a_run_that_is_not_judged_in_every_part_does_not_agree_with_the_model(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The same holds of `strict` and of a node that does not index: on a busy machine neither is compared."""
    perform = PeersCluster.perform

    async def performs(cluster: PeersCluster, action: Action) -> None:
        await perform(cluster, action)
        if why == "late lists":
            cluster.oracle.outside.note_late(why)
        elif "c1" in cluster.oracle.outside.clients:
            cluster.oracle.outside.lose("c1", cluster.clock.now_ms())

    monkeypatch.setattr(PeersCluster, "perform", performs)
    *_, last = replay(parse("nodes a b\nplayed b\nconnect c1 a\nexpect model agrees"), target="embedded").steps
    assert last.verdict is Verdict.INCONCLUSIVE
    assert last.outcome.startswith("not judged: 1 ")


@pytest.mark.parametrize(("at_ms", "calm"), [(3, {}), (9, {"web": ()})])
def test_a_service_that_another_run_has_shortly_published_is_not_compared(at_ms: int, calm: Lists) -> None:
    """Its client leaves just before the lists are read, of which the last push is half a second away."""
    oracle = Mock(now_ms=Mock(), outside=NodeOutside("a", ["b"], profile_named("strict"), Slack(LATE_MS, SKEW_MS)))
    reader = Mock(held=AsyncMock())
    checker = NodeChecker(reader, Mock(), oracle, lambda: None, in_real_time=True)
    checker._services = {"web": None}
    oracle.outside.check_node = Mock()
    for now_ms, held in ((2, {}), (5, {"c1": View(1, (("web", "10.0.0.1:80"),))}), (8, {})):
        oracle.now_ms.return_value, reader.held.return_value = now_ms, held
        reading = asyncio.run(checker.check())
    assert checker._calm(NodeReading.at(at_ms, {}), reading) == calm


@pytest.mark.parametrize("published", [True, False])
def test_a_list_is_not_compared_while_a_client_publishes_and_leaves_between_two_readings(published: bool) -> None:
    """No reading shows the client. The list that it leaves behind counts where no request published in the service."""

    async def lists(_node: str, services: Iterable[str]) -> Lists:
        if published:
            with checker.publishing(Register("c1", "web", "10.0.0.1:80")):
                oracle.now_ms.return_value = 9
        return dict.fromkeys(services, ("10.0.0.1:80",))

    oracle = Mock(now_ms=Mock(return_value=8), outside=Mock(slack=Mock(late_ms=0)))
    reader = Mock(held=AsyncMock(return_value={}), lists=lists)
    checker = NodeChecker(reader, Mock(wrong_push=Mock(return_value=None)), oracle, lambda: None, in_real_time=True)
    checker.node, checker._services = "a", {"web": None}
    compared = checker.compare_lists(Advance(3_000), NodeReading.at(1, {}), 3_000, NodeReading.at(8, {}))
    if published:
        asyncio.run(compared)
    else:
        with pytest.raises(DivergedError, match=r"a shows web as .* and holds empty"):
            asyncio.run(compared)


def test_a_node_without_clients_is_held_to_its_reports_in_real_time() -> None:
    clock = Mock(now_ms=Mock(return_value=60_000), slack_since=Mock(return_value=0), peak_since=Mock(return_value=0))
    cluster = PeersCluster(Mock(clock=clock))
    cluster.checker._reader = Mock(held=AsyncMock(return_value={}))
    rules = beside_nodes(profile_named("nacos-2.2.4"))
    cluster.oracle.outside = NodeOutside("a", ["b"], rules, Slack(LATE_MS, SKEW_MS))
    with pytest.raises(Unexplained, match="it has not reported itself to b"):
        asyncio.run(cluster.checker.check())


def test_a_failure_in_real_time_is_replayed_in_real_time_with_the_profile_of_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(runs: SideBySide, seed: int, _seconds: float) -> Failed:
        runs.result.options = replace(runs.result.options, profile="nacos-2.3.2")
        return Failed((Connect("c1", "a"),), DivergedError(Advance(0), 0, "a shows c1"), seed, 7, 0.5)

    monkeypatch.setattr(SideBySide, "_round", fails)
    result = searched(target="process:./serve {port}")
    assert result.options.profile == "nacos-2.3.2"
    assert result.failure is not None
    again = result.failure.replayed_by(Path("x.scenario"))
    assert again == "distrocheck replay x.scenario --target 'process:./serve {port}'"


def test_the_logs_of_a_server_that_leaves_the_model_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def fails(*_: object) -> tuple[tuple[Action, ...], DivergedError]:
        return (Connect("c1", "a"),), DivergedError(Advance(0), 0, "a shows c1")

    async def again(_: SideBySide, cluster: PeersCluster, found: Failed, _until_s: float) -> Failed:
        log.unlink()
        return found

    log = tmp_path / "naming.log"
    log.write_text("a line", encoding="utf-8")
    monkeypatch.setattr(side_by_side, "drawn", lambda _: [()])
    monkeypatch.setattr(SideBySide, "_lane", fails)
    monkeypatch.setattr(SideBySide, "_again", again)
    cluster = PeersCluster(Mock())
    cluster.servers = {"a": Mock(logs=[log]), "b": Mock(logs=[])}
    cluster.oracle.outside = Mock(undecided={}, late=0, in_parts=0)
    runs = SideBySide(WalkOptions(target="process:x", among_played=True, logs_into=tmp_path, seed=1))
    failed = asyncio.run(runs._search(cluster, 1, 1.0))
    assert failed is not None
    logs = failed.found(runs.result.options).logs
    assert logs == tmp_path / "machine-strict-1-logs"
    assert (logs / "a" / "naming.log").read_text(encoding="utf-8") == "a line"


@pytest.mark.parametrize(("seconds", "rounds"), [(3_600, [7, 8, 9]), (20, [7])])
def test_a_search_that_has_time_left_goes_on_with_the_next_seed(
    monkeypatch: pytest.MonkeyPatch, seconds: float, rounds: list[int]
) -> None:
    """The third round fails; a search of twenty seconds has no time for a second one."""
    seeds: list[int] = []

    async def played(_: SideBySide, seed: int, left_s: float) -> Failed | None:
        seeds.append(seed)
        assert seconds - 1 < left_s <= seconds
        error = DivergedError(Advance(0), 0, "a shows c1")
        return Failed((Connect("c1", "a"),), error, seed, 7, 0.5) if seed == 9 else None

    monkeypatch.setattr(SideBySide, "_round", played)
    found = SideBySide(WalkOptions(target="process:./serve {port}", seed=7, seconds=seconds)).run()
    assert seeds == rounds
    assert (found.failure is not None) == (9 in rounds)
    if found.failure is not None:
        assert "seed 9" in str(found.failure.scenario)


def test_work_of_a_node_for_an_ended_run_does_not_end_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_by_side, "WAIT_MAX_MS", 0)
    cluster = Mock(links={}, up=["a", "b", "c"], forget_clients=AsyncMock())
    cluster.perform = AsyncMock(side_effect=DivergedError(Restart("d"), 55_794, "a: it has not reported itself to b"))
    asyncio.run(SideBySide(WalkOptions(seed=1, seconds=1))._rest(cluster))
    cluster.perform.assert_awaited_once_with(Restart("d"))


@pytest.mark.parametrize("answer", ["fail", "error", "unreadable", "unheard"])
def test_the_model_receives_the_kind_of_the_bad_answer(answer: str) -> None:
    """A trace records three of them as an error; a release retries after only one of these three."""
    oracle = Mock(clients=ConnectedClients(str))
    oracle.now_ms.return_value = 0

    async def answered(_: Payload) -> Payload:
        return ANSWERS[answer].encoded()

    delete = encode(DISTRO_REQUEST, distro_request("DELETE", "c1"), client_ip="127.0.0.1")
    asyncio.run(Link("a", "b", OracleTraffic(oracle)).carry(delete, answered))
    oracle.ended.assert_called_once_with(ANY, CallResult(answer), ())


@pytest.mark.parametrize("up", [("a", "b", "c"), ("a", "b", "c", "d")])
def test_only_a_member_that_another_run_has_stopped_may_be_unknown_to_the_node(up: tuple[str, ...]) -> None:
    unknown = Message("ErrorResponse", {"errorCode": UNREGISTERED})
    cluster = PeersCluster()
    cluster.peers, cluster.up = {"d": Mock(send=AsyncMock(return_value=unknown))}, up
    sending = cluster._reply_to(PeerRequest("d", "NO-JSON", "f3"), {})
    if "d" in up:
        assert asyncio.run(sending) is unknown
    else:
        with pytest.raises(TargetError, match="d was stopped while it sent say d NO-JSON f3"):
            asyncio.run(sending)


def test_clients_in_real_time_give_signs_of_life_but_for_those_that_are_silent_or_gone() -> None:
    clients = ConnectedClients(lambda node: node)
    left = asyncio.CancelledError  # what a call that is under way comes to when its own channel is closed
    connected = [
        Mock(is_silent=silent, is_closed=closed, check_health=AsyncMock(side_effect=error))
        for silent, closed, error in (
            (False, False, left),
            (False, False, TargetError),
            (True, False, None),
            (False, True, None),
        )
    ]
    clients.now = {f"c{number}": each for number, each in enumerate(connected)}
    asyncio.run(clients.send_keep_alives())
    assert [each.check_health.await_count for each in connected] == [1, 1, 0, 0]


def test_a_client_that_may_have_sent_nothing_for_too_long_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """From one request to the next: the duration of an answer does not count as time without a request."""
    at_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: at_s[0])
    late = ConnectedClient("a", Mock(call=AsyncMock(return_value=b"")))
    clients = ConnectedClients(lambda node: node)
    clients.now = {"c1": late}
    assert clients.idle_for(20_000) == ()
    at_s[0] = 119.0
    asyncio.run(late.call(Payload()))
    at_s[0] = 138.0
    assert clients.idle_for(20_000) == ()
    at_s[0] = 139.0
    assert clients.idle_for(20_000) == ("c1",)
    asyncio.run(late.call(Payload()))
    at_s[0] = 140.0
    assert clients.idle_for(20_000) == ("c1",), "what may have happened once has"


@pytest.mark.parametrize("in_real_time", [True, False])
def test_a_client_that_may_have_expired_is_ignored_before_an_answer_is_judged(*, in_real_time: bool) -> None:
    taken = {"slack_since": Mock(return_value=700), "peak_since": Mock(return_value=200)}
    clock = Mock(is_real=in_real_time, now_ms=Mock(return_value=7), **taken)
    idle_for = Mock(return_value=("c1",))
    oracle = Oracle(Mock(idle_for=idle_for), clock)
    oracle.outside = Mock()
    oracle.outside.profile.connection_idle_ms = 20_000
    asyncio.run(oracle.perform_answered("c1", Mock(), AsyncMock(return_value=None), "it answers"))
    judged = [name for name, _, _ in oracle.outside.mock_calls if name in ("lose", "finish")]
    assert judged == (["lose", "finish"] if in_real_time else ["finish"])
    if in_real_time:
        assert oracle.outside.slack.measure.call_args.args == (700, 200)
        assert idle_for.call_args.args == (19_300,), "of what the server was kept from hearing nothing is known"


@pytest.mark.parametrize(("error", "lost"), [(TargetError("stopped"), True), (Unexplained("r", "c1", "x", "y"), False)])
def test_a_question_whose_end_is_not_known_leaves_no_window_open(error: Exception, *, lost: bool) -> None:
    oracle = Oracle(ConnectedClients(str), RealClock())
    oracle.outside = Mock()
    oracle.outside.profile.connection_idle_ms = 20_000
    with pytest.raises(type(error)):
        asyncio.run(oracle.perform_answered("c1", Mock(), AsyncMock(side_effect=error), "it answers"))
    assert oracle.outside.lose.called == lost


def test_several_readers_at_once_open_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the place of one that the node has ended."""
    ended, alive = Mock(close=AsyncMock()), Mock(close=AsyncMock())
    ended.call, alive.call = (
        AsyncMock(return_value=encode(name, {"errorCode": code}))
        for name, code in (("ErrorResponse", UNREGISTERED), ("DistroDataResponse", 0))
    )
    left = [ended, alive]

    async def opened(*_: object, **__: object) -> Mock:
        await asyncio.sleep(0)
        return left.pop(0)

    monkeypatch.setattr(Connection, "open", opened)
    reader = Reader(lambda node: node, lambda _: {}, ())

    async def all_at_once() -> None:
        await asyncio.gather(*(reader._ask("a", "DistroDataRequest", {}) for _ in range(3)))

    asyncio.run(all_at_once())
    assert (len(left), ended.close.await_count, alive.close.await_count) == (0, 1, 0)


def test_a_member_that_is_dialled_for_twice_keeps_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connections = [Mock(close=AsyncMock()) for _ in range(2)]
    monkeypatch.setattr(Connection, "open", AsyncMock(side_effect=connections))
    peer = PlayedPeer(7848, lambda: 0)

    async def twice() -> None:
        await asyncio.gather(*(peer.dial("127.0.0.1:8848") for _ in range(2)))

    asyncio.run(twice())
    assert sorted(each.close.await_count for each in connections) == [0, 1]
    asyncio.run(peer.disconnect_from_node())
    with pytest.raises(TargetError, match="has not dialled"):
        asyncio.run(peer.report())


def test_a_server_may_act_on_a_report_before_its_answer_is_here() -> None:
    """Requests that it sends meanwhile to a member that has just reported itself are no violation."""
    cluster = PeersCluster()
    cluster.virtual, cluster.oracle.outside = None, Mock()

    async def report() -> None:
        assert cluster.oracle.outside.reported_to.call_count == 1

    cluster.peers = {"d": Mock(report=report)}
    asyncio.run(cluster._send(PeerRequest("d", "REPORT")))
    assert cluster.oracle.outside.reported_to.call_count == 2


BEATEN = """
profile nacos-2.2.4
nodes a b
played b
http beat web 10.0.1.4:80 weight=2.5 at a
advance 2s
http beat web 10.0.1.8:80 at a
advance 2s
expect model agrees
"""


def test_a_whole_beat_registers_an_instance_with_its_weight() -> None:
    assert replay(parse(BEATEN), target="embedded").verdict is Verdict.CONFORMS


@pytest.mark.slow
@pytest.mark.wire
def test_a_whole_beat_registers_an_instance_at_a_real_server_with_its_weight(
    need_release: Callable[..., None],
) -> None:
    """The server takes a beat that has no weight for one of the weight 0."""
    need_release(nacos_release("2.2.4"))
    assert replay(parse(BEATEN), target="nacos:2.2.4").verdict is Verdict.CONFORMS
