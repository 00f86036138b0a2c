"""From instant to instant, and the orders in which the timers of one instant may fire.

Time jumps from one instant with an event to the next. Where several timers are due in one, all orders are tried and
equal results merged: a real server has a thread for each, and nothing orders them. Only observable effects of an order
matter, so nodes without effects are left out, and nodes whose timers cannot affect each other are not interleaved. A
tick in the same instant as the creation of a due task may take it or leave it to the next tick; local events take no
time, and come in any order with the rest. A CHANGE that is made or applied in parts interleaves with others of its
client that arrived before it was done, and with no timer.
"""

from __future__ import annotations

from functools import cache

from distro_model.clock.mutable_cluster import MutableCluster
from distro_model.clock.timers import (
    BEATS,
    KINDS_OF_REPORT,
    LATE,
    LEASES,
    NOTHING,
    TICK,
    Timer,
    do_part,
    fire,
    has_ip_clients,
    late_calls,
    more_to_do,
    next_instant,
    parts,
)
from distro_model.clock.watched import Watched
from distro_model.cluster import half_open, nodes
from distro_model.messages import Operation, subject_of
from distro_model.node import Member, MemberState
from distro_model.rules.members import reported_member
from distro_model.rules.owners import is_ip_client, is_responsible, owner_of

OUTCOMES_MAX = 32
"""Of watched clusters. Each cut link or refused DELETE multiplies them, and an observer cannot distinguish most of
them."""

ORDERS_MAX = 1_000
"""The limit of watched clusters, halfway through one instant. Thirteen timers of three nodes that may all affect each
other lead to tens of thousands, which take minutes, and to eight outcomes."""


class TooManyOutcomesError(Exception):
    """Model state limit exceeded: the events cannot be followed any further; all observations until then are
    correct."""


def advanced(clusters: list[MutableCluster], until_ms: int, watched: Watched | None = None) -> list[MutableCluster]:
    """Let time run to `until_ms`, that instant included, from one time. The results are different from each other.

    `watched`: the observations meanwhile; clusters that cannot match them are left out. Raises TooManyOutcomesError if
    more than OUTCOMES_MAX are left, or if more than ORDERS_MAX had to be examined.
    """
    orders_max = None if watched is None else ORDERS_MAX
    clock_ms = clusters[0].now_ms
    clusters = different([result for cluster in clusters for result in at_once(cluster)])
    nexts: dict[int, tuple[int, frozenset[Timer]]] = {}
    while True:
        nexts = {id(each): nexts.get(id(each)) or next_instant(each, clock_ms) for each in clusters}
        at_ms = min(its_ms for its_ms, _ in nexts.values())
        if at_ms > until_ms:
            break
        fitting = clusters if watched is None else watched.nearest(clusters, at_ms - 1)
        if len(fitting) < len(clusters):  # some lack an observed call, and are dropped before they get it
            clusters = fitting
            continue
        results = []
        for each in clusters:
            its_ms, due = nexts[id(each)]
            if its_ms == at_ms:
                each.now_ms = at_ms
                del nexts[id(each)]
                mattering = without_idle_checks(each, _without_idle_reports(each, due))
                results.extend(instant(each, mattering, orders_max=orders_max))
            else:
                results.append(each)
        clusters, clock_ms = different(results if watched is None else watched.nearest(results, at_ms)), at_ms
        if watched is not None and len(clusters) > OUTCOMES_MAX:
            raise TooManyOutcomesError(f"more than {OUTCOMES_MAX} outcomes are possible after {at_ms} ms")
    for each in clusters:
        each.now_ms = until_ms
    return clusters


def at_once(cluster: MutableCluster, *, ticks: bool = True) -> list[MutableCluster]:
    """Events that take no time happen, in every order; a task that became due just now may meet the tick of this
    instant."""
    return instant(cluster, frozenset(), ticks=ticks)


def _without_idle_reports(cluster: MutableCluster, due: frozenset[Timer]) -> frozenset[Timer]:
    """Reports without effect are left out, unless the idleness may end in this very instant."""
    if KINDS_OF_REPORT.isdisjoint([kind for _, kind in due]):
        return due
    going_round = {at: _reported(cluster, at) for at, kind in due if kind == nodes.REPORT.kind}
    idle = {(source, nodes.REPORT.kind) for source, target in going_round.items() if _is_idle(cluster, source, target)}
    for source, target in going_round.items():
        if going_round.get(target) == source and cluster.links[target * cluster.size + source].cut:
            idle.discard((source, nodes.REPORT.kind))  # the other's report fails, before or after this one arrives
    for source, kind in due:
        # Even where all are believed UP: the round robin report may fail in this very instant, before or after it.
        may_see_one_down = (source, nodes.REPORT.kind) in due - idle
        if kind == nodes.REPORT_TO_NOT_UP.kind and not may_see_one_down:
            idle |= {(source, kind)} if nodes.report_to_not_up(cluster.nodes[source], cluster.now_ms) is None else set()
    return due - idle


def without_idle_checks(cluster: MutableCluster, due: frozenset[Timer]) -> frozenset[Timer]:
    """A node that owns none of the clients that have been silent for long enough checks without effect, unless a report
    of this very instant makes it an owner; and then no lease that has not ended ends with it."""
    checking = [position for position, kind in due if kind == BEATS.kind]
    if not checking or _may_move_owners(cluster, due):
        return due
    idle, profile, now_ms = set[Timer](), cluster.plan.profile, cluster.now_ms
    for position in checking:
        node = cluster.nodes[position]
        if node is not None and not nodes.owns_silent(node, now_ms, profile):
            idle.add((position, BEATS.kind))
            if nodes.next_lease_check(node, now_ms - 1, profile) != now_ms:
                idle.add((position, LEASES.kind))
    return due - idle


def _reported(cluster: MutableCluster, position: int) -> int:
    node = cluster.nodes[position]
    assert node is not None  # its report is due
    return cluster.plan.index[reported_member(node, cluster.now_ms, cluster.plan.profile)]


def _is_idle(cluster: MutableCluster, source: int, target: int) -> bool:
    """Both ends believe each other UP already and the report would arrive."""
    node, receiver, at = cluster.nodes[source], cluster.nodes[target], source * cluster.size + target
    link = cluster.links[at]
    if node is None or receiver is None or target in cluster.paused or cluster.wires[at].holds_reports:
        return False
    observed = node.name not in receiver.others or receiver.member(node.name).state is MemberState.UP
    return observed and not (link.cut or link.half_open) and node.member(receiver.name) == Member(receiver.name)


# Orders


def whole(cluster: MutableCluster) -> list[MutableCluster]:
    """An operation in parts continues to its end, before anything else of this instant.

    Only the parts of CHANGEs of one client at one node can affect each other, and so only these come in every order.
    """
    finished: list[MutableCluster] = []
    frontier = [cluster]
    while frontier:
        following: list[MutableCluster] = []
        for each in frontier:
            pending = next(((at, found) for at in range(each.size) if (found := parts(each, at))), None)
            if pending is None:
                finished.append(each)
                continue
            position, several = pending
            forks = [each, *(each.fork() for _ in several[1:])]
            for fork, part in zip(forks, several, strict=True):
                do_part(fork, position, part)
            following += forks
        frontier = different(following) if len(following) > 1 else following
    return different(finished) if len(finished) > 1 else finished


def instant(
    cluster: MutableCluster, due: frozenset[Timer], *, ticks: bool = True, orders_max: int | None = None
) -> list[MutableCluster]:
    """Every relevant order of the due timers. Groups that cannot affect each other are not interleaved. Raises
    TooManyOutcomesError."""
    results = whole(cluster) if cluster.plan.in_parts else [cluster]
    for group in groups(cluster, due):
        timers = frozenset([timer for timer in due if timer[0] in group]) if due else due
        results = different([result for each in results for result in _orders(each, timers, group, ticks, orders_max)])
    return results


def groups(cluster: MutableCluster, due: frozenset[Timer]) -> list[frozenset[int]]:
    """Nodes whose timers may affect each other in one instant, grouped.

    A node's ticks, verifies and time-outs affect the clients that it owns, here and at its peers; so those of two nodes
    commute. A lease check affects other nodes' clients, and a client of the HTTP API may have two owners: there the
    nodes that check the same client are joined. A report decides about the gate of both its ends, and joins these.
    Where copies believe to be native, a node loads, or a report may make an owner, all nodes are joined.
    """
    together, alone = _parties(cluster.size)
    kinds = {kind for _, kind in due}
    if cluster.plan.has_native_copies or nodes.LOAD.kind in kinds:
        return [together]
    if any(kind == LATE.kind and _load_goes_on(cluster, at) for at, kind in due):
        return [together]
    if has_ip_clients(cluster) or kinds & {LEASES.kind, BEATS.kind}:
        is_open = _may_move_owners(cluster, due) or cluster.plan.profile.event_queue
        return [together] if is_open else _joined_by_clients(cluster)
    if KINDS_OF_REPORT.isdisjoint(kinds) or len({position for position, _ in due}) == 1:
        return alone
    return [together] if half_open.RECONNECT.kind in kinds else _joined_by_reports(cluster, due)


def _may_move_owners(cluster: MutableCluster, due: frozenset[Timer]) -> bool:
    """A node may believe another to be DOWN, or UP again."""
    kinds = {kind for _, kind in due}
    if not KINDS_OF_REPORT.isdisjoint(kinds) or half_open.RECONNECT.kind in kinds:
        return True
    return LATE.kind in kinds and any(
        call.deadline_ms == cluster.now_ms and call.is_report for link in cluster.links for call in link.calls
    )


def _joined_by_clients(cluster: MutableCluster) -> list[frozenset[int]]:
    names = frozenset(each.name for node in cluster.nodes if node is not None for each in node.clients)
    joined: list[tuple[frozenset[int], frozenset[str]]] = []
    for position in range(cluster.size):
        members, clients = frozenset({position}), _looked_at(cluster, position, names)
        meeting = [each for each in joined if not each[1].isdisjoint(clients)]
        joined = [each for each in joined if each not in meeting]
        joined.append((members.union(*(each[0] for each in meeting)), clients.union(*(each[1] for each in meeting))))
    return [members for members, _ in joined]


def _looked_at(cluster: MutableCluster, position: int, names: frozenset[str]) -> frozenset[str]:
    """The clients about which an event of the node may happen in this instant, here or at a peer. `names`: all."""
    node, profile = cluster.nodes[position], cluster.plan.profile
    if node is None:
        return frozenset()
    owned = {each.name for each in node.clients if is_responsible(node, each, profile)}
    owned |= {name for name in names - owned if is_ip_client(name) and owner_of(node, name, profile) == node.name}
    waiting = {task.client for task in node.tasks}
    waiting |= {subject_of(call.request) or "" for call in cluster.calls_from(position)}
    return frozenset(owned | waiting | {*node.unannounced} | nodes.ended(node, cluster.now_ms, profile))


def _joined_by_reports(cluster: MutableCluster, due: frozenset[Timer]) -> list[frozenset[int]]:
    """A report to a member that is cut off fails, and only its sender observes that."""
    joined = [{position} for position in range(cluster.size)]
    for source in sorted({position for position, kind in due if kind in KINDS_OF_REPORT}):
        for target in _reported_in(cluster, source, due):
            link = cluster.links[source * cluster.size + target]
            if not (link.cut or link.down) and joined[source] is not joined[target]:
                joined[source] |= joined[target]
                for position in joined[target]:
                    joined[position] = joined[source]
    return [frozenset(each) for position, each in enumerate(joined) if position == min(each)]


def _reported_in(cluster: MutableCluster, source: int, due: frozenset[Timer]) -> list[int]:
    """The members to which a node may report in this instant. One report may decide whether there is another."""
    node, found = cluster.nodes[source], []
    assert node is not None  # an event of it is due
    if (source, nodes.REPORT_TO_NOT_UP.kind) in due:
        found = [cluster.plan.index[each.name] for each in node.members if each.state is not MemberState.UP]
    return [*found, _reported(cluster, source)] if (source, nodes.REPORT.kind) in due else found


@cache
def _parties(size: int) -> tuple[frozenset[int], list[frozenset[int]]]:
    """All nodes together, and each alone."""
    return frozenset(range(size)), [frozenset({position}) for position in range(size)]


def _load_goes_on(cluster: MutableCluster, position: int) -> bool:
    """A node that waited for a snapshot in vain asks the next member in this instant."""
    return any(
        call.deadline_ms == cluster.now_ms and call.request.operation is Operation.SNAPSHOT
        for call in cluster.calls_from(position)
    )


_Pending = tuple[MutableCluster, frozenset[Timer], frozenset[int]]
"""A cluster, the timers that still have to fire on it, and the nodes whose tick of this instant may still come."""


def _orders(
    cluster: MutableCluster, due: frozenset[Timer], group: frozenset[int], ticks: bool, orders_max: int | None
) -> list[MutableCluster]:
    """Every order of the timers of these nodes, merged after each timer."""
    ticking = group if ticks else frozenset[int]()
    if not due and not _ticks_that_became_due(cluster, ticking) and not _pending_inside(cluster, group):
        return [cluster]  # most instants of most nodes
    finished: list[MutableCluster] = []
    frontier: list[_Pending] = [(cluster, due, ticking)]
    while frontier:
        following: list[_Pending] = []
        for each, waiting, ticking in frontier:
            must = waiting | _pending_inside(each, group)
            if not must:
                finished.append(each)
            options = must | _ticks_that_became_due(each, ticking)
            for timer in sorted(options):
                still = ticking - {timer[0]} if timer[1] == TICK.kind else ticking
                fork = each.fork() if len(options) > 1 or not must else each
                results = fire(fork, timer)
                if cluster.plan.in_parts:
                    results = [done for result in results for done in whole(result)]
                following += [(result, _still_due(result, waiting, timer), still) for result in results]
        frontier = _different_pending(following)
        if orders_max is not None and len(frontier) > orders_max:
            raise TooManyOutcomesError(f"more than {orders_max} different orders at {cluster.now_ms} ms")
    return finished


def _still_due(cluster: MutableCluster, waiting: frozenset[Timer], fired: Timer) -> frozenset[Timer]:
    """Between the time-outs of two calls a tick may come, or any other event of this instant."""
    position, kind = fired
    goes_on = kind == LATE.kind and cluster.nodes[position] is not None and any(late_calls(cluster, position))
    return waiting if goes_on else waiting - {fired}


def _ticks_that_became_due(cluster: MutableCluster, ticking: frozenset[int]) -> frozenset[Timer]:
    """A task may become due by another timer of this instant, before or after the tick of this instant."""
    now_ms, tick_ms = cluster.now_ms, cluster.plan.profile.tick_ms
    found = [
        (position, TICK.kind)
        for position in ticking
        if (node := cluster.nodes[position]) is not None
        and node.tasks
        and position not in cluster.paused
        and (now_ms - node.started_ms) % tick_ms == 0
        and any(task.due_ms <= now_ms for task in node.tasks)
    ]
    return frozenset(found) if found else NOTHING


def _pending_inside(cluster: MutableCluster, group: frozenset[int]) -> frozenset[Timer]:
    """Operations that a node has begun and events that take no time."""
    if not cluster.plan.has_events:
        return NOTHING
    found: set[Timer] = set()
    for position in group:
        node = cluster.nodes[position]
        if node is None or position in cluster.paused:
            continue
        found |= {(position, kind) for kind in more_to_do(node)}
    return frozenset(found)


def different(clusters: list[MutableCluster]) -> list[MutableCluster]:
    """Without duplicates: clusters that differ in the order of traffic, or in unobservable traffic, are the same."""
    if len(clusters) < 2:  # most are alone
        return clusters
    kept: list[MutableCluster] = []
    for cluster in clusters:
        if not any(_are_same(cluster, other) for other in kept):
            kept.append(cluster)
    return kept


def _different_pending(pending: list[_Pending]) -> list[_Pending]:
    if len(pending) < 2:
        return pending
    kept: list[_Pending] = []
    alike: dict[tuple[frozenset[Timer], frozenset[int]], list[MutableCluster]] = {}
    for each in pending:
        clusters = alike.setdefault(each[1:], [])
        if not any(_are_same(each[0], other) for other in clusters):
            clusters.append(each[0])
            kept.append(each)
    return kept


def _are_same(cluster: MutableCluster, other: MutableCluster) -> bool:
    return cluster.counted == other.counted and cluster.is_same(other)
