"""Time: which timer is due when, and in which orders the timers of one instant may fire.

Time jumps from one instant at which something happens to the next. Timers that would do nothing (a tick with no due
task, a report between two members that see each other UP) are not visited, so six quiet seconds cost no more than six
quiet milliseconds. Where several timers are due in one instant, all orders are tried and equal results merged: a real
server has a thread for each, and nothing orders them. A tick that falls into the same instant as the creation of a due
task may take it or leave it to the next tick.

Every timer of a node is in phase with the node's start (docs/protocol #sync-merge, #verify-round, #lease-copies,
#member-report).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto

from distro_model.clock.turn import Traffic, Turn
from distro_model.events import LeaseCheckDue, LoadDue, ReportDue, ReportToNotUpDue, TaskDue, VerifyDue
from distro_model.messages import Operation
from distro_model.node import Member, MemberState, NodeState
from distro_model.profiles import Profile
from distro_model.rules.members import reported_member
from distro_model.rules.receive import fresh_copy


class TimerKind(Enum):
    TICK = auto()  # every due task of the node, in order of its key
    VERIFY = auto()
    LEASE_CHECK = auto()
    REPORT = auto()
    REPORT_TO_NOT_UP = auto()
    LOAD = auto()
    CALLS = auto()  # every call of the node whose deadline is now, in order of sending


REPORTS = frozenset({TimerKind.REPORT, TimerKind.REPORT_TO_NOT_UP})

Timer = tuple[int, TimerKind]
"""Position of the node, and what is due there."""


def advanced(turn: Turn, until_ms: int) -> list[Turn]:
    """Let time run to `until_ms`, that instant included. The results are different from each other."""
    turns = [fork for each in [turn] for fork in _late_ticks(each)]
    clock_ms = turn.now_ms
    while True:
        nexts = [next_instant(each, clock_ms) for each in turns]
        at_ms = min((each for each in nexts if each is not None), default=until_ms + 1)
        if at_ms > until_ms:
            break
        results = []
        for each, its_next in zip(turns, nexts, strict=True):
            if its_next == at_ms:
                each.now_ms = at_ms
                results.extend(_instant(each, due_timers(each)))
            else:
                results.append(each)
        turns = _different(results)
        clock_ms = at_ms
    for each in turns:
        each.now_ms = until_ms
    return turns


def next_instant(turn: Turn, after_ms: int) -> int | None:
    """The next time, later than `after_ms`, at which something happens somewhere; None: never again."""
    profile = turn.plan.profile
    earliest: int | None = None
    calm = is_calm(turn)
    for node in turn.nodes:
        if node is not None:
            for at_ms in _node_instants(node, after_ms, profile, reports=not calm):
                if earliest is None or at_ms < earliest:
                    earliest = at_ms
    for link in turn.links:
        for call in link.calls:
            if earliest is None or call.deadline_ms < earliest:
                earliest = call.deadline_ms
    return earliest


def is_calm(turn: Turn) -> bool:
    """Everybody runs, reaches everybody and sees everybody UP: no report can change anything."""
    return all(
        node is not None and all(member == Member(member.name) for member in node.members) for node in turn.nodes
    ) and all(link.is_clear for link in turn.links)


def due_timers(turn: Turn) -> frozenset[Timer]:
    """What is due in this very instant and would do something."""
    now_ms, profile = turn.now_ms, turn.plan.profile
    due: set[Timer] = set()
    for position, node in enumerate(turn.nodes):
        if node is None:
            continue
        if _has_tick_work(node, now_ms, profile):
            due.add((position, TimerKind.TICK))
        if _is_verify_time(node, now_ms, profile) and any(client.native for client in node.clients):
            # Not loaded yet it sends nothing, but the load may end in this very instant, before or after it.
            due.add((position, TimerKind.VERIFY))
        if _is_on(node, now_ms, profile.lease_check_ms) and _has_expired(node, now_ms, profile):
            due.add((position, TimerKind.LEASE_CHECK))
        if node.load_at_ms == now_ms:
            due.add((position, TimerKind.LOAD))
        if node.others and _is_report_time(node, now_ms, profile) and not _is_idle_report(turn, position, node):
            due.add((position, TimerKind.REPORT))
        may_see_one_down = (position, TimerKind.REPORT) in due or not _sees_all_up(node)
        if may_see_one_down and _is_report_to_not_up_time(node, now_ms, profile):
            # Even who sees all UP: the report that goes round may fail in this very instant, before or after it.
            due.add((position, TimerKind.REPORT_TO_NOT_UP))
        links = turn.links[position * turn.size : (position + 1) * turn.size]
        if any(call.deadline_ms == now_ms for link in links for call in link.calls):
            due.add((position, TimerKind.CALLS))
    return frozenset(due)


def fire(turn: Turn, timer: Timer) -> None:
    position, kind = timer
    now_ms, node = turn.now_ms, turn.nodes[position]
    if node is None:
        return
    match kind:
        case TimerKind.TICK:
            for task in node.tasks:
                if task.due_ms <= now_ms:
                    turn.tell(position, TaskDue(now_ms, task.client, task.target))
        case TimerKind.VERIFY:
            turn.tell(position, VerifyDue(now_ms))
        case TimerKind.LEASE_CHECK:
            turn.tell(position, LeaseCheckDue(now_ms))
        case TimerKind.REPORT:
            turn.tell(position, ReportDue(now_ms))
        case TimerKind.REPORT_TO_NOT_UP:
            turn.tell(position, ReportToNotUpDue(now_ms))
        case TimerKind.LOAD:
            turn.tell(position, LoadDue(now_ms))
        case TimerKind.CALLS:
            for target in range(turn.size):
                for call in turn.links[position * turn.size + target].calls:
                    if call.deadline_ms == now_ms:
                        turn.time_out(position, target, call)


def _instant(turn: Turn, due: frozenset[Timer]) -> list[Turn]:
    """Every order of the due timers that can matter. Groups that cannot see each other are not interleaved."""
    results = [turn]
    for nodes in _groups(turn, due):
        timers = frozenset(timer for timer in due if timer[0] in nodes)
        results = _different([result for each in results for result in _orders(each, timers, nodes)])
    return results


def _groups(turn: Turn, due: frozenset[Timer]) -> list[frozenset[int]]:
    """Nodes whose timers may meet in one instant, put together.

    What a node's ticks, verifies and time-outs do, they do to the clients that it owns, here and at its peers; so those
    of two nodes commute. A lease check or a load looks at other nodes' clients, and a report decides about the gate of
    both its ends: those join nodes. (Where copies believe to be native, everything is everybody's.)
    """
    everybody = frozenset(range(turn.size))
    if not turn.plan.profile.has(fresh_copy) or any(kind is TimerKind.LEASE_CHECK for _, kind in due):
        return [everybody]
    if any(kind is TimerKind.LOAD or (kind is TimerKind.CALLS and _load_goes_on(turn, at)) for at, kind in due):
        return [everybody]
    if any(kind in REPORTS for _, kind in due) and len({position for position, _ in due}) > 1:
        return [everybody]
    return [frozenset({position}) for position in everybody]


def _load_goes_on(turn: Turn, position: int) -> bool:
    """Who waited for a snapshot in vain asks the next member in this instant."""
    links = turn.links[position * turn.size : (position + 1) * turn.size]
    return any(
        call.deadline_ms == turn.now_ms and call.request.operation is Operation.SNAPSHOT
        for link in links
        for call in link.calls
    )


_Pending = tuple[Turn, frozenset[Timer], frozenset[int]]
"""A turn, the timers that still have to fire in it, and the nodes whose tick of this instant may still come."""


def _orders(turn: Turn, due: frozenset[Timer], nodes: frozenset[int]) -> list[Turn]:
    """Every order of the timers of these nodes, merged after each timer."""
    if not due and not _ticks_that_became_due(turn, nodes):  # most instants of most nodes
        return [turn]
    finished: list[Turn] = []
    frontier: list[_Pending] = [(turn, due, nodes)]
    while frontier:
        following: list[_Pending] = []
        for each, waiting, ticking in frontier:
            if not waiting:
                finished.append(each)
            options = waiting | _ticks_that_became_due(each, ticking)
            for timer in sorted(options, key=lambda option: (option[0], option[1].value)):
                fork = each.fork() if len(options) > 1 or not waiting else each
                fire(fork, timer)
                still = ticking - {timer[0]} if timer[1] is TimerKind.TICK else ticking
                following.append((fork, waiting - {timer}, still))
        frontier = _different_pending(following)
    return finished


def _ticks_that_became_due(turn: Turn, ticking: frozenset[int]) -> frozenset[Timer]:
    """A task may become due by another timer of this instant, before or after the tick of this instant."""
    now_ms, profile = turn.now_ms, turn.plan.profile
    return frozenset(
        (position, TimerKind.TICK)
        for position in ticking
        if (node := turn.nodes[position]) is not None and node.tasks and _has_tick_work(node, now_ms, profile)
    )


def _late_ticks(turn: Turn) -> list[Turn]:
    """A task that became due just now, by somebody's action, may still meet the tick of this instant."""
    return _different(_instant(turn, frozenset()))


def _different(turns: list[Turn]) -> list[Turn]:
    """Without duplicates. Compared one by one: they are few, and share most nodes, which nobody then has to hash."""
    kept: list[Turn] = []
    for turn in turns:
        if not any(_is_same(turn, other) for other in kept):
            kept.append(turn)
    return kept


def _different_pending(pending: list[_Pending]) -> list[_Pending]:
    kept: list[_Pending] = []
    for each in pending:
        if not any(each[1:] == other[1:] and _is_same(each[0], other[0]) for other in kept):
            kept.append(each)
    return kept


def _is_same(turn: Turn, other: Turn) -> bool:
    """Neither the order of traffic is a difference, nor what nobody can see of it."""
    return turn.nodes == other.nodes and turn.links == other.links and _seen(turn) == _seen(other)


def _seen(turn: Turn) -> Counter[Traffic]:
    return Counter(call for call in turn.traffic if call.is_seen)


def _node_instants(node: NodeState, after_ms: int, profile: Profile, *, reports: bool) -> Iterator[int]:
    start_ms = node.started_ms
    if node.tasks:
        due_ms = max(min(task.due_ms for task in node.tasks), after_ms + 1)
        yield _next_on(start_ms, due_ms, profile.tick_ms)
    if node.loaded and any(client.native for client in node.clients):
        earliest_ms = max(after_ms + 1, start_ms + profile.verify_interval_ms)
        yield _next_on(start_ms, earliest_ms, profile.verify_interval_ms)
    leases = _lease_starts(node)
    if leases:
        yield _next_on(start_ms, max(min(leases) + profile.lease_ms, after_ms) + 1, profile.lease_check_ms)
    if node.load_at_ms is not None:
        yield node.load_at_ms
    if reports and node.others:
        first_ms = start_ms + profile.report_first_ms
        yield _next_on(first_ms, max(after_ms + 1, first_ms), profile.report_interval_ms)
        if profile.reports_to_members_not_up and not _sees_all_up(node):
            yield _next_on(start_ms, after_ms + 1, profile.report_not_up_interval_ms)


def _next_on(phase_ms: int, from_ms: int, period_ms: int) -> int:
    """The first time not before `from_ms` that is a whole number of periods after the phase."""
    return from_ms + (phase_ms - from_ms) % period_ms


def _is_on(node: NodeState, now_ms: int, period_ms: int) -> bool:
    return (now_ms - node.started_ms) % period_ms == 0


def _has_tick_work(node: NodeState, now_ms: int, profile: Profile) -> bool:
    return _is_on(node, now_ms, profile.tick_ms) and any(task.due_ms <= now_ms for task in node.tasks)


def _is_verify_time(node: NodeState, now_ms: int, profile: Profile) -> bool:
    return now_ms > node.started_ms and _is_on(node, now_ms, profile.verify_interval_ms)


def _has_expired(node: NodeState, now_ms: int, profile: Profile) -> bool:
    return any(now_ms - since_ms > profile.lease_ms for since_ms in _lease_starts(node))


def _lease_starts(node: NodeState) -> list[int]:
    """Of everything that a lease check may end: copies and tombstones."""
    return [client.renewed_ms for client in node.clients if not client.native] + [since_ms for _, since_ms in node.gone]


def _is_report_time(node: NodeState, now_ms: int, profile: Profile) -> bool:
    since_first_ms = now_ms - node.started_ms - profile.report_first_ms
    return since_first_ms >= 0 and since_first_ms % profile.report_interval_ms == 0


def _is_report_to_not_up_time(node: NodeState, now_ms: int, profile: Profile) -> bool:
    period_ms = profile.report_not_up_interval_ms
    return profile.reports_to_members_not_up and now_ms > node.started_ms and _is_on(node, now_ms, period_ms)


def _sees_all_up(node: NodeState) -> bool:
    return all(member.state is MemberState.UP for member in node.members)


def _is_idle_report(turn: Turn, position: int, node: NodeState) -> bool:
    """Both ends see each other UP already and the report would arrive."""
    target = turn.plan.index[reported_member(node, turn.now_ms, turn.plan.profile)]
    receiver = turn.nodes[target]
    return (
        turn.links[position * turn.size + target].is_clear
        and receiver is not None
        and node.member(receiver.name) == Member(receiver.name)
        and receiver.member(node.name).state is Member(node.name).state
    )
