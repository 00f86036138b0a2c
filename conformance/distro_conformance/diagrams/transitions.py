"""The transitions of a model's run as the items of a sequence diagram.

An event on a link becomes an arrow, an action of a client an arrow from it to its node, and any other event a note at
its node.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Several
from dataclasses import replace

from distro_conformance.diagrams.sequence import Delivery, Fault, Item, Message, Note, Sequence
from distro_model.actions import Action, BaseHttpRequest, Connect, PeerRequest
from distro_model.messages import CallResult
from distro_model.transitions import CallStep, Happens, HttpAsks, OnLink, Transition

AT_SOURCE = (CallStep.TIMES_OUT, CallStep.FAILS, CallStep.ABANDONED, CallStep.REPLY_ARRIVES)
"""What its sender observes of a call, after the arrow of the request."""


def sequence_of(nodes: Several[str], transitions: Iterable[Transition], *, last_is_bad: bool) -> Sequence:
    """`last_is_bad`: the last transition is the first wrong event."""
    homes: dict[str, str] = {}
    items = [_item(transition, homes, nodes) for transition in transitions]
    if items and last_is_bad:
        items[-1] = replace(items[-1], bad=True)
    return Sequence((*homes, *nodes), tuple(items))


def sequence_of_actions(nodes: Several[str], actions: Iterable[Action]) -> Sequence:
    """Only the actions, for a run without a recording. `nodes`: the one under test first."""
    homes: dict[str, str] = {}
    items = [_done(action, homes, nodes) for action in actions]
    return Sequence((*homes, *nodes), tuple(items), "What was done")


def _done(action: Action, homes: dict[str, str], nodes: Several[str]) -> Item:
    text = str(action)
    match action:
        case Connect(client, node):
            homes[client] = node
            return Message(client, node, "connect")
        case BaseHttpRequest(_, _, node):
            homes.setdefault(action.client, node)
            return Message(action.client, node, text.removesuffix(f" at {node}"))
        case PeerRequest(peer):
            return Message(peer, nodes[0], text.removeprefix(f"say {peer} "))
    client = str(getattr(action, "client", ""))
    return Message(client, homes[client], text.replace(f" {client}", "", 1)) if client in homes else Fault(text)


def _item(transition: Transition, homes: dict[str, str], nodes: Several[str]) -> Item:
    if isinstance(transition, Action):
        return _done(transition, homes, nodes)
    match transition:
        case OnLink(source, target, request, step) if step in AT_SOURCE:
            return Note(source, f"{request} to {target} {step.text}")
        case OnLink(source, target, request):
            reply = "" if transition.outcome is None else f"answer: {transition.outcome}"
            return Message(source, target, str(request), _delivery(transition), reply)
        case HttpAsks(node, _, request):
            homes.setdefault(request.client, node)
            return Message(request.client, node, str(request.action), reply=str(transition.answer.result))
        case Happens(at):
            at, text = homes.get(at, at), str(transition)
            return Note(at, text.removeprefix(f"{at} ")) if at in nodes else Fault(text)


def _delivery(transition: OnLink) -> Delivery:
    match transition.step:
        case CallStep.LOST:
            return Delivery.LOST
        case CallStep.SWALLOWED:
            return Delivery.SWALLOWED
        case _ if transition.outcome in (None, CallResult.SUCCESS):
            return Delivery.ARRIVED
        case _:
            return Delivery.FAILED
