"""Batches: one entry of a client like a single instance, and the two ways in which releases got them wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from distro_model.actions import RegisterBatch
from distro_model.events import CallEnded, RequestReceived, Send
from distro_model.explorer import explore
from distro_model.messages import FAIL, SUCCESS, Answer, CallResult, Change, Snapshot, addresses_of, batch_of
from distro_model.mutants import mutant_named, with_mutant
from distro_model.node import Client, fresh_node
from distro_model.profiles import STRICT
from distro_model.repeating import as_timed
from distro_model.rules import receive
from distro_model.step import step


class TestReceiving:
    SINGLE, BATCH = (("web", "10.0.0.1:80 v=1"),), (("web", batch_of(("10.0.0.1:80 v=2", "10.0.0.1:81 v=2"))),)
    POISONED = STRICT.with_rules(receive.no_batch_over_single)

    def answer(self, held, arriving, profile):
        node = fresh_node("b", ("a",), 0)
        if held is not None:
            node = node.with_client(Client("c1", False, 1, held, 0))
        after = step(node, RequestReceived(0, "a", Change("c1", 2, arriving)), profile)
        return after.outputs[0].answer, after.node.client("c1").content

    def test_an_apply_that_raises_changes_nothing_and_fails(self):
        assert self.answer(self.SINGLE, self.BATCH, self.POISONED) == (FAIL, self.SINGLE)

    def test_the_same_is_acknowledged_where_errors_are(self):
        profile = self.POISONED.with_rules(receive.raised_unseen)
        assert self.answer(self.SINGLE, self.BATCH, profile) == (SUCCESS, self.SINGLE)

    @pytest.mark.parametrize(("held", "arriving"), [(None, BATCH), (BATCH, BATCH), (BATCH, SINGLE), ((), BATCH)])
    def test_every_other_order_is_harmless(self, held, arriving):
        assert self.answer(held, arriving, self.POISONED) == (SUCCESS, arriving)

    def test_strict_takes_a_batch_over_a_single_instance(self):
        assert self.answer(self.SINGLE, self.BATCH, STRICT) == (SUCCESS, self.BATCH)

    def test_a_poisoned_element_ends_the_snapshot(self):
        """No part of it is kept, and the next member is asked."""
        node = replace(fresh_node("c", ("a", "b"), 0), asking="a", to_ask=("b",))
        node = node.with_client(Client("c1", False, 1, self.SINGLE, 0))
        copies = (Change("c1", 2, self.BATCH), Change("c2", 1, self.SINGLE))
        ended = CallEnded(0, "a", Snapshot(), Answer(CallResult.SUCCESS, copies))
        after = step(node, ended, self.POISONED)
        assert (after.node.client("c2"), after.node.loaded, after.outputs) == (None, False, (Send("b", Snapshot()),))


def test_a_batch_is_every_address_of_it():
    assert addresses_of(TestReceiving.BATCH) == {"10.0.0.1:80", "10.0.0.1:81"}


def test_a_batch_is_an_action_of_a_counterexample():
    profile = with_mutant(STRICT, "B18")
    run = explore(mutant_named("B18").bounds, profile).result("INV-CONV").counterexample
    assert [action for action in as_timed(run, profile).actions if isinstance(action, RegisterBatch)]
