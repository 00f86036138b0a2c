"""The settings of an operator for an instance stay while any client publishes the instance."""

from __future__ import annotations

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.events import (
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
    MetadataDeleted,
    OperatorSet,
)
from distro_model.explorer import explore
from distro_model.node import fresh_node
from distro_model.profiles import STRICT
from distro_model.rules import metadata
from distro_model.step import step

ADDRESS = "10.0.0.1:80"
FORGETS = STRICT.with_rules(metadata.is_always_marked)


def test_strict_keeps_it_when_the_process_comes_back_on_another_node():
    bounds = Bounds(clients=2, changes=1, drops=0, swallows=0, operator_changes=1, in_flight=1)
    assert explore(bounds, STRICT).holds


def test_operator_changes_and_crashes_do_not_mix():
    with pytest.raises(ValueError, match="no node's memory alone"):
        Bounds(operator_changes=1, crashes=1)


class TestMarks:
    def after(self, *events, profile=STRICT):
        node = fresh_node("a", (), 0)
        for client in ("c1", "c2"):
            node = step(node, ClientConnected(0, client), profile).node
        node = step(node, InstanceRegistered(0, "c1", "web", f"{ADDRESS} v=1"), profile).node
        for event in (OperatorSet(0, ADDRESS, "weight 2"), *events):
            node = step(node, event, profile).node
        return node

    SECOND = InstanceRegistered(0, "c2", "web", f"{ADDRESS} v=1")
    ELSEWHERE = InstanceRegistered(0, "c2", "web", "10.0.0.1:8080 v=1")

    @pytest.mark.parametrize("leaves", [ClientDisconnected(0, "c1"), InstanceDeregistered(0, "c1", "web")])
    def test_the_last_publisher_leaves_a_mark(self, leaves):
        assert self.after(leaves).expiring == (ADDRESS,)
        assert self.after(self.ELSEWHERE, leaves).expiring == (ADDRESS,)

    def test_another_publisher_keeps_it(self):
        assert self.after(self.SECOND, ClientDisconnected(0, "c1")).expiring == ()
        assert self.after(self.SECOND, ClientDisconnected(0, "c1"), profile=FORGETS).expiring == (ADDRESS,)

    @pytest.mark.parametrize("profile", [STRICT, FORGETS])
    def test_a_new_publisher_takes_the_mark_away(self, profile):
        assert self.after(ClientDisconnected(0, "c1"), self.SECOND, profile=profile).expiring == ()
        again = InstanceRegistered(0, "c2", "web", f"{ADDRESS} v=2")
        assert self.after(self.SECOND, ClientDisconnected(0, "c1"), again, profile=profile).expiring == ()

    def test_without_metadata_nothing_is_marked(self):
        node = self.after(MetadataDeleted(0, ADDRESS), ClientDisconnected(0, "c1"))
        assert (node.metadata, node.expiring) == ((), ())
