"""What the columns of a bounded cluster hold, besides the states of the nodes.

`Link` is one direction between two nodes, `Life` one client as the environment and the properties see it (ghost state
that no rule can read), `Budget` what the environment may still do, `Clock` how many periods have passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from distro_model.messages import Answer, Content, Request

STRAY_CONTENT: Content = (("web", "10.9.9.9:80 of somebody else"),)
STRAY_REVISION = 99
"""What a stray CHANGE says (`accidents.py`); no owner ever comes so far."""


class Phase(StrEnum):
    """Where one call is. Its sender has not heard of its end in any of these, except ABANDONED."""

    SENT = "on its way"
    HANDLED = "being applied"
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
    """Calls from one node to another, in the order in which they were sent. `down`: the target does not run.

    `half_open`: the connection is broken and its sender has not noticed, so that every call on it is lost. A crash at
    either end makes an end of that connection.
    """

    down: bool = False
    calls: tuple[Call, ...] = ()
    half_open: bool = False

    def with_call(self, call: Call) -> Link:
        phase = Phase.REFUSED if self.down else Phase.LOST if self.half_open else call.phase
        return replace(self, calls=(*self.calls, replace(call, phase=phase)))

    def without(self, position: int) -> Link:
        return replace(self, calls=(*self.calls[:position], *self.calls[position + 1 :]))

    def changed(self, position: int, call: Call) -> Link:
        return replace(self, calls=(*self.calls[:position], call, *self.calls[position + 1 :]))


class Connection(StrEnum):
    NEW = "not connected yet"
    OPENING = "about to be connected"
    OPEN = "connected"
    ENDED = "gone"


@dataclass(frozen=True, slots=True)
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
    """It disconnected, and since then no node has crashed and no DELETE of it was swallowed: the cases in which nothing
    but the lease could remove its copies."""
    silent: bool = False
    """It does nothing any more and answers nothing, though its connection is open."""
    ended_period: int = 0
    """The period in which its connection ended; 0 while it is open, and without periods."""
    acknowledged: Content = ()
    """What it publishes as far as it was told: all its requests that were answered with success."""

    @property
    def is_up(self) -> bool:
        """Its transport is open, whatever its node knows of it."""
        return self.connection in (Connection.OPEN, Connection.OPENING)

    @property
    def acts(self) -> bool:
        return self.connection is Connection.OPEN and not self.silent

    def ended(self, period: int) -> Life:
        """Its connection ends, and its node knows it."""
        return replace(self, connection=Connection.ENDED, silent=False, left_cleanly=True, ended_period=period)


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
    raises: int = 0
    strays: int = 0
    pauses: int = 0
    batches: int = 0
    silences: int = 0
    idle_spells: int = 0
    half_open: int = 0
    operator_changes: int = 0
    lost_events: int = 0
    slow_requests: int = 0
    slow_setups: int = 0
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
    loaded: tuple[str, ...] = ()
    slept: tuple[str, ...] = ()
    """Who has slept since its last lease check."""

    def fired(self, timer: str, who: str) -> Clock | None:
        """After `who` has fired this timer, the name of a field above; None when it had before in this period."""
        already: tuple[str, ...] = getattr(self, timer)
        after: dict[str, Any] = {timer: tuple(sorted((*already, who)))}
        return None if who in already else replace(self, **after)


def address_of(client: str) -> str:
    """What the client c1, c2, … publishes, without the version that each change adds."""
    return f"10.0.0.{client[1:]}:80"
