"""Drivers give the same result for the same run; a missing ability makes a run inconclusive, with its sentence."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from distro_conformance.drivers import reader
from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.registry import ClusterOptions, ResolvedCluster, resolve_cluster
from distro_conformance.event_loop import new_event_loop
from distro_conformance.findings import Judgement
from distro_conformance.language import replay as runner
from distro_conformance.language.recording import record
from distro_conformance.language.replay import assert_scenario, replay
from distro_conformance.language.text import ScenarioError, parse
from distro_conformance.node.run import run_node_conformance
from distro_conformance.scenarios import RECORDED_LIFE, scenario_named
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import TargetError, UsageError, Verdict
from distro_conformance.walks.driver import Lockstep
from distro_impl.naming.naming_handlers import NamingHandlers
from distro_impl.remote.errors import SERVER_ERROR, NacosError
from distro_impl.remote.handlers import Reply, Request
from distro_model.actions import Connect, Crash, Cut, Drop, Hold, LinkAction, Register, Restart
from distro_traces.event import Event, Kind
from distro_traces.ndjson import Recorder, read_ndjson

pytestmark = pytest.mark.wire

NODES = ("a", "b", "c")
MIXED_LIFE = Path(__file__).parents[2] / "scenarios" / "mixed-life.scenario"

OBSERVING = """
nodes a b
connect c1 a
connect c2 b
subscribe c2 web
register c1 web 10.0.0.1:80 version=1
query web at a
expect query web at b shows nothing
expect within 2s: query web everywhere shows 10.0.0.1:80 version=1
expect within 1s: subscription c2 web shows 10.0.0.1:80 version=1
expect for 6s: b has c1 web 10.0.0.1:80 version=1
expect all up
checkpoint
crash b
expect within 20s: a counts b DOWN
restart b
expect within 40s: b loads from a
"""


@pytest.fixture
def in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedded nodes that, like real servers, have a clock of their own and report nothing about themselves."""

    def embedded(_: str, options: ClusterOptions) -> ResolvedCluster:
        return ResolvedCluster(EmbeddedCluster(recorder=options.recorder, real_time=True), "nacos-2.2.4")

    monkeypatch.setattr(runner, "resolve_cluster", embedded)


@pytest.mark.parametrize("target", ["model", "embedded"])
def test_observations_without_expectations_are_recorded(target: str) -> None:
    played = replay(parse(OBSERVING), target=target)
    assert [step.outcome for step in played.steps if step.verdict is not Verdict.CONFORMS] == []
    assert "shows 10.0.0.1:80 version=1" in [step.outcome for step in played.steps if step.text.startswith("query")]


@pytest.mark.parametrize("target", ["model", "embedded"])
def test_a_lasting_expectation_that_ends_names_the_observed_state(target: str) -> None:
    text = "nodes a b\nconnect c1 a\nregister c1 web 10.0.0.1:80\nexpect for 5s: b has no c1"
    played = replay(parse(text), target=target)
    assert played.reproduced
    lost = "b has c1 with web 10.0.0.1:80; it held from 0.0 s to 0.9 s, and no longer at 1.0 s"
    assert played.steps[-1].outcome == lost
    assert played.steps[-1].detail.startswith("the last event before: ")
    assert played.steps[-1].detail.endswith(" at 1.0 s")


@pytest.mark.parametrize("target", ["model", "embedded"])
def test_the_life_of_a_mixed_cluster_is_that_of_any_other(target: str) -> None:
    assert_scenario(MIXED_LIFE.read_text(), target=target)


REFUSING = """
nodes a b
connect c1 a
register c1 web 10.0.0.1:80
expect query web at b shows nothing
"""


def test_a_node_that_refuses_to_list_a_service_does_not_show_it_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> Reply:
        raise NacosError(SERVER_ERROR, "out of order")

    monkeypatch.setattr(NamingHandlers, "query", refuses)
    played = replay(parse(REFUSING), target="embedded")
    assert played.verdict is Verdict.VIOLATES
    assert played.steps[-1].outcome.startswith("b answers a query of web with failure (ErrorResponse 500/500: ")
    with Lockstep(("a", "b"), "strict") as lockstep:
        lockstep.perform(Connect("c1", "a"))
        with pytest.raises(DivergedError, match="a answers a query of web with failure"):
            lockstep.perform(Register("c1", "web", "10.0.0.1:80"))


async def test_a_reader_of_a_node_connects_again_when_the_node_has_ended_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = EmbeddedCluster()
    try:
        await cluster.start(NODES[:2], "strict")
        await cluster.perform(Connect("c1", "a"))
        await cluster.perform(Register("c1", "web", "10.0.0.1:80"))
        first = await cluster.held_by(["a"])
        node = cluster.servers["a"].node
        assert node is not None
        for connection in node.parts.remote.connections:
            if not connection.meta.is_sdk:
                node.parts.remote.connections.unregister(connection.id)
        again = await cluster.held_by(["a"])
        monkeypatch.setattr(reader, "is_unregistered", lambda _: True)
        with pytest.raises(TargetError, match="does not know the connection"):
            await cluster.query("a", "web")
    finally:
        await cluster.stop()
    assert first == again
    assert first["a"]


async def test_a_run_beyond_the_driver_is_inconclusive_with_the_reason() -> None:
    embedded = ResolvedCluster(EmbeddedCluster(), "strict")
    (step,) = await runner._run(parse("pause a"), embedded, lambda _: None, to_the_end=False)
    assert (step.verdict, step.outcome) == (
        Verdict.INCONCLUSIVE,
        "cannot be done: embedded nodes share one process and one clock: none of them can be stopped by itself",
    )


@pytest.mark.usefixtures("in_real_time")
@pytest.mark.slow
def test_a_life_in_real_time_is_recorded_with_its_checkpoints(tmp_path: Path) -> None:
    played = record(scenario_named(RECORDED_LIFE), target="real", profile="nacos-2.2.4", directory=tmp_path, run="run")
    assert [f"{step.text}: {step.outcome}" for step in played.steps if step.verdict is not Verdict.CONFORMS] == []
    events = _events(tmp_path)
    checkpoints = Counter(event.detail for event in events if event.kind is Kind.CHECKPOINT)
    assert checkpoints == {"1": 3, "2": 3, "3": 3, "4": 3}
    assert sum(event.kind is Kind.CLIENT_CHANGED for event in events) == 9
    assert [e.detail for e in events if e.kind is Kind.LINK_FAULT][:2] == ["cut", "healed"]
    delivered = {(e.node, e.peer) for e in events if e.kind is Kind.REQUEST_RECEIVED}
    assert delivered == set(permutations(NODES, 2)), "something travelled on every link"
    assert {event.client for event in events if event.client} == {"c1", "c2", "c3"}, "clients have their names"


async def test_a_node_that_has_not_loaded_yet_is_part_of_a_checkpoint(tmp_path: Path) -> None:
    """In `strict` it refuses to give a snapshot until then."""
    recorder = Recorder(tmp_path, "run", profile="strict", target="real", clock="wall", nodes=("a", "b"))
    cluster = EmbeddedCluster(recorder=recorder, real_time=True)
    try:
        await cluster.start(("a", "b"), "strict")
        for action in (Connect("c1", "a"), Cut("b", "a"), Crash("b"), Restart("b"), Connect("c2", "b")):
            await cluster.perform(action)
        cluster.clear_faults()  # its load is not repeated yet
        await cluster.checkpoint()
    finally:
        await cluster.stop()
    seen = [(event.node, event.client) for event in _events(tmp_path) if event.kind is Kind.OBSERVED]
    assert ("b", "c2") in seen
    assert ("a", "c1") in seen


@pytest.mark.parametrize("fault", [Drop("a", "b", "DELETE", "c1"), Cut("b", "a"), Hold("a", "b"), None])
async def test_no_checkpoint_is_written_while_a_fault_may_still_lose_messages(
    tmp_path: Path, fault: LinkAction | None
) -> None:
    """Seen in a recording of a 3.0.3: the DELETE of c1 was lost again and again, and the nodes differed rightly."""
    recorder = Recorder(tmp_path, "run", profile="strict", target="real", clock="wall", nodes=("a", "b"))
    cluster = EmbeddedCluster(recorder=recorder, real_time=True)
    try:
        await cluster.start(("a", "b"), "strict")
        for action in (Connect("c1", "a"), *([fault] if fault else ())):
            await cluster.perform(action)
        await cluster.checkpoint()
        before = [event.node for event in _events(tmp_path) if event.kind is Kind.CHECKPOINT]
        cluster.clear_faults()
        await cluster.checkpoint()
    finally:
        await cluster.stop()
    assert before == ([] if fault else ["a", "b"])
    after = [event.node for event in _events(tmp_path) if event.kind is Kind.CHECKPOINT]
    assert after[len(before) :] == ["a", "b"]


@pytest.mark.usefixtures("in_real_time")
def test_a_change_that_never_arrives_is_recorded_to_the_end(tmp_path: Path) -> None:
    scenario = parse("""
        connect c1 b
        swallow b->c CHANGE
        register c1 web 10.0.0.1:80
        expect within 2s: all agree
        checkpoint
    """)
    played = record(scenario, target="real", profile="nacos-2.2.4", directory=tmp_path, run="run")
    assert played.verdict is Verdict.VIOLATES
    assert {e.node for e in _events(tmp_path) if e.kind is Kind.CHECKPOINT} == set(NODES)


def _events(directory: Path) -> list[Event]:
    return list(read_ndjson(directory / "run.ndjson").events)


ATTACHED = """
nodes a b
connect c1 a
register c1 web 10.0.0.1:80
expect within 3s: query web everywhere shows 10.0.0.1:80
expect b has c1 web 10.0.0.1:80
expect all agree
expect all up
disconnect c1
expect within 3s: b has no c1
"""


@contextmanager
def foreign_cluster() -> Iterator[EmbeddedCluster]:
    """A cluster that the kit did not start, with a client of an application."""
    loop = new_event_loop()  # in a thread of its own: it runs while this thread does not wait
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    cluster = EmbeddedCluster(real_time=True, serves_http=True)

    def run(coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    run(cluster.start(("a", "b"), "nacos-2.2.4"))
    try:
        run(cluster.perform(Connect("app", "a")))
        run(cluster.perform(Register("app", "web", "10.9.9.9:80")))
        yield cluster
    finally:
        run(cluster.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_a_running_cluster_is_attached_to_in_a_namespace_of_our_own() -> None:
    with foreign_cluster() as cluster:
        addresses = ",".join(server.address for server in cluster.servers.values())
        played = replay(parse(ATTACHED), target=f"attach:{addresses}")
        assert [f"{step.text}: {step.outcome}" for step in played.steps if step.verdict is not Verdict.CONFORMS] == []
        assert played.profile == "nacos-2.2.4", "as the server says itself"
        seen = replay(
            parse("nodes a b\nquery web at b"),
            target=f"attach:{addresses}",
            options=ClusterOptions(allow_disruption=True),
        )
        assert seen.steps[0].outcome == "shows 10.9.9.9:80", "in the public namespace, where applications are"
        refused = replay(parse("nodes a b\ncrash a"), target=f"attach:{addresses}")
        assert refused.verdict is Verdict.INCONCLUSIVE
        assert "the kit did not start this cluster" in refused.steps[0].outcome
        with pytest.raises(UsageError, match=r"the scenario has the nodes a b c, and attach:.* names 2"):
            replay(parse("connect c1 a"), target=f"attach:{addresses}")


def test_a_running_node_is_checked_by_external_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "DISTRO-REGISTER-002": Judgement.CONFORMS,
        "DISTRO-LIST-001": Judgement.CONFORMS,
        "DISTRO-SNAPSHOT-003": Judgement.CONFORMS,
        "DISTRO-BATCH-002": Judgement.VIOLATES,  # which release it speaks excuses nothing
        "DISTRO-SYNC-001": Judgement.NOT_JUDGED,  # it has no member of the kit on its list
        "DISTRO-MEMBER-001": Judgement.NOT_JUDGED,
        "DISTRO-MEMBER-002": Judgement.NOT_JUDGED,  # the check would send it a member
        "DISTRO-HOLDER-002": Judgement.NOT_JUDGED,  # the check would send it a client
        "DISTRO-IPPORT-001": Judgement.NOT_JUDGED,
        "DISTRO-LOAD-001": Judgement.NOT_JUDGED,
    }
    namespaces = set()
    register = NamingHandlers.instance

    def instance(self: NamingHandlers, request: Request) -> Reply:
        namespaces.add(request.body.namespace)
        return register(self, request)

    monkeypatch.setattr(NamingHandlers, "instance", instance)
    with foreign_cluster() as cluster:
        address = cluster.servers["a"].address
        namespaces.clear()
        report = run_node_conformance(resolve_target(f"attach:{address}"), list(asked))
        assert {finding.about: finding.judgement for finding in report.findings} == asked, report.findings
        assert namespaces == {"distrocheck"}
        messages = {finding.about: finding.message for finding in report.findings}
        assert (
            messages["DISTRO-HOLDER-002"] == f"the kit did not start {address}: no VERIFY is sent to it as by a member"
        )
        assert report.profile == "nacos-2.2.4", "as the server says itself"
        attached = resolve_target(f"attach:{address}", allow_disruption=True)
        disrupting = run_node_conformance(attached, ["DISTRO-HOLDER-002"])
        assert disrupting.verdict is Verdict.CONFORMS
        assert disrupting.findings[0].again.startswith(f"distrocheck test node --target attach:{address} --allow-disr")
        with pytest.raises(UsageError, match="needs a node that the kit starts"):
            resolve_cluster(f"attach:{address}", ClusterOptions(played=True))


@pytest.mark.parametrize(
    ("target", "error", "problem"),
    [
        ("attach:", UsageError, "attach: takes HOST:PORT"),
        ("attach:127.0.0.1", UsageError, "attach: takes HOST:PORT"),
        ("attach:127.0.0.1:1", TargetError, "127.0.0.1:1 does not say which release it is"),
    ],
)
def test_an_address_without_a_server_cannot_be_attached_to(target: str, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        replay(parse("nodes a b\nquery web at a"), target=target)


ONE_REQUEST = """
nodes a b
connect c1 a
lose-reply a->b CHANGE c1      # it takes effect
register c1 web 10.0.0.1:80 version=1
advance 1.1s
expect b has c1 web 10.0.0.1:80 version=1
advance 10s
duplicate a->b CHANGE
register c1 web 10.0.0.1:80 version=2
expect within 2s: b has c1 web 10.0.0.1:80 version=2
hold a->b
register c1 web 10.0.0.1:80 version=3
advance 1.1s
deliver a->b CHANGE c1         # the link stays held
expect b has c1 web 10.0.0.1:80 version=3
register c1 web 10.0.0.1:80 version=4
advance 1.1s
answer-late a->b CHANGE c1
expect b has c1 web 10.0.0.1:80 version=4
reply a->b CHANGE c1
register c1 web 10.0.0.1:80 version=5
advance 1.1s
duplicate held a->b CHANGE c1  # a copy arrives, it waits on
expect b has c1 web 10.0.0.1:80 version=5
register c1 web 10.0.0.1:80 version=6
advance 10ms
release a->b
advance 5s
hold a->b
register c1 web 10.0.0.1:80 version=7
advance 1.1s
swallow held a->b CHANGE c1    # acknowledged: only a verify repairs it
release a->b
advance 100ms
expect b has c1 web 10.0.0.1:80 version=6
expect within 12s: b has c1 web 10.0.0.1:80 version=7
hold a->b
register c1 web 10.0.0.1:80 version=8
advance 1.1s
drop held a->b CHANGE c1       # lost: sent again when its sender has given it up
release a->b
advance 100ms
expect b has c1 web 10.0.0.1:80 version=7
expect within 12s: b has c1 web 10.0.0.1:80 version=8
hold distro a->b               # reports pass
hold distro b->a
register c1 web 10.0.0.1:80 version=9
advance 20s
expect a counts b UP
expect b has c1 web 10.0.0.1:80 version=8
release a->b
expect within 12s: b has c1 web 10.0.0.1:80 version=9
"""

OTHER_CLIENTS = """
nodes a b c
connect c1 a
batch c1 web 10.0.0.1:80, 10.0.0.1:81 zone=x
expect within 2s: query web at b shows 10.0.0.1:80 and 10.0.0.1:81 zone=x
http register api 10.0.0.9:80 at b
expect within 3s: query api everywhere shows 10.0.0.9:80
http beat api 10.0.0.9:80 at c
http deregister api 10.0.0.9:80 at a
expect within 3s: query api everywhere shows nothing
silent c1
expect within 40s: query web everywhere shows nothing
members c: a c
expect within 5s: c counts a UP
"""


SLOW_LINKS = """
language 2
nodes a b
connect c1 a
connect c2 a
register c1 web 10.0.0.1:80 version=1
expect within 2s: b has c1 web 10.0.0.1:80 version=1
delay a->b 300ms
register c1 web 10.0.0.1:80 version=2
advance 1.1s                   # sent, and under way
expect b has c1 web 10.0.0.1:80 version=1
expect within 300ms: b has c1 web 10.0.0.1:80 version=2
delay a->b 0ms
advance 1s
throttle a->b 400ms
register c1 web 10.0.0.1:80 version=3
advance 100ms
register c2 api 10.0.0.2:80
advance 1s                     # both are sent, a tenth of a second apart, and reports want their turn too
expect within 1s: b has c1 web 10.0.0.1:80 version=3
expect b has no c2
expect within 1s: b has c2
throttle a->b 0ms
advance 1s
blackhole a->b
register c1 web 10.0.0.1:80 version=4
expect for 2s: b has c1 web 10.0.0.1:80 version=3
heal a->b
expect within 15s: b has c1 web 10.0.0.1:80 version=4
reorder a->b CHANGE c1
register c1 web 10.0.0.1:80 version=5
advance 100ms
register c2 api 10.0.0.2:80 version=2
advance 950ms
expect b has c1 web 10.0.0.1:80 version=4
advance 100ms
expect b has c2 api 10.0.0.2:80 version=2
expect b has c1 web 10.0.0.1:80 version=5
"""


@pytest.mark.parametrize("line", ["delay a->b 1s", "throttle a->b 1s", "blackhole a->b", "reorder a->b CHANGE"])
@pytest.mark.parametrize("tail", ["", "\nexpect model agrees"], ids=["model", "lockstep"])
def test_where_a_message_takes_no_time_a_slow_link_is_refused_with_what_says_the_rest(line: str, tail: str) -> None:
    played = replay(parse(f"nodes a b\n{line}{tail}"), target="embedded" if tail else "model")
    assert played.verdict is Verdict.INCONCLUSIVE
    assert "hold, deliver and drop say the rest" in played.steps[-1].outcome


@pytest.mark.parametrize(
    "text", [ONE_REQUEST, OTHER_CLIENTS, SLOW_LINKS], ids=["one request", "other clients", "slow links"]
)
def test_scenario_words_do_on_nodes_what_they_state(text: str) -> None:
    assert_scenario(text, target="embedded")


def test_a_request_that_is_not_there_cannot_be_decided() -> None:
    with pytest.raises(ScenarioError, match="'deliver a->b CHANGE' makes no sense here: no such request waits"):
        replay(parse("nodes a b\nhold a->b\ndeliver a->b CHANGE"), target="embedded")
