"""What nodes do by themselves: queued tasks, verify rounds, loads, lease checks; and how they fail and start again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from distro_model.actions import Crash, Restart
from distro_model.bounded.draft import (
    BUDGET,
    CLOCK,
    STALE,
    Draft,
    Function,
    Layout,
    client_column,
    ip_column,
    link_column,
    node_column,
)
from distro_model.bounded.ghosts import crashed, restarted, shaken, vanished
from distro_model.bounded.values import Budget, Clock, Connection, Life, Link, Phase
from distro_model.events import BeatCheckDue, LeaseCheckDue, LoadDue, TaskDue, VerifyDue
from distro_model.node import NodeState, Task, fresh_node
from distro_model.profiles import Profile
from distro_model.rules.index import corrections
from distro_model.rules.owners import is_responsible
from distro_model.search.system import Alternative, Chain, Fairness, Finding
from distro_model.transitions import LeaseCheckRuns, LoadRuns, NodeFails, Pauses, TaskRuns, VerifyRuns


def node_chains(layout: Layout) -> Iterator[Chain]:
    bounds = layout.bounds
    for node in layout.nodes:
        yield _task(layout, node)
        yield _verify(layout, node)
        if bounds.periods:
            yield _lease_check(layout, node)
        if bounds.crashes:
            yield _load(layout, node)
            yield _crash(layout, node)
            yield _restart(layout, node)
        if bounds.pauses:
            yield _pause(layout, node)


def _task(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "task", node)
    draft.look("no task is queued", due_tasks, (node_column(node),), ("event", "label"))
    draft.tell(node, "event")
    return draft.chain(lambda value: value("label"), fair=Fairness.STRONG)


def due_tasks(node: NodeState | None) -> Sequence[Alternative]:
    if node is None:
        return ()
    return tuple(
        (TaskDue(0, task.client, task.target), TaskRuns(node.name, task.target, task.client, task.action))
        for task in node.tasks
        if not is_being_read(node, task)
    )


def is_being_read(node: NodeState, task: Task) -> bool:
    """Tasks of one client and target are executed one after the other (`rules/torn.py` has one with a pause in it)."""
    return any((read.client, read.target) == (task.client, task.target) for read in node.reads)


def _verify(layout: Layout, node: str) -> Chain:
    """Without periods a round may start at any time; with periods once in each."""
    draft = Draft(layout, "verify round", node)
    draft.look("not loaded, or nothing to verify", _rounds(layout.profile), (node_column(node),), ("event",))
    if layout.bounds.periods:
        draft.look("verified in this period", once_a_period("verified", node), (CLOCK,), (CLOCK,))
    draft.tell(node, "event")
    return draft.chain(lambda _: VerifyRuns(node), fair=Fairness.WEAK)


@cache
def _rounds(profile: Profile) -> Function:
    if not profile.verifies_everybody:
        return due_verify_of_one(profile)
    return due_verify_or_audit(profile) if profile.keeps_index and profile.audits_index else due_verify(profile)


@cache
def due_verify(profile: Profile) -> Function:
    def due(node: NodeState | None) -> Sequence[Alternative]:
        if node is None or not node.loaded:
            return ()
        owns = any(is_responsible(node, client, profile) for client in node.clients)
        return ((VerifyDue(0),),) if owns or (profile.verify_lists_owned and node.others) else ()

    return due


def due_verify_or_audit(profile: Profile) -> Function:
    """A node without clients of its own has its index to look after."""
    due_anyway = due_verify(profile)

    def due(node: NodeState | None) -> Sequence[Alternative]:
        wrong = node is not None and not node.local.events and bool(corrections(node))
        return ((VerifyDue(0),),) if wrong else due_anyway(node)

    return due


def due_verify_of_one(profile: Profile) -> Function:
    due_at_all = due_verify(profile)

    def due(node: NodeState | None) -> Sequence[Alternative]:
        others = () if node is None or not due_at_all(node) else node.others
        return tuple((VerifyDue(0, only=other),) for other in others)

    return due


def once_a_period(timer: str, node: str) -> Function:
    """`timer` is the field of `Clock` that has who has fired it."""

    def after(clock: Clock) -> Sequence[Alternative]:
        fired = clock.fired(timer, node)
        return () if fired is None else ((fired,),)

    return after


def _lease_check(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "lease check", node)
    draft.look("checked in this period", _checked(layout, node), (CLOCK,), (CLOCK, "event"))
    draft.keep(node_column(node), "before")
    draft.tell(node, "event")
    for client in layout.clients:
        draft.alarm(_vanished, ("before", node_column(node), client_column(client)))
    if layout.ip_clients:
        draft.keep(node_column(node), "before the beat check")
        draft.look("never", beat_check, (node_column(node),), ("beat check",))
        draft.tell(node, "beat check")
        for client in layout.ip_clients:
            draft.alarm(vanished, ("before the beat check", node_column(node), ip_column(client)))
    return draft.chain(lambda _: LeaseCheckRuns(node), fair=Fairness.WEAK)


def beat_check(_: NodeState | None) -> Sequence[Alternative]:
    return ((BeatCheckDue(0),),)


def _checked(layout: Layout, node: str) -> Function:
    """A node that has slept since its last check can know it: that check is long ago (B23)."""
    interval_ms = layout.profile.verify_interval_ms

    def after(clock: Clock) -> Sequence[Alternative]:
        fired = clock.fired("checked", node)
        if fired is None:
            return ()
        woken = tuple(each for each in clock.slept if each != node)
        last_ms = None if node not in clock.slept else (clock.period - 1) * interval_ms - _slept_ms(layout)
        return ((replace(fired, slept=woken), LeaseCheckDue(0, last_ms)),)

    return after


def _vanished(before: NodeState, after: NodeState, life: Life) -> Sequence[Alternative]:
    """A lease check removed the copy of a client whose connection is open (INV-LIVE)."""
    gone = before.client(life.client) is not None and after.client(life.client) is None
    if not gone or life.connection is not Connection.OPEN:
        return ((None,),)
    return ((Finding("INV-LIVE", f"{before.name} let {life.client} expire, which is connected to {life.home}"),),)


def _load(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "load", node)
    draft.look("no load is due", due_load, (node_column(node),), ("event",))
    if layout.bounds.periods:
        # time presses here too: a load that is due is tried in every period
        draft.look("tried in this period", once_a_period("loaded", node), (CLOCK,), (CLOCK,))
    draft.tell(node, "event")
    return draft.chain(lambda _: LoadRuns(node), fair=Fairness.WEAK)


def due_load(node: NodeState | None) -> Sequence[Alternative]:
    return ((LoadDue(0),),) if node is not None and node.load_at_ms is not None else ()


def _crash(layout: Layout, node: str) -> Chain:
    """The node is gone with all its memory; what waits for it fails, what it waited for vanishes."""
    draft = Draft(layout, "crash", node)
    draft.look("no crashes are left", spent("crashes"), (BUDGET,), (BUDGET,))
    draft.look(f"{node} is down", stopped, (node_column(node),), (node_column(node),))
    for other in layout.others(node):
        draft.look("never", emptied, (link_column(node, other),), (link_column(node, other),))
        draft.look("never", broken, (link_column(other, node),), (link_column(other, node),))
    for client in layout.clients:
        ends = orphaned if layout.bounds.home(layout.clients.index(client)) == node else unsettled
        draft.look("never", ends, (client_column(client), CLOCK), (client_column(client),))
    for client in layout.ip_clients:
        draft.look("never", shaken, (ip_column(client),), (ip_column(client),))
    if layout.bounds.watches_members:
        draft.look("never", crashed(layout, node), (STALE,), (STALE,))
    return draft.chain(lambda _: NodeFails(Crash(node)), fair=Fairness.NONE)


@cache
def spent(name: str) -> Function:
    """One less of a budget; the same function for the same name, so that one table serves all places."""

    def less(budget: Budget) -> Sequence[Alternative]:
        after = budget.less(name)
        return () if after is None else ((after,),)

    return less


def stopped(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None else ((None,),)


def emptied(link: Link) -> Sequence[Alternative]:
    return ((Link(link.down),),)


def broken(link: Link) -> Sequence[Alternative]:
    """The connection ends: every call on it fails, and what was given up never arrives."""
    calls = tuple(
        replace(call, phase=Phase.REFUSED, answer=None) for call in link.calls if call.phase is not Phase.ABANDONED
    )
    return ((Link(True, calls),),)


def orphaned(life: Life, clock: Clock) -> Sequence[Alternative]:
    """The client's own node has crashed, and its connection with it."""
    if not life.is_up:
        return unsettled(life, clock)
    return ((replace(life, connection=Connection.ENDED, silent=False, ended_period=clock.period),),)


def unsettled(life: Life, _: Clock) -> Sequence[Alternative]:
    return ((replace(life, left_cleanly=False),),)


def _restart(layout: Layout, node: str) -> Chain:
    """The node starts empty and loads at once. Calls that were waiting for the old one still fail. Some day it starts,
    unless it may stay down."""
    others = layout.others(node)

    def started(state: NodeState | None, clock: Clock) -> Sequence[Alternative]:
        if state is not None:
            return ()
        at_ms = clock.period * layout.profile.verify_interval_ms
        return ((fresh_node(node, others, at_ms), LoadDue(0)),)

    draft = Draft(layout, "restart", node)
    draft.look(f"{node} runs", started, (node_column(node), CLOCK), (node_column(node), "event"))
    for other in others:
        draft.look("never", mended, (link_column(other, node),), (link_column(other, node),))
    if layout.bounds.watches_members:
        draft.look("never", restarted(layout, node), (STALE,), (STALE,))
    draft.tell(node, "event")
    fair = Fairness.NONE if layout.bounds.stays_down else Fairness.STRONG
    return draft.chain(lambda _: NodeFails(Restart(node)), fair=fair)


def mended(link: Link) -> Sequence[Alternative]:
    return ((Link(False, link.calls),),)


def _pause(layout: Layout, node: str) -> Chain:
    """The node sleeps for longer than a lease while the others go on: seen from it, all its stamps have aged."""
    slept_ms = _slept_ms(layout)

    def slept(state: NodeState | None, clock: Clock) -> Sequence[Alternative]:
        if state is None:
            return ()
        clients = tuple(replace(client, renewed_ms=client.renewed_ms - slept_ms) for client in state.clients)
        gone = tuple((client, since_ms - slept_ms) for client, since_ms in state.gone)
        sleepers = tuple(sorted({*clock.slept, node}))
        return ((replace(state, clients=clients, gone=gone), replace(clock, slept=sleepers)),)

    draft = Draft(layout, "pause", node)
    draft.look("no pauses are left", spent("pauses"), (BUDGET,), (BUDGET,))
    draft.look(f"{node} is down", slept, (node_column(node), CLOCK), (node_column(node), CLOCK))
    return draft.chain(lambda _: Pauses(node), fair=Fairness.NONE)


def _slept_ms(layout: Layout) -> int:
    return (layout.bounds.lease_periods + 1) * layout.profile.verify_interval_ms
