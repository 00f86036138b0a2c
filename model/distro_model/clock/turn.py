"""A turn: one action being carried out on a cluster.

Cluster states are immutable; a turn is the short-lived mutable copy of their columns (one entry per node, one per
link) in which an action and everything that follows from it at once are worked out: a request that nothing holds is
delivered and answered at once. The bounded cluster uses it where links are perfect (`properties/checks.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from distro_model.clock.network import Call, Fate, Link
from distro_model.events import CallEnded, Event, Reply, RequestReceived, Send
from distro_model.messages import (
    SUCCESS,
    TIMEOUT,
    UNREACHABLE,
    Answer,
    CallResult,
    Operation,
    Request,
    revision_of,
    subject_of,
)
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.step import step


class Traffic(NamedTuple):
    """One finished Distro call (no reports), as its sender saw it end. A tuple, because long runs count thousands."""

    source: str
    target: str
    operation: Operation
    client: str | None
    revision: int | None
    outcome: CallResult

    @property
    def is_seen(self) -> bool:
        """Somebody besides the sender can know of it: with no connection to send it on, a request is seen by nobody."""
        return self.outcome is not CallResult.UNREACHABLE

    def __str__(self) -> str:
        about = "" if self.client is None else f" {self.client}"
        revision = "" if self.revision is None else f" revision {self.revision}"
        return f"{self.operation} {self.source}->{self.target}{about}{revision}: {self.outcome}"


@dataclass(frozen=True)
class Plan:
    """What never changes in a run: the names of the nodes, ascending, and the profile that they follow."""

    names: tuple[str, ...]
    profile: Profile

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All links, as (source, target) positions."""
        size = range(len(self.names))
        return tuple((source, target) for source in size for target in size if source != target)


class Turn:
    """Mutable columns of one cluster; `link(source, target)` is `links[source * size + target]`."""

    __slots__ = ("links", "nodes", "now_ms", "plan", "size", "traffic")

    def __init__(
        self,
        plan: Plan,
        now_ms: int,
        nodes: tuple[NodeState | None, ...],
        links: tuple[Link, ...],
        traffic: tuple[Traffic, ...] = (),
    ) -> None:
        self.plan = plan
        self.size = len(plan.names)
        self.now_ms = now_ms
        self.nodes = list(nodes)
        self.links = list(links)
        self.traffic = list(traffic)

    def fork(self) -> Turn:
        return Turn(self.plan, self.now_ms, tuple(self.nodes), tuple(self.links), tuple(self.traffic))

    def tell(self, position: int, event: Event) -> Answer | None:
        """One input to one node, and everything that it says at once. A node that is down hears nothing."""
        node = self.nodes[position]
        if node is None:
            return None
        result = step(node, event, self.plan.profile)
        self.nodes[position] = result.node
        answer = None
        for output in result.outputs:
            match output:
                case Send(target, request):
                    self.send(position, self.plan.index[target], request)
                case Reply(said):
                    answer = said
        return answer

    def send(self, source: int, target: int, request: Request) -> None:
        """What becomes of a request is decided in this order: cut or node down, armed fault, held, delivered."""
        at = source * self.size + target
        link = self.links[at]
        fault = link.fault_for(request) if link.faults else None
        if link.cut or self.nodes[target] is None:  # there is no connection to send it on
            self.ended(source, target, request, UNREACHABLE)
        elif fault is not None:
            self.links[at] = link.without_fault(fault)
            if fault.fate is Fate.SWALLOW:
                self.ended(source, target, request, SUCCESS)
            else:
                self.links[at] = self.links[at].with_call(self._call(request, lost=True))
        elif link.held:
            self.links[at] = link.with_call(self._call(request, lost=False))
        else:
            self._exchange(source, target, request)

    def deliver(self, source: int, target: int, call: Call) -> None:
        """A request on its way arrives and is answered."""
        self._take(source, target, call)
        self._exchange(source, target, call.request)

    def time_out(self, source: int, target: int, call: Call) -> None:
        self._take(source, target, call)
        self.ended(source, target, call.request, TIMEOUT)

    def refuse_all(self, source: int, target: int) -> None:
        """The connection ends, and with it everything that waits for a reply, lost requests too."""
        at = source * self.size + target
        calls = self.links[at].calls
        self.links[at] = self.links[at].with_calls(())
        for call in calls:
            self.ended(source, target, call.request, UNREACHABLE)

    def ended(self, source: int, target: int, request: Request, answer: Answer) -> None:
        """The sender learns how its call ended."""
        names = self.plan.names
        if request.operation is not Operation.REPORT:
            self.traffic.append(
                Traffic(
                    names[source],
                    names[target],
                    request.operation,
                    subject_of(request),
                    revision_of(request),
                    answer.result,
                )
            )
        self.tell(source, CallEnded(self.now_ms, names[target], request, answer))

    def _exchange(self, source: int, target: int, request: Request) -> None:
        answer = self.tell(target, RequestReceived(self.now_ms, self.plan.names[source], request))
        self.ended(source, target, request, UNREACHABLE if answer is None else answer)

    def _take(self, source: int, target: int, call: Call) -> None:
        at = source * self.size + target
        self.links[at] = self.links[at].without_call(call)

    def _call(self, request: Request, *, lost: bool) -> Call:
        profile = self.plan.profile
        wait_ms = profile.load_timeout_ms if request.operation is Operation.SNAPSHOT else profile.call_timeout_ms
        return Call(request, self.now_ms + wait_ms, lost)
