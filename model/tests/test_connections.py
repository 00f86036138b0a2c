"""Liveness of clients: silent clients, signs of life, and the checks that distinguish them."""

from __future__ import annotations

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, DetectionAnswered, DetectionHandled
from distro_model.explorer import explore
from distro_model.node import Action, Client, Detection, fresh_node
from distro_model.profiles import STRICT
from distro_model.properties import property_named
from distro_model.rules import connections
from distro_model.step import step

COUNTS_FIRST = STRICT.with_rules(connections.counts_first)


def test_strict_is_clean_where_silent_and_quiet_clients_mix():
    explored = explore(Bounds(clients=2, nodes=1, changes=0, drops=0, swallows=0, silences=1, idle_spells=2), STRICT)
    assert explored.holds


def test_the_peers_receive_the_deletion_of_a_silent_client_that_was_closed():
    """Without a DELETE to the peers INV-DELETE would fail: the connection has ended in an orderly way."""
    explored = explore(Bounds(changes=1, drops=1, swallows=0, silences=1), STRICT)
    assert explored.holds
    assert explored.search.taken["connection check ends a"] > 0


def test_without_silences_and_idle_spells_the_properties_about_them_say_nothing():
    results = explore(Bounds(changes=1, drops=0, swallows=0), STRICT, [property_named("INV-SILENT")]).results
    assert [each.holds for each in results] == [None]


class TestCheck:
    def node(self, *clients):
        node = fresh_node("a", ("b",), 0)
        for client in clients or (
            Client("c1", True, 0, (), 0),
            Client("c2", True, 0, (), 0),
            Client("x", False, 0, (), 0),
        ):
            node = node.with_client(client)
        return node

    def after(self, *events, profile=STRICT):
        node = self.node()
        for event in events:
            node = step(node, event, profile).node
        return node

    def test_it_asks_those_that_are_idle_and_connected_here(self):
        node = self.after(ConnectionCheckDue(0, ("c1", "gone", "x")))
        assert node.detections == (Detection("c1"),)

    def test_it_asks_no_client_where_there_is_no_detection(self):
        without = STRICT.with_rules(connections.checks_no_connection)
        assert self.after(ConnectionCheckDue(0, ("c1",)), profile=without) == self.node()

    def test_another_one_waits_for_its_end(self):
        node = self.after(ConnectionCheckDue(0, ("c1",)), ConnectionCheckDue(0, ("c2",)))
        assert node.detections == (Detection("c1"),)

    def test_its_end_closes_silent_clients_and_deletes_them_on_the_peers(self):
        node = self.after(ConnectionCheckDue(0, ("c1", "c2")), DetectionAnswered(0, "c2"), ConnectionCheckEnds(0))
        assert [client.name for client in node.clients] == ["c2", "x"]
        assert node.task("c1", "b").action is Action.DELETE
        assert node.detections == ()

    @pytest.mark.parametrize(("profile", "left"), [(STRICT, ["c1", "c2", "x"]), (COUNTS_FIRST, ["c2", "x"])])
    def test_between_the_halves_of_an_answer_their_order_decides(self, profile, left):
        events = (ConnectionCheckDue(0, ("c1",)), DetectionAnswered(0, "c1"), ConnectionCheckEnds(0))
        assert [client.name for client in self.after(*events, profile=profile).clients] == left

    @pytest.mark.parametrize("profile", [STRICT, COUNTS_FIRST])
    def test_after_both_halves_it_does_not(self, profile):
        events = (ConnectionCheckDue(0, ("c1",)), DetectionAnswered(0, "c1"), DetectionHandled(0, "c1"))
        node = self.after(*events, profile=profile)
        assert node.detections == (Detection("c1", recorded=True, counted=True),)
        assert step(node, ConnectionCheckEnds(0), profile).node == self.node()

    def test_an_answer_that_comes_too_late_changes_nothing(self):
        events = (ConnectionCheckDue(0, ("c1",)), ConnectionCheckEnds(0))
        closed = self.after(*events)
        assert step(closed, DetectionAnswered(0, "c1"), STRICT).node == closed
        assert step(closed, DetectionHandled(0, "c1"), STRICT).node == closed
