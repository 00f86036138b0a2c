"""Silent clients, batches, changing lists, refusals: nodes and model agree about each, and a broken node is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.language.replay import assert_scenario, replay
from distro_conformance.language.text import parse
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.result import WalkOptions
from distro_conformance.wire.transports import TransportKind

pytestmark = pytest.mark.wire

SILENT = """
nodes a b c
connect c1 a
register c1 web 10.0.0.1:80
connect c2 a
register c2 web 10.0.0.2:80
advance 2.3s
silent c1
advance 1.1s
silent c2
advance {pause}
answers c2
advance 300ms
register c2 api 10.0.0.2:81
advance 8s
expect b has {c1}
expect b has c2 api 10.0.0.2:81
expect model agrees
"""
SILENT_FOR_EVER = """
nodes a b
connect c1 a
register c1 web 10.0.0.1:80
silent c1
advance 6s
expect b has c1
advance 30s
expect b has no c1
expect model agrees
"""
BATCH = """
nodes a b
connect c1 a
batch c1 web 10.0.0.1:81, 10.0.0.1:80
register c1 api 10.0.0.1:82
advance 1.2s
batch c1 web 10.0.0.1:83, 10.0.0.1:84
batch c1 api 10.0.0.1:85, 10.0.0.1:86
advance 20s
expect b has c1 web 10.0.0.1:84
expect query web at b shows 10.0.0.1:83 and 10.0.0.1:84
expect model agrees
"""
LISTS = """
nodes a b c
members a: a c
connect c1 a
register c1 web 10.0.0.1:80
advance 6s
expect b has no c1
crash a
restart a
connect c2 a
register c2 web 10.0.0.2:80
advance 3s
expect b has no c2
members a: a b c
advance 20s
expect b has c2
expect model agrees
"""
NEWCOMER = """
nodes a b c
members a: a b
crash c
connect c1 a
register c1 web 10.0.0.1:80
advance 2s
members a: a b c
restart c
register c1 web 10.0.0.1:81
advance 1100ms
expect model agrees
"""
ROUND = """
# A load asks the nodes that were members when its round began.
nodes a b c
members b: a b
crash b
drop b->a SNAPSHOT
restart b
members b: a b c
advance 70s
expect b loads from a
expect model agrees
"""
REFUSALS = """
# c refuses every request of a for 40 s, and is repaired when it accepts them again.
nodes a b c
connect c1 a
register c1 web 10.0.0.1:80
advance 2s
refuse a->c
register c1 web 10.0.0.1:81
connect c2 a
register c2 web 10.0.0.2:80
advance 6s
disconnect c2
lose-reply a->c VERIFY c1
advance 34s
expect c has c1 web 10.0.0.1:80
expect c has no c2
expect a counts c UP
heal a->c
advance 10s
expect c has c1 web 10.0.0.1:81
expect model agrees
"""
REFUSED_FAULTS = """
# What else was to become of a request that is refused makes no difference, but where it or its reply is lost.
nodes a b
connect c1 a
refuse a->b
hold a->b
register c1 web 10.0.0.1:80
advance 1100ms
duplicate held a->b CHANGE c1
deliver a->b CHANGE c1
garble a->b CHANGE c1
release a->b
advance 3.2s
swallow a->b CHANGE c1
advance 8s
crash b
restart b
refuse b->a
crash b
restart b
advance 31s
heal b->a
heal a->b
advance 70s
expect all agree
expect model agrees
"""
HTTP = """
nodes a b c
http register web 10.0.1.1:80 version=1 at a
http register web 10.0.1.2:80 at a
advance 1.2s
swallow c->a CHANGE 10.0.1.2:80#true
advance 11.9s
http beat web 10.0.1.1:80 version=1 at c
advance 20s
http beat web 10.0.1.1:80 version=1 at c
http register api 10.0.1.1:80 at c
advance 2s
http deregister web 10.0.1.1:80 at a
advance 12s
drop b->a VERIFY 10.0.1.1:80#true
advance 60s
expect b has no 10.0.1.1:80#true
expect a has no 10.0.1.2:80#true
expect model agrees
"""
MOVED = """
nodes a b c
members b: b c
members c: b c
advance 3.5s
http register web 10.0.1.3:80 version=1 at c    # a's, if a were on the list
advance 1.2s
http register web 10.0.1.3:80 version=2 at c
members c: a b c                                # b's, until a has reported
advance 800ms
members b: a b c
advance 20s
expect all agree
expect model agrees
"""
WAITING = """
nodes a b c
members c: b c
advance 2100ms
members b: b c
http register api 10.0.1.3:80 version=2 at a
advance 1400ms
members c: a b c
http beat api 10.0.1.3:80 version=2 at b        # c's still; its CHANGE waits when a reports
advance 1s
members b: a b c
advance 20s
expect model agrees
"""
SWAPPED = """
# The revision of such a client is a sum: one instance recovers as the other falls ill, and it stays the same.
nodes a b
http register web 10.0.1.2:80 at b
advance 28.2s
http register api 10.0.1.2:80 at b
advance 31s
http register web 10.0.1.2:80 at a
advance 1.1s
expect model agrees
"""


FORWARDED = """
# Servers forward a request from main port to main port; what is cut is the link of the cluster port.
nodes a b
cut b->a
http register web 10.0.1.2:80 at b
expect a has 10.0.1.2:80#true web 10.0.1.2:80
expect model agrees
"""


@pytest.mark.parametrize("target", ["embedded", "model"])
def test_a_request_is_forwarded_past_a_cut_link(target: str) -> None:
    assert_scenario(FORWARDED, target=target, profile="nacos-2.2.4")


METADATA_SWAPPED = """
# A member misses a change in which two services of a client swap their metadata: only a sum does not see it.
nodes a b
advance 31s
http register web 10.0.1.2:80 version=1 at a
http register api 10.0.1.2:80 version=2 at a
advance 6s
swallow a->b CHANGE 10.0.1.2:80#true
http register web 10.0.1.2:80 version=2 at a
http register api 10.0.1.2:80 version=1 at a
advance 9s
expect b has 10.0.1.2:80#true web 10.0.1.2:80 version={version}
expect model agrees
"""


@pytest.mark.parametrize(("profile", "version"), [("strict", 2), ("nacos-2.3.2", 1)])
def test_services_that_swap_their_metadata_have_the_same_revision_in_releases_only(profile: str, version: int) -> None:
    assert_scenario(METADATA_SWAPPED.format(version=version), target="embedded", profile=profile)


@pytest.mark.parametrize("seconds", [0, 1, 2, 3, 4])
def test_the_revision_of_a_client_of_the_http_api_forgets_which_of_its_instances_is_ill(seconds: int) -> None:
    """Wherever the verify falls: nodes and model confirm the same copies."""
    later = SWAPPED.replace("nodes a b", f"nodes a b\nadvance {seconds}s")
    assert_scenario(later, target="embedded", profile="nacos-2.3.2")


@pytest.mark.parametrize("profile", ["strict", "nacos-2.0.4", "nacos-2.2.4", "nacos-2.3.2"])
def test_clients_of_the_http_api_live_by_their_beats_as_in_the_model(profile: str) -> None:
    assert_scenario(HTTP, target="embedded", profile=profile)


@pytest.mark.parametrize("profile", ["strict", "nacos-2.0.4", "nacos-2.2.4", "nacos-3.0.3"])
@pytest.mark.parametrize("text", [MOVED.replace("expect all agree\n", ""), WAITING])
def test_clients_of_the_http_api_change_owners_as_in_the_model(text: str, profile: str) -> None:
    assert_scenario(text, target="embedded", profile=profile)


@pytest.mark.parametrize("profile", ["strict", "nacos-2.2.4", "nacos-2.3.2"])
def test_a_client_that_answers_again_in_time_stays(profile: str) -> None:
    kept = "c1" if profile == "nacos-2.2.4" else "c2"  # no connection is ever checked there (B03)
    assert_scenario(SILENT.format(pause="21.1s", c1=kept), target="embedded", profile=profile)


ONE_TICK = """
profile nacos-2.1.1
nodes a b c
hold distro a->b
advance 1ms
connect c1 a
advance 4.1s
register c1 web 10.0.0.1:80 v=1
advance 10.1s
swallow held a->b CHANGE c1
advance 4.8s
register c1 web 10.0.0.1:80 v=2
advance 186s
silent c1
refuse a->c
advance 27s
expect model agrees
"""


def test_a_delete_that_is_due_when_it_is_queued_waits_for_the_tick_after_that_of_its_instant() -> None:
    """c1 is ejected in the instant of a tick that has just repeated the CHANGE to c; its DELETE to b is due at once."""
    assert_scenario(ONE_TICK, target="embedded")


THIRD_STAYS_DOWN = """
nodes a b c
crash a
crash b
crash c
restart a
restart b
advance 200s
expect model agrees
"""
"""Two of three nodes start: each loads without the third once it takes that for DOWN."""


@pytest.mark.parametrize(
    "text",
    [THIRD_STAYS_DOWN, SILENT_FOR_EVER, BATCH, LISTS, NEWCOMER, ROUND, REFUSALS, REFUSED_FAULTS, HTTP, MOVED, WAITING],
)
def test_nodes_and_model_agree(text: str) -> None:
    for target in ("embedded", "model"):
        assert_scenario(text, target=target, profile="strict")


@pytest.mark.parametrize(
    ("mutant", "text"),
    [
        ("B03", SILENT_FOR_EVER),
        ("m-asked-early", SILENT_FOR_EVER),
        ("B18", BATCH),
        ("B36", NEWCOMER),
        ("m-load-waits-for-down", THIRD_STAYS_DOWN),
        ("B06", HTTP),
        ("m-beats-are-never-missed", HTTP),
        ("m-beat-heals-nobody", HTTP),
        ("m-beat-renews-nothing", HTTP),
        ("m-http-deregistration-is-forgotten", HTTP),
        ("m-ip-port-clients-are-not-verified", HTTP),
        ("B22", MOVED),
        ("m-heir-verifies-nothing", MOVED),
        ("m-conclusions-are-handed-over", MOVED),
        ("m-joined-member-is-sent-nothing", MOVED),
        ("m-former-owner-drops-what-waits", MOVED),
    ],
)
def test_a_broken_node_parts_from_the_model(mutant: str, text: str) -> None:
    assert replay(parse(text), target="embedded", options=ClusterOptions(profile="strict", mutant=mutant)).reproduced


POISONED_SNAPSHOT = """
nodes a b c
crash a
members b: a b
cut c->b
cut a->c
restart a
heal a->c
heal c->b
connect c3 b
drop c->a SNAPSHOT
crash c
connect c4 a
register c4 api 10.0.0.4:80 version=1
cut c->b
restart c
silent c4
advance 32s
answers c4
batch c4 api 10.0.0.4:90, 10.0.0.4:91, 10.0.0.4:92
advance 29.4s
expect model agrees
"""


def test_the_elements_of_a_snapshot_before_one_that_cannot_be_applied_are_applied() -> None:
    """c has the single instance of c4 and receives its batch, with c3, in one snapshot (B19)."""
    assert_scenario(POISONED_SNAPSHOT, target="embedded", profile="nacos-2.2.4")


@pytest.mark.parametrize("target", ["model", "embedded"])
def test_a_node_of_a_release_without_batches_is_not_asked_for_one(target: str) -> None:
    result = replay(parse(BATCH), target=target, options=ClusterOptions(profile="nacos-2.0.4"))
    assert result.steps[-1].outcome == "cannot be done: nodes of nacos-2.0.4 know no batches"


BY_V2 = """
nodes b c
http register web 10.0.1.3:80 version=2 at c
advance 2s
swallow c->b CHANGE 10.0.1.3:80#true
http register web 10.0.1.3:80 version=2 at c by v2
advance 6s
http register web 10.0.1.3:80 version=2 cluster=blue at c by v2
advance 6s
http beat web 10.0.1.3:80 version=2 at b
advance 6s
expect model agrees
"""


@pytest.mark.parametrize("profile", ["strict", "nacos-2.2.4", "nacos-2.3.2", "nacos-3.0.3"])
def test_an_instance_that_is_registered_by_version_2_has_no_id_and_so_is_another(profile: str) -> None:
    """A node that misses the CHANGE to it fails the verify, and up to 2.2.4 does not see that its cluster changes.
    Version 3 of the API gives it one."""
    assert_scenario(BY_V2, profile=profile, target="embedded")


@pytest.mark.parametrize("target", ["model", "embedded"])
def test_a_node_of_a_release_without_version_2_is_not_asked_by_it(target: str) -> None:
    result = replay(parse(BY_V2), target=target, options=ClusterOptions(profile="nacos-2.1.2"))
    assert result.steps[-1].outcome == "cannot be done: nodes of nacos-2.1.2 know no version 2 of the HTTP API"


NOT_LOADED = """
# A node that has not loaded refuses a SNAPSHOT, and is asked for each client: for those of the HTTP API too.
nodes a b
cut a->b
crash a
restart a
http register web 10.0.1.2:80 at a
expect model agrees
"""

OWNER_IN_AN_INSTANT = """
# c is found DOWN in the very instant in which a looks for beats, and only then is the client a's.
profile nacos-2.3.2
nodes a b c
crash c
crash a
restart a
http register web 10.0.1.2:80 at a by v2
advance 15s
expect model agrees
"""

LOADED_IN_AN_INSTANT = """
# b stops waiting for a and verifies the loaded clients in the same instant.
profile nacos-2.2.4
nodes a b c
drop b->a SNAPSHOT
cut c->b
crash b
crash a
advance 15s
http beat api 10.0.1.4:80 version=1 at c
restart a
restart b
advance 37.5s
expect model agrees
"""


@pytest.mark.parametrize("text", [NOT_LOADED, OWNER_IN_AN_INSTANT, LOADED_IN_AN_INSTANT])
def test_clients_of_the_http_api_live_through_crashes_and_cuts_as_in_the_model(text: str) -> None:
    assert_scenario(text, target="embedded")


UNKNOWN_SERVICE = """
# A request to the owner about a service that it does not know renews nothing, not even the lease of the client.
profile nacos-2.2.4
nodes a b c
{before}
http register web 10.0.1.1:80 at a
advance 14s
http deregister api 10.0.1.1:80 at a
advance 100s
expect model agrees
"""


@pytest.mark.parametrize("before", ["", "http register api 10.0.1.2:80 at a"])
def test_a_deregistration_renews_a_client_where_its_service_is_known(before: str) -> None:
    assert_scenario(UNKNOWN_SERVICE.format(before=before), target="embedded")


def drawn(profile: str, *, runs: int, seed: int = 3, http: bool | None = None) -> Mapping[str, int]:
    some = WalkOptions(profile=profile, runs_max=runs, steps_per_run=60, seed=seed, rare_starts=False, http=http)
    found = random_walks(replace(some, transport=TransportKind.MEMORY))
    assert found.failure is None, found.failure
    return {**found.coverage["actions"], **found.coverage["guards beside nodes"]}


def test_a_walk_does_all_of_this() -> None:
    done = drawn("strict", runs=2)
    assert all(done[each] for each in ("register batch", "fall silent", "list members", "refuse")), done
    assert not drawn("nacos-2.0.4", runs=2)["register batch"]


@pytest.mark.parametrize(
    ("profile", "seed", "runs"),
    [("strict", 3, 3), *(pytest.param(each, 5, 15, marks=pytest.mark.slow) for each in ("strict", "nacos-2.2.4"))],
)
def test_a_walk_that_is_asked_for_them_has_clients_of_the_http_api(profile: str, seed: int, runs: int) -> None:
    done = drawn(profile, runs=runs, seed=seed, http=True)
    wanted = ("http register", "http beat", "http deregister", "drop", "swallow", "list members", "has_v2: yes")
    assert all(done[each] for each in (*wanted, "cut", "crash", "refuse")), done


@pytest.mark.slow
def test_some_of_all_walks_have_clients_of_the_http_api_and_notice_what_is_broken_there() -> None:
    some = WalkOptions(
        seconds=300.0, runs_max=24, steps_per_run=20, seed=4, rare_starts=False, transport=TransportKind.MEMORY
    )
    whole = random_walks(some)
    assert whole.failure is None, whole.failure
    assert 0 < whole.runs_with_http < whole.runs == 24
    broken = replace(some, mutant="m-ip-port-clients-are-not-verified", shrink_seconds=0)
    assert random_walks(broken).failure is not None
    assert random_walks(replace(broken, http=False)).failure is None
