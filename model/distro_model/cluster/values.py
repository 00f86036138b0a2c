"""The contents of a cluster's columns, besides the states of the nodes: links with the calls on them, and clients.

A `Life` is one client as the environment and the properties see it. Rules can read none of it; a search keeps all of
it, a clock only the home of each connected client (`statement.Does.RECORDS`).
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from distro_model.messages import Answer, Content, Operation, Request
from distro_model.value import value

COLLIDING_CONTENT: Content = (("web", "10.9.9.9:80 of another client"),)
COLLIDING_REVISION = 99
"""Content and revision of a CHANGE about another client with the same id (`accidents.py`). No owner reaches this
revision."""


class Phase(StrEnum):
    """The phase of a call. In all of them except ABANDONED its sender has not observed its end."""

    SENT = "on its way"
    HANDLED = "being applied"
    ANSWERED = "its reply is on its way"
    LOST = "lost"  # the request or its reply is lost: only the time-out is left
    REFUSED = "refused"  # there is no connection; the sender will receive a failure
    ABANDONED = "given up by its sender, still on its way"


@value(frozen=True, slots=True)
class Call:
    request: Request
    phase: Phase = Phase.SENT
    answer: Answer | None = None
    sent_as: Content | None = None
    """History, for INV-VERIFY: the content that the sender's client published when a VERIFY was sent."""
    deadline_ms: int = 0
    """The time at which its sender times out; 0 without a clock."""
    number: int = 0
    """The identity of the call; 0 where equal calls are not distinguished."""

    @property
    def is_report(self) -> bool:
        return self.request.operation is Operation.REPORT


@value(frozen=True, slots=True)
class Link:
    """Calls from one node to another, in the order in which they were sent; reports stay behind everything else.

    `down`: the target does not run. `cut`: no request passes. `half_open`: the connection is broken and its sender has
    not noticed, so that every call on it is lost. A crash at either end closes that connection.
    """

    down: bool = False
    calls: tuple[Call, ...] = ()
    half_open: bool = False
    cut: bool = False

    def with_call(self, call: Call) -> Link:
        phase = Phase.REFUSED if self.down or self.cut else Phase.LOST if self.half_open else call.phase
        call = call if phase is call.phase else replace(call, phase=phase)
        if call.is_report or not (self.calls and self.calls[-1].is_report):
            return Link(self.down, (*self.calls, call), self.half_open, self.cut)
        first = next(at for at, each in enumerate(self.calls) if each.is_report)
        return self.with_calls((*self.calls[:first], call, *self.calls[first:]))

    def with_calls(self, calls: tuple[Call, ...]) -> Link:
        return Link(self.down, calls, self.half_open, self.cut)  # not `replace`: a simulation calls this often

    def without(self, position: int) -> Link:
        calls = self.calls
        left = () if len(calls) == 1 else (*calls[:position], *calls[position + 1 :])
        return Link(self.down, left, self.half_open, self.cut)

    def with_phase(self, call: Call, phase: Phase, answer: Answer | None = None) -> Link:
        """The first of the calls that equal this one has reached this phase."""
        at = self.calls.index(call)
        after = Call(call.request, phase, answer, call.sent_as, call.deadline_ms, call.number)
        calls = (*self.calls[:at], after, *self.calls[at + 1 :])
        return Link(self.down, calls, self.half_open, self.cut)

    def refused(self) -> Link:
        """The connection ends: every call on it fails, and abandoned requests never arrive."""
        calls = tuple(
            Call(each.request, Phase.REFUSED, None, each.sent_as, each.deadline_ms, each.number)
            for each in self.calls
            if each.phase is not Phase.ABANDONED
        )
        return Link(self.down, calls, False, self.cut)


class Connection(StrEnum):
    NEW = "not connected yet"
    OPENING = "about to be connected"
    OPEN = "connected"
    ENDED = "gone"


@value(frozen=True, slots=True)
class Life:
    """One client, and every content that it had so far; the index is the number of changes."""

    client: str
    home: str
    contents: tuple[Content, ...]
    changes_left: int
    address: str
    """The instance that it publishes. Two clients with one address are two connections of one process."""
    connection: Connection = Connection.NEW
    left_cleanly: bool = False
    """It disconnected, and since then no node has crashed and no DELETE of it was swallowed: otherwise only the lease
    can remove its copies. The end of a connection that was still being set up is not reported either."""
    silent: bool = False
    """It sends nothing any more and does not answer, though its connection is open."""
    ended_period: int = 0
    """The period in which its connection ended; 0 while it is open, and without periods."""
    acknowledged: Content = ()
    """The content acknowledged to the client: all its requests that were answered with success."""
    unlisted: tuple[str, ...] = ()
    """Nodes that the list of another node has lacked: the owner of a client need not renew their copies of it."""

    @property
    def is_up(self) -> bool:
        """Its transport is open, whether or not its node knows the connection."""
        return self.connection in (Connection.OPEN, Connection.OPENING)

    @property
    def acts(self) -> bool:
        return self.connection is Connection.OPEN and not self.silent

    def ended(self, period: int) -> Life:
        """Its connection ends, and its node observes it. The end of a connection that was never inserted is not
        reported."""
        cleanly = self.connection is Connection.OPEN
        return replace(self, connection=Connection.ENDED, silent=False, left_cleanly=cleanly, ended_period=period)


@value(frozen=True, slots=True)
class IpLife:
    """One ip:port client as the environment and the properties see it."""

    client: str
    changes_left: int
    registrations: int = 0
    published: Content = ()
    """The content that was last acknowledged as registered."""
    earlier: Content = ()
    """The content that it replaced; a node that accepts a change should have held this."""
    silence: int = 0
    """0: its beats go on; 1: silent for longer than one time-out; 2: than both."""
    ended_at: str = ""
    """The node that handled its deregistration, while it publishes nothing."""
    sure: bool = True
    """There was no crash, silence, change of members or fork: every node must eventually show the acknowledged
    content."""
    unlisted: tuple[str, ...] = ()
    """As in a `Life`."""


def address_of(client: str) -> str:
    """The content that the client c1, c2, … publishes, without the version that each change adds."""
    return f"10.0.0.{client[1:]}:80"
