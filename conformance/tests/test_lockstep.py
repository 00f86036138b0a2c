"""Nodes and model side by side: healthy nodes stay in the model, broken ones are found, made small and saved."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from programs import ROOT, executed

from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.lockstep import REST_MS, DivergedError, LockstepCluster
from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.verdict import KitError, Verdict
from distro_conformance.walks import shrink
from distro_conformance.walks.driver import Lockstep, WalkDriver
from distro_conformance.walks.machine import Machine
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions, WalkResult
from distro_conformance.walks.saved_failures import save_failure
from distro_conformance.walks.shrink import OnModel
from distro_conformance.walks.walk import LISTS_DIFFER_MAX_MS
from distro_conformance.wire.transports import TransportKind, Wire
from distro_impl import NodeEventKind
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.load_task import LoadTask
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.push import PushService
from distro_impl.transport.memory import MemoryChannel
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Drop,
    Heal,
    Hold,
    HttpRegister,
    ListMembers,
    Refuse,
    Register,
    Release,
    Restart,
    Swallow,
)
from distro_model.clock import instants
from distro_model.possible import Observation
from distro_spark.responsibility import SETTLED_MS
from distro_traces.event import Kind
from distro_traces.ndjson import read_ndjson

FOUND_WITHIN_S = 600
"""It takes seconds, and ends when it is found; a machine that is busy with something else must not decide."""

IN_MEMORY_ON_2_2_4 = WalkOptions(
    profile="nacos-2.2.4", seconds=FOUND_WITHIN_S, runs_max=10, transport=TransportKind.MEMORY
)


@pytest.mark.wire
async def test_a_run_that_left_the_model_is_repaired_before_its_recording_ends() -> None:
    """A list that lacks a member is a fault like a cut link: the nodes cannot agree with it."""
    cluster = LockstepCluster()
    await cluster.start(("a", "b", "c"), "strict")
    try:
        for action in (
            Cut("b", "c"),
            Refuse("b", "a"),
            ListMembers("b", ("b", "c")),
            Connect("c1", "b"),
            Register("c1", "web", "10.0.0.1:80"),
        ):
            await cluster.perform(action)
        await cluster.rest()
        held = await cluster.held_by(("a", "b", "c"))
    finally:
        await cluster.stop()
    assert [dict(held[node]).keys() for node in ("a", "b", "c")] == [{"c1"}] * 3


@pytest.mark.wire
def test_a_change_taken_back_within_the_time_of_a_push_is_not_pushed_yet() -> None:
    """Node c has a new registration, loads an older state, and is repaired half a second before it is read."""
    scenario = parse(
        """
        nodes a b c
        profile nacos-2.2.4
        advance 41s
        crash b
        advance 3.1s
        restart b
        connect c1 b
        advance 39.8s
        crash c
        advance 74.7s
        cut c->a
        cut c->b
        restart c
        heal c->a
        connect c2 c
        register c2 web 10.0.0.2:80
        advance 27.2s
        drop b->a CHANGE c1
        register c1 web 10.0.0.1:80
        advance 3.3s
        expect model agrees
        """
    )
    assert replay(scenario, target="embedded").verdict is Verdict.CONFORMS


@pytest.mark.wire
def test_a_run_ends_where_the_model_cannot_follow_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took minutes, and looked like a search that hangs."""
    monkeypatch.setattr(instants, "ORDERS_MAX", 1)
    result = random_walks(replace(IN_MEMORY_ON_2_2_4, runs_max=4))
    assert (result.failure, result.verdict) == (None, Verdict.CONFORMS)
    lost = result.not_judged["runs_lost"]
    assert 0 < lost <= result.runs
    assert result.unjudged == f"; model state limit exceeded in {lost} runs"


def test_unjudged_steps_are_counted() -> None:
    result = WalkResult(IN_MEMORY_ON_2_2_4)
    result.not_judged.update(clients_states=2, views_in_parts=3)
    assert result.unjudged == (
        "; 2 clients are no longer judged: too many possible states"
        "; 3 views of clients that were being changed are not judged"
    )


@pytest.mark.slow
@pytest.mark.wire
def test_a_run_that_is_lost_on_its_way_to_rest_rests_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whenever that was, the nodes have their time before they are compared."""
    monkeypatch.setattr(instants, "OUTCOMES_MAX", 1)
    result = random_walks(replace(IN_MEMORY_ON_2_2_4, runs_max=2, http=True, record_into=tmp_path))
    assert (result.failure, result.verdict) == (None, Verdict.CONFORMS)
    rested = [run for run in tmp_path.iterdir() if time_at_rest_ms(run) >= REST_MS]
    assert 0 < result.not_judged["runs_lost"] == len(rested)


class NeverAtRest(WalkDriver):
    """Paper on which nodes differ to the end."""

    is_at_rest = False


@pytest.mark.parametrize("leases", [0, 2], ids=["nodes agree", "nodes differ"])
def test_a_run_outlasts_what_the_keeper_of_an_http_client_verified_until_its_own_copy_ended(leases: int) -> None:
    """One lease for the keeper, to which the client does not belong (D7), and one for whom it verified."""
    driver = NeverAtRest() if leases else WalkDriver()
    members = {"start": staticmethod(lambda: driver), "on_end": staticmethod(lambda *_: None)}
    machine = type("Walk", (Machine,), members)()
    machine.perform(HttpRegister("web", "10.0.1.1:80", "b", by_v2=True))
    machine.come_to_rest(driver)
    waited_ms = sum(action.ms for action in machine.done if isinstance(action, Advance))
    assert waited_ms // 180_000 == leases


@pytest.mark.parametrize("over_http", [True, False])
def test_lists_do_not_differ_for_so_long_that_two_members_must_own_a_client(over_http: bool) -> None:
    """Nodes with different lists own the same client of the HTTP API: the walk caused that, and not the nodes."""
    assert LISTS_DIFFER_MAX_MS < SETTLED_MS
    driver = WalkDriver()
    machine = type("Walk", (Machine,), {"start": lambda: driver, "on_end": lambda *_: None})()
    machine.change_list(node=0, member=0, names_reader=True)
    machine.perform(Advance(177_000))
    if over_http:
        machine.perform(HttpRegister("web", "10.0.1.1:80", "b", by_v2=True))
    changes = [action.members for action in machine.done if isinstance(action, ListMembers)]
    assert changes == [("a", "c"), ("a", "b", "c")][: 1 + over_http]
    machine.change_list(node=0, member=1, names_reader=True)
    for _ in range(7):
        machine.perform(Advance(10_000))
    assert (ListMembers("a", ("a", "b", "c")) in machine.done[-7:]) is over_http
    machine.perform(Crash("a"), Advance(60_000))
    assert machine.done[-2:] == [Crash("a"), Advance(60_000)]


def time_at_rest_ms(run: Path) -> int:
    """Between the last that was done to the nodes and the first checkpoint."""
    events = read_ndjson(run).events
    compared_ms = min(event.at_ms for event in events if event.kind is Kind.CHECKPOINT)
    done = (Kind.LINK_FAULT, Kind.MEMBERS_CHANGED, Kind.NODE_STARTED, Kind.NODE_STOPPED)
    return compared_ms - max(event.at_ms for event in events if event.kind in done and event.at_ms < compared_ms)


@pytest.mark.wire
@pytest.mark.parametrize(
    "profile",
    [
        "strict",
        # Tours and the lists of releases go over the same rules; these walk for longer.
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("nacos-3.0.3", "nacos-2.2.4", "nacos-2.0.4")),
    ],
)
def test_healthy_nodes_stay_within_the_model(profile: str) -> None:
    result = random_walks(WalkOptions(profile=profile, runs_max=3, seed=11))
    assert result.failure is None, result.failure
    assert result.verdict is Verdict.CONFORMS
    assert result.runs == 3
    assert result.steps > 50


@pytest.mark.wire
@pytest.mark.quality
@pytest.mark.parametrize(
    "mutant",
    [
        "B02",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("B07", "m-delete-retried-as-change")),
    ],
)
def test_a_broken_node_is_found_and_the_failure_fails_on_its_own(
    mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = tmp_path / "traces"
    options = WalkOptions(mutant=mutant, seconds=FOUND_WITHIN_S, seed=1, shrink_seconds=90, record_into=traces)
    asked: list[str] = []

    def on_model(profile: str, mutant: str) -> OnModel:
        asked.append(mutant)
        return OnModel(profile, mutant)

    monkeypatch.setattr(shrink, "OnModel", on_model)
    found = random_walks(options).failure
    assert asked == [mutant], "made smaller on the model first"
    assert found is not None, f"{mutant} was not found within {FOUND_WITHIN_S} s"
    assert found.seconds_until_found < FOUND_WITHIN_S
    scenario, test = save_failure(found, tmp_path, f"lockstep-{mutant}")
    for trace in traces.iterdir():  # that of the failing run too
        assert {event.node for event in read_ndjson(trace).events if event.kind is Kind.CHECKPOINT} == {"a", "b", "c"}

    assert found.steps <= 8, found.scenario.render()
    assert found.scenario.mutant == mutant
    assert replay(found.scenario, target="embedded").reproduced
    assert not replay(found.scenario, target="model").reproduced, "the model itself has no such bug"
    (saved,) = (each for name, each in runpy.run_path(str(test)).items() if name.startswith("test_"))
    with pytest.raises(AssertionError, match="differs from the model"):
        saved()
    assert scenario.read_text() == found.scenario.render()


@pytest.mark.wire
def test_a_divergence_names_the_difference_and_the_action() -> None:
    with Lockstep(("a", "b", "c"), "strict", mutant="B02") as lockstep:
        for action in (Connect("c1", "b"), Register("c1", "web", "10.0.0.1:80"), Advance(1100)):
            lockstep.perform(action)
        lockstep.perform(Swallow("b", "a", "CHANGE", "c1"))
        lockstep.perform(Register("c1", "web", "10.0.0.1:80 version=2"))
        with pytest.raises(DivergedError) as diverged:
            lockstep.perform(Advance(6000))
    text = str(diverged.value)
    assert "at 7100 ms after `advance 6000ms`" in text
    assert "c1 at a: the answer to VERIFY b->a revision 2 is success; the model expects fail" in text


@pytest.mark.wire
def test_a_request_that_the_model_does_not_have_reaches_its_member_and_differs() -> None:
    with Lockstep(("a", "b", "c"), "strict", mutant="m-send-add-for-change") as lockstep:
        for action in (Connect("c1", "b"), Register("c1", "web", "10.0.0.1:80")):
            lockstep.perform(action)
        with pytest.raises(DivergedError, match="CHANGE b->a") as diverged:
            lockstep.perform(Advance(1100))
    assert "ValueError" not in str(diverged.value)


@pytest.mark.wire
def test_a_recorded_run_names_each_event_and_its_node_and_its_seed_does_the_same_steps(tmp_path: Path) -> None:
    options = WalkOptions(runs_max=2, steps_per_run=20, seed=3)
    first, second = random_walks(replace(options, record_into=tmp_path)), random_walks(options)
    assert first.failure is second.failure is None, first.failure or second.failure
    assert (first.steps, first.runs) == (second.steps, second.runs)
    traces = sorted(tmp_path.glob("*.ndjson"))
    assert len(traces) == 2
    for trace in traces:
        recorded = read_ndjson(trace)
        assert recorded.cut is None
        assert not recorded.rejected
        assert {event.node for event in recorded.events} == {"a", "b", "c"}
        clients = {event.client for event in recorded.events if event.client}
        assert all(client == "SNAPSHOT" or client.startswith("c") for client in clients), clients


def test_the_model_is_never_the_one_that_is_broken() -> None:
    with pytest.raises(ValueError, match="the node has no mutant 'B99'; known: "):
        random_walks(WalkOptions(mutant="B99", runs_max=1))
    with pytest.raises(ValueError, match="no profile 'nacos-9'; known: "):
        random_walks(WalkOptions(profile="nacos-9", runs_max=1))


@pytest.mark.wire
@pytest.mark.slow  # it measures; its driver is tested here
def test_the_benchmark_prints_what_it_promises() -> None:
    ran = executed(sys.executable, ROOT / "bench" / "lockstep.py", "--json", "--quick", "--runs", "1", check=True)
    document = json.loads(ran.stdout)
    assert document["bench"] == "lockstep"
    assert document["figures"]["steps_per_s"] > 0
    assert document["figures"]["steps_per_s_grpc"] > 0
    assert set(document["ratios"]) == {"steps_per_echo_call", "recorded_to_plain", "memory_to_grpc"}


@pytest.mark.wire
def test_nodes_that_do_not_start_as_the_model_does_are_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unable(self: LoadTask) -> None:
        """The node never loads."""

    monkeypatch.setattr(LoadTask, "run", unable)
    found = random_walks(WalkOptions(seconds=5, seed=1, shrink_seconds=0)).failure
    assert found is not None
    assert found.steps == 0
    again = replay(found.scenario, target="embedded")
    assert again.reproduced
    assert again.steps[0].text == "(the nodes start)"


FAR = tuple(link for near in "ab" for link in ((near, "c"), ("c", near)))
STAYS_DOWN = (Crash("c"), Crash("a"), Crash("b"), Restart("a"), Restart("b"))
CUT_OFF = (Crash("a"), Crash("b"), *(Cut(*link) for link in FAR), Restart("b"), Restart("a"))
BACK = (*(Heal(*link) for link in FAR), Advance(12_000), Register("c1", "api", "10.0.0.1:81"), Advance(12_000))


def load_without_c(away: tuple[Action, ...], back: tuple[Action, ...]) -> None:
    with Lockstep(("a", "b", "c"), "strict") as lockstep:
        for action in (Connect("c1", "c"), Register("c1", "web", "10.0.0.1:80"), Advance(2_000), *away):
            lockstep.perform(action)
        for action in (Connect("c2", "a"), Register("c2", "web", "10.0.0.2:80"), Advance(29_000), Advance(40_000)):
            lockstep.perform(action)
        for action in back:
            lockstep.perform(action)


@pytest.mark.wire
@pytest.mark.parametrize(("away", "back"), [(STAYS_DOWN, (Restart("c"), Advance(12_000))), (CUT_OFF, BACK)])
def test_two_nodes_load_without_a_third_and_agree_with_it_when_it_is_back(
    away: tuple[Action, ...], back: tuple[Action, ...]
) -> None:
    load_without_c(away, back)


@pytest.mark.wire
@pytest.mark.parametrize("away", [STAYS_DOWN, CUT_OFF])
def test_nodes_that_wait_for_a_third_for_ever_part_from_the_model(
    away: tuple[Action, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServerMemberManager, "is_down", lambda *_: False)
    with pytest.raises(DivergedError, match="VERIFY a->b c2"):
        load_without_c(away, ())


@pytest.mark.wire
@pytest.mark.parametrize(("method", "pushed"), [("_on_service_changed", r"10\.0\.0\.1:80"), ("_push_to", "empty")])
def test_a_subscriber_that_is_not_notified_is_a_divergence(
    method: str, pushed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PushService, method, lambda *_: None)
    with Lockstep(("a", "b", "c"), "strict") as lockstep:
        for action in (Connect("c1", "a"), Connect("c2", "b"), Register("c2", "web", "10.0.0.2:80")):
            lockstep.perform(action)
        lockstep.perform(Register("c1", "web", "10.0.0.1:80"))
        with pytest.raises(DivergedError, match=rf"a last pushed web to c1 as {pushed} and holds .* and .*"):
            lockstep.perform(Advance(3_000))


@pytest.mark.wire
def test_a_query_that_differs_from_the_content_of_the_node_is_a_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClientManager, "publishers_of", lambda *_: iter(()))
    with Lockstep(("a", "b"), "strict") as lockstep:
        lockstep.perform(Connect("c1", "a"))
        with pytest.raises(DivergedError, match=r"a shows web as empty and holds 10\.0\.0\.1:80"):
            lockstep.perform(Register("c1", "web", "10.0.0.1:80"))


@pytest.mark.wire
def test_a_node_that_breaks_is_a_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("out of order")

    with Lockstep(("a", "b"), "strict") as lockstep:
        lockstep.perform(Connect("c1", "a"))
        lockstep.perform(Register("c1", "web", "10.0.0.1:80"))
        monkeypatch.setattr(DistroClientDataProcessor, "data_of", breaks)
        with pytest.raises(DivergedError, match="out of order"):
            lockstep.perform(Advance(1_100))


@pytest.mark.wire
def test_a_node_is_read_when_it_reports_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    held_by = EmbeddedCluster.held_by

    async def noting(self: EmbeddedCluster, nodes: Sequence[str]) -> Observation:
        asked.append(tuple(nodes))
        return await held_by(self, nodes)

    monkeypatch.setattr(EmbeddedCluster, "held_by", noting)
    with Lockstep(("a", "b"), "strict") as lockstep:
        for action, nodes in (
            (Connect("c1", "a"), ("a",)),
            (Register("c1", "web", "10.0.0.1:80"), ("a",)),
            (Advance(100), ()),  # nothing was sent yet
            (Advance(1_100), ("b",)),
            (Crash("b"), ("b",)),
            (Advance(500), ()),
            (Restart("b"), ("b",)),
            (Advance(2_000), ("a", "b")),  # after a long time all nodes that hold a client are asked
        ):
            asked.clear()
            lockstep.perform(action)
            assert asked[-1] == nodes, action


@pytest.mark.wire
def test_a_change_that_only_time_brings_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner removes a client that it must keep: no request reaches the node, one of its timers fires."""

    def forgets(self: ClientManager) -> None:
        for client in self:
            if not client.native:
                self._remove(client.id, NodeEventKind.REPLICA_REMOVED, "expired")

    monkeypatch.setattr(ClientManager, "remove_expired", forgets)
    with Lockstep(("a", "b"), "strict") as lockstep:
        for action in (Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80"), Advance(1_100)):
            lockstep.perform(action)
        with pytest.raises(DivergedError, match="c1 at b: the client is unknown; the model expects there at revision"):
            _wait_in_small_steps(lockstep)


@pytest.mark.wire
def test_a_change_that_a_node_does_not_count_is_seen_after_a_long_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lockstep(("a", "b"), "strict") as lockstep:
        for action in (Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80"), Advance(1_100)):
            lockstep.perform(action)
        node = lockstep.cluster.servers["b"].node
        assert node is not None
        monkeypatch.setattr(node.parts.naming.watch, "notify", lambda *_: None)
        for client in node.parts.naming.clients:
            node.parts.naming.clients.delete(client.id, NodeEventKind.REPLICA_REMOVED)
        lockstep.perform(Advance(100))
        with pytest.raises(DivergedError, match="c1 at b: the client is unknown"):
            lockstep.perform(Advance(2_000))


@pytest.mark.parametrize("seed", range(8))
def test_held_requests_arrive_in_their_order(seed: int) -> None:
    """In any order in which the wire delivers the requests that are on their way at once."""
    with Lockstep(("a", "b"), "nacos-2.2.4", wire=Wire(seed=seed)) as lockstep:
        for action in (
            Advance(3_999),
            Hold("a", "b"),
            Connect("c1", "a"),
            Register("c1", "web", "10.0.0.1:80"),
            Advance(1_100),
            Release("a", "b"),
        ):
            lockstep.perform(action)


@pytest.mark.wire
def test_nothing_at_all_gets_through_a_cut_link(monkeypatch: pytest.MonkeyPatch) -> None:
    knocks: list[str] = []

    async def check_listening(self: MemoryChannel) -> None:
        knocks.append(self._target)

    with Lockstep(("a", "b"), "strict") as lockstep:
        lockstep.perform(Cut("a", "b"))
        monkeypatch.setattr(MemoryChannel, "check_listening", check_listening)
        lockstep.perform(Advance(10_000))
        assert not knocks
        lockstep.perform(Heal("a", "b"))
        lockstep.perform(Advance(10_000))
        assert knocks


def _wait_in_small_steps(lockstep: Lockstep) -> None:
    for _ in range(60):
        lockstep.perform(Advance(100))


@pytest.mark.wire
def test_the_end_of_a_run_is_as_long_as_there_is_something_to_repair() -> None:
    with Lockstep(("a", "b"), "strict") as lockstep:
        assert lockstep.is_at_rest
        lockstep.perform(Connect("c1", "a"))
        lockstep.perform(Register("c1", "web", "10.0.0.1:80"))
        assert not lockstep.is_at_rest, "b does not know it yet"
        lockstep.perform(Advance(1_100))
        assert lockstep.is_at_rest
        lockstep.perform(Crash("b"))
        lockstep.perform(Drop("b", "a", "SNAPSHOT"))
        lockstep.perform(Restart("b"))
        lockstep.perform(Advance(15_000))
        assert not lockstep.is_at_rest, "b waits for its snapshot"
        lockstep.perform(Advance(45_000))
        assert lockstep.is_at_rest


@pytest.mark.parametrize("method", ["checkpoint", "close"])
def test_the_error_that_ends_a_run_is_reported_although_hypothesis_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The existing recording of the first run is not the reported error."""

    def breaks(_: Lockstep) -> None:
        raise KitError("the nodes do not come to rest")

    monkeypatch.setattr(Lockstep, method, breaks)
    with pytest.raises(KitError, match="do not come to rest"):
        random_walks(replace(IN_MEMORY_ON_2_2_4, runs_max=2, steps_per_run=5, rare_starts=False, record_into=tmp_path))
