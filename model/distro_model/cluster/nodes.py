"""Transitions that nodes start themselves: queued tasks and timers. `due` is when a clock lets them happen.

The guard of a timer is evaluated when it fires, not when its instant begins: another timer of the same instant may
change its guard. Every timer of a node is in phase with the node's start (docs/protocol #sync-merge, #verify-round,
#lease-copies, #member-report).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.cluster.alarms import forgotten
from distro_model.cluster.registers import Before
from distro_model.cluster.statement import Transition, chooses, handles, of, watches, writes
from distro_model.cluster.values import COLLIDING_CONTENT, Connection, Life
from distro_model.events import BeatCheckDue, LeaseCheckDue, LoadDue, ReportDue, ReportToNotUpDue, TaskDue, VerifyDue
from distro_model.node import Client, MemberState, NodeState, Task
from distro_model.profiles import Profile
from distro_model.rules.index import corrections
from distro_model.rules.notify import audited
from distro_model.rules.owners import UNHEALTHY, is_ip_client, is_responsible
from distro_model.rules.sync import has_free_worker
from distro_model.rules.verify import is_expired, lists_sent
from distro_model.search.system import Fairness, Finding
from distro_model.step import step
from distro_model.transitions import Cause, Happens


def next_on(phase_ms: int, from_ms: int, period_ms: int) -> int:
    """The first time not before `from_ms` that is a whole number of periods after the phase."""
    return from_ms + (phase_ms - from_ms) % period_ms


# Tasks


class Queued(NamedTuple):
    task: Task


def queued(node: NodeState | None, profile: Profile) -> list[Queued]:
    """The tasks for which a worker is free."""
    if node is None:
        return []
    return [Queued(task) for task in node.tasks if has_free_worker(node, task.client, task.target, profile)]


def execution(task: Task, now: int) -> TaskDue:
    return TaskDue(now, task.client, task.target)


def next_tick(node: NodeState, after_ms: int, profile: Profile) -> int | None:
    if not node.tasks:
        return None
    due_ms = max(min([task.since_ms + task.delay_ms for task in node.tasks]), after_ms + 1)
    return next_on(node.started_ms, due_ms, profile.tick_ms)


RUN_TASK = Transition(
    "task",
    (chooses(queued, "no task is queued that a worker is free for"), handles("node", execution)),
    lambda node_name, task: Happens(
        node_name, f"executes its {task.action} task of {task.client} for {task.target}", Cause.TASK
    ),
    fair=Fairness.STRONG,
    due=next_tick,
)


# Verify


def verify_rounds(node: NodeState | None, now: int, profile: Profile) -> list[VerifyDue]:
    """With nothing to verify, a round has no effect."""
    return [] if node is None or not has_round(node, profile) else [VerifyDue(now)]


def has_round(node: NodeState, profile: Profile) -> bool:
    if profile.keeps_index and profile.has(audited) and not node.local.events and corrections(node):
        return True  # a node without native clients still checks its index
    return node.loaded and has_something_to_verify(node, profile)


def has_something_to_verify(node: NodeState, profile: Profile) -> bool:
    owns = any(is_responsible(node, client, profile) for client in node.clients)
    return owns or (bool(node.others) and not profile.has(lists_sent))


def may_have_round(node: NodeState, profile: Profile) -> bool:
    """A node that is not loaded verifies nothing, but its load may end at any moment."""
    return profile.keeps_index or has_something_to_verify(node, profile)


def next_round(node: NodeState, after_ms: int, profile: Profile) -> int:
    period_ms = profile.verify_interval_ms
    return next_on(node.started_ms, max(after_ms + 1, node.started_ms + period_ms), period_ms)


VERIFY_ROUND = Transition(
    "verify round",
    (handles("node", verify_rounds, "not loaded, or nothing to verify"),),
    lambda node_name: Happens(node_name, "starts a verify round", Cause.TIMER),
    once="verified",
    fair=Fairness.STRONG,
    due=next_round,
)
"""Strongly fair, although it is a timer: in a bounded cluster a full link sometimes makes it impossible."""


# Leases and beats


def expired(before: NodeState | None, node: NodeState, life: Life) -> Finding | None:
    """INV-LIVE: a lease check removed a copy whose client has an open connection and was not claimed falsely."""
    held = None if before is None else before.client(life.client)
    if held is None or held.content == COLLIDING_CONTENT or node.client(life.client) is not None:
        return None
    if life.connection is not Connection.OPEN or node.name in life.unlisted:
        return None
    return Finding("INV-LIVE", f"{node.name} expired {life.client}, which is connected to {life.home}")


def next_lease_check(node: NodeState, after_ms: int, profile: Profile) -> int | None:
    end_ms = min((end_ms for _, end_ms in _leases_end(node, profile)), default=None)
    return None if end_ms is None else lease_timer(node, max(end_ms, after_ms), profile)


def _leases_end(node: NodeState, profile: Profile) -> list[tuple[str, int]]:
    """Every lease that a check may end starts when it was renewed: copies, tombstones, and native clients where they
    have a lease."""
    natives_too = not profile.has(is_expired)
    held = [each for each in node.clients if natives_too or not each.native]
    ends = [(each.name, each.renewed_ms + _lease_ms(each, profile)) for each in held]
    return ends + [(client, since_ms + profile.lease_ms) for client, since_ms in node.gone]


def _lease_ms(client: Client, profile: Profile) -> int:
    return profile.lease_ms if client.content or not is_ip_client(client.name) else profile.empty_lease_ms


def ended(node: NodeState, now: int, profile: Profile) -> set[str]:
    """Clients and tombstones whose lease is over."""
    return {client for client, end_ms in _leases_end(node, profile) if end_ms <= now}


def lease_timer(node: NodeState, after_ms: int, profile: Profile) -> int:
    """The time at which it fires, whether or not there is anything to check."""
    return next_on(node.started_ms, after_ms + 1, profile.lease_check_ms)


LEASE_CHECK = Transition(
    "lease check",
    (writes(of(Before, "node")), handles("node", of(LeaseCheckDue, "now", "last_ms")), watches(expired)),
    lambda node_name: Happens(node_name, "checks its leases", Cause.LEASE),
    once="checked",
    fair=Fairness.WEAK,
    due=next_lease_check,
)


def finds_something(node: NodeState | None, now: int, profile: Profile) -> bool:
    return node is not None and step(node, beat_check(node, now, profile), profile).node != node


def beat_check(node: NodeState | None, now: int, profile: Profile) -> BeatCheckDue:
    """Each client is checked in phase with its creation here; a node that was suspended checks when it resumes."""
    if node is None:
        return BeatCheckDue(now)
    clients = [each for each in node.clients if is_ip_client(each.name)]
    since_start_ms = now - node.started_ms
    of = tuple(each.name for each in clients if (since_start_ms - each.turn_ms) % profile.lease_check_ms == 0)
    return BeatCheckDue(now, None if len(of) in (0, len(clients)) else of)


def next_beat_check(node: NodeState, after_ms: int, profile: Profile) -> int | None:
    """The first check that may find a silence that is long enough. A node that is not the owner may have become the
    owner in this instant."""
    times = [
        _turn(node, each, max(min(ends), after_ms + 1), profile)
        for each in node.clients
        if is_ip_client(each.name) and (ends := _silences_end(each, profile))
    ]
    return min(times, default=None)


def owns_silent(node: NodeState, now: int, profile: Profile) -> bool:
    """This node owns a client that has an instance that was silent for long enough."""
    return any(
        min(_silences_end(each, profile), default=now + 1) <= now and is_responsible(node, each, profile)
        for each in node.clients
        if is_ip_client(each.name)
    )


def beat_timer(node: NodeState, after_ms: int, profile: Profile) -> int:
    """The time at which it fires, whether or not there is anything to find. A client created meanwhile is first checked
    later."""
    clients = [each for each in node.clients if is_ip_client(each.name)]
    times = [_turn(node, each, after_ms + 1, profile) for each in clients]
    return min(times, default=after_ms + profile.lease_check_ms)


def _turn(node: NodeState, client: Client, from_ms: int, profile: Profile) -> int:
    """The first of its checks at that time or later."""
    return next_on(node.started_ms + client.turn_ms, from_ms, profile.lease_check_ms)


def _silences_end(client: Client, profile: Profile) -> list[int]:
    """The time at which each of its instances has been silent for long enough to be detected."""
    beats, longest_ms, shortest_ms = dict(client.beats), profile.beat_delete_ms, profile.beat_timeout_ms
    return [
        beats[service] + (longest_ms if instance.endswith(UNHEALTHY) else shortest_ms)
        for service, instance in client.content
        if service in beats and client.watched
    ]


BEAT_CHECK = Transition(
    "beat check",
    (writes(finds_something, "it would find nothing"), handles("node", beat_check)),
    lambda node_name: Happens(node_name, "checks the beats", Cause.LEASE),
    fair=Fairness.STRONG,
    due=next_beat_check,
)
LEASE_AND_BEAT_CHECK = replace(
    LEASE_CHECK,
    steps=(*LEASE_CHECK.steps, handles("node", beat_check), watches(of(forgotten, "before", "node", "ip_life"))),
)
"""With periods, each of the two occurs once in a period."""


def either_finds_something(node: NodeState | None, now: int, profile: Profile) -> bool:
    return node is not None and (
        finds_something(node, now, profile) or step(node, LeaseCheckDue(now), profile).node != node
    )


CHECK_WITHOUT_TIME = replace(
    BEAT_CHECK,
    steps=(
        writes(either_finds_something, "it would find nothing"),
        handles("node", of(LeaseCheckDue, "now", "last_ms")),
        handles("node", beat_check),
    ),
)
"""Without periods only the lease of a client that publishes nothing ends."""


# The first load


def load(node: NodeState | None, now: int) -> LoadDue | None:
    return None if node is None or node.load_at_ms is None else LoadDue(now)


def next_load(node: NodeState) -> int | None:
    return node.load_at_ms


LOAD = Transition(
    "load",
    (handles("node", load, "no load is due"),),
    lambda node_name: Happens(node_name, "starts its load again", Cause.TIMER),
    once="loaded",  # time applies here too: a load that is due is attempted in every period
    fair=Fairness.STRONG,  # like a verify round
    due=next_load,
)


# Reports: of clocks only. Without time, DOWN nodes are detected all at once (`cluster/members.py`).


def report(node: NodeState | None, now: int) -> ReportDue | None:
    return None if node is None or not node.others else ReportDue(now)


def next_report(node: NodeState, after_ms: int, profile: Profile) -> int | None:
    first_ms = node.started_ms + profile.report_first_ms
    return next_on(first_ms, max(after_ms + 1, first_ms), profile.report_interval_ms) if node.others else None


REPORT = Transition("report", (handles("node", report, "no member to report to"),), str, due=next_report)


def report_to_not_up(node: NodeState | None, now: int) -> ReportToNotUpDue | None:
    all_up = node is None or all(each.state is MemberState.UP for each in node.members)
    return None if all_up else ReportToNotUpDue(now)


def next_report_to_not_up(node: NodeState, after_ms: int, profile: Profile) -> int | None:
    if not profile.reports_to_members_not_up:
        return None
    return next_on(node.started_ms, max(after_ms, node.started_ms) + 1, profile.report_not_up_interval_ms)


REPORT_TO_NOT_UP = Transition(
    "report to members not up", (handles("node", report_to_not_up, "all are up"),), str, due=next_report_to_not_up
)
