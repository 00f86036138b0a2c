"""Inside one node: local events in queues, requests and set-ups in two halves, the service index; and their mutants."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.events import (
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
    LeaseCheckDue,
    LocalEventDue,
    Reply,
    RequestFinished,
    RequestReceived,
    RequestStarted,
    SetupFinished,
    SetupStarted,
    TaskDue,
    VerifyDue,
)
from distro_model.explorer import explore
from distro_model.local_events import (
    ClientChanged,
    ClientReleased,
    ClientRemoved,
    ClientVerifyFailed,
    IndexEntryDue,
    ServiceChanged,
    ServiceRegistered,
)
from distro_model.messages import CallResult, Change, Delete
from distro_model.mutants import MUTANTS, with_mutant
from distro_model.node import Action, fresh_node
from distro_model.profiles import STRICT
from distro_model.repeating import as_timed
from distro_model.rules import clients, notify, sync
from distro_model.rules.index import corrections, queried
from distro_model.rules.notify import first_events
from distro_model.step import step
from distro_model.timing import NoTimesError

INDEXED = replace(STRICT, keeps_index=True)
QUEUED = replace(INDEXED, event_queue=2)

CONNECTS = ClientConnected(0, "c1")
REGISTERS = InstanceRegistered(0, "c1", "web", "one")
REGISTERS_AGAIN = InstanceRegistered(0, "c1", "web", "two")
DEREGISTERS = InstanceDeregistered(0, "c1", "web")
LEAVES = ClientDisconnected(0, "c1")


def after(profile, *events, node=None):
    node = node or replace(fresh_node("a", "b", 0), loaded=True)
    for event in events:
        node = step(node, event, profile).node
    return node


def answer(profile, node, event):
    return next(out.answer.result for out in step(node, event, profile).outputs if isinstance(out, Reply))


def drained(profile, node):
    while node.local.events:
        node = after(profile, LocalEventDue(0, first_events(node, profile)[0]), node=node)
    return node


@cache
def explored_once(profile, bounds):
    return explore(bounds, profile)


def broken(profile, bounds):
    explored = explored_once(profile, bounds)
    assert explored.complete
    return {result.name for result in explored.results if result.holds is False}


@pytest.mark.parametrize("mutant_id", ["B08", "B25", "B28"])
def test_it_is_not_the_missing_second_line_that_is_noticed(mutant_id):
    """A CHANGE that is skipped for want of a client loses no DELETE by itself."""
    assert broken(STRICT.with_rules(sync.skips_gone_client), MUTANTS[mutant_id].bounds) == set()


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(changes=1, drops=0, swallows=0, index=1, periods=2, lease_periods=1),
        Bounds(changes=1, drops=0, swallows=0, event_queue=1, slow_requests=1, slow_setups=1, in_flight=1),
    ],
    ids=str,
)
def test_strict_satisfies_everything_with_several_of_these_at_once(bounds):
    assert broken(STRICT, bounds) == set()


class TestQueues:
    def test_without_queues_a_change_becomes_a_task_at_once_and_nothing_waits(self):
        node = after(STRICT, CONNECTS, REGISTERS)
        assert node.local == fresh_node("a", "b", 0).local
        assert [task.action for task in node.tasks] == [Action.CHANGE]

    def test_with_queues_it_becomes_one_when_its_event_is_handled(self):
        node = after(QUEUED, CONNECTS, REGISTERS)
        assert node.tasks == ()
        assert first_events(node, QUEUED) == (ClientChanged("c1"), ServiceRegistered("c1", "web"))
        node = after(QUEUED, LocalEventDue(0, ClientChanged("c1")), node=node)
        assert [task.action for task in node.tasks] == [Action.CHANGE]

    def test_an_event_waits_for_those_before_it_in_its_queue(self):
        node = after(QUEUED, CONNECTS, REGISTERS, LEAVES)
        assert ClientRemoved("c1", True) in node.local.events
        assert after(QUEUED, LocalEventDue(0, ClientRemoved("c1", True)), node=node) == node

    def test_with_a_queue_for_each_class_it_does_not(self):
        profile = QUEUED.with_rules(notify.queue_of_class)
        node = after(profile, CONNECTS, REGISTERS, LEAVES)
        assert {ClientChanged("c1"), ClientRemoved("c1", True)} <= set(first_events(node, profile))
        node = after(
            profile, LocalEventDue(0, ClientRemoved("c1", True)), LocalEventDue(0, ClientChanged("c1")), node=node
        )
        assert [task.action for task in node.tasks] == [Action.CHANGE]

    def test_a_full_queue_is_worked_off_in_order(self):
        profile = replace(STRICT, event_queue=1)
        node = after(profile, CONNECTS, REGISTERS, LEAVES)
        assert node.local.events == (ClientRemoved("c1", True),)
        assert [task.action for task in node.tasks] == [Action.CHANGE]
        assert [task.action for task in drained(profile, node).tasks] == [Action.DELETE]

    def test_or_overtaken(self):
        profile = replace(STRICT.with_rules(notify.overtaken), event_queue=1)
        node = after(profile, CONNECTS, REGISTERS, LEAVES)
        assert node.local.events == (ClientChanged("c1"),)
        assert [task.action for task in node.tasks] == [Action.DELETE]
        assert [task.action for task in drained(profile, node).tasks] == [Action.CHANGE]

    def test_only_the_first_of_two_equal_events_is_handled(self):
        node = after(QUEUED, CONNECTS, REGISTERS, REGISTERS_AGAIN, LocalEventDue(0, ClientChanged("c1")))
        assert first_events(node, QUEUED)[0] == ClientChanged("c1")
        assert node.local.events.count(ClientChanged("c1")) == 1

    def test_a_failed_verify_of_a_client_that_has_left_brings_nothing(self):
        node = after(QUEUED, CONNECTS, LEAVES)
        failed = replace(node.local, events=(ClientVerifyFailed("c1", "b"),))
        assert drained(QUEUED, replace(node, local=failed)).tasks == ()

    def test_a_push_that_waits_serves_all_changes_of_its_service(self):
        node = after(QUEUED, CONNECTS, REGISTERS, LocalEventDue(0, ServiceRegistered("c1", "web")), REGISTERS_AGAIN)
        node = after(QUEUED, LocalEventDue(0, ServiceRegistered("c1", "web")), node=node)
        assert node.local.events.count(ServiceChanged("web")) == 1
        assert drained(QUEUED, node).local.pushed == (("web", "c1", "two"),)

    def test_a_failed_verify_that_waits_to_be_handled_counts_as_a_repair(self):
        bounds = Bounds(changes=0, drops=0, swallows=0, event_queue=1, in_flight=1)
        witness = explored_once(STRICT, bounds).result("REACH-VERIFY-REPAIR").witness
        assert [str(each.transition) for each in witness.steps] == [
            "connect c1 a",
            "a starts a verify round",
            "a->b: VERIFY c1 revision 0 arrives and is answered",
        ]


class TestIndex:
    def test_it_follows_what_a_client_does(self):
        node = after(INDEXED, CONNECTS, REGISTERS)
        assert (node.local.index, node.local.pushed) == ((("web", "c1"),), (("web", "c1", "one"),))
        assert after(INDEXED, REGISTERS_AGAIN, node=node).local.pushed == (("web", "c1", "two"),)
        assert (after(INDEXED, DEREGISTERS, node=node).local.index, after(INDEXED, LEAVES, node=node).local.pushed) == (
            (),
            (),
        )

    def test_it_follows_what_a_peer_sends(self):
        both = Change("c2", 1, (("db", "three"), ("web", "one")))
        node = after(INDEXED, RequestReceived(0, "b", both))
        assert node.local.index == (("db", "c2"), ("web", "c2"))
        fewer = RequestReceived(0, "b", Change("c2", 2, (("web", "two"),)))
        assert after(INDEXED, fewer, node=node).local.pushed == (("web", "c2", "two"),)
        assert after(INDEXED, RequestReceived(0, "b", Delete("c2")), node=node).local.index == ()

    def test_a_copy_that_is_as_before_is_no_event(self):
        """So a lost event is permanent (B14): a CHANGE with the same content causes no event."""
        change = RequestReceived(0, "b", Change("c2", 1, (("web", "one"),)))
        node = drained(QUEUED, after(QUEUED, change))
        assert after(QUEUED, change, node=node).local.events == ()

    def test_a_copy_whose_lease_ends_leaves_it(self):
        node = after(INDEXED, RequestReceived(0, "b", Change("c2", 1, (("web", "one"),))))
        expired = after(INDEXED, LeaseCheckDue(INDEXED.lease_ms + 1), node=node)
        assert (expired.local.index, expired.local.pushed, expired.tasks) == ((), (), ())

    def test_a_registration_handled_after_the_removal_indexes_a_client_that_is_gone(self):
        profile = QUEUED.with_rules(notify.removed_by_one_event, notify.handled_removal_from_index_too)
        node = after(profile, CONNECTS, REGISTERS, LEAVES)
        node = after(
            profile, LocalEventDue(0, ClientChanged("c1")), LocalEventDue(0, ClientRemoved("c1", True)), node=node
        )
        node = drained(profile, node)
        assert (node.local.index, queried(node)) == ((("web", "c1"),), ())

    def test_in_one_queue_with_the_removal_it_does_not(self):
        node = after(QUEUED, CONNECTS, REGISTERS, LEAVES)
        assert ClientReleased("c1") in node.local.events
        assert drained(QUEUED, node).local.index == ()

    def test_a_push_before_the_index_sends_the_old_list(self):
        profile = INDEXED.with_rules(notify.registered_after_push)
        node = after(profile, CONNECTS, REGISTERS)
        assert (node.local.index, node.local.pushed) == ((("web", "c1"),), ())

    def test_unless_its_queue_lets_it_wait_for_the_index(self):
        profile = QUEUED.with_rules(notify.registered_after_push)
        node = after(profile, CONNECTS, REGISTERS, LocalEventDue(0, ServiceRegistered("c1", "web")))
        node = after(profile, LocalEventDue(0, IndexEntryDue("c1", "web")), node=node)
        assert drained(profile, node).local.pushed == (("web", "c1", "one"),)

    def test_later_events_of_the_queue_wait_until_the_entry_is_made(self):
        profile = QUEUED.with_rules(notify.registered_after_push)
        node = after(profile, CONNECTS, REGISTERS, DEREGISTERS, LocalEventDue(0, ServiceRegistered("c1", "web")))
        assert first_events(node, profile)[1] == IndexEntryDue("c1", "web")
        assert drained(profile, node).local.index == ()


class TestAudit:
    right = after(INDEXED, CONNECTS, REGISTERS)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"index": (), "pushed": ()},
            {"index": ()},
            {"pushed": ()},
            {"pushed": (("web", "c1", "old"),)},
            {"index": (("web", "c1"), ("web", "gone"))},
            {"pushed": (("db", "gone", "three"), ("web", "c1", "one"))},
        ],
        ids=str,
    )
    def test_one_verify_interval_repairs_every_difference(self, wrong):
        node = replace(self.right, local=replace(self.right.local, **wrong))
        assert corrections(node)
        assert after(INDEXED, VerifyDue(0), node=node) == self.right

    def test_a_node_without_clients_of_its_own_repairs_its_index_too(self):
        """Only `a` has a client to verify; `b` has nothing but a copy."""
        taken = explored_once(STRICT, MUTANTS["B14"].bounds).search.taken
        assert taken["verify round b"] > 0
        assert explored_once(with_mutant(STRICT, "B14"), MUTANTS["B14"].bounds).search.taken["verify round b"] == 0

    def test_no_release_repairs_it(self):
        node = replace(self.right, local=replace(self.right.local, index=()))
        assert after(INDEXED.with_rules(notify.not_audited), VerifyDue(0), node=node) == node

    def test_a_request_waiting_to_be_handled_is_no_violation(self):
        node = after(QUEUED, CONNECTS, REGISTERS)
        assert after(QUEUED, VerifyDue(0), node=node) == node


class TestHalfDone:
    def test_a_request_in_two_halves_ends_like_one_in_one(self):
        halves = after(STRICT, CONNECTS, RequestStarted(0, REGISTERS), RequestFinished(0, REGISTERS))
        assert halves == after(STRICT, CONNECTS, REGISTERS)

    @pytest.mark.parametrize("request_", [REGISTERS, DEREGISTERS], ids=lambda each: type(each).__name__)
    def test_when_its_client_has_left_in_between_it_is_refused_and_says_nothing(self, request_):
        node = after(INDEXED, CONNECTS, RequestStarted(0, request_), LEAVES, TaskDue(0, "c1", "b"))
        assert answer(INDEXED, node, RequestFinished(0, request_)) is CallResult.FAIL
        finished = after(INDEXED, RequestFinished(0, request_), node=node)
        assert (finished.tasks, finished.local.index, finished.local.requests) == ((), (), ())

    def test_without_a_second_look_it_takes_the_place_of_the_delete(self):
        profile = STRICT.with_rules(clients.looked_before)
        node = after(profile, CONNECTS, RequestStarted(0, REGISTERS), LEAVES)
        assert answer(profile, node, RequestFinished(0, REGISTERS)) is CallResult.SUCCESS
        assert [task.action for task in after(profile, RequestFinished(0, REGISTERS), node=node).tasks] == [
            Action.CHANGE
        ]

    def test_a_half_that_never_began_does_nothing(self):
        node = after(STRICT, CONNECTS)
        assert after(STRICT, RequestFinished(0, REGISTERS), SetupFinished(0, "c2"), node=node) == node

    @pytest.mark.parametrize("request_", [REGISTERS, DEREGISTERS, RequestStarted(0, REGISTERS)], ids=str)
    @pytest.mark.parametrize(("refuses", "result"), [(True, CallResult.FAIL), (False, CallResult.SUCCESS)])
    def test_an_unknown_client_is_refused_or_sent_success(self, request_, refuses, result):
        profile = STRICT if refuses else STRICT.with_rules(clients.success_to_unknown)
        assert answer(profile, after(profile), request_) is result
        assert after(profile, request_) == after(profile)

    def test_a_set_up_in_two_halves_ends_like_one_in_one(self):
        assert after(STRICT, SetupStarted(0, "c1"), SetupFinished(0, "c1")) == after(STRICT, CONNECTS)

    def test_nothing_is_left_of_a_transport_that_ended_in_between(self):
        assert after(STRICT, SetupStarted(0, "c1"), LEAVES, SetupFinished(0, "c1")) == after(STRICT)

    def test_without_a_second_look_a_client_is(self):
        profile = STRICT.with_rules(clients.transport_was_open)
        node = after(profile, SetupStarted(0, "c1"), LEAVES, SetupFinished(0, "c1"))
        assert node.client("c1").native


class TestCounterexamples:
    def found(self, mutant_id, property_id):
        explored = explored_once(with_mutant(STRICT, mutant_id), MUTANTS[mutant_id].bounds)
        return explored.result(property_id).counterexample

    def test_it_says_what_happens_inside(self):
        text = str(self.found("B13", "INV-INDEX"))
        assert "a handles its event: c1 is removed" in text
        assert "+ a: index: c1 under web" in text
        assert text.endswith("INV-INDEX: the index of a has c1 under web, which it does not publish")

    def test_a_client_whose_acknowledged_instance_is_missing_is_a_finding(self):
        found = self.found("B12", "INV-CLIENTACK")
        assert found.found == "c1 has the acknowledged content web 10.0.0.1:80 v=1 early, a has nothing"

    def test_it_is_the_replica_that_stays_wrong(self):
        """B14: the copy is complete, only the list of that node is not."""
        assert "b loses its event: c1 publishes web" in str(self.found("B14", "INV-INDEX"))

    def test_no_action_brings_it_about_on_a_clock(self):
        with pytest.raises(NoTimesError, match="no action controls events inside a node: a finds the transport"):
            as_timed(self.found("B40", "INV-DELETE"), with_mutant(STRICT, "B40"))

    def test_a_finding_about_lists_has_no_timed_run(self):
        with pytest.raises(NoTimesError, match="the index of queries and pushes does not show in any view"):
            as_timed(self.found("B44", "INV-INDEX"), with_mutant(STRICT, "B44"))


@pytest.mark.parametrize("bounds", [{}, {"event_queue": 1}, {"index": 1}], ids=str)
def test_an_event_can_only_be_lost_where_it_waits_and_is_missed(bounds):
    with pytest.raises(ValueError, match="lost_events need a queue to vanish from and an index to miss them"):
        Bounds(lost_events=1, **bounds)
