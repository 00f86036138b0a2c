"""What a transition shows beyond one node's step: a false confirmation, a repair, a retry.

Each function is a look-up whose one result is a `Finding` or None. What one step shows by itself is in `draft.alarm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from distro_model.bounded.values import Call, Connection, Life
from distro_model.events import CallEnded
from distro_model.local_events import ClientVerifyFailed
from distro_model.messages import Answer, CallResult, Change, Content, Delete, Verify, text_of
from distro_model.node import NodeState
from distro_model.rules.owners import is_ip_client
from distro_model.search.system import Alternative, Finding


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A copy whose VERIFY was answered with SUCCESS."""

    client: str
    node: str
    content: Content
    sent_as: Content


def confirmation(call: Call, receiver: NodeState, answer: Answer | None) -> Sequence[Alternative]:
    held = receiver.client(call.request.client) if isinstance(call.request, Verify) else None
    if answer is None or answer.result is not CallResult.SUCCESS or held is None or call.sent_as is None:
        return ((None,),)
    return ((Confirmed(held.name, receiver.name, held.content, call.sent_as),),)


def false_confirmation(confirmed: Confirmed | None, life: Life) -> Sequence[Alternative]:
    """INV-VERIFY: from the content with which the verify was sent up to the last one, none is the copy's."""
    if confirmed is None or confirmed.client != life.client:
        return ((None,),)
    sent = life.contents.index(confirmed.sent_as) if confirmed.sent_as in life.contents else 0
    between = life.contents[sent:]
    if confirmed.content in between:
        return ((None,),)
    what = (
        f"{confirmed.node} confirmed {life.client} with {text_of(confirmed.content)}"
        f" while its owner had {' then '.join(map(text_of, between))}"
    )
    return ((Finding("INV-VERIFY", what),),)


def giver(end: CallEnded, asked: NodeState) -> Sequence[Alternative]:
    """Who was asked for a snapshot, if it gave one."""
    return ((asked if end.answer.result is CallResult.SUCCESS else None,),)


def left_out(giver: NodeState | None, loader: NodeState, life: Life) -> Sequence[Alternative]:
    """INV-LOAD: after a snapshot was applied, a connected client that its giver holds is missing."""
    if giver is None:
        return ((None,),)
    missing = giver.client(life.client) is not None and loader.client(life.client) is None
    if not missing or not loader.loaded or life.connection is not Connection.OPEN:
        return ((None,),)
    return ((Finding("INV-LOAD", f"{loader.name} has loaded from {giver.name} and has no {life.client}"),),)


def repair(end: CallEnded, source: NodeState) -> Sequence[Alternative]:
    """REACH-VERIFY-REPAIR: a failed verify makes the owner queue the whole client for the peer that failed."""
    request = end.request
    if not isinstance(request, Verify) or end.answer.result is not CallResult.FAIL:
        return ((None,),)
    published = ClientVerifyFailed(request.client, end.target) in source.local.events  # as good as queued
    if source.task(request.client, end.target) is None and not published:
        return ((None,),)
    what = f"{end.target} failed the verify of {request.client}, and {source.name} queued it for {end.target}"
    return ((Finding("REACH-VERIFY-REPAIR", what),),)


def requeued(end: CallEnded, source: NodeState) -> Sequence[Alternative]:
    """REACH-RETRY: a sync that timed out is queued again."""
    request = end.request
    if isinstance(request, Change | Delete):
        task = source.task(request.client, end.target)
        if task is not None:
            what = f"{source.name} queued the {task.action} of {request.client} for {end.target} again"
            return ((Finding("REACH-RETRY", what),),)
    return ((None,),)


def false_ip_confirmation(confirmed: Confirmed | None, source: NodeState) -> Sequence[Alternative]:
    """INV-VERIFY for ip:port clients, which have no history: the copy is what was meant, or what there is now."""
    held = None if confirmed is None else source.client(confirmed.client)
    if confirmed is None or not is_ip_client(confirmed.client):
        return ((None,),)
    if confirmed.content == confirmed.sent_as or (held is not None and held.content == confirmed.content):
        return ((None,),)
    what = (
        f"{confirmed.node} confirmed {confirmed.client} with {text_of(confirmed.content)}"
        f" while {source.name} had {text_of(confirmed.sent_as)}"
    )
    return ((Finding("INV-VERIFY", what),),)
