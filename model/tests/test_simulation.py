"""Requests on one link of a simulation arrive in the order in which they were sent, also one that meets a fault."""

from __future__ import annotations

from random import Random

import pytest

from distro_model.actions import (
    Advance,
    Connect,
    Duplicate,
    Garble,
    Hold,
    LoseReply,
    Mistype,
    Pause,
    Register,
    Release,
    Restart,
    Resume,
)
from distro_model.events import RequestReceived, UnknownReceived
from distro_model.messages import Change
from distro_model.profiles import STRICT
from distro_model.simulation.cluster import SimulatedCluster
from distro_model.simulation.scheduler import Scheduler

CLIENTS = ("c1", "c2", "c3")
BUSY = {
    "nothing": ((), ()),
    "a held link": ((Hold("a", "b"),), (Release("a", "b"),)),
    "a pause": ((Pause("b"),), (Resume("b"),)),
}


class Arrivals:
    """Watches which clients' CHANGEs are sent from a, and in which order they arrive at b."""

    def __init__(self):
        self.asked, self.arrived, self.at_ms = [], [], {}

    def acted(self, *_): ...

    def checkpoint(self, *_): ...

    def sent(self, at_ms, source, target, call):
        if (source, target) == (0, 1) and isinstance(call.request, Change):
            self.asked.append(call.request.client)
            self.at_ms.setdefault(call.request.client, at_ms)

    def handled(self, at_ms, handled):
        request = getattr(handled.event, "request", None)
        if (
            handled.position == 1
            and isinstance(handled.event, RequestReceived | UnknownReceived)
            and isinstance(request, Change)
        ):
            self.arrived.append(request.client)
            self.at_ms[request.client] = at_ms


def arrivals(seed, fault, busy, then_ms=100):
    scheduler, watch = Scheduler(Random(seed)), Arrivals()
    cluster = SimulatedCluster("ab", STRICT, scheduler, watch)
    begins, ends = BUSY[busy]
    connects = (Connect(client, "a") for client in CLIENTS)
    registers = (Register(client, "web", "10.0.0.1:80") for client in CLIENTS)
    before = (Restart("a"), Restart("b"), Advance(40_000), *connects, *begins)
    for action in (*before, fault, *registers, Advance(2000), *ends, Advance(then_ms)):
        if isinstance(action, Advance):
            scheduler.run_until(scheduler.now_ms + action.ms)
        else:
            cluster.perform(action)
    return watch


@pytest.mark.parametrize("busy", BUSY)
@pytest.mark.parametrize("kind", [LoseReply, Duplicate, Garble, Mistype])
def test_a_request_that_meets_a_fault_overtakes_none(kind, busy):
    for seed in range(8):
        seen = arrivals(seed, kind("a", "b", "CHANGE", "c3"), busy)
        assert seen.asked[:3] == ["c1", "c2", "c3"]
        assert list(dict.fromkeys(seen.arrived)) == ["c1", "c2", "c3"]
        assert seen.arrived.count("c3") == 1 + (kind is Duplicate)
        assert seen.at_ms["c1"] <= seen.at_ms["c2"] <= seen.at_ms["c3"]


@pytest.mark.parametrize("busy", BUSY)
def test_a_request_whose_reply_is_lost_is_sent_again_after_its_time_out(busy):
    for seed in range(4):
        assert arrivals(seed, LoseReply("a", "b", "CHANGE", "c3"), busy, then_ms=8000).asked == ["c1", "c2", "c3", "c3"]
