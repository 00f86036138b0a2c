"""What the columns of a bounded cluster hold, besides the states of the nodes.

`Link` is one direction between two nodes, `Life` one client as the environment and the properties see it (ghost state
that no rule can read), `Budget` what the environment may still do, `Clock` how many periods have passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from distro_model.messages import Answer, Content, Request


class Phase(StrEnum):
    """Where one call is. Its sender has not heard of its end in any of these, except ABANDONED."""

    SENT = "on its way"
    ANSWERED = "its reply is on its way"
    LOST = "lost"  # it or its reply: only the time-out is left
    REFUSED = "refused"  # there is no connection; the sender will be told
    ABANDONED = "given up by its sender, still on its way"


@dataclass(frozen=True, slots=True)
class Call:
    request: Request
    phase: Phase = Phase.SENT
    answer: Answer | None = None
    sent_as: Content | None = None
    """Ghost, for INV-VERIFY: what the sender's client published when a VERIFY was sent."""


@dataclass(frozen=True, slots=True)
class Link:
    """Calls from one node to another, in the order in which they were sent. `down`: the target does not run."""

    down: bool = False
    calls: tuple[Call, ...] = ()

    def with_call(self, call: Call) -> Link:
        return Link(self.down, (*self.calls, replace(call, phase=Phase.REFUSED) if self.down else call))

    def without(self, position: int) -> Link:
        return Link(self.down, (*self.calls[:position], *self.calls[position + 1 :]))

    def changed(self, position: int, call: Call) -> Link:
        return Link(self.down, (*self.calls[:position], call, *self.calls[position + 1 :]))


class Connection(StrEnum):
    NEW = "not connected yet"
    OPEN = "connected"
    ENDED = "gone"


@dataclass(frozen=True, slots=True)
class Life:
    """One client, and every content that it had so far; the index is the number of changes."""

    client: str
    home: str
    contents: tuple[Content, ...]
    changes_left: int
    connection: Connection = Connection.NEW
    left_cleanly: bool = False
    """It disconnected, and since then no node has crashed and no DELETE of it was swallowed: the cases in which nothing
    but the lease could remove its copies."""
    ended_period: int = 0
    """The period in which its connection ended; 0 while it is open, and without periods."""


@dataclass(frozen=True, slots=True)
class IpLife:
    """One ip:port client as the environment and the properties see it."""

    client: str
    changes_left: int
    registrations: int = 0
    published: Content = ()
    """What it was last told to be registered."""
    earlier: Content = ()
    """What that replaced; whoever accepts a change should have held this."""
    silence: int = 0
    """0: its beats go on; 1: silent for longer than one time-out; 2: than both."""
    sure: bool = True
    """No crash, silence, change of members or fork: everybody must in the end show what it was told."""
    left_to_lease: bool = False
    """Something was lost that nothing but the lease could make good, or an owner began to count its silence anew."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the environment may still do; the fields are those of `Bounds`."""

    crashes: int = 0
    drops: int = 0
    lost_replies: int = 0
    swallows: int = 0
    late_replies: int = 0
    reorders: int = 0
    duplicates: int = 0
    delays: int = 0
    garbles: int = 0
    pauses: int = 0
    flips: int = 0
    leaves: int = 0
    joins: int = 0
    refreshes: int = 0
    lapses: int = 0
    races: int = 0

    def less(self, name: str) -> Budget | None:
        """One less of `name`; None when there is none left."""
        left: int = getattr(self, name)
        return replace(self, **{name: left - 1}) if left else None


@dataclass(frozen=True, slots=True)
class Clock:
    """Periods passed, and who has fired which timer in this one (positions of nodes). Constant without periods."""

    period: int = 0
    verified: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    done: tuple[str, ...] = ()  # by clients
