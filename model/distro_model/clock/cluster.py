"""A cluster with a clock: its state as a value, and the effect of each action on it.

`apply` is deterministic except for one thing: timers that are due in the same instant fire in an unspecified order, so
an action may have several outcomes (`instants.py`). RPCs take no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from distro_model.actions import Action, Advance, Crash, HttpDeregister, Restart, Resume
from distro_model.clock.environment import crashed, deregistered, guard_of, perform, unreached
from distro_model.clock.instants import advanced, at_once, different, instant
from distro_model.clock.mutable_cluster import Links, Lists, Lives, MutableCluster, Named, Nodes, Since, Wires
from distro_model.clock.plan import Plan
from distro_model.clock.timers import LEASES, missed_timers
from distro_model.clock.traffic import Ended, Traffic, compared_revision
from distro_model.clock.watched import Watched
from distro_model.clock.wires import Wire
from distro_model.cluster.values import Life, Link
from distro_model.messages import Answer, Content, shown
from distro_model.node import NodeState
from distro_model.profiles import Profile


@dataclass(frozen=True, slots=True)
class ClusterState(Named):
    plan: Plan
    now_ms: int
    nodes: Nodes  # by position in plan.names; None: down
    links: Links  # by source * len(nodes) + target
    wires: Wires
    lives: Lives = ()
    paused: Since[int] = ()
    quiet: Since[str] = ()
    lists: Lists = ()

    def life(self, client: str) -> Life | None:
        """The client, once it has connected."""
        return next((each for each in self.lives if each.client == client), None)

    def is_paused(self, name: str) -> bool:
        return any(position == self.plan.index[name] for position, _ in self.paused)

    def mutable(self) -> MutableCluster:
        columns = (self.nodes, self.links, self.wires, self.lives, self.paused, self.quiet, self.lists)
        return MutableCluster(self.plan, self.now_ms, *columns)


def state_on(cluster: MutableCluster) -> ClusterState:
    nodes, links, wires, lives, paused, quiet, lists = cluster.columns
    by_name = tuple(sorted(lives, key=lambda each: each.client))
    return ClusterState(cluster.plan, cluster.now_ms, nodes, links, wires, by_name, paused, quiet, lists)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One possible result of an action, with the calls that finished in it, in the order in which they did, and the
    answer to the request of a client, where the action is one.

    Results that differ only in that order, or in calls to unreachable peers, are one outcome and show one of them.
    """

    state: ClusterState
    traffic: tuple[Traffic, ...] = ()
    answer: Answer | None = None


START_GAP_MS = 10
"""Nodes start at such a distance that no two timers of different nodes ever fire in one instant."""

SETTLE_IN_MS = 1000
"""After the load of the first node, which finds no member to load from and is loaded only at its second attempt."""


@dataclass(frozen=True, slots=True)
class View:
    """The view of one client at one node. `revision` is 0 for an ip:port client, whose hash has no meaning for
    others."""

    revision: int
    content: Content


class IllegalActionError(ValueError):
    """The action is illegal in this state; the message names the guard that forbids it."""


def start(nodes: Sequence[str], profile: Profile, *, spare: Sequence[str] = ()) -> ClusterState:
    """Nothing runs yet: t = 0 ms, every node down, every link whole. `spare` are addresses that no list names."""
    names = tuple(sorted((*nodes, *spare)))
    if not nodes or len(set(names)) != len(names):
        raise ValueError(f"a cluster needs nodes with different names, not {', '.join(names) or 'none'}")
    size = len(names) ** 2
    lists = tuple((names.index(node), tuple(sorted({*nodes} - {node}))) for node in sorted(nodes)) if spare else ()
    down, unlinked = (None,) * len(names), (Link(down=True),) * size
    return ClusterState(Plan(names, profile), 0, down, unlinked, (Wire(),) * size, lists=lists)


def prologue(nodes: Sequence[str], profile: Profile) -> tuple[Action, ...]:
    """The common beginning of timed runs: all nodes up, loaded, and quiet."""
    starts = [action for node in nodes for action in (Restart(node), Advance(START_GAP_MS))]
    return (*starts, Advance(profile.load_retry_ms + SETTLE_IN_MS - START_GAP_MS * len(nodes)))


def enabled(state: ClusterState, action: Action) -> str | None:
    """None when the action is legal in this state, else the guard that forbids it, as a clause."""
    return guard_of(state.mutable(), action)


def why_unreached(state: ClusterState, action: Action) -> str | None:
    """Why a request of a client reaches no node, or None: the node is down, or the connection has ended."""
    return unreached(state.mutable(), action)


def apply(state: ClusterState, action: Action) -> tuple[Outcome, ...]:
    """All possible results of an action, without duplicates. Raises IllegalActionError when a guard forbids it."""
    return apply_to((state,), action)


def apply_to(
    states: Sequence[ClusterState], action: Action, ended: Sequence[Ended] | None = None
) -> tuple[Outcome, ...]:
    """The same for several states of one time; their common part is computed once while time passes.

    `ended`: the calls that were observed to end meanwhile, in order; results with other ends may be left out.
    """
    clusters = [state.mutable() for state in states]
    for cluster in clusters:
        if (guard := guard_of(cluster, action)) is not None:
            raise IllegalActionError(f"{action}: {guard}")
    if isinstance(action, Advance):
        now_ms = states[0].now_ms
        clusters = advanced(clusters, now_ms + action.ms, None if ended is None else Watched(ended, now_ms))
    else:
        clusters = different([result for cluster in clusters for result in _done(cluster, action)])
    return tuple(Outcome(state_on(each), tuple(each.traffic), each.answer) for each in clusters)


def _done(cluster: MutableCluster, action: Action) -> list[MutableCluster]:
    """The part of the action that takes no time."""
    if isinstance(action, Resume):
        return _resumed(cluster, cluster.plan.index[action.node])
    match action:
        case HttpDeregister():
            clusters = deregistered(cluster, action)
        case Crash():
            clusters = crashed(cluster, action)
        case _:
            clusters = [cluster]
            perform(cluster, action)
    return different([done for each in clusters for done in at_once(each, ticks=False)])


def observe(state: ClusterState) -> Mapping[str, Mapping[str, View] | None]:
    """The answer of each node to a query: node -> client -> view. None: the node is down."""
    return views_of(zip(state.plan.names, state.nodes, strict=True), state.plan.profile)


def views_of(
    nodes: Iterable[tuple[str, NodeState | None]], profile: Profile
) -> Mapping[str, Mapping[str, View] | None]:
    """The same, of nodes by name.

    Without revisions on the wire (before 2.1.2) an owner still counts, and shows 0 to every caller (docs/protocol
    #distro-content).
    """
    travels = profile.revisions_travel
    return {
        name: None
        if node is None
        else {
            each.name: View(compared_revision(each.name, each.revision if travels else 0) or 0, shown(each.content))
            for each in node.clients
        }
        for name, node in nodes
    }


def _resumed(cluster: MutableCluster, position: int) -> list[MutableCluster]:
    """Calls that waited for the node arrive, and every timer that was due meanwhile fires once, in any order.

    The check of leases can detect that the one before it is long ago (B23); it comes before the arrivals or after them.
    """
    since_ms = cluster.paused.pop(position)
    missed, leases = missed_timers(cluster, position, since_ms), (position, LEASES.kind)
    results = []
    for checks_first in (True, False) if leases in missed else (False,):
        fork = cluster.fork()
        if checks_first:
            fork.take(LEASES, at=position, last_ms=since_ms)
        for source in cluster.plan.other_positions[position]:
            fork.release(source, position)
        if leases in missed and not checks_first:
            fork.take(LEASES, at=position, last_ms=since_ms)
        results += instant(fork, missed - {leases})
    return different(results)
