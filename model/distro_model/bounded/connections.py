"""Connections that are open and quiet: clients fall silent, servers ask for a sign of life and close what gives none.

How long it takes until a connection counts as idle is a choice: a silent client may be found idle by any check, a
living one costs a budget each time. A living client always answers before the wait is over; a silent one never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from distro_model.bounded.draft import BUDGET, CLOCK, Draft, Function, Layout, client_column, node_column
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import Budget, Clock, Connection, Life
from distro_model.events import ConnectionCheckDue, ConnectionCheckEnds, DetectionAnswered, DetectionHandled
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.search.system import Alternative, Chain, Fairness, Finding, Lookup
from distro_model.step import step
from distro_model.transitions import AnswerIsHandled, Answers, ChecksConnections, EndsConnectionCheck, FallsSilent

Names = tuple[str, ...]


def connection_chains(layout: Layout) -> Iterator[Chain]:
    bounds = layout.bounds
    if not bounds.silences and not bounds.idle_spells:
        return
    for position, client in enumerate(layout.clients):
        if bounds.silences:
            yield _falls_silent(layout, client)
        yield _answers(layout, client, bounds.home(position))
        yield _is_handled(layout, client, bounds.home(position))
    for node in layout.nodes:
        yield _check(layout, node)
        yield _check_ends(layout, node)


def _at_home(layout: Layout, node: str) -> Names:
    return tuple(client for number, client in enumerate(layout.clients) if layout.bounds.home(number) == node)


def _falls_silent(layout: Layout, client: str) -> Chain:
    draft = Draft(layout, "fall silent", client)
    draft.look("no silences are left", spent("silences"), (BUDGET,), (BUDGET,))
    draft.look(f"{client} is not connected", silenced, (client_column(client),), (client_column(client),))
    return draft.chain(lambda _: FallsSilent(client), fair=Fairness.NONE)


def silenced(life: Life) -> Sequence[Alternative]:
    return ((replace(life, silent=True),),) if life.acts else ()


def _check(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "connection check", node)
    draft.look(f"{node} is down, or waits for answers", nobody_yet, (node_column(node),), ("idle",))
    for client in _at_home(layout, node):
        draft.look("never", found_idle, ("idle", client_column(client), BUDGET), ("idle", BUDGET))
    draft.look("no connection is idle", check_of, ("idle",), ("event",))
    draft.tell(node, "event")
    return draft.chain(lambda value: ChecksConnections(node, _names(value("idle"))), fair=Fairness.STRONG)


def nobody_yet(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None or node.detections else (((),),)


def found_idle(idle: Names, life: Life, budget: Budget) -> Sequence[Alternative]:
    """The connections found idle so far, with or without this one."""
    with_it = (*idle, life.client)
    if life.connection is Connection.OPEN and life.silent:
        return ((with_it, budget),)
    less = budget.less("idle_spells") if life.acts else None
    return ((idle, budget),) if less is None else ((idle, budget), (with_it, less))


def check_of(idle: Names) -> Sequence[Alternative]:
    return ((ConnectionCheckDue(0, idle),),) if idle else ()


def _names(value: object) -> Names:
    assert isinstance(value, tuple)
    return value


def _answers(layout: Layout, client: str, home: str) -> Chain:
    def answer(node: NodeState | None, life: Life) -> Sequence[Alternative]:
        asked = None if node is None else node.detection(client)
        if asked is None or asked.recorded or asked.counted or not life.acts:
            return ()
        return ((DetectionAnswered(0, client),),)

    draft = Draft(layout, "answer", client)
    draft.look(f"{client} was not asked", answer, (node_column(home), client_column(client)), ("event",))
    draft.tell(home, "event")
    return draft.chain(lambda _: Answers(client), fair=Fairness.STRONG)


def _is_handled(layout: Layout, client: str, home: str) -> Chain:
    def half_done(node: NodeState | None) -> Sequence[Alternative]:
        asked = None if node is None else node.detection(client)
        return () if asked is None or asked.recorded == asked.counted else ((DetectionHandled(0, client),),)

    draft = Draft(layout, "answer handled", client)
    draft.look(f"{client} has not answered", half_done, (node_column(home),), ("event",))
    draft.tell(home, "event")
    return draft.chain(lambda _: AnswerIsHandled(home, client), fair=Fairness.STRONG)


def _check_ends(layout: Layout, node: str) -> Chain:
    """As soon as every answer was counted; else when the wait is over, which is not before all the living answered."""
    draft = Draft(layout, "connection check ends", node)
    draft.look(f"{node} checks nothing", under_way, (node_column(node),), ("event",))
    for client in _at_home(layout, node):
        draft.look(f"{client} is about to answer", no_more_to_wait_for, (node_column(node), client_column(client)))
    draft.keep(node_column(node), "before")
    draft.tell(node, "event")
    draft.look("never", ejected, ("before", node_column(node)), ("ejected",))
    for client in _at_home(layout, node):
        column = client_column(client)
        draft.alarm(_wrongly_ejected(node), ("ejected", column))
        draft.look("never", connection_closed, ("ejected", column, CLOCK), (column,))
    return draft.chain(lambda _: EndsConnectionCheck(node), fair=Fairness.STRONG)


def under_way(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None or not node.detections else ((ConnectionCheckEnds(0),),)


def no_more_to_wait_for(node: NodeState, life: Life) -> Sequence[Alternative]:
    asked = node.detection(life.client)
    return () if asked is not None and not asked.counted and life.acts else ((),)


def ejected(before: NodeState, after: NodeState) -> Sequence[Alternative]:
    return ((tuple(client.name for client in before.clients if after.client(client.name) is None),),)


def _wrongly_ejected(node: str) -> Function:
    def found(names: Names, life: Life) -> Sequence[Alternative]:
        if life.client not in names or not life.acts:
            return ((None,),)
        return ((Finding("INV-LIVE", f"{node} closed the connection of {life.client}, which had answered"),),)

    return found


def connection_closed(names: Names, life: Life, clock: Clock) -> Sequence[Alternative]:
    return ((life.ended(clock.period) if life.client in names else life,),)


def of_silent_connections(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-SILENT, in every state, at each client's own node."""
    for position, client in enumerate(layout.clients):
        reads = (node_column(layout.bounds.home(position)), client_column(client))
        yield (Lookup("it would be closed", _unclosed(layout.profile), reads, ("found",)),)


@cache
def _unclosed(profile: Profile) -> Function:
    """The check that may be under way ends, the next one finds the connection idle and ends without an answer."""

    def found(node: NodeState | None, life: Life) -> Sequence[Alternative]:
        if node is None or not life.silent:
            return ()
        for event in (ConnectionCheckEnds(0), ConnectionCheckDue(0, (life.client,)), ConnectionCheckEnds(0)):
            node = step(node, event, profile).node
        if node.client(life.client) is None:
            return ()
        return ((Finding("INV-SILENT", f"{life.client} is silent, and no check of {node.name} notices it"),),)

    return found


def of_silence(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """EVENTUALLY-SILENT: the states that must not last."""
    for client in layout.clients:
        yield (Lookup("nobody is silent", still_silent, (client_column(client),), ("found",)),)


def still_silent(life: Life) -> Sequence[Alternative]:
    return ((Finding("EVENTUALLY-SILENT", f"{life.client} is silent and connected"),),) if life.silent else ()
