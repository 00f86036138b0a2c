"""The first load: one snapshot from the first member that gives one.

Elements of a snapshot are applied like CHANGE messages. This is one of the few rules that cross clients, and it does so
element by element: one client's element never decides about another's.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import CallEnded, LoadDue, Send
from distro_model.messages import CallResult, Snapshot
from distro_model.node import NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.ip_clients import is_superseded
from distro_model.rules.receive import is_protected, with_copy
from distro_model.rules.rule import rule
from distro_model.rules.sync import is_reachable


@rule("load", source="wire-protocol.md 6.8; DistroLoadDataTask")
def on_load_due(node: NodeState, event: LoadDue, profile: Profile) -> Step:
    if not node.others and profile.waits_for_second_member:
        return Step(replace(node, loaded=False, load_at_ms=event.at_ms + profile.load_retry_ms))
    if node.loaded or node.asking is not None:
        return Step(node)
    return _ask_next(node, node.others, event.at_ms, profile)


@rule("snapshot ended", source="wire-protocol.md 6.8; DistroLoadDataTask, DistroClientDataProcessor.processSnapshot")
def on_snapshot_ended(node: NodeState, event: CallEnded, profile: Profile) -> Step:
    """The first success completes the load, an empty one too; after a failure the next member is asked at once."""
    if event.answer.result is not CallResult.SUCCESS:
        return _ask_next(node, tuple(peer for peer in node.others if peer > event.target), event.at_ms, profile)
    for copy in event.answer.copies:
        if not is_protected(node, copy.client, profile) and not is_superseded(node, event.target, copy):
            node = with_copy(node, copy, event.at_ms, profile)
    if profile.loads_ranges:
        further = tuple(peer for peer in node.others if peer > event.target and is_reachable(node, peer, profile))
        if further:
            return _ask_next(node, further, event.at_ms, profile)
    return Step(replace(node, loaded=True, asking=None, load_at_ms=None))


def _ask_next(node: NodeState, peers: tuple[str, ...], at_ms: int, profile: Profile) -> Step:
    """Ask the first of `peers`, which ascend. One that is not UP has failed without being asked."""
    for peer in peers:
        if is_reachable(node, peer, profile):
            return Step(replace(node, asking=peer, load_at_ms=None), (Send(peer, Snapshot()),))
    return Step(replace(node, asking=None, load_at_ms=at_ms + profile.load_retry_ms))
