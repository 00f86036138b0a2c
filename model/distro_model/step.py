"""The step function: one input, one node, its next state and its messages.

This is the whole contract between the rules and their callers: the timed cluster, the explorer, the simulator and the
validators. It is a function of its three arguments only.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import get_args, get_type_hints

from distro_model.events import ApplyDue, CallEnded, Event, ReadDue, RequestReceived
from distro_model.messages import OwnedList
from distro_model.node import NodeState, Step
from distro_model.profile import Profile
from distro_model.rules import (  # noqa: F401 - to import them is to have their rules listed
    clients,
    connections,
    health,
    ip_clients,
    load,
    members,
    metadata,
    notify,
    receive,
    sync,
    torn,
    verify,
)
from distro_model.rules.rule import RULES


def step(node: NodeState, event: Event, profile: Profile) -> Step:
    """The next state and the outputs. Total: every input is legal in every state, and may be ignored."""
    after = _by_rule(node, event, profile)
    if profile.sending_counts_as_activity:
        after = health.with_activity(after, event.at_ms, profile)
    if after.node.metadata:
        after = metadata.with_marks(node, after, profile)
    return after


def whole_step(node: NodeState, event: Event, profile: Profile) -> Step:
    """A step, and at once the parts of it that a profile leaves for later (B05): no other event comes in between."""
    done = step(node, event, profile)
    while done.node.applies or done.node.reads:
        following: Event = (
            ApplyDue(event.at_ms, done.node.applies[0])
            if done.node.applies
            else ReadDue(event.at_ms, done.node.reads[0])
        )
        after = step(done.node, following, profile)
        done = Step(after.node, (*done.outputs, *after.outputs))
    return done


def _by_rule(node: NodeState, event: Event, profile: Profile) -> Step:
    rule = BY_INPUT.get(type(event))  # the rule of most events: one look-up, because this runs millions of times
    if rule is not None:
        return rule(node, event, profile)
    assert isinstance(event, (RequestReceived, CallEnded))
    return BY_INPUT[type(event), type(event.request)](node, event, event.request, profile)


def rule_for(event: Event) -> Callable[..., Step]:
    """The rule that is applied to such an event, and to such a request that arrives or has ended."""
    if isinstance(event, (RequestReceived, CallEnded)):
        return BY_INPUT[type(event), type(event.request)]
    return BY_INPUT[type(event)]


def _nothing_follows(node: NodeState, _event: CallEnded, _request: OwnedList, _: Profile) -> Step:
    return Step(node)


def _by_input() -> dict[type | tuple[type, ...], Callable[..., Step]]:
    events = get_args(Event)
    found: dict[type | tuple[type, ...], Callable[..., Step]] = {(CallEnded, OwnedList): _nothing_follows}
    for rule in RULES.values():
        *given, _profile, returned = get_type_hints(rule.own).values()
        inputs = [get_args(each) or (each,) for each in given[1:]]
        if returned is Step and inputs and inputs[0][0] in events:
            found |= dict.fromkeys(product(*inputs) if inputs[1:] else inputs[0], rule.function)
    return found


BY_INPUT = _by_input()
"""The rule for each event, and for each request that arrives or has ended, by the argument types of the rule."""
