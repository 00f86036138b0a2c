"""Clients of the HTTP API: their requests, the node that receives each, and the node that handles it.

A client sends a request to any node, which may forward it to another, all in one transition. The request and the
receiving node are choices; how long a client is silent is decided by the chooser (`bounded/periods.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.cluster.clients import SERVICE
from distro_model.cluster.registers import Before, IpLived
from distro_model.cluster.statement import Transition, chooses, handles, of, records, watches, writes
from distro_model.cluster.values import IpLife
from distro_model.events import BEATS, AnnounceDue, Forward, HttpAction, HttpEntered, HttpFinished, HttpReceived, Reply
from distro_model.messages import Answer, CallResult, shown
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.rules.owners import UNHEALTHY
from distro_model.search.system import Fairness, Finding
from distro_model.step import step
from distro_model.transitions import Cause, Happens, HttpAsks, asked


class Wanted(NamedTuple):
    wanted: IpLife
    """The client after its request was carried out."""
    asking: HttpReceived


class Outcome(NamedTuple):
    outcome: IpLife


class Asking(NamedTuple):
    asking: HttpReceived


def ask(ip_life: IpLife) -> list[Wanted]:
    """A registration that differs from all before it, or a deregistration of the registered instance."""
    if not ip_life.changes_left:
        return []
    left, number = ip_life.changes_left - 1, ip_life.registrations + 1
    instance = f"{ip_life.client.partition('#')[0]} v={number}"
    active = replace(ip_life, changes_left=left, earlier=ip_life.published, silence=0)
    new = replace(active, registrations=number, published=((SERVICE, instance),))
    asked = [Wanted(new, HttpReceived(0, ip_life.client, HttpAction.REGISTER, SERVICE, instance))]
    if ip_life.published:
        gone = HttpReceived(0, ip_life.client, HttpAction.DEREGISTER, SERVICE, "")
        asked.append(Wanted(replace(active, published=()), gone))
    return asked


def ask_by_v2(ip_life: IpLife) -> list[Wanted]:
    return [Wanted(wanted, replace(asking, by_v2=True)) for wanted, asking in ask(ip_life)]


def beat_again(ip_life: IpLife) -> Wanted | None:
    """Without periods a beat matters only after a silence."""
    if not ip_life.silence or not ip_life.published:
        return None
    return Wanted(replace(ip_life, silence=0, earlier=ip_life.published), _beat(ip_life))


def beat_in_period(ip_life: IpLife) -> Wanted | None:
    return Wanted(replace(ip_life, silence=0, earlier=ip_life.published), _beat(ip_life)) if ip_life.published else None


def _beat(ip_life: IpLife) -> HttpReceived:
    return HttpReceived(0, ip_life.client, HttpAction.BEAT, SERVICE, ip_life.published[0][1])


def route(
    asked: NodeState | None, asking: HttpReceived, asked_name: str, handling_name: str, profile: Profile
) -> Asking | None:
    """The node that receives the request answers it, or forwards it to the node that it believes to be the owner."""
    outputs = () if asked is None else step(asked, asking, profile).outputs
    if asked_name == handling_name:
        return Asking(asking) if any(isinstance(each, Reply) for each in outputs) else None
    return Asking(replace(asking, forwarded=True)) if outputs == (Forward(handling_name),) else None


def http_request(asking: HttpReceived, now: int) -> HttpReceived:
    return replace(asking, at_ms=now) if now else asking


def take_answer(ip_life: IpLife, wanted: IpLife, answer: Answer | None, periods: int) -> Outcome | None:
    """A refused request is retried; in a period the attempt itself counts."""
    if answer is not None and answer.result is CallResult.SUCCESS:
        return Outcome(wanted)
    return Outcome(ip_life) if periods and wanted.published == ip_life.published else None


def accepted(outcome: IpLife, before: NodeState | None, handling_name: str) -> IpLived:
    """Two nodes that accept different changes, without either having received the other's, fork the client: see
    INV-CLIENTACK.

    A node that holds no content knows of a deregistration only if it has handled it.
    """
    held = None if before is None else before.client(outcome.client)
    content = () if held is None else shown(held.content)
    content = tuple((service, text.removesuffix(UNHEALTHY)) for service, text in content)
    knows = content == outcome.earlier and (held is not None or outcome.ended_at in ("", handling_name))
    ended_at = "" if outcome.published else outcome.ended_at or handling_name
    return IpLived(replace(outcome, ended_at=ended_at, sure=outcome.sure and knows))


def dropped(handling: NodeState, event: HttpReceived, answer: Answer | None) -> Finding | None:
    """The node that handled a request and answered it with SUCCESS shows the result at once."""
    if answer is None or answer.result is not CallResult.SUCCESS:
        return None
    held = handling.client(event.client)
    found = None if held is None else dict(shown(held.content)).get(event.service)
    wanted = None if event.action is HttpAction.DEREGISTER else event.instance
    if found == wanted or (found is not None and event.action in BEATS):
        return None
    what = f"{handling.name} answered {event.client}, which {event.action}, and shows {found}"
    return Finding("INV-CLIENTACK", what)


_HANDLED = (
    writes(route, "it is not handled there"),
    writes(of(Before, "handling")),
    handles("handling", http_request),
    records(take_answer, "nothing comes of it"),
    records(accepted),
    watches(dropped),
)

HTTP_CHANGE = Transition(
    "http change",
    (chooses(ask, "{client} cannot change now"), *_HANDLED),
    of(HttpAsks, "asked_name", "handling_name", "event", "answer"),
)
HTTP_CHANGE_BY_V2 = replace(
    HTTP_CHANGE,
    kind="http change by v2",
    steps=(chooses(ask_by_v2, "{client} cannot change now"), *_HANDLED),
    cost="v2_requests",
)
HTTP_BEAT = replace(
    HTTP_CHANGE,
    kind="http beat",
    steps=(chooses(beat_again, "{client} cannot beat now"), *_HANDLED),
    fair=Fairness.STRONG,
)
HTTP_BEAT_IN_PERIOD = replace(
    HTTP_BEAT, steps=(chooses(beat_in_period, "{client} cannot beat now"), *_HANDLED), once="done"
)


# First requests that are overtaken by another inside their owner (B30)


def would_wait(node: NodeState | None, asking: HttpReceived, profile: Profile) -> bool:
    return node is not None and step(node, HttpEntered(0, asking), profile).node != node


ENTER = Transition(
    "http enter",
    (
        chooses(ask, "{client} cannot change now"),
        writes(would_wait, "it would not wait there"),
        records(of(IpLived, "wanted")),
        handles("node", of(HttpEntered, "now", "asking")),
    ),
    lambda node_name, asking: Happens(
        node_name, f"finds no client for the request in which {asked(asking)}, and is interrupted"
    ),
    cost="races",
)
"""The first request of a client is inside its owner, which has not created the client yet."""


def inside(node: NodeState | None) -> list[Asking]:
    return [] if node is None else [Asking(each) for each in node.entered]


def raced(ip_life: IpLife, asking: HttpReceived) -> IpLife:
    """The order of two first requests at once is unspecified: no property assumes the client's last content."""
    return replace(ip_life, sure=False, silence=0) if asking.client == ip_life.client else ip_life


FINISH = Transition(
    "http finish",
    (chooses(inside, "no request is inside"), handles("node", of(HttpFinished, "now", "asking")), records(raced)),
    lambda node_name, asking: Happens(node_name, f"continues the request in which {asked(asking)}"),
    fair=Fairness.STRONG,
)


def first_unannounced(node: NodeState | None, now: int) -> AnnounceDue | None:
    """They are handled in the order in which they were raised."""
    return None if node is None or not node.unannounced else AnnounceDue(now, node.unannounced[0])


def at_once_announced(node: NodeState) -> int | None:
    return 0 if node.unannounced else None


ANNOUNCE = Transition(
    "announce",
    (handles("node", first_unannounced, "no event waits"),),
    lambda node_name, event: Happens(node_name, f"handles the event that {event.client} has changed", Cause.TIMER),
    fair=Fairness.STRONG,
    due=at_once_announced,
)
