"""Verify, leases, revisions, the first load and the members. docs/protocol #member-report, #verify-round to
#load-asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distro_model.actions import Advance, Connect, Crash, Cut, Drop, Heal, Hold, Register, Restart, Swallow
from distro_model.clock.cluster import View, start
from distro_model.events import CallEnded, LeaseCheckDue, RequestReceived
from distro_model.messages import SUCCESS, UNREACHABLE, Answer, CallResult, Change, Delete, Report, Snapshot, Verify
from distro_model.node import Client, Member, MemberState, fresh_node
from distro_model.possible import PossibleStates
from distro_model.profiles import NACOS_2_2_4, PROFILES, STRICT, profile_named
from distro_model.rules import load
from distro_model.step import step, whole_step

WEB_1 = "10.0.0.1:80 v=1"
WEB_2 = "10.0.0.1:80 v=2"


def changed_unnoticed(lab):
    """b holds the first content, the owner has the second, and believes that b has it too."""
    delay_ms = lab.profile.sync_delay_ms
    lab.do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(delay_ms)
    return lab.do(Register("c1", "web", WEB_2), Swallow("a", "b", "CHANGE")).run(delay_ms)


class TestVerify:
    def test_it_comes_every_five_seconds_with_the_current_revision(self, cluster):
        lab = cluster().do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(15_000)
        assert lab.calls("VERIFY a->b") == [(at, "VERIFY a->b c1 revision 1: success") for at in (4000, 9000, 14_000)]

    def test_a_connection_that_publishes_nothing_is_made_known_by_it(self, cluster):
        """docs/protocol #sync-announce: verification of the unknown client fails, and the owner pushes an empty one."""
        lab = cluster().do(Connect("c1", "a")).run(4000)
        assert lab.outcomes("VERIFY a->b") == [CallResult.FAIL]
        assert lab.run(100).view("b", "c1") == View(0, ())

    @pytest.mark.parametrize("profile", ["nacos-2.2.4", "strict"])
    def test_another_revision_fails_and_is_repaired_within_a_tick(self, cluster, profile):
        lab = changed_unnoticed(cluster(profile))
        assert lab.instance("b", "c1") == WEB_1
        lab.run(2100)
        assert lab.calls("a->b", since_ms=4000)[0] == (4000, "VERIFY a->b c1 revision 2: fail")
        assert lab.instance("b", "c1") == WEB_2

    def test_the_repair_goes_to_the_peer_that_failed(self, cluster):
        lab = changed_unnoticed(cluster()).run(2100)
        assert [text for _, text in lab.calls("CHANGE", since_ms=3000)] == ["CHANGE a->b c1 revision 2: success"]

    def test_before_2_1_2_existence_is_enough(self, cluster):
        lab = changed_unnoticed(cluster("nacos-2.0.4")).run(30_000)
        assert set(lab.outcomes("VERIFY a->b")) == {CallResult.SUCCESS}
        assert lab.calls("VERIFY a->b")[0][1] == "VERIFY a->b c1 revision 0: success"

    @pytest.mark.parametrize("lost", [Drop("a", "b", "VERIFY"), Cut("a", "b")])
    def test_a_verify_that_is_not_answered_brings_nothing(self, cluster, lost):
        lab = cluster().do(Connect("c1", "a"), lost).run(8900)
        assert lab.calls("CHANGE a->b") == []

    def test_a_native_client_of_the_receiver_passes_without_a_lease(self):
        node = fresh_node("b", ["a"], 0).with_client(Client("c1", native=True, revision=1, content=(), renewed_ms=0))
        after = step(node, RequestReceived(7, "a", Verify("c1", 1)), STRICT)
        assert after.node == node

    @pytest.mark.parametrize(("profile", "passes"), [("nacos-2.2.4", True), ("strict", False)])
    def test_revision_zero_passes_on_releases_only(self, profile, passes):
        """D11."""
        node = fresh_node("b", ["a"], 0).with_client(Client("c1", native=False, revision=3, content=(), renewed_ms=0))
        (reply,) = step(node, RequestReceived(7, "a", Verify("c1", 0)), profile_named(profile)).outputs
        assert (reply.answer.result is CallResult.SUCCESS) == passes


class TestRevisions:
    @pytest.mark.parametrize(
        ("profile", "revision", "owners"), [("nacos-2.0.4", 0, 0), ("nacos-2.2.4", 1, 2), ("strict", 2, 2)]
    )
    def test_a_copy_after_a_second_change_has_the_revision_of_its_release(self, cluster, profile, revision, owners):
        """2.2.4 takes a revision over at creation only (B10); before 2.1.2 none travels."""
        lab = cluster(profile).run(3000).do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(2000)
        lab.do(Register("c1", "web", WEB_2)).run(2000)
        assert lab.view("b", "c1") == View(revision, (("web", WEB_2),))
        assert lab.view("a", "c1") == View(owners, (("web", WEB_2),))

    def test_b10_an_owner_syncs_in_vain_and_the_copy_blinks(self, cluster):
        """Every verify fails, no sync renews the lease, the copy expires and the next verify brings it back."""
        lab = cluster("nacos-2.2.4").do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(1000)
        lab.do(Register("c1", "web", WEB_2)).run(179_000)
        assert set(lab.outcomes("VERIFY a->b")) == {CallResult.FAIL}
        assert lab.view("b", "c1") == View(1, (("web", WEB_2),))
        seen = [lab.do(Advance(10)).view("b", "c1") for _ in range(1000)]
        assert None in seen  # every verify failed and no sync renewed: the lease ran out under a live client
        assert seen[-1] == View(2, (("web", WEB_2),))


class TestLease:
    def test_the_owner_crashes_and_its_clients_stay_for_three_minutes(self, cluster):
        lab = cluster().do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(4000).do(Crash("a"))
        lab.do(Advance(179_900))
        assert lab.instance("b", "c1") == WEB_1
        lab.do(Advance(5200))
        assert lab.view("b", "c1") is lab.view("c", "c1") is None

    def test_exactly_the_lease_is_not_yet_too_long(self):
        node = fresh_node("b", ["a"], 0).with_client(Client("c1", False, 1, (), renewed_ms=0))
        assert step(node, LeaseCheckDue(180_000), STRICT).node.client("c1") is not None
        assert step(node, LeaseCheckDue(180_001), STRICT).node.client("c1") is None

    @pytest.mark.parametrize(
        ("profile", "gap_ms", "survives"),
        [
            ("strict", 10_000, False),
            ("strict", 10_001, True),
            ("strict", 185_000, True),
            ("nacos-2.2.4", 185_000, False),
        ],
    )
    def test_b23_after_a_pause_every_lease_begins_again_in_strict(self, profile, gap_ms, survives):
        """Two periods and more without a check: the node was suspended, and the renewing requests are waiting."""
        copy = Client("c1", False, 1, (("web", WEB_1),), renewed_ms=0)
        native = Client("c2", True, 1, (), renewed_ms=0)
        node = fresh_node("b", ["a"], 0).with_client(copy).with_client(native)
        after = step(node, LeaseCheckDue(200_000, last_ms=200_000 - gap_ms), profile_named(profile)).node
        assert after.client("c1") == (replace(copy, renewed_ms=200_000) if survives else None)
        assert after.client("c2") == native

    def test_b23_the_lease_that_began_again_ends_as_any_other(self):
        node = fresh_node("b", ["a"], 0).with_client(Client("c1", False, 1, (), renewed_ms=0)).with_gone("c2", 0)
        node = step(node, LeaseCheckDue(200_000, last_ms=0), STRICT).node
        assert node.gone == (("c2", 200_000),)
        ended = step(node, LeaseCheckDue(380_001, last_ms=375_001), STRICT).node
        assert (ended.clients, ended.gone) == ((), ())

    def test_a_confirmed_verify_renews_it(self, cluster):
        """A copy that only verifies keep alive is there at every moment, far beyond one lease."""
        lab = cluster(nodes="ab").do(Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(1000))
        assert all(lab.do(Advance(1000)).instance("b", "c1") == WEB_1 for _ in range(380))

    def test_a_native_client_never_expires(self, cluster):
        lab = cluster().do(Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(400_000))
        assert lab.instance("a", "c1") == lab.instance("b", "c1") == WEB_1

    @pytest.mark.parametrize(("profile", "survives"), [("nacos-2.2.4", False), ("strict", True)])
    def test_a_client_that_changes_all_the_time(self, cluster, profile, survives):
        """B17: a sync renews the lease in strict only; here every verify gets lost."""
        lab = cluster(profile).do(Connect("c1", "a"))
        gone = False
        for version in range(50):
            lab.do(Drop("a", "b", "VERIFY"), Register("c1", "web", f"10.0.0.1:80 v={version}"), Advance(5000))
            gone = gone or (version > 0 and lab.view("b", "c1") is None)
        assert gone is not survives


class TestLoad:
    def test_members_are_asked_in_ascending_order_until_one_answers(self, cluster):
        lab = cluster().do(Crash("c"), Cut("c", "a"), Restart("c"))
        assert [text for _, text in lab.calls("SNAPSHOT")] == [
            "SNAPSHOT c->a: unreachable",
            "SNAPSHOT c->b: success",
        ]

    def test_a_restarted_node_knows_what_the_answering_node_knows(self, cluster):
        lab = cluster().do(Connect("c1", "a"), Connect("c2", "b"), Register("c1", "web", WEB_1)).run(6000)
        lab.do(Crash("c"), Restart("c"))
        assert lab.view("c", "c1") == View(1, (("web", WEB_1),))
        assert lab.view("c", "c2") == View(0, ())

    @pytest.mark.parametrize("profile", PROFILES)
    def test_without_an_answer_it_tries_again_later(self, cluster, profile):
        lab = cluster(profile, "ab").do(Crash("b"), Cut("b", "a"), Restart("b"), Heal("b", "a"))
        retry_ms = PROFILES[profile].load_retry_ms
        lab.run(retry_ms)
        asks_at_first = PROFILES[profile].has(load.knows_a_peer)  # from 2.2.1 on (B32)
        first = [(0, "SNAPSHOT b->a: unreachable")] if asks_at_first else []
        assert lab.calls("SNAPSHOT b->a") == [*first, (retry_ms, "SNAPSHOT b->a: success")]

    def test_a_node_that_is_not_loaded_syncs_but_does_not_verify(self):
        """docs/protocol #load-asks. Started alone, a has no member to load from for thirty seconds."""
        possible = PossibleStates.of(start("ab", STRICT)).after(Restart("a")).after(Advance(10)).after(Restart("b"))
        possible = possible.after(Connect("c1", "a")).after(Register("c1", "web", WEB_1)).after(Advance(29_000))
        assert [str(call) for call in possible.outcomes[0].traffic] == ["CHANGE a->b c1 revision 1: success"]

    def test_a_lost_snapshot_is_waited_for_longer_than_a_sync(self, cluster):
        lab = cluster("strict", "ab").do(Crash("b"), Drop("b", "a", "SNAPSHOT"), Restart("b")).run(61_000)
        assert [at_ms for at_ms, _ in lab.calls("SNAPSHOT")] == [30_000, 60_000]


class TestNativeClientsAndPeers:
    """B01, B41: the requests of a peer about a client that is connected here."""

    node = fresh_node("a", ["b", "c"], 0).with_client(Client("c1", True, 2, (("web", WEB_2),), 0))

    @pytest.mark.parametrize(("profile", "content"), [("nacos-2.2.4", WEB_1), ("strict", WEB_2)])
    def test_b01_a_stale_snapshot_rolls_back_what_a_release_owns(self, profile, content):
        stale = Answer(CallResult.SUCCESS, (Change("c1", 1, (("web", WEB_1),)), Change("c2", 4, ())))
        after = step(self.node, CallEnded(0, "b", Snapshot(), stale), profile_named(profile)).node
        assert dict(after.client("c1").content)["web"] == content
        assert after.client("c2") == Client("c2", False, 4, (), 0)  # the rest of the snapshot is taken all the same
        assert after.loaded

    @pytest.mark.parametrize("request_", [Change("c1", 1, (("web", WEB_1),)), Delete("c1")])
    def test_strict_refuses_and_says_so(self, request_):
        after = step(self.node, RequestReceived(0, "b", request_), STRICT)
        assert after.node == self.node
        assert after.outputs[0].answer.result is CallResult.FAIL

    def test_a_release_overwrites_and_sends_the_result_on(self):
        after = whole_step(self.node, RequestReceived(0, "b", Change("c1", 1, (("web", WEB_1),))), NACOS_2_2_4).node
        assert after.client("c1") == Client("c1", True, 2, (("web", WEB_1),), 0)
        assert [(task.action, task.target) for task in after.tasks] == [("CHANGE", "b"), ("CHANGE", "c")]

    def test_a_release_removes_it_and_announces_that(self):
        after = step(self.node, RequestReceived(0, "b", Delete("c1")), NACOS_2_2_4).node
        assert after.client("c1") is None
        assert [(task.action, task.target) for task in after.tasks] == [("DELETE", "b"), ("DELETE", "c")]

    def test_an_unknown_delete_is_a_success(self):
        after = step(fresh_node("b", ["a"], 0), RequestReceived(0, "a", Delete("c9")), STRICT)
        assert after.outputs[0].answer.result is CallResult.SUCCESS


class TestMembers:
    def state_of(self, lab, name):
        return lab.state.node("a").member(name)

    def test_reports_go_round_and_a_dead_member_is_suspected_then_down(self, cluster):
        lab = cluster(nodes="ab").do(Crash("b")).run(2000)
        assert self.state_of(lab, "b") == Member("b", MemberState.SUSPICIOUS, 1)
        lab.run(6000)
        assert self.state_of(lab, "b").state is MemberState.DOWN

    def test_it_takes_four_failures_in_a_row(self):
        """docs/protocol #member-report: DOWN when the count exceeds `fail-access-cnt`, 3."""
        node, states = fresh_node("a", ["b"], 0), []
        for _ in range(5):
            node = step(node, CallEnded(0, "b", Report(), UNREACHABLE), STRICT).node
            states.append(node.member("b").state)
        assert states == [MemberState.SUSPICIOUS] * 3 + [MemberState.DOWN] * 2

    def test_one_answered_report_forgets_all_failures(self):
        node = fresh_node("a", ["b"], 0).with_member(Member("b", MemberState.DOWN, 4))
        assert step(node, CallEnded(0, "b", Report(), SUCCESS), STRICT).node.member("b") == Member("b")

    def test_it_is_up_again_when_its_own_report_arrives(self, cluster):
        """D16: cut in one direction only, a member flaps."""
        lab = cluster(nodes="ab").do(Cut("a", "b"))
        states = [self.state_of(lab.do(Advance(10)), "b").state for _ in range(400)]
        assert {MemberState.UP, MemberState.SUSPICIOUS} == set(states)
        assert states.index(MemberState.UP, states.index(MemberState.SUSPICIOUS))  # and back again

    def test_an_unanswered_report_says_nothing(self, cluster):
        """D15: a hung peer stays UP."""
        lab = cluster(nodes="ab").do(Hold("a", "b")).run(20_000)
        assert self.state_of(lab, "b") == Member("b")

    def test_an_inbound_report_makes_up_but_forgets_no_failure(self, cluster):
        """docs/real-servers.md#a-played-member, against docs/protocol #member-report."""
        lab = cluster(nodes="ab").do(Cut("a", "b"))
        seen = {self.state_of(lab.run(100), "b") for _ in range(120)}
        assert Member("b", MemberState.UP, 3) in seen
        assert Member("b", MemberState.DOWN, 4) in seen
