"""Former differences of the model from docs/protocol: each test failed before the rule was corrected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.events import CallEnded, LeaseCheckDue, LoadDue, RequestReceived, TaskDue
from distro_model.explorer import explore
from distro_model.messages import FAIL, TIMEOUT, UNREACHABLE, Answer, CallResult, Change, Delete, Report, batch_of
from distro_model.node import Action, Client, Member, MemberState, NodeState, Task, fresh_node
from distro_model.profiles import PROFILES, RELEASES, STRICT
from distro_model.properties import PROPERTIES
from distro_model.rules import load, torn
from distro_model.search.graph import state_graph
from distro_model.step import whole_step

NODE = fresh_node("a", ["b"], 0).with_client(Client("c1", True, 1, (("web", "10.0.0.1:80"),), 0))
BEFORE_2_2_1 = ("nacos-2.0.0", "nacos-2.0.4", "nacos-2.1.2", "nacos-2.2.0")
FROM_2_2_1 = ("nacos-2.2.4", "nacos-2.3.0", "nacos-3.0.3", "strict")


def after(node, event, profile):
    return whole_step(node, event, PROFILES[profile] if isinstance(profile, str) else profile).node


def retries(*results, requests=(Change("c1", 1, ()), Delete("c1"))):
    """By profile, request and result: the delays of the tasks that are left."""
    return {
        (name, str(request), result): [
            task.delay_ms for task in after(NODE, CallEnded(0, "b", request, Answer(result)), name).tasks
        ]
        for name in PROFILES
        for request in requests
        for result in results
    }


def test_a_sync_is_retried_after_every_failure_that_the_sender_observes():
    """#sync-result: an ErrorResponse and an answer that is no JSON too, as running servers have shown."""
    found = retries(CallResult.ERROR, CallResult.TIMEOUT)
    assert found == {each: [PROFILES[each[0]].retry_delay_ms] for each in found}


def test_a_sync_is_not_retried_where_the_sender_does_not_observe_the_failure():
    """#sync-unreadable: the answer cannot be read, or has a type that the sender does not know (B42)."""
    found = retries(CallResult.UNREADABLE, CallResult.UNHEARD, requests=(Delete("c1"),))
    assert {each: len(delays) for each, delays in found.items()} == {each: each[0] == "strict" for each in found}


class TestRevisionOfBatches:
    """#receive-revision: 2.1.2 to 2.2.4 take the revision over when the data holds a batch."""

    COPY = fresh_node("b", ["a"], 0).with_client(Client("c1", False, 1, (("web", "10.0.0.1:80"),), 0))
    BATCH = (("api", batch_of(("10.0.0.1:80", "10.0.0.1:81"))), ("web", "10.0.0.1:80"))

    def held(self, content, profile):
        return after(self.COPY, RequestReceived(0, "a", Change("c1", 2, content)), profile).client("c1").revision

    @pytest.mark.parametrize("profile", ["nacos-2.1.2", "nacos-2.2.0", "nacos-2.2.4"])
    def test_with_a_batch_it_is_taken_over_and_without_one_it_is_not(self, profile):
        assert (self.held(self.BATCH, profile), self.held(self.BATCH[1:], profile)) == (2, 1)

    @pytest.mark.parametrize("profile", ["nacos-2.3.0", "nacos-3.0.3", "strict"])
    def test_later_it_always_is(self, profile):
        assert (self.held(self.BATCH, profile), self.held(self.BATCH[1:], profile)) == (2, 2)


@pytest.mark.parametrize("release", [each.name for each in RELEASES])
def test_copies_of_ip_port_clients_end_from_2_0_3_on(release):
    """#lease-ip-port-copies"""
    profile = PROFILES[release]
    copy = Client("10.0.0.9:80#true", False, 7, (("web", "10.0.0.9:80"),), 0, (("web", 0),))
    nodes = [fresh_node(name, [other], 0).with_client(copy) for name, other in (("a", "b"), ("b", "a"))]
    left = [after(node, LeaseCheckDue(profile.lease_ms + 1), profile).client(copy.name) for node in nodes]
    stay = release in {"nacos-2.0.0", "nacos-2.0.1", "nacos-2.0.2"}
    assert left == ([copy, copy] if stay else [None, None])


class TestReports:
    """#member-report-end: over HTTP up to 2.2.0, over gRPC from 2.2.1."""

    def judged(self, answer, profile):
        return after(NODE, CallEnded(0, "b", Report(), answer), profile).member("b")

    @pytest.mark.parametrize("profile", BEFORE_2_2_1)
    @pytest.mark.parametrize("answer", [TIMEOUT, FAIL, Answer(CallResult.ERROR)], ids=str)
    def test_over_http_a_time_out_is_a_failure(self, profile, answer):
        assert self.judged(answer, profile) == Member("b", MemberState.SUSPICIOUS, 1)

    @pytest.mark.parametrize("profile", BEFORE_2_2_1)
    def test_over_http_a_refused_connection_means_down_at_once(self, profile):
        assert self.judged(UNREACHABLE, profile) == Member("b", MemberState.DOWN, 1)

    @pytest.mark.parametrize("profile", FROM_2_2_1)
    def test_over_grpc_a_time_out_says_nothing_and_no_connection_is_a_failure(self, profile):
        assert self.judged(TIMEOUT, profile) == Member("b")
        assert self.judged(UNREACHABLE, profile) == Member("b", MemberState.SUSPICIOUS, 1)


class TestDefectsOfReleases:
    """B05 and B32 are in releases, not only in mutants."""

    def test_every_release_reads_and_applies_in_parts(self):
        """#receive-torn, #sync-torn: and a search over the parts finds the consequence."""
        releases = [PROFILES[each.name] for each in RELEASES]
        assert all(each.has(torn.on_change) and each.has(torn.on_task_due) for each in releases)
        bounds = Bounds(torn=1, drops=0, max_states=5_000)
        expected = ("INV-REV", "INV-VERIFY", "INV-CONV")
        explored = explore(bounds, PROFILES["nacos-2.3.2"], [PROPERTIES[name] for name in expected])
        assert [result.holds for result in explored.results] == [False] * 3

    def test_in_time_nothing_comes_between_the_parts(self):
        change = RequestReceived(0, "a", Change("c2", 2, (("api", "10.0.0.2:80"), ("web", "10.0.0.2:80"))))
        for release in RELEASES:
            done = whole_step(fresh_node("b", ["a"], 0), change, PROFILES[release.name])
            assert done.node.applies == ()
            assert len(done.outputs) == 1

    @pytest.mark.parametrize("release", [each.name for each in RELEASES])
    def test_content_sent_in_parts_has_no_revision_where_none_travels(self, release):
        """#distro-content"""
        owner = NODE.with_task(Task("c1", "b", Action.CHANGE, 0, 0))
        (sent,) = whole_step(owner, TaskDue(0, "c1", "b"), PROFILES[release]).outputs
        assert sent.request.revision == (1 if PROFILES[release].revisions_travel else 0)

    @pytest.mark.parametrize("release", [each.name for each in RELEASES])
    def test_up_to_2_2_0_the_first_load_asks_no_member(self, release):
        """#load-first"""
        asks = bool(whole_step(fresh_node("b", ["a"], 0), LoadDue(0), PROFILES[release]).outputs)
        names = [each.name for each in RELEASES]
        assert asks is (names.index(release) >= names.index("nacos-2.2.4"))
        assert asks is PROFILES[release].has(load.knows_a_peer)


class TestSuspicious:
    """A member is SUSPICIOUS before it is DOWN (#member-report-end), for a search too: the load argues from it."""

    BOUNDS = Bounds(clients=1, changes=0, drops=0, swallows=0, crashes=1, flips=1, suspicions=1, in_flight=1)

    def states_seen(self, bounds):
        graph = state_graph(bounded_cluster(bounds, STRICT))
        nodes = {each for number in range(graph.states) for each in graph.row(number) if isinstance(each, NodeState)}
        return {member.state for node in nodes for member in node.members}

    def test_it_is_reached(self):
        assert self.states_seen(self.BOUNDS) == set(MemberState)
        assert self.states_seen(replace(self.BOUNDS, suspicions=0)) == {MemberState.UP, MemberState.DOWN}

    def test_strict_holds_where_it_is(self):
        explored = explore(self.BOUNDS, STRICT)
        assert explored.complete
        assert [result.name for result in explored.results if result.holds is False] == []
