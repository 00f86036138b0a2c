"""What can become of a call: everything between the sending of a request and the moment its sender hears of its end.

A call is delivered, answered and ended in one transition, unless a budget lets it be lost, swallowed, overtaken,
doubled, delayed or answered late. Each of those is a chain of its own, and exists only where its budget is not zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from distro_model.bounded import ghosts
from distro_model.bounded.alarms import (
    confirmation,
    false_confirmation,
    false_ip_confirmation,
    giver,
    left_out,
    repair,
    requeued,
)
from distro_model.bounded.draft import (
    BUDGET,
    Draft,
    Function,
    Layout,
    client_column,
    ip_column,
    link_column,
    node_column,
)
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import Call, Life, Link, Phase
from distro_model.events import CallEnded, HandlingRaised, RequestReceived
from distro_model.messages import SUCCESS, TIMEOUT, UNREACHABLE, Answer, CallResult, Delete, Operation
from distro_model.search.system import Alternative, Chain, Fairness
from distro_model.transitions import (
    Abandons,
    Arrives,
    Delivers,
    Duplicates,
    Fails,
    Garbles,
    Loses,
    LosesReply,
    OnLink,
    Overtakes,
    Raises,
    RepliesLate,
    ReplyArrives,
    Swallows,
    TimesOut,
)

SYNCS = frozenset({Operation.CHANGE, Operation.DELETE})
DISTRO = SYNCS | {Operation.VERIFY}
EVERY = DISTRO | {Operation.SNAPSHOT}

GARBLED = Answer(CallResult.ERROR)


def link_chains(layout: Layout) -> Iterator[Chain]:
    """All that the bounds allow, for each link."""
    bounds = layout.bounds
    for source, target in layout.links:
        link = _LinkChains(layout, source, target)
        for operation in (Operation.CHANGE, Operation.DELETE, Operation.VERIFY):
            yield link.deliver(operation)
        if bounds.crashes:
            yield link.deliver(Operation.SNAPSHOT)
            yield link.end("fail", Phase.REFUSED, Fails)
        if bounds.drops or bounds.lost_replies or bounds.half_open:
            yield link.end("time out", Phase.LOST, TimesOut)
        if bounds.drops:
            yield link.lose()
        if bounds.lost_replies:
            yield link.lose_reply()
        if bounds.swallows:
            yield link.swallow()
        if bounds.reorders:
            yield link.overtake()
        if bounds.duplicates:
            yield link.duplicate()
        if bounds.late_replies:
            yield link.reply_late()
            yield link.end("reply arrives", Phase.ANSWERED, ReplyArrives)
        if bounds.delays:
            yield link.abandon()
            yield link.arrive()
        if bounds.garbles:
            yield link.garble()
        if bounds.raises:
            yield link.handling_raises()


class _LinkChains:
    """The chains of one link."""

    def __init__(self, layout: Layout, source: str, target: str) -> None:
        self.layout = layout
        self.source = source
        self.target = target
        self.link = link_column(source, target)

    def draft(self, kind: str, pick: Function, budget: str | None = None) -> Draft:
        """A chain that begins by picking a call: the link without or with it changed, and the call as it was."""
        draft = Draft(self.layout, kind, f"{self.source}->{self.target}")
        draft.look("no such call", pick, (self.link,), (self.link, "call"))
        if budget is not None:
            draft.look(f"no {budget} are left", spent(budget), (BUDGET,), (BUDGET,))
        return draft

    def chain(self, draft: Draft, label: type[OnLink], *, fair: Fairness = Fairness.NONE) -> Chain:
        """The label also says how the sender heard of the call's end, where it does."""
        ends = "end" in draft.latest

        def says(value: Callable[[str], object]) -> object:
            call, end = value("call"), value("end") if ends else None
            assert isinstance(call, Call)
            outcome = end.answer.result if isinstance(end, CallEnded) else None
            return label(self.source, self.target, call.request, outcome)

        return draft.chain(says, fair=fair)

    def deliver_to_target(self, draft: Draft) -> None:
        draft.look("never", received(self.source), ("call",), ("event",))
        draft.tell(self.target, "event", "answer")

    def end_at_source(self, draft: Draft, answer: Answer) -> None:
        draft.look("never", ended_with(self.target, answer), ("call",), ("end",))
        draft.tell(self.source, "end")

    def deliver(self, operation: Operation) -> Chain:
        """The first request arrives and is answered, and its sender hears the answer."""
        draft = self.draft(f"deliver {operation}", first_sent(frozenset({operation})))
        if operation is Operation.VERIFY:
            return self._deliver_verify(draft)
        self.exchange(draft)
        if operation is Operation.SNAPSHOT:
            draft.look("never", giver, ("end", node_column(self.target)), ("giver",))
            for client in self.layout.clients:
                draft.alarm(left_out, ("giver", node_column(self.source), client_column(client)))
        return self.chain(draft, Delivers, fair=Fairness.STRONG)

    def exchange(self, draft: Draft) -> None:
        self.deliver_to_target(draft)
        draft.look("never", ended(self.target), ("call", "answer"), ("end",))
        draft.tell(self.source, "end")

    def _deliver_verify(self, draft: Draft) -> Chain:
        if self.layout.ip_clients:
            draft.keep(node_column(self.target), "before")
        self.exchange(draft)
        draft.look("never", confirmation, ("call", node_column(self.target), "answer"), ("confirmed",))
        for client in self.layout.clients:
            draft.alarm(false_confirmation, ("confirmed", client_column(client)))
        if self.layout.ip_clients:
            draft.alarm(false_ip_confirmation, ("confirmed", node_column(self.source)))
        for client in self.layout.ip_clients:
            draft.alarm(ghosts.vanished, ("before", node_column(self.target), ip_column(client)))
        draft.alarm(repair, ("end", node_column(self.source)))
        return self.chain(draft, Delivers, fair=Fairness.STRONG)

    def overtake(self) -> Chain:
        """A request arrives before one that was sent earlier (the receiver's thread pool, D3)."""
        draft = self.draft("overtake", overtaking, "reorders")
        self.exchange(draft)
        return self.chain(draft, Overtakes)

    def duplicate(self) -> Chain:
        """The first request arrives, and will arrive again."""
        draft = self.draft("duplicate", first_sent(DISTRO, stays=Phase.SENT), "duplicates")
        self.deliver_to_target(draft)
        return self.chain(draft, Duplicates)

    def lose(self) -> Chain:
        return self.chain(self.draft("lose", first_sent(EVERY, stays=Phase.LOST), "drops"), Loses)

    def lose_reply(self) -> Chain:
        draft = self.draft("lose reply", first_sent(EVERY, stays=Phase.LOST), "lost_replies")
        self.deliver_to_target(draft)
        return self.chain(draft, LosesReply)

    def swallow(self) -> Chain:
        """Acknowledged and not delivered. A snapshot cannot be: there is no content to acknowledge it with."""
        draft = self.draft("swallow", first_sent(DISTRO), "swallows")
        for client in self.layout.clients:
            draft.look("never", without_delete, (client_column(client), "call"), (client_column(client),))
        for client in self.layout.ip_clients:
            draft.look("never", ghosts.without_delete, (ip_column(client), "call"), (ip_column(client),))
        self.end_at_source(draft, SUCCESS)
        return self.chain(draft, Swallows)

    def reply_late(self) -> Chain:
        """The request takes effect; its reply stays on its way."""
        draft = self.draft("reply late", first_sent(EVERY, stays=Phase.SENT), "late_replies")
        self.deliver_to_target(draft)
        draft.look("never", answered, (self.link, "call", "answer"), (self.link,))
        return self.chain(draft, RepliesLate)

    def end(self, kind: str, phase: Phase, label: type[OnLink]) -> Chain:
        """The sender hears how a call in this phase ended."""
        draft = self.draft(kind, in_phase(phase))
        draft.look("never", ended_in_phase(self.target), ("call",), ("end",))
        draft.tell(self.source, "end")
        if phase is Phase.LOST:
            draft.alarm(requeued, ("end", node_column(self.source)))
        return self.chain(draft, label, fair=Fairness.STRONG)

    def abandon(self) -> Chain:
        """The sender stops waiting; the request is still on its way."""
        draft = self.draft("abandon", first_sent(DISTRO, stays=Phase.ABANDONED), "delays")
        self.end_at_source(draft, TIMEOUT)
        return self.chain(draft, Abandons)

    def arrive(self) -> Chain:
        draft = self.draft("arrive", in_phase(Phase.ABANDONED))
        self.deliver_to_target(draft)
        return self.chain(draft, Arrives, fair=Fairness.STRONG)

    def garble(self) -> Chain:
        """The request takes effect, and the answer cannot be read (B42)."""
        draft = self.draft("garble", first_sent(SYNCS), "garbles")
        self.deliver_to_target(draft)
        self.end_at_source(draft, GARBLED)
        return self.chain(draft, Garbles)

    def handling_raises(self) -> Chain:
        """The first request arrives, and an exception leaves its handler."""
        draft = self.draft("raise", first_sent(SYNCS), "raises")
        draft.look("never", handling_raised(self.source), ("call",), ("event",))
        draft.tell(self.target, "event", "answer")
        draft.look("never", ended(self.target), ("call", "answer"), ("end",))
        draft.tell(self.source, "end")
        return self.chain(draft, Raises)


def _sent(link: Link) -> list[int]:
    return [position for position, call in enumerate(link.calls) if call.phase is Phase.SENT]


@cache
def first_sent(operations: frozenset[Operation], stays: Phase | None = None) -> Function:
    """link -> (the link, the call): the first request on its way if it is one of these. `stays`: in that phase."""

    def picked(link: Link) -> Sequence[Alternative]:
        for position in _sent(link)[:1]:
            call = link.calls[position]
            if call.request.operation in operations:
                after = link.without(position) if stays is None else link.changed(position, replace(call, phase=stays))
                return ((after, call),)
        return ()

    return picked


def overtaking(link: Link) -> Sequence[Alternative]:
    """Every request that is not the first one on its way."""
    return tuple((link.without(position), link.calls[position]) for position in _sent(link)[1:])


@cache
def in_phase(phase: Phase) -> Function:
    def picked(link: Link) -> Sequence[Alternative]:
        found = {call: position for position, call in enumerate(link.calls) if call.phase is phase}
        return tuple((link.without(position), call) for call, position in found.items())

    return picked


@cache
def received(source: str) -> Function:
    return lambda call: ((RequestReceived(0, source, call.request),),)


@cache
def handling_raised(source: str) -> Function:
    return lambda call: ((HandlingRaised(0, source, call.request),),)


@cache
def ended(target: str) -> Function:
    """There is no end while the request is still being handled (`torn.py`)."""
    return lambda call, answer: () if answer is None else ((CallEnded(0, target, call.request, answer),),)


@cache
def ended_with(target: str, answer: Answer) -> Function:
    return lambda call: ((CallEnded(0, target, call.request, answer),),)


@cache
def ended_in_phase(target: str) -> Function:
    answers = {Phase.LOST: TIMEOUT, Phase.REFUSED: UNREACHABLE}
    return lambda call: ((CallEnded(0, target, call.request, call.answer or answers[call.phase]),),)


def answered(link: Link, call: Call, answer: Answer) -> Sequence[Alternative]:
    return ((link.changed(link.calls.index(call), replace(call, phase=Phase.ANSWERED, answer=answer)),),)


def without_delete(life: Life, call: Call) -> Sequence[Alternative]:
    """A DELETE of this client will not arrive: whatever copy it would have removed is left to the lease."""
    lost = isinstance(call.request, Delete) and call.request.client == life.client
    return ((replace(life, left_cleanly=False) if lost else life,),)
