"""Connections between nodes that break without notification, and the health check that replaces them.

Messages in transit are lost, and so are all that are sent later; their sender observes only time-outs. A check of a
connection that works changes nothing, so only the checks that find a broken connection are transitions.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.cluster.nodes import next_on
from distro_model.cluster.statement import Transition, writes
from distro_model.cluster.values import Link, Phase
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.rules.health import is_tested
from distro_model.search.system import Fairness
from distro_model.transitions import Happens


def on_connection(source: str, target: str, what: str) -> Happens:
    return Happens("", f"{source}->{target}: the connection {what}")


def break_silently(link: Link) -> Link | None:
    if link.down or link.cut or link.half_open:
        return None
    calls = tuple(
        call if call.phase is Phase.REFUSED else replace(call, phase=Phase.LOST, answer=None)
        for call in link.calls
        if call.phase is not Phase.ABANDONED
    )
    return replace(link, calls=calls, half_open=True)


BREAK = Transition(
    "break silently",
    (writes(break_silently, "there is no connection"),),
    lambda source_name, target_name: on_connection(source_name, target_name, "breaks silently"),
    cost="half_open",
)


def reconnect(link: Link) -> Link | None:
    return replace(link, half_open=False) if link.half_open else None


def tests(source: NodeState | None, now: int, target_name: str, profile: Profile) -> bool:
    return source is not None and is_tested(source, target_name, now, profile)


def next_health_check(node: NodeState, after_ms: int, profile: Profile) -> int:
    return next_on(node.started_ms, max(after_ms, node.started_ms) + 1, profile.health_check_ms)


RECONNECT = Transition(
    "reconnect",
    (writes(reconnect, "the connection works"), writes(tests, "it is not tested")),
    lambda source_name, target_name: on_connection(source_name, target_name, "fails its health check and is replaced"),
    fair=Fairness.STRONG,
    due=next_health_check,
)
