"""Membership and beliefs about members: member lists, and, without a clock, the results of reports.

`stale` is history that no rule can read: the pairs (node, other) of which the node's belief may legitimately be out of
date. A crash, a restart, a false alarm or a new member makes pairs stale; a report between the two, whatever its end,
makes them fresh. INV-OWNER covers fresh pairs only.

Reports differ between choosers on purpose. A clock sends each when it is due (`nodes.REPORT`), and counts failures; a
search applies only the result of a report, at once; how many failures lead to DOWN is a bound (`suspicions`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.actions import ListMembers
from distro_model.cluster.crashes import Pairs, with_pairs, with_possible_loss
from distro_model.cluster.statement import Transition, chooses, handles, of, records, writes
from distro_model.cluster.values import IpLife, Life
from distro_model.events import CallEnded, MembersListed, RequestReceived
from distro_model.messages import SUCCESS, UNREACHABLE, Report
from distro_model.node import MemberState, NodeState
from distro_model.search.system import Fairness
from distro_model.transitions import Happens


def _is_up(node: NodeState, other: str) -> bool:
    return other in node.others and node.member(other).state is MemberState.UP


def brings_news(
    stale: Pairs, source: NodeState | None, target: NodeState | None, source_name: str, target_name: str
) -> Pairs | None:
    if source is None or target is None or target_name not in source.others:
        return None
    fresh = tuple(pair for pair in stale if pair not in {(source_name, target_name), (target_name, source_name)})
    known = _is_up(source, target_name) and (_is_up(target, source_name) or source_name not in target.others)
    return None if fresh == stale and known else fresh


def report_arrives(source_name: str, now: int) -> RequestReceived:
    return RequestReceived(now, source_name, Report())


def report_succeeds(target_name: str, now: int) -> CallEnded:
    return CallEnded(now, target_name, Report(), SUCCESS)


NEWS = Transition(
    "report",
    (
        writes(brings_news, "it would bring no news"),
        handles("target", report_arrives),
        handles("source", report_succeeds),
    ),
    lambda source_name, target_name: Happens(source_name, f"reports to {target_name}, which answers"),
    fair=Fairness.STRONG,
)
"""Of searches only. A report between two running nodes makes both UP for each other."""


def brings_bad_news(
    stale: Pairs, source: NodeState | None, target: NodeState | None, source_name: str, target_name: str
) -> Pairs | None:
    if source is None or target is not None or target_name not in source.others:
        return None
    fresh = tuple(pair for pair in stale if pair != (source_name, target_name))
    known = source.member(target_name).state is MemberState.DOWN
    return None if fresh == stale and known else fresh


def report_fails(target_name: str, now: int) -> CallEnded:
    return CallEnded(now, target_name, Report(), UNREACHABLE)


BAD_NEWS = Transition(
    "report in vain",
    (writes(brings_bad_news, "it would bring no news"), handles("source", report_fails)),
    lambda source_name, target_name: Happens(source_name, f"reports to {target_name}, which is not there"),
    fair=Fairness.STRONG,
)
"""Of searches only. A report to a node that does not run makes that node DOWN."""


def fails_to_reach(
    stale: Pairs, source: NodeState | None, target: NodeState | None, source_name: str, target_name: str
) -> Pairs | None:
    if source is None or target is None or target_name not in source.others:
        return None
    if source.member(target_name).state is MemberState.DOWN:
        return None
    return with_pairs(stale, (source_name, target_name))


FALSE_ALARM = Transition(
    "false alarm",
    (
        writes(fails_to_reach, "one of them is down, or believed so"),
        handles("source", report_fails),
    ),
    lambda source_name, target_name: Happens(source_name, f"cannot reach {target_name} for a moment"),
    cost="flips",
)
"""Of searches only. A report fails although the other node runs: a link is broken for a while, one way (D16)."""


class Listed(NamedTuple):
    listed: tuple[str, ...]
    """All members except the reader."""
    changed: str | None
    """Members that were added to the list or removed from it."""


def leaving(node: NodeState | None) -> list[Listed]:
    others = () if node is None else node.others
    return [Listed(tuple(other for other in others if other != gone), gone) for gone in others]


def joining(node: NodeState | None, others: tuple[str, ...]) -> list[Listed]:
    if node is None:
        return []
    return [Listed(tuple(sorted((*node.others, new))), new) for new in others if new not in node.others]


def rereading(node: NodeState | None) -> Listed | None:
    return None if node is None else Listed(node.others, None)


def relist(stale: Pairs, changed: str | None, peer: NodeState | None, node_name: str, peer_name: str) -> Pairs:
    """No report of a new member that runs has arrived yet. A new member that does not run was never reported UP."""
    if changed != peer_name:
        return stale
    fresh = tuple(pair for pair in stale if pair != (node_name, peer_name))
    return fresh if peer is None else with_pairs(fresh, (node_name, peer_name))


def unsettled(life: Life, listed: tuple[str, ...], others: tuple[str, ...]) -> Life:
    return replace(life, left_cleanly=False, unlisted=_unlisted(life, listed, others))


def left_out(ip_life: IpLife, listed: tuple[str, ...], others: tuple[str, ...]) -> IpLife:
    return replace(ip_life, unlisted=_unlisted(ip_life, listed, others))


def _unlisted(life: Life | IpLife, listed: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*life.unlisted, *({*others} - {*listed})}))


NO_LIST = "there is no such list"
REREAD_LIST = Transition(
    "list refreshes",
    (chooses(rereading, NO_LIST), records(relist), handles("node", of(MembersListed, "now", "listed"))),
    lambda node_name, listed: ListMembers(node_name, tuple(sorted((node_name, *listed)))),
    cost="refreshes",
)
_CHANGED = (
    records(relist),
    records(unsettled),
    records(left_out),
    records(with_possible_loss),
    handles("node", of(MembersListed, "now", "listed")),
)
LIST_LEAVES = replace(REREAD_LIST, kind="list leaves", steps=(chooses(leaving, NO_LIST), *_CHANGED), cost="leaves")
LIST_JOINS = replace(REREAD_LIST, kind="list joins", steps=(chooses(joining, NO_LIST), *_CHANGED), cost="joins")
"""A node reads its member list again. Where the list changes, copies of clients that have left may stay there."""
