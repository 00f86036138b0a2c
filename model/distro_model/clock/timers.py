"""Time: which timer is due when, and in which orders the timers of one instant may fire.

Time jumps from one instant at which something happens to the next. When a timer is due is said by its transition; here
is what a clock makes of it. Timers that would do nothing are not visited, so six quiet seconds cost no more than six
quiet milliseconds. Where several are due in one instant, all orders are tried and equal results merged: a real server
has a thread for each, and nothing orders them. A tick that falls into the same instant as the creation of a due task
may take it or leave it to the next tick; local events take no time, and come in any order with the rest. A CHANGE that
is made or applied in parts meets others of its client that came before it was done, and no timer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

from distro_model.clock.board import Board
from distro_model.clock.watched import Watched
from distro_model.cluster import calls, connections, half_open, http_clients, inside, nodes, torn
from distro_model.cluster.statement import Transition
from distro_model.cluster.values import Call, Connection, Phase
from distro_model.events import ApplyDue, Event
from distro_model.messages import Operation
from distro_model.node import Member, MemberState, NodeState
from distro_model.profiles import Profile
from distro_model.rules.members import reported_member
from distro_model.rules.owners import is_ip_client
from distro_model.rules.sync import has_free_worker

TICK, ROUND, LEASES, BEATS = nodes.RUN_TASK, nodes.VERIFY_ROUND, nodes.LEASE_CHECK, nodes.BEAT_CHECK
PERIODIC = (TICK, ROUND, LEASES, BEATS, nodes.LOAD)
REPORTS = (nodes.REPORT, nodes.REPORT_TO_NOT_UP)
KINDS_OF_REPORT = frozenset(each.kind for each in REPORTS)
AT_ONCE = (inside.HANDLE_EVENT, http_clients.ANNOUNCE)
LATE = calls.TIME_OUT  # of each call of the node whose time is up now, one after the other
OF_CONNECTIONS = (half_open.RECONNECT, connections.CHECK_CONNECTIONS, connections.END_CHECK)

FIRST_CONNECTION_CHECK_MS = 1_000
"""After the start of a node. SDKs send a sign of life every 5 s, so only a silent client is ever idle."""

OUTCOMES_MAX = 32
"""Of what was watched. Each cut link or refused DELETE multiplies them, and who looks on cannot tell most apart."""

NEVER = sys.maxsize

Timer = tuple[int, str]
"""Position of the node, and the kind of transition that is due there."""
NOTHING = frozenset[Timer]()

KINDS: dict[str, Transition] = {each.kind: each for each in (*PERIODIC, *REPORTS, *AT_ONCE, LATE, *OF_CONNECTIONS)}


class TooManyOutcomesError(Exception):
    """What happens cannot be followed any further; nothing is wrong with what was seen until then."""


def advanced(boards: list[Board], until_ms: int, watched: Watched | None = None) -> list[Board]:
    """Let time run to `until_ms`, that instant included, from one time. The results are different from each other.

    `watched`: what was seen meanwhile; boards that cannot become that are left out. Raises TooManyOutcomesError where
    more than OUTCOMES_MAX are left all the same.
    """
    clock_ms = boards[0].now_ms
    boards = different([result for board in boards for result in at_once(board)])
    nexts: dict[int, tuple[int, frozenset[Timer]]] = {}
    while True:
        nexts = {id(each): nexts.get(id(each)) or next_instant(each, clock_ms) for each in boards}
        at_ms = min(its_ms for its_ms, _ in nexts.values())
        if at_ms > until_ms:
            break
        fitting = boards if watched is None else watched.nearest(boards, at_ms - 1)
        if len(fitting) < len(boards):  # some lack what was seen, and go before they catch up
            boards = fitting
            continue
        results = []
        for each in boards:
            its_ms, due = nexts[id(each)]
            if its_ms == at_ms:
                each.now_ms = at_ms
                del nexts[id(each)]
                results.extend(instant(each, _without_idle_reports(each, due)))
            else:
                results.append(each)
        boards, clock_ms = different(results if watched is None else watched.nearest(results, at_ms)), at_ms
        if watched is not None and len(boards) > OUTCOMES_MAX:
            raise TooManyOutcomesError(f"more than {OUTCOMES_MAX} outcomes are possible after {at_ms} ms")
    for each in boards:
        each.now_ms = until_ms
    return boards


def at_once(board: Board, *, ticks: bool = True) -> list[Board]:
    """What takes no time is done, in every order; a task that became due just now may meet the tick of this instant."""
    return instant(board, frozenset(), ticks=ticks)


# When


def next_instant(board: Board, after_ms: int) -> tuple[int, frozenset[Timer]]:
    """The next time, later than `after_ms`, at which something happens somewhere, and what may happen then."""
    earliest, due, calm = NEVER, set[Timer](), is_calm(board)
    for position, node in enumerate(board.nodes):
        if node is not None and position not in board.paused:
            for at_ms, transition in _node_timers(board, position, node, after_ms, calm=calm):
                if at_ms < earliest:
                    earliest, due = at_ms, {(position, transition.kind)}
                elif at_ms == earliest:
                    due.add((position, transition.kind))
    for at, link in enumerate(board.links):
        if link.calls and at // board.size not in board.paused:
            for call in link.calls:
                if call.phase is not Phase.ABANDONED and call.deadline_ms <= earliest:
                    due = due if call.deadline_ms == earliest else set()
                    earliest = call.deadline_ms
                    due.add((at // board.size, LATE.kind))
    return earliest, frozenset(due)


def _node_timers(
    board: Board, position: int, node: NodeState, after_ms: int, *, calm: bool
) -> Iterator[tuple[int, Transition]]:
    """When each timer of the node is due next; those that would do nothing as things are need not be there."""
    profile = board.plan.profile
    if node.tasks:
        yield nodes.next_tick(node, after_ms, profile) or 0, TICK
    may_own = _has_ip_clients(board)  # it may become the owner of one, or get one that it owns, in that very instant
    if node.clients or profile.keeps_index or may_own:
        if may_own or nodes.may_have_round(node, profile):
            yield nodes.next_round(node, after_ms, profile), ROUND
        checked_ms = nodes.next_beat_check(node, after_ms, profile)
        if checked_ms is not None:
            yield checked_ms, BEATS
            if nodes.lease_timer(node, checked_ms - 1, profile) == checked_ms:
                yield checked_ms, LEASES  # whom the other leaves without instances may go in the same instant
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
        board.links[position * board.size + other].half_open for other in board.plan.other_positions[position]
    ):
        yield half_open.next_health_check(node, after_ms, profile), half_open.RECONNECT
    if board.quiet or node.detections:
        yield from _connection_timers(board, position, node, after_ms)


def _connection_timers(board: Board, position: int, node: NodeState, after_ms: int) -> Iterator[tuple[int, Transition]]:
    """A check begins where a client here was silent for long enough, and ends when the wait for answers is over."""
    if node.detections:
        yield next_end_of_check(node, after_ms, board.plan.profile), connections.END_CHECK
        return
    since = [board.quiet[name] for name in guests(board, position) if name in board.quiet]
    if since:
        idle_ms = max(after_ms, min(since) + board.plan.profile.connection_idle_ms - 1)
        yield next_connection_check(node, idle_ms, board.plan.profile), connections.CHECK_CONNECTIONS


def next_connection_check(node: NodeState, after_ms: int, profile: Profile) -> int:
    """A check that waits for somebody moves those after it."""
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
"""When each periodic timer fires next, whether or not there is something to do: in phase with its node's start."""


def guests(board: Board, position: int) -> list[str]:
    """The clients whose connections to this node are open."""
    home = board.plan.names[position]
    return [each.client for each in board.lives.values() if each.home == home and each.connection is Connection.OPEN]


def is_calm(board: Board) -> bool:
    """Everybody runs, reaches everybody and sees everybody UP: no report can change anything."""
    for node in board.nodes:
        if node is None:
            return False
        for member in node.members:
            if member.state is not MemberState.UP or member.failures:
                return False
    for link, wire in zip(board.links, board.wires, strict=True):
        if link.cut or link.half_open or wire.holds_reports:
            return False
    return not board.paused


def _without_idle_reports(board: Board, due: frozenset[Timer]) -> frozenset[Timer]:
    """Reports that bring no news are left out, unless the idleness may end in this very instant."""
    if KINDS_OF_REPORT.isdisjoint([kind for _, kind in due]):
        return due
    going_round = {at: _reported(board, at) for at, kind in due if kind == nodes.REPORT.kind}
    idle = {(source, nodes.REPORT.kind) for source, target in going_round.items() if _is_idle(board, source, target)}
    for source, target in going_round.items():
        if going_round.get(target) == source and board.links[target * board.size + source].cut:
            idle.discard((source, nodes.REPORT.kind))  # the other's report fails, before or after this one arrives
    for source, kind in due:
        # Even who sees all UP: the report that goes round may fail in this very instant, before or after it.
        may_see_one_down = (source, nodes.REPORT.kind) in due - idle
        if kind == nodes.REPORT_TO_NOT_UP.kind and not may_see_one_down:
            idle |= {(source, kind)} if nodes.report_to_not_up(board.nodes[source], board.now_ms) is None else set()
    return due - idle


def _reported(board: Board, position: int) -> int:
    node = board.nodes[position]
    assert node is not None  # its report is due
    return board.plan.index[reported_member(node, board.now_ms, board.plan.profile)]


def _is_idle(board: Board, source: int, target: int) -> bool:
    """Both ends see each other UP already and the report would arrive."""
    node, receiver, at = board.nodes[source], board.nodes[target], source * board.size + target
    link = board.links[at]
    if node is None or receiver is None or target in board.paused or board.wires[at].holds_reports:
        return False
    heard = node.name not in receiver.others or receiver.member(node.name).state is MemberState.UP
    return heard and not (link.cut or link.half_open) and node.member(receiver.name) == Member(receiver.name)


def missed_timers(board: Board, position: int, since_ms: int) -> frozenset[Timer]:
    """What was due at a node while it stood still, since then and not later than now."""
    node = board.nodes[position]
    assert node is not None  # one that is down does not stand still
    every = {
        (position, each.kind)
        for at, each in _node_timers(board, position, node, since_ms, calm=False)
        if at <= board.now_ms
    }
    links = board.links[position * board.size : (position + 1) * board.size]
    late = any(call.deadline_ms <= board.now_ms and call.deadline_ms for link in links for call in link.calls)
    return frozenset(every | ({(position, LATE.kind)} if late else set()))


# What


Way = Event | None
"""What exactly a node is told, where that is left open."""


def ways(board: Board, timer: Timer) -> list[Way]:
    """What the timer may do, as things are."""
    position, kind = timer
    node, profile, now_ms = board.nodes[position], board.plan.profile, board.now_ms
    match kind:
        case ROUND.kind:
            return [*nodes.verify_rounds(node, now_ms, profile)]
        case inside.HANDLE_EVENT.kind:
            return [*inside.first_waiting(node, now_ms, profile)]
    return [None]


def fire(board: Board, timer: Timer) -> list[Board]:
    """The guard of a timer is judged when it fires. Several results: what exactly it does is left open."""
    several = ways(board, timer)
    results = [board, *(board.fork() for _ in several[1:])]
    for each, way in zip(results, several, strict=False):
        run(each, timer, way)
    return results


def run(board: Board, timer: Timer, way: Way) -> None:
    position, kind = timer
    node, now_ms = board.nodes[position], board.now_ms
    if node is None:
        return
    transition = KINDS[kind]
    if way is not None:
        board.take(transition, at=position, event=way)
    elif transition is TICK:
        for task in node.tasks:
            held = board.nodes[position]
            if task.due_ms <= now_ms and held and has_free_worker(held, task.client, task.target, board.plan.profile):
                board.take(TICK, at=position, task=task)
    elif transition is LATE:
        for target, call in islice(_late_calls(board, position), 1):
            give_up(board, position, target, call)
    elif transition is LEASES:
        board.take(LEASES, at=position, last_ms=None)
    elif transition is half_open.RECONNECT:
        for target in board.plan.other_positions[position]:
            board.take(half_open.RECONNECT, source=position, target=target)
    elif transition is connections.CHECK_CONNECTIONS:
        longest_ms = board.plan.profile.connection_idle_ms
        idle = (name for name in guests(board, position) if now_ms - board.quiet.get(name, now_ms) >= longest_ms)
        board.take(transition, at=position, idle=tuple(idle))
    elif transition is connections.END_CHECK:
        if now_ms - node.checked_ms >= board.plan.profile.detection_ms:
            board.take(transition, at=position)
    else:
        board.take(transition, at=position)


def _late_calls(board: Board, source: int) -> Iterator[tuple[int, Call]]:
    """Those whose sender has waited long enough, target by target in the order of sending."""
    for target in board.plan.other_positions[source]:
        for call in board.links[source * board.size + target].calls:
            if call.deadline_ms <= board.now_ms and call.phase is not Phase.ABANDONED:
                yield target, call


def give_up(board: Board, source: int, target: int, call: Call) -> None:
    """Its sender has waited long enough for a call that is on its link."""
    if call.phase is Phase.SENT and target in board.paused:  # it is there, and will be read some day
        board.take(calls.ABANDON, source=source, target=target, call=call)
        return
    if call.phase is not Phase.LOST:  # held for too long, or its reply was
        at = source * board.size + target
        board.links[at] = board.links[at].with_phase(call, Phase.LOST)
        call = replace(call, phase=Phase.LOST, answer=None)
    board.end(calls.TIME_OUT, source, target, call)


# CHANGEs in parts


def parts(board: Board, position: int) -> list[Event]:
    """What goes on inside a node with the first client of which it reads or applies a CHANGE."""
    node = board.nodes[position]
    if node is None or position in board.paused:
        return []
    reads = torn.pending_reads(node, board.now_ms)
    if reads:
        return [*reads[:1]]
    return [ApplyDue(board.now_ms, each) for each in node.applies if each.client == node.applies[0].client]


def do_part(board: Board, position: int, part: Event) -> None:
    if not isinstance(part, ApplyDue):
        board.take(torn.READ_REVISION, at=position, event=part)
        return
    ends = {"source": board.plan.index[part.apply.source], "target": position, "event": part}
    if board.take(torn.APPLY_LAST, **ends) is not None:
        board.take(torn.APPLY_PART, **ends)


def whole(board: Board) -> list[Board]:
    """What is read and applied in parts goes on to its end, before anything else of this instant.

    Only the parts of CHANGEs of one client at one node can see each other, and so only these come in every order.
    """
    finished: list[Board] = []
    frontier = [board]
    while frontier:
        following: list[Board] = []
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


# In which order


def instant(board: Board, due: frozenset[Timer], *, ticks: bool = True) -> list[Board]:
    """Every order of the due timers that can matter. Groups that cannot see each other are not interleaved."""
    results = whole(board) if board.plan.in_parts else [board]
    for group in groups(board, due):
        timers = frozenset([timer for timer in due if timer[0] in group]) if due else due
        results = different([result for each in results for result in _orders(each, timers, group, ticks=ticks)])
    return results


def groups(board: Board, due: frozenset[Timer]) -> list[frozenset[int]]:
    """Nodes whose timers may meet in one instant, put together.

    What a node's ticks, verifies and time-outs do, they do to the clients that it owns, here and at its peers; so those
    of two nodes commute. A lease check or a load looks at other nodes' clients: those join all nodes. A report decides
    about the gate of both its ends, and joins these. Where copies believe to be native, or clients are owned by hash,
    everything is everybody's.
    """
    everybody, alone = _parties(board.size)
    kinds = {kind for _, kind in due}
    if board.plan.has_native_copies or kinds & {LEASES.kind, BEATS.kind, nodes.LOAD.kind} or _has_ip_clients(board):
        return [everybody]
    if any(kind == LATE.kind and _load_goes_on(board, at) for at, kind in due):
        return [everybody]
    if KINDS_OF_REPORT.isdisjoint(kinds) or len({position for position, _ in due}) == 1:
        return alone
    return [everybody] if half_open.RECONNECT.kind in kinds else _joined_by_reports(board, due)


def _joined_by_reports(board: Board, due: frozenset[Timer]) -> list[frozenset[int]]:
    """Who is cut off is reported to in vain, which only the reporter hears of."""
    joined = [{position} for position in range(board.size)]
    for source in sorted({position for position, kind in due if kind in KINDS_OF_REPORT}):
        for target in _reported_in(board, source, due):
            link = board.links[source * board.size + target]
            if not (link.cut or link.down) and joined[source] is not joined[target]:
                joined[source] |= joined[target]
                for position in joined[target]:
                    joined[position] = joined[source]
    return [frozenset(each) for position, each in enumerate(joined) if position == min(each)]


def _reported_in(board: Board, source: int, due: frozenset[Timer]) -> list[int]:
    """To whom a node may report in this instant. One report may decide whether there is another."""
    node, found = board.nodes[source], []
    assert node is not None  # something of it is due
    if (source, nodes.REPORT_TO_NOT_UP.kind) in due:
        found = [board.plan.index[each.name] for each in node.members if each.state is not MemberState.UP]
    return [*found, _reported(board, source)] if (source, nodes.REPORT.kind) in due else found


@cache
def _parties(size: int) -> tuple[frozenset[int], list[frozenset[int]]]:
    """All nodes together, and each alone."""
    return frozenset(range(size)), [frozenset({position}) for position in range(size)]


def _has_ip_clients(board: Board) -> bool:
    return any(node is not None and any(is_ip_client(each.name) for each in node.clients) for node in board.nodes)


def _load_goes_on(board: Board, position: int) -> bool:
    """Who waited for a snapshot in vain asks the next member in this instant."""
    links = board.links[position * board.size : (position + 1) * board.size]
    return any(
        call.deadline_ms == board.now_ms and call.request.operation is Operation.SNAPSHOT
        for link in links
        for call in link.calls
    )


_Pending = tuple[Board, frozenset[Timer], frozenset[int]]
"""A board, the timers that still have to fire on it, and the nodes whose tick of this instant may still come."""


def _orders(board: Board, due: frozenset[Timer], group: frozenset[int], *, ticks: bool) -> list[Board]:
    """Every order of the timers of these nodes, merged after each timer."""
    ticking = group if ticks else frozenset[int]()
    if not due and not _ticks_that_became_due(board, ticking) and not _pending_inside(board, group):
        return [board]  # most instants of most nodes
    finished: list[Board] = []
    frontier: list[_Pending] = [(board, due, ticking)]
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
                if board.plan.in_parts:
                    results = [done for result in results for done in whole(result)]
                following += [(result, _still_due(result, waiting, timer), still) for result in results]
        frontier = _different_pending(following)
    return finished


def _still_due(board: Board, waiting: frozenset[Timer], fired: Timer) -> frozenset[Timer]:
    """Between the time-outs of two calls a tick may come, or whatever else this instant has."""
    position, kind = fired
    goes_on = kind == LATE.kind and board.nodes[position] is not None and any(_late_calls(board, position))
    return waiting if goes_on else waiting - {fired}


def _ticks_that_became_due(board: Board, ticking: frozenset[int]) -> frozenset[Timer]:
    """A task may become due by another timer of this instant, before or after the tick of this instant."""
    now_ms, tick_ms = board.now_ms, board.plan.profile.tick_ms
    found = [
        (position, TICK.kind)
        for position in ticking
        if (node := board.nodes[position]) is not None
        and node.tasks
        and position not in board.paused
        and (now_ms - node.started_ms) % tick_ms == 0
        and any(task.due_ms <= now_ms for task in node.tasks)
    ]
    return frozenset(found) if found else NOTHING


def _pending_inside(board: Board, group: frozenset[int]) -> frozenset[Timer]:
    """What a node has begun and what takes no time."""
    if not board.plan.has_events:
        return NOTHING
    found: set[Timer] = set()
    for position in group:
        node = board.nodes[position]
        if node is None or position in board.paused:
            continue
        found |= {(position, kind) for kind in more_to_do(node)}
    return frozenset(found)


def more_to_do(node: NodeState) -> list[str]:
    return [each.kind for each in AT_ONCE if each.due is not None and each.due(node) is not None]


def different(boards: list[Board]) -> list[Board]:
    """Without duplicates: neither the order of traffic is a difference, nor what nobody can see of it."""
    if len(boards) < 2:  # most are alone
        return boards
    kept: list[Board] = []
    for board in boards:
        if not any(_are_same(board, other) for other in kept):
            kept.append(board)
    return kept


def _different_pending(pending: list[_Pending]) -> list[_Pending]:
    if len(pending) < 2:
        return pending
    kept: list[_Pending] = []
    alike: dict[tuple[frozenset[Timer], frozenset[int]], list[Board]] = {}
    for each in pending:
        boards = alike.setdefault(each[1:], [])
        if not any(_are_same(each[0], other) for other in boards):
            boards.append(each[0])
            kept.append(each)
    return kept


def _are_same(board: Board, other: Board) -> bool:
    return board.counted == other.counted and board.is_same(other)
