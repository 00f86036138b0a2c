"""The transitions of a bounded cluster, and their places: everything that its bounds allow."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded import fairness, periods
from distro_model.bounded.fairness import Placed
from distro_model.bounded.layout import Layout
from distro_model.cluster import (
    accidents,
    calls,
    clients,
    connections,
    crashes,
    half_open,
    http_clients,
    inside,
    members,
    nodes,
    operator,
    torn,
)
from distro_model.cluster.values import Phase
from distro_model.messages import Operation
from distro_model.rules import ip_clients as ip_client_rules
from distro_model.rules import torn as torn_rules
from distro_model.search.system import Fairness


def placed(layout: Layout) -> Placed:
    """Every transition at every place, in the order in which a search tries them. One that costs a budget is left out
    where that is empty from the beginning."""
    rooms = (
        _of_clients,
        _inside,
        _of_connections,
        _of_nodes,
        _of_links,
        _of_half_open_links,
        _of_operators,
        _in_parts,
        _accidents,
        _of_periods,
        _of_ip_clients,
        _of_members,
    )
    for room in rooms:
        for transition, place in room(layout):
            if transition.cost is None or getattr(layout.bounds, transition.cost):
                yield transition, place


def _of_clients(layout: Layout) -> Placed:
    for client in layout.clients:
        here = layout.client(client)
        yield from ((each, here) for each in (clients.CONNECT, clients.CHANGE, clients.DISCONNECT))
        yield from ((each, here) for each in (clients.REGISTER_BATCH, clients.CHANGE_CLUSTER))


def _inside(layout: Layout) -> Placed:
    bounds = layout.bounds
    for node in layout.nodes:
        if bounds.event_queue:
            yield from fairness.events(layout, node)
        yield inside.LOSE_EVENT, layout.node(node)
    for client in layout.clients:
        here = layout.client(client)
        if bounds.slow_setups:
            yield from ((each, here) for each in (inside.START_SETUP, inside.EARLY_REQUEST, inside.FINISH_SETUP))
        if bounds.slow_requests:
            yield from ((each, here) for each in (inside.START_REQUEST, inside.FINISH_REQUEST))


def _of_connections(layout: Layout) -> Placed:
    bounds = layout.bounds
    if not bounds.silences and not bounds.idle_spells:
        return
    for client in layout.clients:
        here = layout.client(client)
        yield from ((each, here) for each in (connections.FALL_SILENT, connections.ANSWER, connections.HANDLE_ANSWER))
    for node in layout.nodes:
        yield from ((each, layout.node(node)) for each in (periods.CHECK_CONNECTIONS, connections.END_CHECK))


def _of_nodes(layout: Layout) -> Placed:
    bounds = layout.bounds
    for node in layout.nodes:
        here = layout.node(node)
        yield from fairness.tasks(layout, node)
        yield nodes.VERIFY_ROUND, here
        if bounds.periods:
            yield (nodes.LEASE_AND_BEAT_CHECK if layout.ip_clients else nodes.LEASE_CHECK), here
        if bounds.crashes:
            yield from ((each, here) for each in (nodes.LOAD, crashes.CRASH))
            yield replace(crashes.RESTART, fair=Fairness.NONE if bounds.stays_down else Fairness.STRONG), here
        yield periods.PAUSE, here


def _of_links(layout: Layout) -> Placed:
    bounds = layout.bounds
    for source, target in layout.links:
        here = layout.link(source, target)
        for operation in (Operation.CHANGE, Operation.DELETE, Operation.VERIFY, Operation.SNAPSHOT):
            deliver = {Operation.VERIFY: calls.DELIVER_VERIFY, Operation.SNAPSHOT: calls.DELIVER_SNAPSHOT}
            if operation is not Operation.SNAPSHOT or bounds.crashes:
                yield deliver.get(operation, calls.DELIVER), layout.link(source, target, operation=operation)
        if bounds.crashes:
            yield from fairness.ended_calls(layout, calls.FAIL, Phase.REFUSED, source, target)
        if bounds.drops or bounds.lost_replies or bounds.half_open:
            yield from fairness.ended_calls(layout, calls.TIME_OUT, Phase.LOST, source, target)
        for fault in (calls.LOSE, calls.LOSE_REPLY, calls.SWALLOW, calls.OVERTAKE, calls.REPLY_LATE):
            yield fault, here
        if bounds.late_replies:
            yield from fairness.ended_calls(layout, calls.REPLY_ARRIVES, Phase.ANSWERED, source, target)
        yield calls.ABANDON, here
        if bounds.delays:
            yield from fairness.ended_calls(layout, calls.ARRIVE, Phase.ABANDONED, source, target)
        for fault in (calls.GARBLE, calls.RAISE, calls.MISTYPE):
            yield fault, here


def _of_half_open_links(layout: Layout) -> Placed:
    for ends in layout.links if layout.bounds.half_open else ():
        yield from ((each, layout.link(*ends)) for each in (half_open.BREAK, half_open.RECONNECT))


def _of_operators(layout: Layout) -> Placed:
    if layout.bounds.operator_changes:
        yield from ((operator.OPERATOR_SETS, layout.client(client)) for client in layout.clients)
        yield from ((operator.DELETE_METADATA, layout.node(node)) for node in layout.nodes)


def _in_parts(layout: Layout) -> Placed:
    if layout.profile.has(torn_rules.on_change):
        for ends in layout.links:
            yield torn.BEGIN, layout.link(*ends)
            yield from fairness.applied_parts(layout, *ends)
    if layout.profile.has(torn_rules.on_task_due):
        for node in layout.nodes:
            yield from fairness.reads(layout, node)


def _accidents(layout: Layout) -> Placed:
    for ends in layout.links if layout.bounds.crashes else ():
        yield accidents.INTERRUPT_LOAD, layout.link(*ends, operation=Operation.SNAPSHOT)
    for node in layout.nodes:
        yield from ((accidents.ID_COLLISION, layout.client_at(client, node)) for client in layout.clients)


def _of_periods(layout: Layout) -> Placed:
    if layout.bounds.periods:
        yield (periods.PERIOD if layout.bounds.half_open else periods.NOT_TESTED), layout.everywhere()


def _of_ip_clients(layout: Layout) -> Placed:
    bounds = layout.bounds
    for client in layout.ip_clients:
        for route in layout.routes(client):
            yield http_clients.HTTP_CHANGE, route
            yield http_clients.HTTP_CHANGE_BY_V2, route
            if bounds.periods:
                yield http_clients.HTTP_BEAT_IN_PERIOD, route
            elif bounds.lapses:
                yield http_clients.HTTP_BEAT, route
        if bounds.races:
            yield from ((http_clients.ENTER, layout.ip_client_at(client, node)) for node in layout.nodes)
        yield periods.LAPSE, layout.ip_client(client)
    for node in layout.nodes if bounds.ip_clients else ():
        here = layout.node(node)
        if layout.profile.has(ip_client_rules.changed_and_announced_late):
            yield http_clients.ANNOUNCE, here
        if not bounds.periods:
            yield nodes.CHECK_WITHOUT_TIME, here
        if bounds.races:
            yield http_clients.FINISH, here


def _of_members(layout: Layout) -> Placed:
    bounds = layout.bounds
    if not bounds.watches_members:
        return
    for ends in layout.links:
        here = layout.link(*ends)
        yield members.NEWS, here
        if bounds.crashes:
            yield members.BAD_NEWS, here
        yield members.FALSE_ALARM, here
    for node in layout.nodes:
        yield from (
            (each, layout.node(node)) for each in (members.LIST_LEAVES, members.LIST_JOINS, members.REREAD_LIST)
        )
