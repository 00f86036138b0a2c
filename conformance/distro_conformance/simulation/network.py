"""Links of a simulated cluster and the calls on them: what becomes of a request, when, and in which rows it shows.

The same four things can happen to a request as on a `wire.links.Link` and on a link of the model: cut, held,
dropped, swallowed, and it meets them in the same order. The model's link is a value, because a search compares states;
a simulation has one state and many calls, so here a call is an object that knows whether it has ended. Requests and
replies take a few milliseconds; requests on one link do not overtake each other, replies may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from distro_conformance.simulation.agenda import Agenda
from distro_conformance.simulation.journal import SimulationJournal, content_of
from distro_model.actions import Cut, Drop, Fault, Heal, Hold, LinkAction, Release, Swallow
from distro_model.clock import matches
from distro_model.messages import SUCCESS, TIMEOUT, UNREACHABLE, Answer, Operation, Request
from distro_model.profiles import Profile


@dataclass(slots=True, eq=False)
class Call:
    """One request and what became of it. `message` is the id that its rows share; a report has no rows and no id."""

    source: int
    target: int
    request: Request
    deadline_ms: int
    message: str | None
    digest: str | None
    ended: bool = False


@dataclass(slots=True, eq=False)
class Link:
    """One direction between two nodes."""

    cut: bool = False
    held: bool = False
    armed: list[Fault] = field(default_factory=list)
    calls: dict[Call, None] = field(default_factory=dict)  # those that have not ended, in order of sending
    waiting: list[Call] = field(default_factory=list)  # those that the hold keeps back
    last_arrival_ms: int = -1
    last_tie: float = 0.0

    def fault_for(self, request: Request) -> Fault | None:
        """The fault armed first among those that match; it is spent on this request."""
        for fault in self.armed:
            if matches(fault, request):
                self.armed.remove(fault)
                return fault
        return None


class Network:
    """All links between nodes, given by their positions in `names`, and which nodes they find up.

    `receive` hands a request to its target and returns the answer; `hear` tells a sender how its call ended.
    """

    def __init__(
        self,
        names: Sequence[str],
        profile: Profile,
        agenda: Agenda,
        journal: SimulationJournal,
        receive: Callable[[Call], Answer | None],
        hear: Callable[[Call, Answer], None],
        *,
        latency_ms: int,
    ) -> None:
        """A message takes a whole number of milliseconds below `latency_ms`, or none if that is 0."""
        size = range(len(names))
        self.up = [False for _ in names]
        self._links = {(source, target): Link() for source in size for target in size if source != target}
        self._names, self._profile, self._agenda, self._journal = names, profile, agenda, journal
        self._receive, self._hear = receive, hear
        self._latency_ms = latency_ms

    # Calls

    def send(self, source: int, target: int, request: Request) -> None:
        """As on the model's clock: cut or node down, armed fault, held, delivered, in this order."""
        link, now_ms = self._links[source, target], self._agenda.now_ms
        operation, message = request.operation, None
        is_load = operation is Operation.SNAPSHOT
        if operation is not Operation.REPORT:
            message = self._journal.new_message()
        wait_ms = self._profile.load_timeout_ms if is_load else self._profile.call_timeout_ms
        call = Call(source, target, request, now_ms + wait_ms, message, content_of(request))
        if message is not None:
            self._journal.sent(now_ms, call)
        link.calls[call] = None
        if link.cut or not self.up[target]:
            self._end(call, UNREACHABLE)
        elif (fault := link.fault_for(request)) and isinstance(fault, Swallow):
            self._answer(call, SUCCESS)
        elif fault:
            self._agenda.at(call.deadline_ms, self._end, call, TIMEOUT)
        elif link.held:
            link.waiting.append(call)
            self._agenda.at(call.deadline_ms, self._end, call, TIMEOUT)
        else:
            self._carry(link, call)

    def source_gone(self, position: int) -> None:
        """The node crashed: what it waited for is nobody's business any more, and what it sent vanishes."""
        self.up[position] = False
        for (source, _), link in self._links.items():
            if source == position:
                for call in link.calls:
                    call.ended = True
                link.calls.clear()

    def target_gone(self, position: int) -> None:
        """Every connection to the node ends."""
        for (_, target), link in self._links.items():
            if target == position:
                self._refuse_all(link)

    def _carry(self, link: Link, call: Call) -> None:
        """It arrives after its latency, and not before what was sent earlier on this link."""
        agenda = self._agenda
        at_ms, tie = agenda.now_ms + int(agenda.draw() * self._latency_ms), agenda.draw()
        if at_ms <= link.last_arrival_ms:
            at_ms, tie = link.last_arrival_ms, link.last_tie
        elif at_ms == agenda.now_ms:
            self._deliver(call)
            return
        link.last_arrival_ms, link.last_tie = at_ms, tie
        agenda.in_turn(at_ms, tie, self._deliver, call)

    def _deliver(self, call: Call) -> None:
        if call.ended:
            return
        if call.message is not None:
            self._journal.received(self._agenda.now_ms, call)
        answer = self._receive(call)
        if answer is not None:
            self.reply(call, answer)

    def reply(self, call: Call, answer: Answer) -> None:
        """The target has handled the request; of a CHANGE that is applied in parts that is later than its arrival."""
        if call.message is not None:
            self._journal.replied(self._agenda.now_ms, call, answer.result)
        self._answer(call, answer)

    def _answer(self, call: Call, answer: Answer) -> None:
        latency_ms = int(self._agenda.draw() * self._latency_ms)
        if latency_ms:
            self._agenda.at(self._agenda.now_ms + latency_ms, self._end, call, answer)
        else:
            self._end(call, answer)

    def _end(self, call: Call, answer: Answer) -> None:
        """The sender learns how its call ended, once."""
        if call.ended:
            return
        call.ended = True
        del self._links[call.source, call.target].calls[call]
        if call.message is not None:
            self._journal.ended(self._agenda.now_ms, call, answer.result)
        self._hear(call, answer)

    def _refuse_all(self, link: Link) -> None:
        for call in tuple(link.calls):
            self._end(call, UNREACHABLE)

    # Faults

    def change(self, action: LinkAction, source: int, target: int) -> None:
        """Do it; a cut of a link that is cut, and the like, is ignored."""
        link = self._links[source, target]
        match action:
            case Cut() if not link.cut:
                self._write(source, target, "cut")
                link.cut = True
                self._refuse_all(link)
            case Heal() if link.cut:
                self._write(source, target, "healed")
                link.cut = False
            case Hold() if not link.held:
                self._write(source, target, "held")
                link.held = True
            case Release() if link.held:
                self._write(source, target, "released")
                self._release(link)
            case Drop() | Swallow():
                words = (action.verb, action.operation or "any", action.client or "")
                self._write(source, target, " ".join(words).rstrip())
                link.armed.append(action)
            case _:
                pass

    def heal(self) -> None:
        """Every link is whole again, and no fault waits for its request any more."""
        for (source, target), link in self._links.items():
            if link.held:
                self._write(source, target, "released")
                self._release(link)
            if link.cut or link.armed:
                self._write(source, target, "healed")
                link.cut = False
                link.armed.clear()

    def _release(self, link: Link) -> None:
        link.held = False
        waiting, link.waiting = link.waiting, []
        for call in waiting:
            if not call.ended:
                self._carry(link, call)

    def _write(self, source: int, target: int, what: str) -> None:
        self._journal.fault(self._agenda.now_ms, self._names[source], self._names[target], what)
