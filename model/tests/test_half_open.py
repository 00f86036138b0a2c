"""Connections between nodes that break silently, and the events after which a node tests and replaces them."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.cluster.half_open import break_silently, reconnect
from distro_model.cluster.values import Call, Link, Phase
from distro_model.events import VerifyDue
from distro_model.explorer import explore
from distro_model.messages import SUCCESS, Delete
from distro_model.node import Client, fresh_node
from distro_model.profiles import STRICT
from distro_model.rules.health import is_tested
from distro_model.step import step

SENDING_COUNTS = replace(STRICT, sending_counts_as_activity=True)


def test_strict_replaces_a_broken_connection_before_it_settles():
    explored = explore(Bounds(changes=1, drops=0, swallows=0, half_open=1), STRICT)
    assert explored.holds
    assert explored.search.taken["reconnect a->b"] > 0


class TestLink:
    CALL = Call(Delete("c1"))

    def test_requests_on_their_way_are_lost_and_so_are_the_following(self):
        link = Link(calls=(self.CALL, replace(self.CALL, phase=Phase.ANSWERED, answer=SUCCESS)))
        broken = break_silently(link)
        assert [call.phase for call in broken.with_call(self.CALL).calls] == [Phase.LOST] * 3

    def test_an_abandoned_request_vanishes_and_a_refused_one_stays_refused(self):
        link = Link(calls=(replace(self.CALL, phase=Phase.ABANDONED), replace(self.CALL, phase=Phase.REFUSED)))
        broken = break_silently(link)
        assert [call.phase for call in broken.calls] == [Phase.REFUSED]

    def test_a_link_that_is_down_or_broken_has_no_connection_to_break(self):
        assert break_silently(Link(down=True)) is break_silently(Link(half_open=True)) is None

    def test_a_new_connection_carries_requests_again(self):
        mended = reconnect(Link(half_open=True))
        assert mended.with_call(self.CALL).calls == (self.CALL,)
        assert reconnect(Link()) is None


class TestHealthCheck:
    def verified_at(self, at_ms, profile):
        node = replace(fresh_node("a", ("b",), 0), loaded=True).with_client(Client("c1", True, 0, (), 0))
        return step(node, VerifyDue(at_ms), profile).node

    def test_a_sent_request_is_no_proof_of_the_connection(self):
        assert is_tested(self.verified_at(5000, STRICT), "b", 5000, STRICT)

    def test_where_sending_counts_it_postpones_the_test(self):
        node = self.verified_at(5000, SENDING_COUNTS)
        assert not is_tested(node, "b", 10_000, SENDING_COUNTS)
        assert is_tested(node, "b", 10_001, SENDING_COUNTS)

    def test_a_node_that_has_sent_nothing_tests(self):
        assert is_tested(fresh_node("a", ("b",), 0), "b", 0, SENDING_COUNTS)
