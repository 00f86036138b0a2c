"""Holds and faults: decisions about the requests of a link before they are sent, and the fault that each request meets.

The link itself, with the calls that wait on it, is a column of the cluster (`cluster/values.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from distro_model.actions import Fault
from distro_model.cluster.values import Call
from distro_model.messages import Operation, Request, subject_of


@dataclass(frozen=True, slots=True)
class Wire:
    """The decisions of the run about the requests of one link, by its position."""

    held: bool = False
    faults: tuple[Fault, ...] = ()
    reports_pass: bool = False
    """Whether the link is held in any way."""
    refuses: bool = False
    """Requests that arrive are answered with a failure."""
    faults_met: tuple[tuple[Call, Fault], ...] = ()
    """Calls that have met a fault and have not arrived yet, each with that fault."""

    @property
    def holds_reports(self) -> bool:
        return self.held and not self.reports_pass

    def keeps(self, request: Request) -> bool:
        return self.holds_reports or (self.held and request.operation is not Operation.REPORT)

    def fault_for(self, request: Request) -> Fault | None:
        """The fault armed first among those that match."""
        return next((fault for fault in self.faults if fault.matches(request.operation, subject_of(request))), None)

    def without(self, fault: Fault) -> Wire:
        position = self.faults.index(fault)
        return replace(self, faults=(*self.faults[:position], *self.faults[position + 1 :]))

    def fault_met_by(self, call: Call) -> Fault | None:
        """The fault that this call has met."""
        return next((fault for each, fault in self.faults_met if each == call), None)

    def with_fault_met(self, call: Call, fault: Fault, calls: tuple[Call, ...]) -> Wire:
        """With the fault that this call has met. The faults of calls that are no longer among `calls`, those on the
        link, are dropped."""
        return replace(self, faults_met=(*(each for each in self.faults_met if each[0] in calls), (call, fault)))

    def without_fault_met(self, call: Call) -> Wire:
        return replace(self, faults_met=tuple(each for each in self.faults_met if each[0] != call))
