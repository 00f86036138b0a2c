"""Links as data: what is on its way from one node to another, and what the environment has in store for it.

A link is directed and carries requests; a reply belongs to the link of its request. Requests on one link are
delivered in the order in which they were sent. That is narrower than reality, where the receiver's thread pool may
reorder two requests (D3, B26): such runs are those of the bounded cluster, whose links can (`cluster/calls.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from distro_model.messages import Operation, Request, subject_of


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose sender has not heard of its end."""

    request: Request
    deadline_ms: int
    lost: bool = False  # it is gone: only the time-out is left


class Fate(StrEnum):
    """What happens to the next matching request."""

    DROP = "drop"
    SWALLOW = "swallow"


@dataclass(frozen=True, slots=True)
class Fault:
    """One armed fault. `operation` None matches every Distro request that the fate can meet, `client` None any."""

    fate: Fate
    operation: Operation | None
    client: str | None = None

    def matches(self, request: Request) -> bool:
        operation = request.operation
        if self.client is not None and subject_of(request) != self.client:
            return False
        if self.operation is not None:
            return operation is self.operation
        return operation is not Operation.REPORT and not (
            self.fate is Fate.SWALLOW and operation is Operation.SNAPSHOT  # there is no content to acknowledge with
        )


@dataclass(frozen=True, slots=True)
class Link:
    """One direction between two nodes. Cut and held are independent of each other; cut wins while both hold."""

    cut: bool = False
    held: bool = False
    calls: tuple[Call, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def is_clear(self) -> bool:
        return not self.cut and not self.held

    def with_calls(self, calls: tuple[Call, ...]) -> Link:
        return Link(self.cut, self.held, calls, self.faults)

    def with_call(self, call: Call) -> Link:
        """Behind the others. Reports stay behind everything else: no rule can tell, and fewer states differ."""
        if call.request.operation is Operation.REPORT:
            return self.with_calls((*self.calls, call))
        reports = [each for each in self.calls if each.request.operation is Operation.REPORT]
        return self.with_calls((*(each for each in self.calls if each not in reports), call, *reports))

    def without_call(self, call: Call) -> Link:
        """Without the first call that is equal to this one."""
        position = self.calls.index(call)
        return self.with_calls((*self.calls[:position], *self.calls[position + 1 :]))

    def fault_for(self, request: Request) -> Fault | None:
        """The fault armed first among those that match."""
        return next((fault for fault in self.faults if fault.matches(request)), None)

    def without_fault(self, fault: Fault) -> Link:
        position = self.faults.index(fault)
        return Link(self.cut, self.held, self.calls, (*self.faults[:position], *self.faults[position + 1 :]))
