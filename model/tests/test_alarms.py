"""Properties that no mutant of the table breaks are broken here by hand: each with a violation and a near miss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.cluster.alarms import left_out, snapshot_source
from distro_model.cluster.values import Connection, Life
from distro_model.events import CallEnded, LeaseCheckDue, LoadDue, RequestReceived, TaskDue, VerifyDue
from distro_model.explorer import explore
from distro_model.messages import FAIL, SUCCESS, TIMEOUT, Delete, Snapshot, Verify
from distro_model.node import Action, Client, Task, fresh_node
from distro_model.profiles import STRICT
from distro_model.properties import property_named
from distro_model.properties.checks import misrevised, misrevised_above_0, settled, unloaded
from distro_model.properties.steps import alarms, sent_by_non_owner

SINGLE = (("web", "10.0.0.1:80 v=1"),)
LIFE = Life("c1", "a", ((), SINGLE), 0, "10.0.0.1:80", Connection.OPEN)


def node(name, *clients):
    state = replace(fresh_node(name, ("a", "b"), 0), loaded=True)
    for client in clients:
        state = state.with_client(client)
    return state


def copy(revision=1, content=SINGLE, renewed_ms=0):
    return Client("c1", False, revision, content, renewed_ms)


def alarm(*transition):
    """The one finding of a step, if there is one."""
    found = alarms(*transition)
    assert len(found) < 2
    return found[0] if found else None


class TestOneStepThatShowsMoreThanOneThing:
    STOPPED = replace(fresh_node("b", ("a", "b"), 0), load_at_ms=None)

    def test_a_stopped_loader_that_gives_a_snapshot_breaks_two_properties(self):
        event = RequestReceived(0, "a", Snapshot())
        found = alarms(self.STOPPED, event, self.STOPPED, SUCCESS)
        assert [each.property_id for each in found] == ["INV-LOAD", "INV-INIT"]


class TestRenewal:
    EVENT = RequestReceived(5000, "a", Verify("c1", 2))

    def found(self, answer, renewed_ms):
        return alarm(node("b", copy()), self.EVENT, node("b", copy(renewed_ms=renewed_ms)), answer)

    def test_a_refused_verify_that_renews_is_seen(self):
        found = self.found(FAIL, 5000)
        assert (found.property_id, found.what) == (
            "INV-RENEW",
            "b refused VERIFY c1 revision 2, and renewed c1 nevertheless",
        )

    @pytest.mark.parametrize(("answer", "renewed_ms"), [(FAIL, 0), (SUCCESS, 5000)])
    def test_a_refusal_without_renewal_and_a_confirmation_pass(self, answer, renewed_ms):
        assert self.found(answer, renewed_ms) is None


class TestLoad:
    def found(self, asked, loader, life=LIFE, answer=SUCCESS):
        (gave,) = snapshot_source(CallEnded(0, asked.name, Snapshot(), answer), asked)
        return left_out(gave, loader, life)

    def test_a_client_that_the_snapshot_source_holds_is_missed(self):
        found = self.found(node("b", copy()), node("c"))
        assert (found.property_id, found.what) == ("INV-LOAD", "c has loaded from b and has no c1")

    def test_a_client_that_the_snapshot_source_lacks_or_the_loader_holds_is_not_missed(self):
        assert self.found(node("b"), node("c")) is None
        assert self.found(node("b", copy()), node("c", copy())) is None

    def test_a_member_that_refused_a_snapshot_gave_nothing(self):
        assert self.found(node("b", copy()), node("c"), answer=FAIL) is None

    def test_a_load_that_failed_and_a_client_that_is_gone_leave_nothing_to_miss(self):
        assert self.found(node("b", copy()), replace(node("c"), loaded=False)) is None
        assert self.found(node("b", copy()), node("c"), replace(LIFE, connection=Connection.ENDED)) is None

    def test_it_is_looked_at_after_a_crash(self):
        looked = explore(Bounds(changes=0, crashes=1, drops=0, swallows=0), STRICT, [property_named("INV-LOAD")])
        assert [each.holds for each in looked.results] == [True]

    def test_a_load_that_no_member_answered_is_not_complete(self):
        asking = replace(node("c"), loaded=False, asking="b")
        for answer, found in ((TIMEOUT, "c counts as loaded after timeout of b"), (FAIL, None), (SUCCESS, None)):
            seen = alarm(asking, CallEnded(0, "b", Snapshot(), answer), node("c"), None)
            assert (None if seen is None else seen.what) == found

    def test_a_load_in_which_no_member_was_asked_is_complete_only_without_members(self):
        starting = replace(node("c"), loaded=False)
        seen = alarm(starting, LoadDue(0), node("c"), None)
        assert (seen.property_id, seen.what) == ("INV-LOAD", "c counts as loaded before any member has answered")
        assert alarm(replace(starting, others=()), LoadDue(0), replace(node("c"), others=()), None) is None

    def test_a_waiting_node_is_not_loaded_and_knows_a_running_member(self):
        waiting = replace(node("c"), loaded=False)
        assert unloaded((None, node("b"), waiting)) == "c is not loaded, though b can be asked"
        assert unloaded((node("a"), node("b"), node("c"))) is None
        assert unloaded((None, None, waiting)) is None
        assert unloaded((None, node("b"), replace(waiting, others=("a",)))) is None


class TestSource:
    VERIFY = (("a", Verify("c1", 1)),)

    def test_a_copy_is_not_verified_by_its_holder(self):
        b = node("b", copy())
        found = sent_by_non_owner(b, VerifyDue(0), b, self.VERIFY)
        assert (found.property_id, found.what) == (
            "INV-SOURCE",
            "b sends VERIFY c1 revision 1 to a, and does not own it",
        )

    def test_an_owner_verifies_and_any_node_deletes_what_it_no_longer_holds(self):
        a = node("a", replace(copy(), native=True))
        assert sent_by_non_owner(a, VerifyDue(0), a, self.VERIFY) is None
        assert sent_by_non_owner(node("a"), TaskDue(0, "c1", "b"), node("a"), (("b", Delete("c1")),)) is None

    def test_a_lease_check_sends_nothing(self):
        task = Task("c1", "a", Action.DELETE, 0, 0)
        found = sent_by_non_owner(node("b", copy()), LeaseCheckDue(0), node("b").with_task(task), ())
        assert found.what == "b announces what its lease check removed"
        assert sent_by_non_owner(node("b", copy()), LeaseCheckDue(0), node("b"), ()) is None


class TestSettled:
    def is_settled(self, *copies):
        a, b = (replace(fresh_node(*ends, 0), loaded=True) for ends in (("a", ("b",)), ("b", ("a",))))
        a = a.with_client(replace(copy(), native=True))
        for held in copies:
            b = b.with_client(held)
        return settled(STRICT)((a, b)) == ((),)

    def test_a_lease_that_a_verify_round_would_renew_changes_nothing(self):
        assert self.is_settled(copy(renewed_ms=0))
        assert self.is_settled(copy(renewed_ms=5000))

    def test_a_copy_that_a_verify_round_would_repair_does(self):
        assert not self.is_settled(copy(revision=0))
        assert not self.is_settled()


class TestRevisionZero:
    def test_content_under_revision_0_is_wrong_where_revisions_travel(self):
        assert misrevised(node("b", copy(revision=0)), LIFE) is not None
        assert misrevised_above_0(node("b", copy(revision=0)), LIFE) is None

    @pytest.mark.parametrize("function", [misrevised, misrevised_above_0])
    def test_everywhere_else_both_say_the_same(self, function):
        assert function(node("b", copy()), LIFE) is function(node("b", copy(0, ())), LIFE) is None
        assert None not in (function(node("b", copy(1, ())), LIFE), function(node("b", copy(2)), LIFE))


class TestAim:
    """The end of a call to b must not queue a task for c."""

    def found(self, request):
        before = replace(fresh_node("a", ("a", "b", "c"), 0), loaded=True)
        after = before.with_task(Task("c1", "c", Action.CHANGE, 0, 1000))
        return alarms(before, CallEnded(0, "b", request, FAIL), after, None)

    def test_a_refused_sync_that_queues_one_for_another_is_seen(self):
        assert "INV-AIM" in {each.property_id for each in self.found(Delete("c1"))}

    def test_a_snapshot_may_change_clients_and_is_sent_to_every_member(self):
        assert "INV-AIM" not in {each.property_id for each in self.found(Snapshot())}
