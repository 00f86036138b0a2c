"""Time: the due times of timers, and their effects.

A transition defines when its timer is due; this module applies that on a clock. Timers without effect are not visited,
so six quiet seconds cost no more than six quiet milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from distro_model.clock.mutable_cluster import MutableCluster
from distro_model.cluster import calls, connections, half_open, http_clients, inside, nodes, torn
from distro_model.cluster.statement import Transition
from distro_model.cluster.values import Call, Connection, Phase
from distro_model.events import ApplyDue, Event
from distro_model.node import MemberState, NodeState
from distro_model.profiles import Profile
from distro_model.rules.owners import is_ip_client
from distro_model.rules.sync import has_free_worker

TICK, ROUND, LEASES, BEATS = nodes.RUN_TASK, nodes.VERIFY_ROUND, nodes.LEASE_CHECK, nodes.BEAT_CHECK
PERIODIC = (TICK, ROUND, LEASES, BEATS, nodes.LOAD)
REPORTS = (nodes.REPORT, nodes.REPORT_TO_NOT_UP)
KINDS_OF_REPORT = frozenset(each.kind for each in REPORTS)
AT_ONCE = (inside.HANDLE_EVENT, http_clients.ANNOUNCE)
LATE = calls.TIME_OUT  # of each call of the node whose time-out is now, one after the other
OF_CONNECTIONS = (half_open.RECONNECT, connections.CHECK_CONNECTIONS, connections.END_CHECK)

FIRST_CONNECTION_CHECK_MS = 1_000
"""After the start of a node. SDKs send a keep-alive every 5 s, so only a silent client is ever idle."""

NEVER = sys.maxsize

Timer = tuple[int, str]
"""Position of the node, and the kind of transition that is due there."""
NOTHING = frozenset[Timer]()

KINDS: dict[str, Transition] = {each.kind: each for each in (*PERIODIC, *REPORTS, *AT_ONCE, LATE, *OF_CONNECTIONS)}


# Due times


def next_instant(cluster: MutableCluster, after_ms: int) -> tuple[int, frozenset[Timer]]:
    """The next time, later than `after_ms`, with an event anywhere, and the possible events of that time."""
    earliest, due, calm = NEVER, set[Timer](), is_calm(cluster)
    for position, node in enumerate(cluster.nodes):
        if node is not None and position not in cluster.paused:
            for at_ms, transition in _node_timers(cluster, position, node, after_ms, calm=calm):
                if at_ms < earliest:
                    earliest, due = at_ms, {(position, transition.kind)}
                elif at_ms == earliest:
                    due.add((position, transition.kind))
    for at, link in enumerate(cluster.links):
        if link.calls and at // cluster.size not in cluster.paused:
            for call in link.calls:
                if call.phase is not Phase.ABANDONED and call.deadline_ms <= earliest:
                    due = due if call.deadline_ms == earliest else set()
                    earliest = call.deadline_ms
                    due.add((at // cluster.size, LATE.kind))
    return earliest, frozenset(due)


def _node_timers(
    cluster: MutableCluster, position: int, node: NodeState, after_ms: int, *, calm: bool
) -> Iterator[tuple[int, Transition]]:
    """The next due time of each timer of the node; timers that would have no effect now may be missing."""
    profile = cluster.plan.profile
    if node.tasks:
        yield nodes.next_tick(node, after_ms, profile) or 0, TICK
    may_own = has_ip_clients(cluster)  # it may become the owner of one, or get one that it owns, in that very instant
    if node.clients or profile.keeps_index or may_own:
        if may_own or nodes.may_have_round(node, profile):
            yield nodes.next_round(node, after_ms, profile), ROUND
        checked_ms = nodes.next_beat_check(node, after_ms, profile)
        if checked_ms is not None:
            yield checked_ms, BEATS
            if nodes.lease_timer(node, checked_ms - 1, profile) == checked_ms:
                yield checked_ms, LEASES  # a client without instances may be removed in the same instant
    if node.clients or node.gone:
        at_ms = nodes.next_lease_check(node, after_ms, profile)
        if at_ms is not None:
            yield at_ms, LEASES
    if node.load_at_ms is not None and node.load_at_ms > after_ms:
        yield node.load_at_ms, nodes.LOAD
    if not calm and node.others:
        yield nodes.next_report(node, after_ms, profile) or 0, nodes.REPORT
        if profile.reports_to_members_not_up:
            yield nodes.next_report_to_not_up(node, after_ms, profile) or 0, nodes.REPORT_TO_NOT_UP
    if not calm and any(
        cluster.links[position * cluster.size + other].half_open for other in cluster.plan.other_positions[position]
    ):
        yield half_open.next_health_check(node, after_ms, profile), half_open.RECONNECT
    if cluster.quiet or node.detections:
        yield from _connection_timers(cluster, position, node, after_ms)


def _connection_timers(
    cluster: MutableCluster, position: int, node: NodeState, after_ms: int
) -> Iterator[tuple[int, Transition]]:
    """A check begins where a client here was silent for long enough, and ends when the wait for answers is over."""
    if node.detections:
        yield next_end_of_check(node, after_ms, cluster.plan.profile), connections.END_CHECK
        return
    since = [cluster.quiet[name] for name in home_clients(cluster, position) if name in cluster.quiet]
    if since:
        idle_ms = max(after_ms, min(since) + cluster.plan.profile.connection_idle_ms - 1)
        yield next_connection_check(node, idle_ms, cluster.plan.profile), connections.CHECK_CONNECTIONS


def next_connection_check(node: NodeState, after_ms: int, profile: Profile) -> int:
    """A check that waits for a client delays those after it."""
    first_ms = node.started_ms + FIRST_CONNECTION_CHECK_MS
    if node.checked_ms:
        first_ms = node.checked_ms + profile.connection_check_ms
    return nodes.next_on(first_ms, max(after_ms + 1, first_ms), profile.connection_check_ms)


def next_end_of_check(node: NodeState, after_ms: int, profile: Profile) -> int:
    began_ms = node.checked_ms if node.detections else next_connection_check(node, after_ms, profile)
    return began_ms + profile.detection_ms


PHASES: dict[str, Callable[[NodeState, int, Profile], int | None]] = {
    ROUND.kind: nodes.next_round,
    LEASES.kind: nodes.lease_timer,
    BEATS.kind: nodes.beat_timer,
    nodes.REPORT.kind: nodes.next_report,
    nodes.REPORT_TO_NOT_UP.kind: nodes.next_report_to_not_up,
    half_open.RECONNECT.kind: half_open.next_health_check,
    connections.CHECK_CONNECTIONS.kind: next_connection_check,
    connections.END_CHECK.kind: next_end_of_check,
}
"""The next firing of each periodic timer, with or without effect: in phase with its node's start."""


def home_clients(cluster: MutableCluster, position: int) -> list[str]:
    """The clients whose connections to this node are open."""
    home = cluster.plan.names[position]
    return [each.client for each in cluster.lives.values() if each.home == home and each.connection is Connection.OPEN]


def is_calm(cluster: MutableCluster) -> bool:
    """All nodes run, reach each other and believe each other UP: no report can change anything."""
    for node in cluster.nodes:
        if node is None:
            return False
        for member in node.members:
            if member.state is not MemberState.UP or member.failures:
                return False
    for link, wire in zip(cluster.links, cluster.wires, strict=True):
        if link.cut or link.half_open or wire.holds_reports:
            return False
    return not cluster.paused


def has_ip_clients(cluster: MutableCluster) -> bool:
    return any(node is not None and any(is_ip_client(each.name) for each in node.clients) for node in cluster.nodes)


def missed_timers(cluster: MutableCluster, position: int, since_ms: int) -> frozenset[Timer]:
    """The timers of a node that were due while it was suspended, not later than now."""
    node = cluster.nodes[position]
    assert node is not None  # one that is down is not suspended
    every = {
        (position, each.kind)
        for at, each in _node_timers(cluster, position, node, since_ms, calm=False)
        if at <= cluster.now_ms
    }
    late = any(call.deadline_ms <= cluster.now_ms and call.deadline_ms for call in cluster.calls_from(position))
    return frozenset(every | ({(position, LATE.kind)} if late else set()))


# Effects


Way = Event | None
"""The event that a node handles, where several are possible."""


def ways(cluster: MutableCluster, timer: Timer) -> list[Way]:
    """The possible effects of the timer now."""
    position, kind = timer
    node, profile, now_ms = cluster.nodes[position], cluster.plan.profile, cluster.now_ms
    match kind:
        case ROUND.kind:
            return [*nodes.verify_rounds(node, now_ms, profile)]
        case inside.HANDLE_EVENT.kind:
            return [*inside.first_waiting(node, now_ms, profile)]
    return [None]


def fire(cluster: MutableCluster, timer: Timer) -> list[MutableCluster]:
    """The guard of a timer is evaluated when it fires. Several results: its exact effect is open."""
    several = ways(cluster, timer)
    results = [cluster, *(cluster.fork() for _ in several[1:])]
    for each, way in zip(results, several, strict=False):
        run(each, timer, way)
    return results


def run(cluster: MutableCluster, timer: Timer, way: Way) -> None:
    position, kind = timer
    node, now_ms = cluster.nodes[position], cluster.now_ms
    if node is None:
        return
    transition = KINDS[kind]
    if way is not None:
        cluster.take(transition, at=position, event=way)
    elif transition is TICK:
        for task in node.tasks:
            held = cluster.nodes[position]
            if task.due_ms <= now_ms and held and has_free_worker(held, task.client, task.target, cluster.plan.profile):
                cluster.take(TICK, at=position, task=task)
    elif transition is LATE:
        for target, call in islice(late_calls(cluster, position), 1):
            give_up(cluster, position, target, call)
    elif transition is LEASES:
        cluster.take(LEASES, at=position, last_ms=None)
    elif transition is half_open.RECONNECT:
        for target in cluster.plan.other_positions[position]:
            cluster.take(half_open.RECONNECT, source=position, target=target)
    elif transition is connections.CHECK_CONNECTIONS:
        longest_ms = cluster.plan.profile.connection_idle_ms
        idle = (
            name for name in home_clients(cluster, position) if now_ms - cluster.quiet.get(name, now_ms) >= longest_ms
        )
        cluster.take(transition, at=position, idle=tuple(idle))
    elif transition is connections.END_CHECK:
        if now_ms - node.checked_ms >= cluster.plan.profile.detection_ms:
            cluster.take(transition, at=position)
    else:
        cluster.take(transition, at=position)


def late_calls(cluster: MutableCluster, source: int) -> Iterator[tuple[int, Call]]:
    """The calls whose sender has waited long enough, target by target in the order of sending."""
    for target in cluster.plan.other_positions[source]:
        for call in cluster.links[source * cluster.size + target].calls:
            if call.deadline_ms <= cluster.now_ms and call.phase is not Phase.ABANDONED:
                yield target, call


def give_up(cluster: MutableCluster, source: int, target: int, call: Call) -> None:
    """Its sender has waited long enough for a call that is on its link."""
    if call.phase is Phase.SENT and target in cluster.paused:  # it is on its link, and will be read later
        cluster.take(calls.ABANDON, source=source, target=target, call=call)
        return
    if call.phase is not Phase.LOST:  # held for too long, or its reply was
        at = source * cluster.size + target
        cluster.links[at] = cluster.links[at].with_phase(call, Phase.LOST)
        call = replace(call, phase=Phase.LOST, answer=None)
    cluster.end(calls.TIME_OUT, source, target, call)


def more_to_do(node: NodeState) -> list[str]:
    return [each.kind for each in AT_ONCE if each.due is not None and each.due(node) is not None]


# CHANGEs in parts


def parts(cluster: MutableCluster, position: int) -> list[Event]:
    """The work inside a node on the first client of which it reads or applies a CHANGE."""
    node = cluster.nodes[position]
    if node is None or position in cluster.paused:
        return []
    reads = torn.pending_reads(node, cluster.now_ms)
    if reads:
        return [*reads[:1]]
    return [ApplyDue(cluster.now_ms, each) for each in node.applies if each.client == node.applies[0].client]


def do_part(cluster: MutableCluster, position: int, part: Event) -> None:
    if not isinstance(part, ApplyDue):
        cluster.take(torn.READ_REVISION, at=position, event=part)
        return
    ends = {"source": cluster.plan.index[part.apply.source], "target": position, "event": part}
    if cluster.take(torn.APPLY_LAST, **ends) is not None:
        cluster.take(torn.APPLY_PART, **ends)
