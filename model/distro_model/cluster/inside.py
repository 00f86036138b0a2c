"""Events inside one node: its local events, and requests and set-ups that take two steps.

All of it is instantaneous unless a bound allows steps: then other events occur while a request or a connection is half
handled. Between the two halves nothing outside the node can choose, so on a clock they follow each other at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.actions import Connect, Deregister, Register
from distro_model.cluster.clients import SERVICE, Asked, Change, after_request, request_of, with_answer
from distro_model.cluster.statement import Transition, chooses, handles, of, records, writes
from distro_model.cluster.values import Connection, Life
from distro_model.events import (
    InstanceDeregistered,
    InstanceRegistered,
    InstanceRequest,
    LocalEventDue,
    RequestFinished,
    RequestStarted,
    SetupFinished,
    SetupStarted,
)
from distro_model.local_events import IndexEntryDue, LocalEvent
from distro_model.messages import Answer, CallResult
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.rules.notify import first_events
from distro_model.search.system import Fairness
from distro_model.transitions import Cause, Happens


def inside_node(node: str, does: str, about: object) -> Happens:
    return Happens(node, f"{does}: {about}", Cause.INSIDE)


# Local events


def first_waiting(node: NodeState | None, now: int, profile: Profile) -> list[LocalEventDue]:
    """The first event of any queue: the queues have a thread each."""
    return [] if node is None else [LocalEventDue(now, event) for event in first_events(node, profile)]


def at_once_events(node: NodeState) -> int | None:
    return 0 if node.local.events else None


HANDLE_EVENT = Transition(
    "event",
    (handles("node", first_waiting, "no event waits"),),
    lambda node_name, event: inside_node(node_name, "handles its event", event.event),
    fair=Fairness.STRONG,
    due=at_once_events,
)


class Lost(NamedTuple):
    node: NodeState | None
    lost: LocalEvent


def lose_event(node: NodeState | None, profile: Profile) -> list[Lost]:
    if node is None:
        return []
    return [Lost(_without(node, each), each) for each in first_events(node, profile) if _is_for_lists(each)]


def _is_for_lists(event: LocalEvent) -> bool:
    return event.queue != "client events" and not isinstance(event, IndexEntryDue)


def _without(node: NodeState, event: LocalEvent) -> NodeState:
    left = list(node.local.events)
    left.remove(event)
    return replace(node, local=replace(node.local, events=tuple(left)))


LOSE_EVENT = Transition(
    "lose event",
    (chooses(lose_event, "no event for the lists waits"),),
    lambda node_name, lost: inside_node(node_name, "loses its event", lost),
    cost="lost_events",
)
"""A subscriber raises, or a thread stops: the event is lost. Anti-entropy repairs what Distro missed by it."""


# Set-ups in two steps


def open_transport(life: Life) -> Life | None:
    return replace(life, connection=Connection.OPENING) if life.connection is Connection.NEW else None


START_SETUP = Transition(
    "start set-up",
    (writes(open_transport, "{client} cannot start set-up now"), handles("home", of(SetupStarted, "now", "client"))),
    lambda life: inside_node(life.home, "finds the transport open", Connect(life.client, life.home)),
    cost="slow_setups",
)


def insert_connection(life: Life, home: NodeState | None) -> Life | None:
    """The node completes the set-up, whether or not the client's end is still open."""
    if home is None or life.client not in dict(home.local.setups):
        return None
    connection = Connection.OPEN if life.connection is Connection.OPENING else life.connection
    return replace(life, connection=connection)


FINISH_SETUP = Transition(
    "finish set-up",
    (
        writes(insert_connection, "{client} cannot finish set-up now"),
        handles("home", of(SetupFinished, "now", "client")),
    ),
    lambda life: inside_node(life.home, "inserts the connection", Connect(life.client, life.home)),
    fair=Fairness.STRONG,
)


def ask_early(life: Life) -> Asked | None:
    if life.connection is not Connection.OPENING or not life.changes_left:
        return None
    return Asked(Register(life.client, SERVICE, _instance(life, "early")))


def answered_early(life: Life, event: InstanceRequest, answer: Answer | None) -> Life:
    """A client that is refused retries when it is connected; a client that receives SUCCESS expects its change to be
    applied."""
    if answer is None or answer.result is not CallResult.SUCCESS:
        return life
    return with_answer(replace(life, changes_left=life.changes_left - 1), event, answer)


EARLY_REQUEST = Transition(
    "request early",
    (
        chooses(ask_early, "{client} cannot request early now"),
        handles("home", of(request_of, "action", "now")),
        records(answered_early),
    ),
    lambda life, action, answer: inside_node(
        life.home, "answers a request of a connection that is not set up", f"{action}: {answer.result}"
    ),
)
"""A request on a connection that its node does not know yet. A refused request has no effect."""


# Requests in two steps


def ask_slowly(life: Life) -> list[Asked]:
    if not life.acts or not life.changes_left:
        return []
    asked: list[Change] = [Register(life.client, SERVICE, _instance(life, "slow"))]
    asked += [Deregister(life.client, SERVICE)] if life.contents[-1] else []
    return [Asked(each) for each in asked]


def request_started(action: Change, now: int) -> RequestStarted:
    return RequestStarted(now, request_of(action, 0))


def answered_at_start(life: Life, event: RequestStarted, answer: Answer | None) -> Life:
    return with_answer(replace(life, changes_left=life.changes_left - 1), event.request, answer)


START_REQUEST = Transition(
    "start request",
    (
        chooses(ask_slowly, "{client} cannot start request now"),
        handles("home", request_started),
        records(answered_at_start),
    ),
    lambda life, action: inside_node(life.home, "looks up the client", action),
    cost="slow_requests",
)


def requests_finished(life: Life, home: NodeState | None, now: int) -> list[RequestFinished]:
    pending = () if home is None else home.local.requests
    return [RequestFinished(now, each) for each in pending if each.client == life.client]


def answered_at_end(life: Life, event: RequestFinished, answer: Answer | None) -> Life:
    """The content that the client publishes has changed at its node, if its request was carried out while it was
    there."""
    if answer is not None and answer.result is CallResult.SUCCESS and life.connection is Connection.OPEN:
        life = replace(life, contents=(*life.contents, after_request(life.contents[-1], event.request)))
    return with_answer(life, event.request, answer)


FINISH_REQUEST = Transition(
    "finish request",
    (handles("home", requests_finished, "{client} cannot finish request now"), records(answered_at_end)),
    lambda life, event: inside_node(life.home, "continues the request", _action(event.request)),
    fair=Fairness.STRONG,
)


def _instance(life: Life, how: str) -> str:
    return f"{life.address} v={len(life.contents)} {how}"


def _action(asked: InstanceRegistered | InstanceDeregistered) -> Register | Deregister:
    if isinstance(asked, InstanceRegistered):
        return Register(asked.client, asked.service, asked.instance)
    return Deregister(asked.client, asked.service)
