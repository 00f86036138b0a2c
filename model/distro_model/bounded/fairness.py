"""Places for fair transitions: each waiting task, call and event has one, so that no other can starve it.

Fairness applies to a transition at a place. A statement lets a node choose among its tasks, and a link among its calls;
a run that retries one task for ever would be fair to it and never execute the others. So a search places such a
transition once for each waiting item. Together these places choose what the statement does: the states and the
transitions are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from distro_model.bounded.layout import Layout
from distro_model.cluster import calls, inside, nodes, torn
from distro_model.cluster.registers import Taken
from distro_model.cluster.statement import Place, Transition, chooses, handles
from distro_model.cluster.values import Link, Phase
from distro_model.events import ApplyDue, LocalEventDue, ReadDue
from distro_model.local_events import LocalEvent
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.search.system import Fairness

Placed = Iterator[tuple[Transition, Place]]

# Tasks: one for each client and target


def task_of(node: NodeState | None, profile: Profile, client: str, target_name: str) -> list[nodes.Queued]:
    return [
        each for each in nodes.queued(node, profile) if (each.task.client, each.task.target) == (client, target_name)
    ]


RUN_TASK = replace(
    nodes.RUN_TASK,
    steps=(chooses(task_of, "no such task is queued that a worker is free for"), *nodes.RUN_TASK.steps[1:]),
)


def reads_of(node: NodeState | None, now: int, client: str, target_name: str) -> list[ReadDue]:
    due = torn.pending_reads(node, now)
    return [each for each in due if (each.read.client, each.read.target) == (client, target_name)]


READ_REVISION = replace(torn.READ_REVISION, steps=(handles("node", reads_of, "nothing of it is being read"),))


def tasks(layout: Layout, node: str) -> Placed:
    yield from ((RUN_TASK, place) for place in _task_places(layout, node))


def reads(layout: Layout, node: str) -> Placed:
    yield from ((READ_REVISION, place) for place in _task_places(layout, node))


def _task_places(layout: Layout, node: str) -> Iterator[Place]:
    for client in sorted((*layout.clients, *layout.ip_clients)):
        for target in layout.others(node):
            yield layout.node(node).at(f"{client} {node}->{target}", client=client, target_name=target)


# Calls whose end is due: the oldest of a link is fair, so that each comes to be the oldest


def waiting_in(link: Link, phase: Phase) -> list[Taken]:
    """Calls that have reached this phase, the oldest first; equal ones once."""
    found = {call: position for position, call in enumerate(link.calls) if call.phase is phase}
    return [Taken(link.without(position), call) for call, position in found.items()]


def oldest_in(link: Link, phase: Phase) -> Taken | None:
    return next(iter(waiting_in(link, phase)), None)


def younger_in(link: Link, phase: Phase) -> list[Taken]:
    return waiting_in(link, phase)[1:]


def ended_calls(layout: Layout, ending: Transition, phase: Phase, source: str, target: str) -> Placed:
    """`ending` takes any call of a link that has reached this phase."""
    rest, here = ending.steps[2:], layout.link(source, target, phase=phase)
    yield replace(ending, steps=(chooses(oldest_in, calls.NO_CALL), *rest)), here
    younger = replace(ending, steps=(chooses(younger_in, calls.NO_CALL), *rest), fair=Fairness.NONE)
    yield younger, here.at(f"{here.name} before an older one")


# CHANGEs that are applied in parts: one for each client of a link


def parts_of(target: NodeState | None, source_name: str, now: int, client: str) -> list[ApplyDue]:
    return [each for each in torn.next_parts(target, source_name, now) if each.apply.client == client]


def applied_parts(layout: Layout, source: str, target: str) -> Placed:
    for client in (*layout.clients, *layout.ip_clients):
        place = layout.link(source, target).at(f"{source}->{target} {client}", client=client)
        for each in (torn.APPLY_PART, torn.APPLY_LAST):
            yield replace(each, steps=(handles("target", parts_of, torn.NOTHING_APPLIED), *each.steps[1:])), place


# Local events: one for each kind, each of which waits in one queue


def events_of(node: NodeState | None, now: int, profile: Profile, kind: str) -> list[LocalEventDue]:
    return [each for each in inside.first_waiting(node, now, profile) if type(each.event).__name__ == kind]


HANDLE_EVENT = replace(
    inside.HANDLE_EVENT, steps=(handles("node", events_of, "no such event is the first of a queue"),)
)


def events(layout: Layout, node: str) -> Placed:
    for kind in get_args(LocalEvent):
        yield HANDLE_EVENT, layout.node(node).at(f"{node} {kind.__name__}", kind=kind.__name__)
