"""Simulation: it does what the model allows, its traces are whole, and defects in them are found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any

import pytest
from programs import Call, Document

from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.simulation import run
from distro_conformance.simulation.journal import SimulationJournal, digest_of
from distro_conformance.simulation.run import Simulated, SimulationOptions, simulate
from distro_conformance.verdict import UsageError, Verdict
from distro_conformance.wire.messages import sync_data
from distro_model.actions import Action, Advance, Connect, Deregister, Disconnect, Register, Restart
from distro_model.clock.cluster import View, start
from distro_model.clock.traffic import Traffic
from distro_model.messages import CallResult, Operation
from distro_model.possible import PossibleStates, Rejection
from distro_model.profiles import Profile, profile_named
from distro_model.simulation.cluster import SimulatedCluster
from distro_model.simulation.faults import FAULTS, Situation, UnknownFaultError, faults_named, instance_of
from distro_model.simulation.scheduler import Scheduler
from distro_traces.content import replica_from_sync
from distro_traces.event import STATE_KINDS, Event, Kind, Outcome
from distro_traces.exports import export
from distro_traces.parquet import read_parquet
from distro_traces.reading import read_run

NAMES = ("a", "b", "c")


def made(out: Path, **options: Any) -> Simulated:
    faults = faults_named(options.pop("faults", "none"))
    return simulate(SimulationOptions(out=out, faults=faults, **options))


def files(out: Path) -> list[Path]:
    return sorted(out.rglob("*.parquet"))


def events_of(out: Path) -> list[Event]:
    return [event for file in files(out) for event in read_parquet(file).events]


class BesideTheModel:
    """A simulated cluster in which messages take no time, and everything that the model thinks it may be in."""

    def __init__(self, seed: int, profile: Profile) -> None:
        self.random = Random(seed)
        self.profile = profile
        self.scheduler = Scheduler(self.random)
        self.rows: list[tuple[str, Sequence[object]]] = []
        journal = SimulationJournal(lambda node, row: self.rows.append((node, row)), NAMES, profile)
        self.cluster = SimulatedCluster(NAMES, profile, self.scheduler, journal, latency_ms=0)
        self.possible = PossibleStates.of(start(NAMES, profile))
        self.done: list[str] = []

    def perform(self, action: Action) -> None:
        if self.possible.guard(action) is not None:
            return
        self.done.append(str(action))
        if isinstance(action, Advance):
            self.scheduler.run_until(self.scheduler.now_ms + action.ms)
        else:
            self.cluster.perform(action)
        agreed = self.possible.after(action).matching(self.observed(), self.traffic())
        assert not isinstance(agreed, Rejection), "\n".join([*self.done, str(agreed)])
        self.possible = agreed

    def observed(self) -> dict[str, dict[str, View] | None]:
        shows = self.profile.revisions_travel
        return {
            name: None
            if node is None
            else {each.name: View(each.revision if shows else 0, each.content) for each in node.clients}
            for name, node in self.cluster.by_name().items()
        }

    def traffic(self) -> list[Traffic]:
        """The calls that ended since the last time, by their rows."""
        revisions = {row[3]: row[7] for _, row in self.rows if row[1] == Kind.REQUEST_SENT}
        replies = [(node, row) for node, row in self.rows if row[1] == Kind.REPLY_RECEIVED]
        ended = [
            Traffic(node, row[2], Operation(row[4]), row[5], revisions[row[3]], CallResult(row[9]))  # type: ignore[arg-type]
            for node, row in replies
        ]
        over = {row[3] for _, row in replies}
        self.rows = [(node, row) for node, row in self.rows if row[1] == Kind.REQUEST_SENT and row[3] not in over]
        return ended

    def random_actions(self) -> Iterator[tuple[int, Action]]:
        """Something that a client does, or a fault, with the time at which it happens from now."""
        random, clients = self.random, self.cluster.homes()
        if random.random() < 0.35:
            yield from random.choice(list(FAULTS.values())).plan(random, Situation(NAMES, clients))
        elif not clients or random.random() < 0.3:
            yield 0, Connect(f"c{len(self.done)}", random.choice(NAMES))
        else:
            client = random.choice(list(clients))
            register = Register(client, "web", instance_of(client, random))
            yield 0, random.choice((register, register, Deregister(client, "web"), Disconnect(client)))


@pytest.mark.parametrize("profile", ["strict", "nacos-2.2.4", "nacos-2.0.4"])
@pytest.mark.parametrize("seed", [0, 115, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 2))])
def test_where_messages_take_no_time_the_model_allows_all_that_happens(profile: str, seed: int) -> None:
    beside = BesideTheModel(seed, profile_named(profile))
    waiting: list[tuple[int, int, Action]] = []
    for number, node in enumerate(NAMES):
        heappush(waiting, (13 * number * number, number, Restart(node)))
    for number in range(len(NAMES), 60):
        for after_ms, action in beside.random_actions():
            heappush(waiting, (beside.scheduler.now_ms + after_ms, number * 100 + len(waiting), action))
        until_ms = beside.scheduler.now_ms + beside.random.choice((1, 130, 730, 1110, 3070, 5030))
        while waiting and waiting[0][0] <= until_ms:
            at_ms, _, action = heappop(waiting)
            beside.perform(Advance(at_ms - beside.scheduler.now_ms))
            beside.perform(action)
        beside.perform(Advance(until_ms - beside.scheduler.now_ms))


@pytest.mark.parametrize("mutant", ["B05", "B05-sender"])
def test_changes_that_are_made_or_applied_in_parts_are_answered(tmp_path: Path, mutant: str) -> None:
    """A CHANGE of such a node is answered later than it arrives; the run used to end there."""
    assert made(tmp_path, nodes=3, clients=6, duration_s=120, mutant=mutant).checkpoints
    ended = [each for each in events_of(tmp_path) if each.kind is Kind.REPLY_RECEIVED and each.operation == "CHANGE"]
    assert {each.outcome for each in ended} == {Outcome.SUCCESS}


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(tmp_path: Path) -> None:
    bytes_of = {}
    for name, seed in (("first", 7), ("again", 7), ("other", 8)):
        made(tmp_path / name, duration_s=120, seed=seed, faults="all")
        bytes_of[name] = [file.read_bytes() for file in files(tmp_path / name)]
    assert bytes_of["first"] == bytes_of["again"] != bytes_of["other"]


def test_every_row_is_an_event_and_no_row_is_missing(tmp_path: Path) -> None:
    result = made(tmp_path, duration_s=600, faults="crash,drop,swallow,cut", seed=1)
    (file,) = files(tmp_path)
    trace = read_parquet(file)
    assert (trace.header.profile, trace.header.target, trace.header.clock) == ("strict", "model", "virtual")
    assert trace.header.nodes == NAMES
    assert len(trace.events) == result.events
    for node in NAMES:
        rows = [event for event in trace.events if event.node == node]
        assert [event.seq for event in rows] == list(range(1, len(rows) + 1))
        assert [event.at_ms for event in rows] == sorted(event.at_ms for event in rows)
    assert {event.kind for event in trace.events} == set(Kind) - {Kind.OBSERVED, Kind.MEMBERS_CHANGED}
    assert trace.events == tuple(sorted(trace.events, key=lambda event: (event.node, event.seq)))


def test_a_call_records_both_sides_unless_a_fault_met_it(tmp_path: Path) -> None:
    """Four rows under one id where it arrived; a request that was swallowed is known to its sender alone."""
    made(tmp_path, duration_s=300, faults="swallow,slow,cut,drop")
    kinds: dict[str, Counter[Kind]] = {}
    outcomes: dict[str, Outcome | None] = {}
    for event in events_of(tmp_path):
        if event.operation is not None and event.message is not None:
            kinds.setdefault(event.message, Counter())[event.kind] += 1
            if event.kind is Kind.REPLY_RECEIVED:
                outcomes[event.message] = event.outcome
    both = {Kind.REQUEST_SENT: 1, Kind.REQUEST_RECEIVED: 1, Kind.REPLY_SENT: 1, Kind.REPLY_RECEIVED: 1}
    alone = {Kind.REQUEST_SENT: 1, Kind.REPLY_RECEIVED: 1}
    assert all(rows in (both, alone) for message, rows in kinds.items() if message in outcomes)
    met = Counter(outcomes[message] for message, rows in kinds.items() if rows == alone)
    assert set(met) == {Outcome.SUCCESS, Outcome.TIMEOUT, Outcome.UNREACHABLE}


def test_requests_on_a_link_arrive_in_the_order_in_which_they_were_sent(tmp_path: Path) -> None:
    made(tmp_path, duration_s=200, faults="slow,cut")
    sent: dict[tuple[str, str | None], list[str | None]] = {}
    received: dict[tuple[str, str | None], list[str | None]] = {}
    late = 0
    at_ms: dict[str | None, int] = {}
    events = events_of(tmp_path)
    for event in events:
        if event.kind is Kind.REQUEST_SENT:
            sent.setdefault((event.node, event.peer), []).append(event.message)
            at_ms[event.message] = event.at_ms
    for event in events:
        if event.kind is Kind.REQUEST_RECEIVED and event.peer is not None:
            received.setdefault((event.peer, event.node), []).append(event.message)
            late += event.at_ms > at_ms[event.message]
    assert len(received) == 6
    for link, messages in received.items():
        assert messages == [message for message in sent[link] if message in set(messages)]
    assert late > 100


@pytest.mark.quality
def test_a_calm_is_long_enough_for_strict_and_no_calm_is_for_b02(tmp_path: Path) -> None:
    for seed in range(2):
        made(tmp_path / "strict" / str(seed), duration_s=400, seed=seed, faults="all")
    assert disagreements(tmp_path / "strict") == []
    assert any(phase_of_b02(tmp_path / "B02" / str(seed), seed) for seed in range(4))


def phase_of_b02(out: Path, seed: int) -> list[tuple[str, str | None]]:
    """The swallowed changes that still have an effect: none where each was followed by another change."""
    made(out, duration_s=400, seed=seed, faults="swallow", mutant="B02")
    return disagreements(out)


def disagreements(out: Path) -> list[tuple[str, str | None]]:
    """(checkpoint, client) where nodes show different content; plain loops, without Spark."""
    shown: dict[tuple[str, str | None, str | None], set[tuple[str, str]]] = {}
    nodes: Counter[tuple[str, str | None]] = Counter()
    for file in files(out):
        held: dict[tuple[str, str | None], str] = {}
        for event in read_parquet(file).events:  # node after node
            if event.kind in (Kind.NODE_STARTED, Kind.NODE_STOPPED):
                held = {place: what for place, what in held.items() if place[0] != event.node}
            elif event.kind in STATE_KINDS:
                held.pop((event.node, event.client), None)
                if event.digest not in (None, digest_of(())):
                    held[event.node, event.client] = str(event.digest)
            elif event.kind is Kind.CHECKPOINT:
                nodes[event.run, event.detail] += 1
                for (node, client), what in held.items():
                    if node == event.node:
                        shown.setdefault((event.run, event.detail, client), set()).add((node, what))
    return [
        (f"{run} {number}", client)
        for (run, number, client), views in shown.items()
        if len(views) != nodes[run, number] or len({what for _, what in views}) > 1
    ]


def test_content_has_the_digest_that_a_recording_would_have() -> None:
    read = replica_from_sync(sync_data("c1", 1, [("web", "10.0.0.1", 80)], version="2", zone="x"))
    assert digest_of((("web", "10.0.0.1:80 zone=x version=2"),)) == read.digest
    assert digest_of(()) == replica_from_sync(sync_data("c1", 0, [])).digest


def test_a_long_simulation_is_many_runs_which_all_end_at_a_checkpoint(tmp_path: Path) -> None:
    result = made(tmp_path, duration_s=2.5 * run.RUN_MS / 1000, clients=1)
    assert result.runs == 3 == len(files(tmp_path))
    assert len({read_parquet(file).header.run for file in files(tmp_path)}) == 3
    for file in files(tmp_path):
        events = read_parquet(file).events
        assert all([e for e in events if e.node == node][-1].kind is Kind.CHECKPOINT for node in NAMES)


def test_many_events_end_a_run_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RUN_EVENTS", 1000)
    assert made(tmp_path, duration_s=400).runs > 1


def test_one_node_alone_agrees_with_itself(tmp_path: Path) -> None:
    assert made(tmp_path, nodes=1, duration_s=60).checkpoints > 0
    assert Kind.REQUEST_SENT not in {event.kind for event in events_of(tmp_path)}


def test_faults_are_named_by_the_registry() -> None:
    assert faults_named("all") == tuple(FAULTS.values())
    assert faults_named("none") == ()
    assert [fault.name for fault in faults_named("crash, drop")] == ["drop", "crash"]
    with pytest.raises(UnknownFaultError, match=r"no fault 'rain'; faults are drop, swallow, .*, crash, all, none"):
        faults_named("drop,rain")
    with pytest.raises(UnknownFaultError, match="'none' means no faults"):
        faults_named("none,drop")


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note").touch()
    with pytest.raises(UsageError, match="is not empty, and recordings are never overwritten"):
        made(tmp_path, duration_s=1)


def acknowledged_only(events: Sequence[Event]) -> Iterator[Event]:
    """The CHANGEs that were acknowledged and never arrived."""
    received = {event.message for event in events if event.kind is Kind.REQUEST_RECEIVED}
    succeeded = {event.message for event in events if event.kind is Kind.REPLY_RECEIVED and event.outcome == "success"}
    for event in events:
        is_change = event.kind is Kind.REQUEST_SENT and event.operation == "CHANGE"
        if is_change and event.message in succeeded - received:
            yield event


def test_the_command_says_how_many_events_and_where(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "traces"
    ran = call("simulate", "--duration-s", "60", "--faults", "drop,cut", "--out", str(out), "--json")
    found = json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert found["schema"] == "distrocheck/simulate/1"
    assert (found["path"], found["faults"], found["runs"]) == (str(out), ["drop", "cut"], 1)
    assert found["events"] == len(events_of(out))
    assert found["seconds"] > 0


@pytest.mark.quality
@pytest.mark.slow  # a mutant in a simulated trace is found in test_mutants too
def test_check_finds_the_mutants_in_simulated_traces_and_nothing_else(document: Document, tmp_path: Path) -> None:
    """One directory: a strict run with every fault, B02 with swallowed changes, B07."""
    made(tmp_path / "strict", duration_s=400, faults="all", seed=1)
    made(tmp_path / "B02", duration_s=400, faults="swallow", seed=2, mutant="B02")
    made(tmp_path / "B07", duration_s=30, seed=3, clients=2, mutant="B07")
    code, found = document("check", str(tmp_path))
    assert code == 1
    broken = {(each["run"].split("-")[2], each["invariant"]) for each in found["violations"]}
    assert ("2", "INV-CONV") in broken
    assert ("3", "INV-OWNER") in broken
    assert not [each for each in broken if each[0] == "1"]
    lost = [each for each in found["violations"] if each["run"].split("-")[2] == "2"]
    swallowed = {(event.peer, event.client) for event in acknowledged_only(events_of(tmp_path / "B02"))}
    assert {each["invariant"] for each in lost} <= {"INV-CONV", "INV-VERIFY"}
    lost = [each for each in lost if each["invariant"] == "INV-CONV"]
    assert all((each["node"], each["client"]) in swallowed for each in lost)
    assert all(each["message"].startswith(f"{each['node']} holds ") for each in lost)
    assert found["quarantined"] == found["missing"] == 0


def test_a_simulated_run_with_all_faults_can_be_played_again_from_its_trace(tmp_path: Path) -> None:
    """The same link faults, connects and disconnects, and agreement of all members at the end."""
    made(tmp_path / "run", clients=4, duration_s=60, seed=2, faults="all")
    trace = read_run(tmp_path / "run")
    scenario = parse(export("scenario", trace.header, trace.events))
    verbs = {line.text.split()[0] for line in scenario.lines}
    assert {"connect", "register", "disconnect", "hold", "release", "crash", "restart", "checkpoint"} <= verbs, verbs
    assert replay(scenario, target="model").verdict is Verdict.CONFORMS
