"""What goes on inside one node: its local events, and requests and set-ups that take two steps.

All of it is instantaneous unless a bound asks: `event_queue` lets local events wait, `lost_events` lets one vanish,
`slow_requests` and `slow_setups` let other things happen while a client's request or connection is half handled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from distro_model.actions import Connect, Deregister, Register
from distro_model.bounded.clients import SERVICE, after_request, heard
from distro_model.bounded.draft import BUDGET, Draft, Function, Layout, client_column, node_column
from distro_model.bounded.nodes import spent
from distro_model.bounded.values import Connection, Life
from distro_model.events import (
    InstanceDeregistered,
    InstanceRegistered,
    InstanceRequest,
    LocalEventDue,
    RequestFinished,
    RequestStarted,
    SetupFinished,
    SetupStarted,
)
from distro_model.local_events import IndexEntryDue, LocalEvent
from distro_model.messages import Answer, CallResult
from distro_model.node import NodeState
from distro_model.rules.notify import first_events
from distro_model.search.system import Alternative, Chain, Fairness
from distro_model.transitions import (
    AnswersEarly,
    FinishesRequest,
    FinishesSetup,
    HandlesEvent,
    InsideNode,
    LosesEvent,
    StartsRequest,
    StartsSetup,
)


def inside_chains(layout: Layout) -> Iterator[Chain]:
    """All that the bounds allow, for each node and each client."""
    bounds = layout.bounds
    for node in layout.nodes:
        if bounds.event_queue:
            yield _event(layout, node)
        if bounds.lost_events:
            yield _lost_event(layout, node)
    for client in layout.clients:
        here = _AtHome(layout, client)
        if bounds.slow_setups:
            yield from (here.start_setup(), here.early_request(), here.finish_setup())
        if bounds.slow_requests:
            yield from (here.start_request(), here.finish_request())


def _event(layout: Layout, node: str) -> Chain:
    """The first event of any queue is handled: the queues have a thread each."""

    def due(state: NodeState | None) -> Sequence[Alternative]:
        first = () if state is None else first_events(state, layout.profile)
        return tuple((LocalEventDue(0, event),) for event in first)

    draft = Draft(layout, "event", node)
    draft.look("no event waits", due, (node_column(node),), ("event",))
    draft.tell(node, "event")
    return draft.chain(_says(HandlesEvent, node), fair=Fairness.STRONG)


def _lost_event(layout: Layout, node: str) -> Chain:
    """A subscriber raises, or a thread stops: the event is gone. What Distro has to hear is left to anti-entropy."""

    def lost(state: NodeState | None) -> Sequence[Alternative]:
        first = () if state is None else first_events(state, layout.profile)
        return tuple((_without(state, event), LocalEventDue(0, event)) for event in first if _is_for_lists(event))

    draft = Draft(layout, "lose event", node)
    draft.look("no lost_events are left", spent("lost_events"), (BUDGET,), (BUDGET,))
    draft.look("no event for the lists waits", lost, (node_column(node),), (node_column(node), "event"))
    return draft.chain(_says(LosesEvent, node), fair=Fairness.NONE)


def _is_for_lists(event: LocalEvent) -> bool:
    return event.queue != "client events" and not isinstance(event, IndexEntryDue)


def _without(state: NodeState | None, event: LocalEvent) -> NodeState:
    assert state is not None  # it has an event
    left = list(state.local.events)
    left.remove(event)
    return replace(state, local=replace(state.local, events=tuple(left)))


@dataclass(frozen=True)
class _AtHome:
    """The chains of one client at the node that it connects to."""

    layout: Layout
    client: str

    @property
    def home(self) -> str:
        return self.layout.bounds.home(self.layout.clients.index(self.client))

    def draft(self, kind: str, choices: Function, reads: Sequence[str], budget: str | None = None) -> Draft:
        """A chain that begins with a choice of the client: its life after it, and the event for its node."""
        draft = Draft(self.layout, kind, self.client)
        if budget is not None:
            draft.look(f"no {budget} are left", spent(budget), (BUDGET,), (BUDGET,))
        column = client_column(self.client)
        draft.look(f"{self.client} cannot {kind} now", choices, reads, (column, "event", "about"))
        draft.tell(self.home, "event", "answer")
        return draft

    def chain(self, draft: Draft, label: type[InsideNode], *, fair: Fairness) -> Chain:
        return draft.chain(lambda value: label(self.home, value("about")), fair=fair)

    def start_setup(self) -> Chain:
        draft = self.draft("start set-up", starts_setup, (client_column(self.client),), "slow_setups")
        return self.chain(draft, StartsSetup, fair=Fairness.NONE)

    def early_request(self) -> Chain:
        """A request on a connection that its node does not know yet. Where it is refused, nothing has happened."""
        draft = self.draft("request early", requests_early, (client_column(self.client),))
        column = client_column(self.client)
        draft.look("never", _request_in, ("event",), ("request",))
        draft.look("never", heard_early, (column, "request", "answer"), (column,))
        return draft.chain(lambda value: AnswersEarly(self.home, _answered(value)), fair=Fairness.NONE)

    def finish_setup(self) -> Chain:
        columns = (client_column(self.client), node_column(self.home))
        return self.chain(self.draft("finish set-up", finishes_setup, columns), FinishesSetup, fair=Fairness.STRONG)

    def start_request(self) -> Chain:
        column = client_column(self.client)
        draft = self.draft("start request", starts_request, (column,), "slow_requests")
        draft.look("never", _request_in, ("event",), ("request",))
        draft.look("never", heard, (column, "request", "answer"), (column,))
        return self.chain(draft, StartsRequest, fair=Fairness.NONE)

    def finish_request(self) -> Chain:
        column = client_column(self.client)
        draft = self.draft("finish request", finishes_request, (column, node_column(self.home)))
        draft.look("never", _request_in, ("event",), ("request",))
        draft.look("never", recorded, (column, "request", "answer"), (column,))
        draft.look("never", heard, (column, "request", "answer"), (column,))
        return self.chain(draft, FinishesRequest, fair=Fairness.STRONG)


def starts_setup(life: Life) -> Sequence[Alternative]:
    if life.connection is not Connection.NEW:
        return ()
    after = replace(life, connection=Connection.OPENING)
    return ((after, SetupStarted(0, life.client), Connect(life.client, life.home)),)


def finishes_setup(life: Life, node: NodeState | None) -> Sequence[Alternative]:
    """The node goes on, whether or not there still is somebody at the other end."""
    if node is None or life.client not in dict(node.local.setups):
        return ()
    connection = Connection.OPEN if life.connection is Connection.OPENING else life.connection
    after = replace(life, connection=connection)
    return ((after, SetupFinished(0, life.client), Connect(life.client, life.home)),)


def requests_early(life: Life) -> Sequence[Alternative]:
    if life.connection is not Connection.OPENING or not life.changes_left:
        return ()
    request = InstanceRegistered(0, life.client, SERVICE, _instance(life, "early"))
    return ((life, request, _action(request)),)


def heard_early(life: Life, request: InstanceRequest, answer: Answer | None) -> Sequence[Alternative]:
    """A client that is refused asks again when it is connected; one that is told SUCCESS has had its change."""
    if answer is None or answer.result is not CallResult.SUCCESS:
        return ((life,),)
    return heard(replace(life, changes_left=life.changes_left - 1), request, answer)


def starts_request(life: Life) -> Sequence[Alternative]:
    if not life.acts or not life.changes_left:
        return ()
    after = replace(life, changes_left=life.changes_left - 1)
    requests: list[InstanceRequest] = [InstanceRegistered(0, life.client, SERVICE, _instance(life, "slow"))]
    if life.contents[-1]:
        requests.append(InstanceDeregistered(0, life.client, SERVICE))
    return tuple((after, RequestStarted(0, request), _action(request)) for request in requests)


def finishes_request(life: Life, node: NodeState | None) -> Sequence[Alternative]:
    pending = () if node is None else node.local.requests
    return tuple(
        (life, RequestFinished(0, request), _action(request)) for request in pending if request.client == life.client
    )


def recorded(life: Life, request: InstanceRequest, answer: Answer | None) -> Sequence[Alternative]:
    """What the client publishes has changed at its node, if its request was carried out while it was there."""
    if answer is None or answer.result is not CallResult.SUCCESS or life.connection is not Connection.OPEN:
        return ((life,),)
    return ((replace(life, contents=(*life.contents, after_request(life.contents[-1], request))),),)


def _request_in(event: InstanceRequest | RequestStarted | RequestFinished) -> Sequence[Alternative]:
    return ((event.request if isinstance(event, RequestStarted | RequestFinished) else event,),)


def _instance(life: Life, how: str) -> str:
    return f"{life.address} v={len(life.contents)} {how}"


def _action(request: InstanceRequest) -> Register | Deregister:
    if isinstance(request, InstanceRegistered):
        return Register(request.client, request.service, request.instance)
    return Deregister(request.client, request.service)


def _answered(value: Callable[[str], object]) -> str:
    answer = value("answer")
    assert isinstance(answer, Answer)  # a rule for a request always answers
    return f"{value('about')}: {answer.result}"


def _says(label: type[InsideNode], node: str) -> Callable[[Callable[[str], object]], object]:
    def says(value: Callable[[str], object]) -> object:
        event = value("event")
        assert isinstance(event, LocalEventDue)
        return label(node, event.event)

    return says
