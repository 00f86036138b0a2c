"""Violations of `strict` in clusters that were not searched before: each is searched here, and stays clean.

Some were rules (a copy that a connection replaced stayed in the index; a request changed a copy; beats renewed no
lease), some were properties that claimed too much: of a client that the owner receives with the next beat, of a node
that knows nothing of a deregistration, of a copy of a client that never was one, or at a node that no member lists, of
a CHANGE that comes after the DELETE of a client that no node remembers, of a lease that was scaled to be shorter than
the faults, of a run that ended with its last period.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.periods import overdue
from distro_model.cluster.budget import Clock
from distro_model.cluster.http_clients import accepted
from distro_model.cluster.values import Connection, IpLife, Life
from distro_model.events import CallEnded, HttpAction, HttpReceived, LeaseCheckDue
from distro_model.explorer import explore
from distro_model.messages import SUCCESS, Change, Delete
from distro_model.mutants import with_mutant
from distro_model.node import Client, MemberState, fresh_node
from distro_model.profiles import STRICT
from distro_model.properties import PROPERTIES, property_named
from distro_model.properties.ip_checks import unchanged_by_beat
from distro_model.rules.ip_clients import is_not_superseded
from distro_model.search.results import until_found
from distro_model.search.system import Kind
from distro_model.step import step

NO_FAULTS = {"drops": 0, "swallows": 0}
ONE_HTTP_CLIENT = {"clients": 0, "ip_clients": 1, "in_flight": 1}
CLIENT = Bounds(**ONE_HTTP_CLIENT).ip_client_names[0]
HOME = "b"
"""Its owner of two."""
WEB = (("web", "10.0.0.2:80 v=1"),)


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(changes=0, **NO_FAULTS, id_collisions=1, index=1),
        Bounds(changes=1, **NO_FAULTS, id_collisions=1, slow_setups=1, in_flight=1),
        Bounds(**ONE_HTTP_CLIENT, changes=1, drops=0, swallows=1, crashes=1),
        Bounds(**ONE_HTTP_CLIENT, changes=1, flips=1, drops=0, swallows=1),
        Bounds(**ONE_HTTP_CLIENT, changes=3, flips=1, **NO_FAULTS),
        Bounds(**{**ONE_HTTP_CLIENT, "in_flight": 2}, changes=1, lapses=2, **NO_FAULTS, reorders=1),
        Bounds(**{**ONE_HTTP_CLIENT, "in_flight": 2}, changes=1, lapses=2, **NO_FAULTS, delays=1),
        Bounds(**ONE_HTTP_CLIENT, changes=1, lapses=2, **NO_FAULTS, event_queue=1),
        Bounds(**ONE_HTTP_CLIENT, changes=1, periods=3, lease_periods=1, **NO_FAULTS, leaves=1),
        pytest.param(Bounds(changes=1, periods=3), marks=pytest.mark.slow),  # leases are in TestWhatIsNotClaimed too
    ],
    ids=str,
)
def test_a_cluster_that_was_never_searched_before_is_clean(bounds):
    explored = explore(bounds, STRICT)
    assert [each.name for each in explored.results if each.holds is False] == []
    assert explored.holds


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(**ONE_HTTP_CLIENT, changes=1, periods=3, **NO_FAULTS, crashes=1),
        Bounds(**ONE_HTTP_CLIENT, changes=2, services=2, periods=3, **NO_FAULTS, crashes=1),
        Bounds(nodes=3, **ONE_HTTP_CLIENT, changes=1, flips=1, lapses=2, **NO_FAULTS, max_states=2_000_000),
        Bounds(**ONE_HTTP_CLIENT, changes=3, flips=1, **NO_FAULTS, lost_replies=1),
        Bounds(**ONE_HTTP_CLIENT, changes=2, flips=1, lapses=1, **NO_FAULTS, lost_replies=1),
        Bounds(changes=1, crashes=3, periods=5, lease_periods=1, **NO_FAULTS, in_flight=1),
        Bounds(changes=1, periods=3, lease_periods=1, **NO_FAULTS, leaves=1, in_flight=1),
        Bounds(changes=1, periods=3, lease_periods=1, **NO_FAULTS, id_collisions=1, in_flight=1),
        Bounds(**ONE_HTTP_CLIENT, changes=1, periods=3, lease_periods=1, **NO_FAULTS, crashes=1),
    ],
    ids=str,
)
def test_a_larger_one_is_too(bounds):
    """The third is cut short, beyond the state in which it was broken."""
    explored = explore(bounds, STRICT)
    assert [each.name for each in explored.results if each.holds is False] == []


ONE_OF_EACH_FAULT = {"crashes": 1, "drops": 1, "swallows": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    [Bounds(changes=3, **ONE_OF_EACH_FAULT), Bounds(nodes=3, changes=2, **ONE_OF_EACH_FAULT)],
    ids=str,
)
def test_one_crash_one_lost_and_one_swallowed_request_break_nothing(bounds):
    """In every state and transition. Two clients take longer, and so does what holds in the end: `make nightly`."""
    looked = [each for each in PROPERTIES.values() if each.kind is not Kind.EVENTUALLY]
    explored = explore(bounds, STRICT, looked)
    assert explored.holds


def after_requests(node, *actions, at_ms=0):
    for action in actions:
        node = step(node, HttpReceived(at_ms, CLIENT, action, "web", WEB[0][1]), STRICT).node
    return node


def node(name, *, owner_is_up=True):
    state = replace(fresh_node(name, "b" if name == "a" else "a", 0), loaded=True)
    if not owner_is_up:
        state = state.with_member(replace(state.member(HOME), state=MemberState.DOWN))
    return state


def test_beats_renew_the_lease_of_a_node_that_stops_being_the_owner():
    """a has taken the client's beats while b was DOWN. When b is back the client's lease here counts from them."""
    a = after_requests(node("a", owner_is_up=False), HttpAction.REGISTER)
    a = after_requests(a, HttpAction.BEAT, at_ms=STRICT.lease_ms)
    back = a.with_member(replace(a.member(HOME), state=MemberState.UP))
    checked = step(back, LeaseCheckDue(STRICT.lease_ms + 1), STRICT).node
    assert checked.client(CLIENT) is not None
    assert step(back, LeaseCheckDue(2 * STRICT.lease_ms + 1), STRICT).node.client(CLIENT) is None


def test_replaced_content_is_refused_even_after_its_client_was_gone():
    """The owner removes a client that is empty for 30 s; a peer may still send what the client published before."""
    b = after_requests(node("b"), HttpAction.REGISTER)
    revision = b.client(CLIENT).revision
    b = step(after_requests(b, HttpAction.DEREGISTER), LeaseCheckDue(30_001), STRICT).node
    assert b.client(CLIENT) is None
    assert (CLIENT, revision) in b.superseded
    assert not is_not_superseded(b, "a", Change(CLIENT, revision, WEB), STRICT)
    acknowledged = step(b, CallEnded(30_001, "a", Delete(CLIENT), SUCCESS), STRICT).node
    assert is_not_superseded(acknowledged, "a", Change(CLIENT, revision, WEB), STRICT)
    again = after_requests(acknowledged, HttpAction.DEREGISTER, HttpAction.BEAT)
    assert (CLIENT, revision) not in again.superseded


class TestWhatIsNotClaimed:
    def test_a_state_that_the_next_beat_repairs_is_not_settled(self):
        """b owns the client and has never received it: one CHANGE was swallowed, and no other node verifies."""
        a = node("a").with_client(Client(CLIENT, False, 7, WEB, 0, (("web", 0),)))
        unchanged, beating = unchanged_by_beat(STRICT), IpLife(CLIENT, 0, 1, WEB)
        assert unchanged((a, node("b")), beating) == ()
        assert unchanged((a, node("b")), replace(beating, silence=1)) == ((),)
        assert unchanged((a, a.changed(name="b", others=("a",))), beating) == ((),)

    def test_a_node_without_a_copy_knows_of_a_deregistration_only_if_it_handled_it(self):
        again = IpLife(CLIENT, 0, 2, WEB, ended_at="b")
        assert not accepted(again, node("a"), "a").ip_life.sure
        assert accepted(again, node("b"), "b").ip_life == replace(again, ended_at="")
        ended = replace(again, published=(), earlier=WEB, ended_at="")
        held = node("a").with_client(Client(CLIENT, False, 7, WEB, 0))
        assert accepted(ended, held, "a").ip_life == replace(ended, ended_at="a")

    def test_a_lease_is_longer_than_the_faults_of_a_search(self):
        """One lost verify is more than a lease of 30 s survives, scaled like the documented one."""
        bounds = Bounds(changes=0, periods=3, lease_periods=1, swallows=0)
        live = [property_named("INV-LIVE")]
        assert explore(bounds, STRICT, live).holds
        assert explore(bounds, with_mutant(STRICT, "B31"), live, until_found("INV-LIVE")).holds is False

    def test_a_load_begins_a_new_lease(self):
        gone = Life("c1", "a", ((),), 0, "10.0.0.1:80", Connection.ENDED, ended_period=1)
        b = node("b").with_client(Client("c1", False, 1, WEB, 4 * STRICT.verify_interval_ms))
        late = Clock(period=5)
        assert overdue(b, gone, late, 1, 0, STRICT).property_id == "INV-RESURRECT"
        assert overdue(b, gone, late, 1, 1, STRICT) is None
        assert overdue(b, gone, Clock(period=7), 1, 1, STRICT).property_id == "INV-RESURRECT"
