"""Clients of the HTTP API in the bounded cluster: what they ask, of whom, and how long they are silent.

A request goes to any node and, where that one says so, on to another, all in one transition. Silence has two forms.
Without periods it is a budget: `lapses`, each of which ages the beats of one client by more than a time-out, at every
node, while nothing else happens. With periods every client beats once in each, at a node of the environment's choice,
and a beat that is refused has been tried all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from distro_model.bounded.clients import SERVICE
from distro_model.bounded.draft import BUDGET, CLOCK, Draft, Function, Layout, ip_column, node_column
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import Clock, IpLife
from distro_model.events import (
    AnnounceDue,
    Forward,
    HttpAction,
    HttpEntered,
    HttpFinished,
    HttpReceived,
)
from distro_model.messages import Answer, CallResult
from distro_model.node import NodeState
from distro_model.rules.ip_clients import UNHEALTHY
from distro_model.search.system import Alternative, Chain, Fairness, Finding
from distro_model.step import step
from distro_model.transitions import AnnounceRuns, BeatCheckRuns, HttpAsks, HttpEnds, HttpEnters, Lapses


def ip_client_chains(layout: Layout) -> Iterator[Chain]:
    bounds = layout.bounds
    for client in layout.ip_clients:
        for asked in layout.nodes:
            for handling in layout.nodes:
                yield _request(layout, client, "change", changes, asked, handling)
                if bounds.lapses or bounds.periods:
                    beats = beats_in_period if bounds.periods else beats_again
                    yield _request(layout, client, "beat", beats, asked, handling)
            if bounds.races:
                yield _enter(layout, client, asked)
        if bounds.lapses:
            yield _lapse(layout, client)
    for node in layout.nodes if bounds.ip_clients else ():
        if not layout.profile.hands_over:
            yield _announce(layout, node)
        if not bounds.periods:
            yield _beat_check(layout, node)
        if bounds.races:
            yield _finish(layout, node)


def _request(layout: Layout, client: str, kind: str, choices: Function, asked: str, handling: str) -> Chain:
    """The request arrives at `asked` and is answered by `handling`."""
    column = ip_column(client)
    draft = Draft(layout, f"http {kind}", f"{client} {asked} {handling}")
    draft.look(f"{client} cannot {kind} now", choices, (column, CLOCK), ("life", CLOCK, "event"))
    if asked == handling:
        draft.look("it is forwarded, or the node is down", layout.answers, (node_column(asked), "event"), ("event",))
    else:
        reads = (node_column(asked), "event")
        draft.look("it is not forwarded there", _forwards(layout, handling), reads, ("event",))
    draft.keep(node_column(handling), "before")
    draft.tell(handling, "event", "answer")
    draft.look("never", handled(bool(layout.bounds.periods)), (column, "life", "answer"), ("outcome",))
    draft.look("nothing comes of it", accepted, ("outcome", "before"), (column,))
    draft.alarm(_dropped, (node_column(handling), "event", "answer"))
    return draft.chain(
        lambda value: HttpAsks(asked, handling, value("event"), value("answer") or ""),  # type: ignore[arg-type]
        fair=Fairness.STRONG if kind == "beat" else Fairness.NONE,
    )


def changes(life: IpLife, clock: Clock) -> Sequence[Alternative]:
    """A registration that differs from all before it, or a deregistration of what is registered."""
    if not life.changes_left:
        return ()
    left, number = life.changes_left - 1, life.registrations + 1
    instance = f"{life.client.partition('#')[0]} v={number}"
    said = replace(life, changes_left=left, earlier=life.published, silence=0)
    new = replace(said, registrations=number, published=((SERVICE, instance),))
    registration = (new, clock, HttpReceived(0, life.client, HttpAction.REGISTER, SERVICE, instance))
    if not life.published:
        return (registration,)
    gone = replace(said, published=())
    return (registration, (gone, clock, HttpReceived(0, life.client, HttpAction.DEREGISTER, SERVICE, "")))


def beats_again(life: IpLife, clock: Clock) -> Sequence[Alternative]:
    """Without periods a beat matters only after a silence."""
    if not life.silence or not life.published:
        return ()
    return ((replace(life, silence=0, earlier=life.published), clock, _beat(life)),)


def beats_in_period(life: IpLife, clock: Clock) -> Sequence[Alternative]:
    done = clock.fired("done", beat_mark(life.client))
    if not life.published or done is None:
        return ()
    return ((replace(life, earlier=life.published), done, _beat(life)),)


def beat_mark(client: str) -> str:
    return f"beat {client}"


def _beat(life: IpLife) -> HttpReceived:
    return HttpReceived(0, life.client, HttpAction.BEAT, SERVICE, life.published[0][1])


@cache
def _forwards(layout: Layout, target: str) -> Function:
    def forwards(node: NodeState | None, event: HttpReceived) -> Sequence[Alternative]:
        outputs = () if node is None else step(node, event, layout.profile).outputs
        return ((replace(event, forwarded=True),),) if outputs == (Forward(target),) else ()

    return forwards


@cache
def handled(periods: bool) -> Function:
    def after(before: IpLife, wanted: IpLife, answer: Answer | None) -> Sequence[Alternative]:
        """What is refused is tried again; in a period the try itself counts."""
        if answer is not None and answer.result is CallResult.SUCCESS:
            return ((wanted,),)
        return ((before,),) if periods and wanted.published == before.published else ()

    return after


def accepted(life: IpLife, node: NodeState) -> Sequence[Alternative]:
    """Two nodes that accept different changes, neither knowing of the other's, fork the client: see INV-CLIENTACK."""
    held = node.client(life.client)
    content = () if held is None else tuple((service, text.removesuffix(UNHEALTHY)) for service, text in held.content)
    return ((life if content == life.earlier else replace(life, sure=False),),)


def _dropped(node: NodeState, event: HttpReceived, answer: Answer | None) -> Sequence[Alternative]:
    """A request that was answered with SUCCESS shows at once where it was handled."""
    if answer is None or answer.result is not CallResult.SUCCESS:
        return ((None,),)
    held = node.client(event.client)
    shown = None if held is None else dict(held.content).get(event.service)
    wanted = None if event.action is HttpAction.DEREGISTER else event.instance
    if shown == wanted or (shown is not None and event.action is HttpAction.BEAT):
        return ((None,),)
    what = f"{node.name} answered {event.client}, which {event.action}, and shows {shown}"
    return ((Finding("INV-CLIENTACK", what),),)


def _enter(layout: Layout, client: str, node: str) -> Chain:
    """The first request of a client is inside its owner, which has not created the client yet."""
    column = ip_column(client)
    draft = Draft(layout, "http enter", f"{client} {node}")
    draft.look(f"{client} cannot change now", changes, (column, CLOCK), (column, CLOCK, "request"))
    draft.look("no races are left", spent("races"), (BUDGET,), (BUDGET,))
    draft.look("it would not wait there", _enters(layout), (node_column(node), "request"), ("event",))
    draft.tell(node, "event")
    return draft.chain(lambda value: HttpEnters(node, value("request")), fair=Fairness.NONE)  # type: ignore[arg-type]


@cache
def _enters(layout: Layout) -> Function:
    def entered(node: NodeState | None, request: HttpReceived) -> Sequence[Alternative]:
        event = HttpEntered(0, request)
        return () if node is None or step(node, event, layout.profile).node == node else ((event,),)

    return entered


def _finish(layout: Layout, node: str) -> Chain:
    """Of two first requests at once, which is the client's last word is anybody's guess: nothing is claimed of it."""
    draft = Draft(layout, "http finish", node)
    draft.look("no request is inside", inside, (node_column(node),), ("event",))
    draft.tell(node, "event")
    for client in layout.ip_clients:
        draft.look("never", raced, (ip_column(client), "event"), (ip_column(client),))
    return draft.chain(lambda value: HttpEnds(node, value("event").request), fair=Fairness.STRONG)  # type: ignore[attr-defined]


def inside(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None else tuple((HttpFinished(0, request),) for request in node.entered)


def raced(life: IpLife, event: HttpFinished) -> Sequence[Alternative]:
    return ((replace(life, sure=False, silence=0) if event.request.client == life.client else life,),)


def _lapse(layout: Layout, client: str) -> Chain:
    """Nothing is heard of the client for longer than a time-out. Which nodes were told what meanwhile is left open."""
    draft = Draft(layout, "lapse", client)
    draft.look("it publishes nothing, or is long silent", silent, (ip_column(client),), (ip_column(client),))
    draft.look("no lapses are left", spent("lapses"), (BUDGET,), (BUDGET,))
    aged = _aged(client, layout.profile.beat_timeout_ms + 1)
    for node in layout.nodes:
        draft.look("never", aged, (node_column(node),), (node_column(node),))
    return draft.chain(lambda _: Lapses(client), fair=Fairness.NONE)


def silent(life: IpLife) -> Sequence[Alternative]:
    if not life.published or life.silence == 2:
        return ()
    return ((replace(life, silence=life.silence + 1, sure=False),),)


@cache
def _aged(client: str, by_ms: int) -> Function:
    def aged(node: NodeState | None) -> Sequence[Alternative]:
        held = None if node is None else node.client(client)
        if node is None or held is None:
            return ((node,),)
        beats = tuple((service, beat_ms - by_ms) for service, beat_ms in held.beats)
        return ((node.with_client(replace(held, beats=beats)),),)

    return aged


def _announce(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "announce", node)
    draft.look("no event waits", unannounced, (node_column(node),), ("event",))
    draft.tell(node, "event")
    return draft.chain(lambda value: AnnounceRuns(node, value("event").client), fair=Fairness.STRONG)  # type: ignore[attr-defined]


def unannounced(node: NodeState | None) -> Sequence[Alternative]:
    """They are handled in the order in which they were raised."""
    return () if node is None or not node.unannounced else ((AnnounceDue(0, node.unannounced[0]),),)


def _beat_check(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "beat check", node)
    draft.look("it would find nothing", layout.beat_check, (node_column(node),), ("event",))
    draft.tell(node, "event")
    return draft.chain(lambda _: BeatCheckRuns(node), fair=Fairness.STRONG)
