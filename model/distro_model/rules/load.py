"""The first load: one snapshot from the first member that gives one.

A member that is not loaded itself has an incomplete table, and `strict` gives no snapshot of that (B33). So that nodes
which start together do not wait for each other for ever, a round in which everybody refused completes the load with
what the node has: nobody can give more. What `everybody` means when some are away is in `_ask_next`.

Elements of a snapshot are applied like CHANGE messages. This is one of the few rules that cross clients, and it does so
element by element: one client's element never decides about another's.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import CallEnded, LoadDue, LoadInterrupted, Send
from distro_model.messages import CallResult, Snapshot
from distro_model.node import MemberState, NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.ip_clients import is_superseded
from distro_model.rules.receive import is_poisoned, is_refused, with_copy
from distro_model.rules.rule import rule
from distro_model.rules.sync import is_reachable


@rule("load", source="wire-protocol.md 6.8; DistroLoadDataTask")
def on_load_due(node: NodeState, event: LoadDue, profile: Profile) -> Step:
    if not node.others and profile.waits_for_second_member:
        return Step(replace(node, loaded=False, load_at_ms=event.at_ms + profile.load_retry_ms))
    if node.loaded or node.asking is not None:
        return Step(node)
    if node.load_at_ms is None and not profile.first_load_asks:
        return Step(replace(node, load_at_ms=event.at_ms + profile.load_retry_ms))
    return _ask_next(replace(node, missed=False), node.others, event.at_ms, profile)


@rule("load interrupted", source="wire-protocol.md 6.8; known-bugs.md load-exception-no-retry; DistroLoadDataTask")
def on_load_interrupted(node: NodeState, event: LoadInterrupted, profile: Profile) -> Step:
    """Whoever was asked, nobody listens to the answer any more."""
    load_at_ms = event.at_ms + profile.load_retry_ms if profile.interrupted_load_retried else None
    return Step(replace(node, asking=None, load_at_ms=load_at_ms))


@rule("snapshot ended", source="wire-protocol.md 6.8; DistroLoadDataTask, DistroClientDataProcessor.processSnapshot")
def on_snapshot_ended(node: NodeState, event: CallEnded, profile: Profile) -> Step:
    """The first success completes the load, an empty one too; after a failure the next member is asked at once."""
    if event.answer.result is not CallResult.SUCCESS:
        node = node if event.answer.result is CallResult.FAIL else _missing_one(node, profile)
        return _ask_next(node, tuple(peer for peer in node.others if peer > event.target), event.at_ms, profile)
    for copy in event.answer.copies:
        if is_poisoned(node, copy, profile):  # it aborts the rest of the snapshot (wire-protocol.md 6.4)
            node = _missing_one(node, profile)
            return _ask_next(node, tuple(peer for peer in node.others if peer > event.target), event.at_ms, profile)
        if not is_refused(node, copy.client, profile) and not is_superseded(node, event.target, copy):
            node = with_copy(node, copy, event.at_ms, profile)
    if profile.loads_ranges:
        further = tuple(peer for peer in node.others if peer > event.target and is_reachable(node, peer, profile))
        if further:
            return _ask_next(node, further, event.at_ms, profile)
    return Step(_loaded(node))


def _ask_next(node: NodeState, peers: tuple[str, ...], at_ms: int, profile: Profile) -> Step:
    """Ask the first of `peers`, which ascend. After the last one: loaded, where everybody has refused.

    Everybody is who is not DOWN, and there must be one: a node that hears nobody waits. Nobody waits for who is DOWN:
    several reports to it have failed, and it may never come back (two of three that restart would wait for each other
    for ever). A member that is only SUSPICIOUS, or whose answer was lost, may have all that is missing, and the round
    has failed. If one that was DOWN comes back with data, then no harm was done: what being loaded allows, to verify
    own clients and to give a snapshot, takes nothing away from anybody; and the next verify round of whoever is back
    fails here, which brings its clients. Until then this node gives an incomplete snapshot, as does every node that
    was cut off for longer than a lease. Copies that only the other held are of owners that are gone, and would expire,
    or of ip:port clients, whose next beat registers them again with the owner that has lost them.
    """
    for peer in peers:
        if is_reachable(node, peer, profile):
            return Step(replace(node, asking=peer, load_at_ms=None), (Send(peer, Snapshot()),))
        if not (profile.load_passes_over_down and node.member(peer).state is MemberState.DOWN):
            node = _missing_one(node, profile)
    has_asked = node.asking is not None
    if profile.refuses_before_load and not node.missed and (has_asked or not node.others):
        return Step(_loaded(node))
    return Step(replace(node, asking=None, load_at_ms=at_ms + profile.load_retry_ms))


def _missing_one(node: NodeState, profile: Profile) -> NodeState:
    """Only where a refusal means something is a failure of another kind worth remembering."""
    return replace(node, missed=True) if profile.refuses_before_load else node


def _loaded(node: NodeState) -> NodeState:
    return replace(node, loaded=True, asking=None, load_at_ms=None, missed=False)
