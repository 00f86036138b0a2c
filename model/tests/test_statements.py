"""Transitions are stated in steps whose parameter names are registers: the steps fit, and a misfit is seen."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

import pytest
from fitting import misfits

from distro_model.bounded import periods
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.chains import Chains
from distro_model.bounded.layout import Layout
from distro_model.cluster import calls, connections
from distro_model.cluster.budget import Budget, Clock
from distro_model.cluster.statement import StatementError, Transition, tells, writes
from distro_model.cluster.values import IpLife, Life, Link
from distro_model.events import Event
from distro_model.messages import Operation
from distro_model.node import Addresses, NodeState
from distro_model.profiles import STRICT, Profile

FAMILIES = "accidents calls clients connections crashes half_open http_clients inside members nodes operator torn"
MODULES = (*(import_module(f"distro_model.cluster.{name}") for name in FAMILIES.split()), periods)
STATED = [(each, name) for each in MODULES for name, value in vars(each).items() if isinstance(value, Transition)]

NODES = dict.fromkeys(("node", "source", "target", "home", "asked", "handling", "every_node", "peer"), NodeState | None)
ENDS = {"any_source": NodeState | None, "holder": NodeState | None, "any_link": Link, "held": Life, "guest": Life}
VALUES = {"link": Link, "outgoing": Link, "incoming": Link, "life": Life, "ip_life": IpLife}
CHOOSER = {"budget": Budget, "clock": Clock, "stale": tuple[tuple[str, str], ...]}
NAMES = ("node_name", "source_name", "target_name", "asked_name", "handling_name", "peer_name", "client", "claimant")
CONSTANTS = {
    **dict.fromkeys((*NAMES, "any_source_name", "any_target_name"), str),
    **dict.fromkeys(("now", "period", "periods", "lease_length", "crashes", "slept_ms", "services"), int),
    "last_ms": int | None,
    "operation": Operation,
    "others": tuple[str, ...],
    "addresses": Addresses,
    "profile": Profile,
}
KNOWN = {**NODES, **ENDS, **VALUES, **CHOOSER, **CONSTANTS}


@pytest.mark.parametrize(("module", "name"), STATED, ids=[f"{each.__name__}.{name}" for each, name in STATED])
def test_the_steps_of_every_transition_fit(module, name):
    assert list(misfits(getattr(module, name), KNOWN)) == []


class Words(NamedTuple):
    link: str


def in_words(call: str) -> Words:
    return Words(call)


def aloud(loudness: int) -> Event: ...


def test_a_step_that_reads_another_type_or_another_name_does_not_fit():
    wrong = replace(calls.LOSE, steps=(*calls.LOSE.steps, writes(in_words), tells("source", aloud)))
    assert list(misfits(wrong, KNOWN)) == [
        "lose: in_words reads call as str, it is Call",
        "lose: aloud reads loudness, which nothing writes",
    ]


def test_a_step_that_takes_a_node_for_running_needs_a_guard():
    unguarded = replace(connections.END_CHECK, steps=connections.END_CHECK.steps[4:5])
    assert "connection check ends: ejected reads node as NodeState, it is NodeState | NoneType" in misfits(
        unguarded, KNOWN
    )


def test_who_derives_look_ups_refuses_what_nothing_writes():
    wrong = replace(calls.LOSE, steps=(*calls.LOSE.steps, tells("source", aloud)))
    layout = Layout(Bounds(), STRICT)
    with pytest.raises(StatementError, match="lose a->b: aloud reads loudness, which nothing writes"):
        Chains(layout).chain(wrong, layout.link("a", "b"))
