"""Open, idle connections: clients fall silent, servers probe idle connections and close those that do not answer.

Which connections are idle is a choice: a search may find any silent client idle, and spends a budget each time it finds
a live one idle; a clock determines the idle time. A live client answers before the wait is over; a silent one never
does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.actions import AnswerAgain, FallSilent
from distro_model.cluster.registers import Before
from distro_model.cluster.statement import Transition, chooses, handles, of, watches, writes
from distro_model.cluster.values import Life
from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, DetectionAnswered, DetectionHandled
from distro_model.node import NodeState
from distro_model.search.system import Fairness, Finding
from distro_model.transitions import Cause, Happens

Names = tuple[str, ...]


class Idle(NamedTuple):
    idle: Names


class Ejected(NamedTuple):
    ejected: Names


def silence(life: Life) -> Life | None:
    return replace(life, silent=True) if life.acts else None


FALL_SILENT = Transition(
    "fall silent",
    (writes(silence, "{client} is not connected"),),
    of(FallSilent, "client"),
    cost="silences",
)


def end_silence(life: Life) -> Life | None:
    return replace(life, silent=False) if life.silent else None


ANSWER_AGAIN = Transition(
    "answer again",
    (writes(end_silence, "{client} is not silent"),),
    of(AnswerAgain, "client"),
)
"""Of clocks only: where the length of a silence has no effect, the silence need not end."""


def none_probed(node: NodeState | None) -> Idle | None:
    return None if node is None or node.detections else Idle(())


def check_of(idle: Names, now: int) -> ConnectionCheckDue | None:
    return ConnectionCheckDue(now, idle) if idle else None


CHECK_CONNECTIONS = Transition(
    "connection check",
    (
        chooses(none_probed, "{node_name} is down, or waits for answers"),
        handles("node", check_of, "no connection is idle"),
    ),
    lambda node_name, idle: Happens(node_name, f"probes {', '.join(idle)}, if it probes at all", Cause.LEASE),
    fair=Fairness.STRONG,
)


def answered(home: NodeState | None, life: Life, now: int) -> DetectionAnswered | None:
    asked = None if home is None else home.detection(life.client)
    if asked is None or asked.recorded or asked.counted or not life.acts:
        return None
    return DetectionAnswered(now, life.client)


ANSWER = Transition(
    "answer",
    (handles("home", answered, "{client} was not asked"),),
    lambda life: Happens(life.client, "answers a probe"),
    fair=Fairness.STRONG,
)


def handled(home: NodeState | None, life: Life, now: int) -> DetectionHandled | None:
    asked = None if home is None else home.detection(life.client)
    return None if asked is None or asked.recorded == asked.counted else DetectionHandled(now, life.client)


HANDLE_ANSWER = Transition(
    "answer handled",
    (handles("home", handled, "{client} has not answered"),),
    lambda life: Happens(life.home, f"has handled the answer of {life.client}"),
    fair=Fairness.STRONG,
)


def is_under_way(node: NodeState | None) -> bool:
    return node is not None and bool(node.detections)


def no_more_to_wait_for(node: NodeState | None, home_client: Life) -> bool:
    asked = None if node is None else node.detection(home_client.client)
    return asked is None or asked.counted or not home_client.acts


def ejected(before: NodeState | None, node: NodeState) -> Ejected:
    held = () if before is None else before.clients
    return Ejected(tuple(client.name for client in held if node.client(client.name) is None))


def wrongly_ejected(ejected: Names, home_client: Life, node_name: str) -> Finding | None:
    if home_client.client not in ejected or not home_client.acts:
        return None
    return Finding("INV-LIVE", f"{node_name} closed the connection of {home_client.client}, which had answered")


def close(home_client: Life, ejected: Names, period: int) -> Life:
    return home_client.ended(period) if home_client.client in ejected else home_client


END_CHECK = Transition(
    "connection check ends",
    (
        writes(is_under_way, "{node_name} checks nothing"),
        writes(no_more_to_wait_for, "a client is about to answer"),
        writes(of(Before, "node")),
        handles("node", of(ConnectionCheckEnds, "now")),
        writes(ejected),
        watches(wrongly_ejected),
        writes(close),
    ),
    lambda node_name: Happens(node_name, "closes the connections that did not answer", Cause.LEASE),
    fair=Fairness.STRONG,
)
"""As soon as every answer was counted; else when the wait is over, which is not before all live clients have
answered."""
