"""Clients of the HTTP API at one node among played members: forwarded, beaten for, inherited, and explained."""

from __future__ import annotations

import pytest

from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.language.replay import replay
from distro_conformance.language.text import parse
from distro_conformance.verdict import Verdict
from distro_conformance.walks import side_by_side
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions, WalkResult
from distro_conformance.walks.side_by_side import _lane_of, _of_lane, drawn
from distro_conformance.wire.transports import TransportKind
from distro_model.actions import BaseHttpRequest, Connect, Crash, HttpRegister, PeerRequest, Swallow
from distro_model.outside import NodeOutside, Slack, Unexplained
from distro_model.profiles import profile_named
from distro_model.rules.owners import place

LIFE = """
nodes a b c d
played b c d
http register web 10.0.1.4:80 at a
http register web 10.0.1.3:80 at a
answer c CHANGE fail 10.0.1.4:80#true
advance 5s
http beat web 10.0.1.4:80 at a
say b CHANGE 10.0.1.3:80#true revision 1 api 10.0.1.3:80
say b VERIFY 10.0.1.3:80#true revision 0
say c DELETE 10.0.1.8:80#true
advance 12s
http register api 10.0.1.8:80 version=2 at a
http deregister web 10.0.1.4:80 at a
advance 2s
crash d
advance 31s
http register api 10.0.1.3:80 at a
http register api 10.0.1.8:80 at a
advance 31s
restart d
advance 40s
advance 75s
expect model agrees
"""


def lived(**about: str) -> Verdict:
    return replay(parse(LIFE), target="embedded", options=ClusterOptions(**about)).verdict


@pytest.mark.parametrize("profile", ["strict", "nacos-2.0.4", "nacos-2.2.4", "nacos-2.5.1"])
def test_a_life_of_http_clients_among_members_is_explained(profile: str) -> None:
    assert lived(profile=profile) is Verdict.CONFORMS


@pytest.mark.parametrize("mutant", ["B15", "m-beats-are-never-missed", "m-ip-port-clients-are-called-otherwise"])
def test_a_changed_node_is_not(mutant: str) -> None:
    assert lived(mutant=mutant) is Verdict.VIOLATES


def searched(**options: object) -> WalkResult:
    wanted = {
        "among_played": True,
        "http": True,
        "transport": TransportKind.MEMORY,
        "seed": 1,
        "seconds": 60.0,
        **options,
    }
    return random_walks(WalkOptions(**wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("profile", "seed", "runs"),
    [
        ("strict", 3, 3),
        *(pytest.param(each, 2, 8, marks=pytest.mark.slow) for each in ("strict", "nacos-2.2.4")),
    ],
)
def test_random_runs_with_http_clients_are_explained(profile: str, seed: int, runs: int) -> None:
    done = searched(profile=profile, seed=seed, runs_max=runs, steps_per_run=60)
    assert done.verdict is Verdict.CONFORMS, done.failure and done.failure.message
    assert done.runs_with_http == done.runs
    rules, guards = done.coverage["rules beside nodes"], done.coverage["guards beside nodes"]
    assert min(rules[each] for each in ("route-a-request", "check-beats", "name-the-owner", "renew-by-a-verify")) > 0
    assert guards["is_passed_on: yes"] > 0


@pytest.mark.parametrize(
    ("mutant", "seed"), [("D7", 1), pytest.param("m-beat-heals-nobody", 2, marks=pytest.mark.slow)]
)
def test_the_search_finds_what_only_http_clients_show(mutant: str, seed: int) -> None:
    """It takes seconds; a machine that is busy with something else must not decide."""
    found = searched(mutant=mutant, seed=seed, seconds=600.0, shrink_seconds=20.0).failure
    assert found is not None
    assert any(isinstance(step, BaseHttpRequest) for step in found.scenario.steps)
    assert replay(found.scenario, target="embedded").reproduced


def test_every_other_round_has_http_clients_and_in_real_time_every_third_run() -> None:
    options = WalkOptions(among_played=True)
    assert [options.has_http(number) for number in range(4)] == [False, True, False, True]
    of_each = [any(isinstance(action, BaseHttpRequest) for action in run) for run in drawn(1)]
    assert len(of_each) == sum(side_by_side.RUNS.values()) == 24
    assert 0 < sum(of_each) <= 8
    assert not any(of_each[:16])


def test_each_run_in_real_time_has_addresses_of_its_own_with_the_same_owners() -> None:
    asked = HttpRegister("web", "10.0.1.4:80 version=1", "a")
    seventh, eighth = _of_lane(asked, 7), _of_lane(asked, 8)
    assert isinstance(seventh, HttpRegister)
    assert isinstance(eighth, HttpRegister)
    assert seventh.service == "web-7"
    assert seventh.instance.endswith(".7.4:80 version=1")
    assert seventh.client != eighth.client
    assert place(seventh.client.partition("#")[0], 4) == place("10.0.1.4:80", 4)
    swallowed = _of_lane(Swallow("a", "b", "CHANGE", asked.client), 7)
    assert isinstance(swallowed, Swallow)
    assert swallowed.client == seventh.client
    said = _of_lane(PeerRequest("b", "CHANGE", asked.client, 1, (("web", "10.0.1.4:80"),)), 7)
    assert isinstance(said, PeerRequest)
    assert (said.client, said.content) == (seventh.client, (("web-7", seventh.client.partition("#")[0]),))
    assert _of_lane(Crash("b"), 7) == Crash("b")


def test_a_finding_belongs_to_the_run_of_its_client() -> None:
    for client, run in (("c1-7", 7), ("10.3.24.2:80#true", 24), (None, None)):
        error = ValueError()
        error.__cause__ = Unexplained("take-a-copy", client, "it shows", "unknown")
        assert _lane_of(error) == run  # type: ignore[arg-type]


def test_only_the_node_under_test_takes_http_clients_and_only_where_it_has_the_api() -> None:
    with_api, without = PeersCluster(serves_http=True), PeersCluster()
    with_api.names = without.names = ("a", "b")
    with_api.oracle.outside = without.oracle.outside = NodeOutside("a", ["b"], profile_named("nacos-2.0.4"), Slack())
    asked = HttpRegister("web", "10.0.1.4:80", "a")
    assert with_api.cannot(asked) is None
    assert without.cannot(asked) == "the nodes were started without their HTTP API"
    assert with_api.cannot(HttpRegister("web", "10.0.1.4:80", "b")) == "b is played, and takes no clients"
    assert with_api.cannot(HttpRegister("web", "10.0.1.4:80", "a", by_v2=True)) == (
        "nodes of nacos-2.0.4 know no version 2 of the HTTP API"
    )
    assert with_api.cannot(Connect("c1", "a")) is None
