"""Who is believed to be a member, and alive: reports, false alarms, member lists, nodes that leave and join.

`STALE` is a ghost column that no rule can read: the pairs (node, other) of which the node's belief may rightly be out
of date. A crash, a restart, a false alarm or a new member makes pairs stale; a report between the two, whatever its
end, makes them fresh. INV-OWNER speaks about what is fresh. One failed report is enough for DOWN here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from distro_model.bounded.draft import BUDGET, STALE, Draft, Function, Layout, client_column, ip_column, node_column
from distro_model.bounded.ghosts import Stale, handed_over, shaken, unsettled_now, with_pairs
from distro_model.bounded.nodes import spent
from distro_model.events import CallEnded, MembersListed, RequestReceived
from distro_model.messages import SUCCESS, UNREACHABLE, Report
from distro_model.node import MemberState, NodeState
from distro_model.search.system import Alternative, Chain, Fairness
from distro_model.transitions import FalseAlarm, ListRead, ReportEnds


def member_chains(layout: Layout) -> Iterator[Chain]:
    bounds = layout.bounds
    if not bounds.watches_members:
        return
    for node, other in layout.links:
        yield _report(layout, node, other, answered=True)
        if bounds.crashes:
            yield _report(layout, node, other, answered=False)
        if bounds.flips:
            yield _false_alarm(layout, node, other)
    for node in layout.nodes:
        for budget, choices in (("leaves", leaving), ("joins", _joining(layout, node)), ("refreshes", rereading)):
            if getattr(bounds, budget):
                yield _list(layout, node, budget, choices)


def _report(layout: Layout, node: str, other: str, *, answered: bool) -> Chain:
    """A report between two that run makes both UP for each other; one to a node that does not run makes that DOWN."""
    draft = Draft(layout, "report" if answered else "report in vain", f"{node}->{other}")
    ends = _answered(node, other) if answered else _unanswered(node, other)
    reads = (node_column(node), node_column(other), STALE)
    draft.look("it would bring no news", ends, reads, (STALE, "heard", "end"))
    if answered:
        draft.tell(other, "heard")
    draft.tell(node, "end")
    return draft.chain(lambda _: ReportEnds(node, other, answered), fair=Fairness.STRONG)


@cache
def _answered(node: str, other: str) -> Function:
    def news(state: NodeState | None, peer: NodeState | None, stale: Stale) -> Sequence[Alternative]:
        if state is None or peer is None or other not in state.others:
            return ()
        fresh = tuple(pair for pair in stale if pair not in {(node, other), (other, node)})
        if fresh == stale and _is_up(state, other) and (_is_up(peer, node) or node not in peer.others):
            return ()
        return ((fresh, RequestReceived(0, node, Report()), CallEnded(0, other, Report(), SUCCESS)),)

    return news


@cache
def _unanswered(node: str, other: str) -> Function:
    def news(state: NodeState | None, peer: NodeState | None, stale: Stale) -> Sequence[Alternative]:
        if state is None or peer is not None or other not in state.others:
            return ()
        fresh = tuple(pair for pair in stale if pair != (node, other))
        if fresh == stale and state.member(other).state is MemberState.DOWN:
            return ()
        return ((fresh, None, CallEnded(0, other, Report(), UNREACHABLE)),)

    return news


def _is_up(node: NodeState, other: str) -> bool:
    return other in node.others and node.member(other).state is MemberState.UP


def _false_alarm(layout: Layout, node: str, other: str) -> Chain:
    """A report fails although the other node runs: a link that is broken for a while, in one direction (D16)."""

    def fails(state: NodeState | None, peer: NodeState | None, stale: Stale) -> Sequence[Alternative]:
        if state is None or peer is None or not _is_up(state, other):
            return ()
        return ((with_pairs(stale, (node, other)), CallEnded(0, other, Report(), UNREACHABLE)),)

    draft = Draft(layout, "false alarm", f"{node}->{other}")
    reads = (node_column(node), node_column(other), STALE)
    draft.look("one of them is down, or believed so", fails, reads, (STALE, "event"))
    draft.look("no flips are left", spent("flips"), (BUDGET,), (BUDGET,))
    for client in layout.ip_clients:
        draft.look("never", handed_over, (ip_column(client),), (ip_column(client),))
    draft.tell(node, "event")
    return draft.chain(lambda _: FalseAlarm(node, other), fair=Fairness.NONE)


def _list(layout: Layout, node: str, budget: str, choices: Function) -> Chain:
    """A node reads its member list anew. Where the list changes, what clients left behind may stay there."""
    draft = Draft(layout, f"list {budget}", node)
    draft.look("there is no such list", choices, (node_column(node),), ("event", "changed"))
    draft.look(f"no {budget} are left", spent(budget), (BUDGET,), (BUDGET,))
    for other in layout.others(node):
        draft.look("never", _relisted(node, other), (STALE, "changed", node_column(other)), (STALE,))
    if budget != "refreshes":
        for client in layout.clients:
            draft.look("never", unsettled_now, (client_column(client),), (client_column(client),))
        for client in layout.ip_clients:
            draft.look("never", shaken, (ip_column(client),), (ip_column(client),))
    draft.tell(node, "event")
    return draft.chain(lambda value: ListRead(node, value("event").others), fair=Fairness.NONE)  # type: ignore[attr-defined]


def leaving(node: NodeState | None) -> Sequence[Alternative]:
    """One of the others is in the list no more."""
    if node is None:
        return ()
    return tuple(
        (MembersListed(0, tuple(other for other in node.others if other != gone)), gone) for gone in node.others
    )


@cache
def _joining(layout: Layout, name: str) -> Function:
    def joining(node: NodeState | None) -> Sequence[Alternative]:
        if node is None:
            return ()
        missing = (other for other in layout.others(name) if other not in node.others)
        return tuple((MembersListed(0, tuple(sorted((*node.others, new)))), new) for new in missing)

    return joining


def rereading(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None else ((MembersListed(0, node.others), None),)


@cache
def _relisted(node: str, other: str) -> Function:
    """Of a new member that runs there is no news yet. Of one that does not, nothing good was ever heard."""

    def relisted(stale: Stale, changed: str | None, peer: NodeState | None) -> Sequence[Alternative]:
        if changed != other:
            return ((stale,),)
        fresh = tuple(pair for pair in stale if pair != (node, other))
        return ((fresh if peer is None else with_pairs(fresh, (node, other)),),)

    return relisted
