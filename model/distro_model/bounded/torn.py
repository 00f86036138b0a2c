"""CHANGEs that are made and applied in steps, for profiles that do so (B05): what may come between two of them.

A CHANGE that its receiver is applying is a call in the phase HANDLED; the node's `applies` has the other half. Every
step is a choice, so all interleavings are searched. With profiles that do everything at once, no chain is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from distro_model.bounded.draft import Draft, Function, Layout, link_column, node_column
from distro_model.bounded.links import ended, first_sent, received
from distro_model.bounded.values import Call, Link, Phase
from distro_model.events import ApplyDue, CallEnded, ReadDue
from distro_model.messages import Answer, Change, Operation
from distro_model.node import NodeState
from distro_model.search.system import Alternative, Chain, Fairness
from distro_model.transitions import AppliesInPart, AppliesLastPart, BeginsToApply, ReadsRevision
from distro_model.work import Apply

CHANGE = frozenset({Operation.CHANGE})


def torn_chains(layout: Layout) -> Iterator[Chain]:
    if not layout.profile.applies_atomically:
        for source, target in layout.links:
            yield _begin(layout, source, target)
            yield _part(layout, source, target)
            yield _last_part(layout, source, target)
    if not layout.profile.reads_atomically:
        for node in layout.nodes:
            yield _read(layout, node)


def _begin(layout: Layout, source: str, target: str) -> Chain:
    """A CHANGE arrives and is not answered yet. (One that is answered at once is delivered as ever.)"""
    draft, link = Draft(layout, "begin CHANGE", f"{source}->{target}"), link_column(source, target)
    draft.look("no such call", first_sent(CHANGE, stays=Phase.HANDLED), (link,), (link, "call"))
    draft.look("never", received(source), ("call",), ("event",))
    draft.tell(target, "event", "answer")
    draft.look("it is answered at once", unanswered, ("answer",))
    return draft.chain(lambda value: BeginsToApply(source, target, _request(value("call"))), fair=Fairness.STRONG)


def unanswered(answer: Answer | None) -> Sequence[Alternative]:
    return ((),) if answer is None else ()


def _part(layout: Layout, source: str, target: str) -> Chain:
    """A step that nobody hears of: not the last, or its caller has crashed."""
    draft, link = Draft(layout, "apply", f"{source}->{target}"), link_column(source, target)
    draft.look(f"nothing of {source} is being applied", _due(source), (node_column(target),), ("event",))
    draft.tell(target, "event", "answer")
    draft.look("its caller hears of it", unheard, (link, "event", "answer"))
    return draft.chain(lambda value: AppliesInPart(target, _apply(value("event"))), fair=Fairness.STRONG)


def _last_part(layout: Layout, source: str, target: str) -> Chain:
    draft, link = Draft(layout, "apply the last", f"{source}->{target}"), link_column(source, target)
    draft.look(f"nothing of {source} is being applied", _due(source), (node_column(target),), ("event",))
    draft.look("its caller has crashed", handled, (link, "event"), (link, "call"))
    draft.tell(target, "event", "answer")
    draft.look("it is not the last step", ended(target), ("call", "answer"), ("end",))
    draft.tell(source, "end")

    def says(value: object) -> object:
        end = value("end")  # type: ignore[operator]
        assert isinstance(end, CallEnded)
        return AppliesLastPart(source, target, end.request, end.answer.result)

    return draft.chain(says, fair=Fairness.STRONG)


@cache
def _due(source: str) -> Function:
    def due(node: NodeState | None) -> Sequence[Alternative]:
        applies = () if node is None else node.applies
        return tuple((ApplyDue(0, apply),) for apply in dict.fromkeys(applies) if apply.source == source)

    return due


def handled(link: Link, event: ApplyDue) -> Sequence[Alternative]:
    position = _position(link, event.apply)
    return () if position is None else ((link.without(position), link.calls[position]),)


def unheard(link: Link, event: ApplyDue, answer: Answer | None) -> Sequence[Alternative]:
    return ((),) if answer is None or _position(link, event.apply) is None else ()


def _position(link: Link, apply: Apply) -> int | None:
    request = Change(apply.client, apply.revision, apply.content)
    found = (
        position for position, call in enumerate(link.calls) if call.phase is Phase.HANDLED and call.request == request
    )
    return next(found, None)


def _read(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "read revision", node)
    draft.look("nothing is being read", due_reads, (node_column(node),), ("event",))
    draft.tell(node, "event")
    return draft.chain(lambda value: _says_read(node, value("event")), fair=Fairness.STRONG)


def due_reads(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None else tuple((ReadDue(0, read),) for read in dict.fromkeys(node.reads))


def _says_read(node: str, event: object) -> ReadsRevision:
    assert isinstance(event, ReadDue)
    return ReadsRevision(node, event.read.target, event.read.client)


def _apply(event: object) -> Apply:
    assert isinstance(event, ApplyDue)
    return event.apply


def _request(call: object) -> Change:
    assert isinstance(call, Call)
    assert isinstance(call.request, Change)
    return call.request
