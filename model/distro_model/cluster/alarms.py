"""Checks of a transition that involve more than one node's step: a false confirmation, a repair, a retry.

Each is a step that observes a transition. Checks of one step of one node are in `properties/steps.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from distro_model.cluster.values import Call, Connection, IpLife, Life
from distro_model.events import CallEnded
from distro_model.local_events import ClientVerifyFailed
from distro_model.messages import Answer, CallResult, Change, Content, Delete, Verify, text_of
from distro_model.node import NodeState
from distro_model.search.system import Finding


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A copy whose VERIFY was answered with SUCCESS."""

    client: str
    node: str
    content: Content
    sent_as: Content


class Confirmation(NamedTuple):
    confirmed: Confirmed | None


class SnapshotSource(NamedTuple):
    snapshot_source: NodeState | None


def confirmation(call: Call, target: NodeState, answer: Answer | None) -> Confirmation:
    held = target.client(call.request.client) if isinstance(call.request, Verify) else None
    if answer is None or answer.result is not CallResult.SUCCESS or held is None or call.sent_as is None:
        return Confirmation(None)
    return Confirmation(Confirmed(held.name, target.name, held.content, call.sent_as))


def false_confirmation(confirmed: Confirmed | None, life: Life) -> Finding | None:
    """INV-VERIFY: none of the owner's contents, from the one with which the verify was sent to the last, equals the
    copy's."""
    if confirmed is None or confirmed.client != life.client:
        return None
    sent = life.contents.index(confirmed.sent_as) if confirmed.sent_as in life.contents else 0
    between = life.contents[sent:]
    if confirmed.content in between:
        return None
    what = (
        f"{confirmed.node} confirmed {life.client} with {text_of(confirmed.content)}"
        f" while its owner had {' then '.join(map(text_of, between))}"
    )
    return Finding("INV-VERIFY", what)


def snapshot_source(event: CallEnded, target: NodeState) -> SnapshotSource:
    """The peer that was asked for a snapshot, if it gave one."""
    return SnapshotSource(target if event.answer.result is CallResult.SUCCESS else None)


def left_out(snapshot_source: NodeState | None, source: NodeState, life: Life) -> Finding | None:
    """INV-LOAD: after a snapshot was applied, a connected client that the peer holds is missing."""
    if snapshot_source is None:
        return None
    missing = snapshot_source.client(life.client) is not None and source.client(life.client) is None
    if not missing or not source.loaded or life.connection is not Connection.OPEN:
        return None
    return Finding("INV-LOAD", f"{source.name} has loaded from {snapshot_source.name} and has no {life.client}")


def repair(event: CallEnded, source: NodeState) -> Finding | None:
    """REACH-VERIFY-REPAIR: a failed verify makes the owner queue the whole client for the peer that failed."""
    request = event.request
    if not isinstance(request, Verify) or event.answer.result is not CallResult.FAIL:
        return None
    published = ClientVerifyFailed(request.client, event.target) in source.local.events  # equivalent to queued
    if source.task(request.client, event.target) is None and not published:
        return None
    what = f"{event.target} failed the verify of {request.client}, and {source.name} queued it for {event.target}"
    return Finding("REACH-VERIFY-REPAIR", what)


def requeued(event: CallEnded, source: NodeState) -> Finding | None:
    """REACH-RETRY: a sync that timed out is queued again."""
    request = event.request
    if isinstance(request, Change | Delete):
        task = source.task(request.client, event.target)
        if task is not None:
            what = f"{source.name} queued the {task.action} of {request.client} for {event.target} again"
            return Finding("REACH-RETRY", what)
    return None


def false_ip_confirmation(confirmed: Confirmed | None, source: NodeState, ip_life: IpLife) -> Finding | None:
    """INV-VERIFY for ip:port clients, which have no history: the copy equals the content that was verified, or the
    current one."""
    held = None if confirmed is None else source.client(confirmed.client)
    if confirmed is None or confirmed.client != ip_life.client:
        return None
    if confirmed.content == confirmed.sent_as or (held is not None and held.content == confirmed.content):
        return None
    what = (
        f"{confirmed.node} confirmed {confirmed.client} with {text_of(confirmed.content)}"
        f" while {source.name} had {text_of(confirmed.sent_as)}"
    )
    return Finding("INV-VERIFY", what)


def forgotten(before: NodeState | None, after: NodeState, ip_life: IpLife) -> Finding | None:
    """A client that publishes and beats is no longer shown, because of a check or of a verify."""
    held, kept = None if before is None else before.client(ip_life.client), after.client(ip_life.client)
    gone = held is not None and held.content and (kept is None or not kept.content)
    if not gone or not ip_life.published or ip_life.silence or after.name in ip_life.unlisted:
        return None
    return Finding("INV-LIVE", f"{after.name} removed {ip_life.client}, which has not fallen silent")
