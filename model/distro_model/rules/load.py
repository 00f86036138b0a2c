"""The first load: one snapshot from the first member that gives one.

A member that is not loaded itself has an incomplete table, and `strict` gives no snapshot of that (B33). To prevent
nodes that start together from waiting for each other for ever, a round in which all members refused completes the load
with the node's own table: no member has more. The docstring of `_ask_next` defines "all members" when some are away.

Elements of a snapshot are applied like CHANGE messages. This is one of the few rules that cross clients, and it does so
element by element: one client's element never affects another client.
"""

from __future__ import annotations

from distro_model.events import CallEnded, LoadDue, LoadInterrupted, Send
from distro_model.messages import CallResult, Snapshot
from distro_model.node import Member, MemberState, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.receive import is_applicable, may_take, refused, taken
from distro_model.rules.rule import guard, instead_of, rule
from distro_model.rules.sync import is_reachable


@rule("load", source="load-first, load-asks; DistroLoadDataTask")
def on_load_due(node: NodeState, event: LoadDue, profile: Profile) -> Step:
    """Ask the first member for a snapshot."""
    if waits_for_second(node, profile):
        return Step(node.changed(loaded=False, load_at_ms=event.at_ms + profile.load_retry_ms))
    if node.loaded or node.asking is not None:
        return Step(node)
    if not knows_a_peer(node, profile):
        return Step(node.changed(load_at_ms=event.at_ms + profile.load_retry_ms))
    return _ask_next(node.changed(missed=False), node.others, event.at_ms, profile)


@rule("wait-for-a-second-member", source="load-alone")
def waits_for_second(_node: NodeState, _: Profile) -> bool:
    """A node that is alone has nothing to wait for."""
    return False


@guard(source="load-first; DistroProtocol.startDistroTask")
def knows_a_peer(_node: NodeState, _: Profile) -> bool:
    """A node asks for a snapshot as soon as it starts: it knows its peers by then."""
    return True


@instead_of(knows_a_peer)
def knows_no_peer_at_first(node: NodeState, _: Profile) -> bool:
    """When it starts it has no connection to a peer yet: the first load always fails (B32)."""
    return node.load_at_ms is not None


@rule("interrupt-a-load", source="load-interrupted; DistroLoadDataTask")
def on_load_interrupted(node: NodeState, event: LoadInterrupted, profile: Profile) -> Step:
    """The answer of the peer that was asked is ignored. The load starts again later."""
    return Step(node.changed(asking=None, to_ask=(), load_at_ms=event.at_ms + profile.load_retry_ms))


@instead_of(on_load_interrupted)
def ends_interrupted_load(node: NodeState, _event: LoadInterrupted, _: Profile) -> Step:
    """The task that loads has ended with the exception, and nothing starts it again (load-exception-no-retry)."""
    return Step(node.changed(asking=None, to_ask=(), load_at_ms=None))


@rule("take-a-snapshot", source="load-asks, load-takes; DistroLoadDataTask, DistroClientDataProcessor.processSnapshot")
def on_snapshot_ended(node: NodeState, event: CallEnded, _snapshot: Snapshot, profile: Profile) -> Step:
    """The first success completes the load, an empty one too; after a failure the next member is asked at once."""
    later = node.to_ask
    if event.answer.result is not CallResult.SUCCESS:
        node = node if event.answer.result is CallResult.FAIL else missing_one(node, profile)
        return _ask_next(node, later, event.at_ms, profile)
    for copy in event.answer.copies:
        if not is_applicable(node, copy, profile):  # it aborts the rest of the snapshot
            return _ask_next(missing_one(node, profile), later, event.at_ms, profile)
        may = may_take(node, event.target, copy, profile)
        node = (taken if may else refused)(node, event.target, copy, event.at_ms, profile)
    further = asked_further(node, later, profile)
    return _ask_next(node, further, event.at_ms, profile) if further else Step(_loaded(node))


@rule("choose-whom-else-to-ask", source="load-takes")
def asked_further(_node: NodeState, _later: tuple[str, ...], _: Profile) -> tuple[str, ...]:
    """A successful snapshot is complete: no other member is asked."""
    return ()


def _ask_next(node: NodeState, peers: tuple[str, ...], at_ms: int, profile: Profile) -> Step:
    """Ask the first of `peers`, which ascend. After the last one the node is loaded if all members have refused.

    A round uses the list as it was when the round began; a member that has left the list since cannot be asked.

    "All members" are those that are not DOWN, and there must be one: a node without a reachable member waits. DOWN
    members are skipped: several reports to them have failed, and they may never come back (two of three that restart
    would wait for each other for ever). A member that is only SUSPICIOUS, or whose answer was lost, may have all that
    is missing, so the round has failed. If a DOWN member comes back with data, no data was lost: a loaded node verifies
    native clients and gives snapshots, which removes nothing from any node; and the next verify round of the member
    that is back fails here, which brings its clients. Until then this node gives an incomplete snapshot, as does every
    node that was cut off for longer than a lease. Copies that only the other held are of owners that are gone, and
    would expire, or of ip:port clients, whose next beat registers them again with the owner that has lost them.
    """
    for number, peer in enumerate(peers, start=1):
        is_listed = peer in node.others
        if is_listed and is_reachable(node, peer, profile):
            asking = node.changed(asking=peer, to_ask=peers[number:], load_at_ms=None)
            return Step(asking, (Send(peer, Snapshot()),))
        if not (is_listed and is_passed_over(node.member(peer), profile)):
            node = missing_one(node, profile)
    if refusals_complete(node, profile):
        return Step(_loaded(node))
    wait_ms = profile.load_retry_ms if node.others else profile.load_alone_ms
    return Step(node.changed(asking=None, to_ask=(), load_at_ms=at_ms + wait_ms))


@rule("pass-over-a-member", source="load-refusals")
def is_passed_over(member: Member, _: Profile) -> bool:
    """DOWN members are skipped."""
    return member.state is MemberState.DOWN


@guard(source="load-refusals")
def refusals_complete(node: NodeState, _: Profile) -> bool:
    """A load that all members refused is complete: no member has any data."""
    return not node.missed and (node.asking is not None or not node.others)


@instead_of(refusals_complete)
def refusals_fail(_node: NodeState, _: Profile) -> bool:
    """Only a snapshot completes a load (B33: there are no refusals to count)."""
    return False


@rule("miss-a-member", source="load-refusals")
def missing_one(node: NodeState, _: Profile) -> NodeState:
    """Remember for this round that a member may have a snapshot and has not given it."""
    return node.changed(missed=True)


@instead_of(missing_one)
def missing_none(node: NodeState, _: Profile) -> NodeState:
    """Where refusals do not count, other failures need not be remembered."""
    return node


def _loaded(node: NodeState) -> NodeState:
    return node.changed(loaded=True, asking=None, to_ask=(), load_at_ms=None, missed=False)
