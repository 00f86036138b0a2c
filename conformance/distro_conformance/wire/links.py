"""A directed link between two members, and what may happen to a message on it.

One class decides (deliver, hold, drop, swallow, cut) and reports; how a message gets to it is somebody else's
matter: an embedded node carries its requests over it, and a forwarder on a real socket stands in front of a real
server. So a fault means the same on every target. Cut and hold concern everything that travels; drop and swallow the
next Distro request only, since those are the ones whose loss the protocol must survive. A request meets them in this
order: cut, drop or swallow, hold, delivery. design.md section 5.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal, Protocol

import grpc.aio

from distro_conformance.wire.messages import DISTRO_REQUEST, DISTRO_RESPONSE, DistroCall, outcome_of, read_request
from distro_impl import Clock, SystemClock
from distro_impl.clocks.clock import Waiting
from distro_impl.transport.transport import Forward, PeerLink
from distro_protos import Message, Payload, decode, encode
from distro_traces.event import Outcome

_ALWAYS_DELIVERED = frozenset({"ServerCheckRequest", "HealthCheckRequest"})
"""Set-up of a connection: a held link holds the traffic, a cut one lets nothing through at all."""


_ACKNOWLEDGED = frozenset({"CHANGE", "ADD", "DELETE", "VERIFY"})
"""Operations whose reply says nothing but that they arrived; only those can be answered by somebody else."""


class LinkCutError(ConnectionError):
    """The link is cut: the sender finds its peer unreachable."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A Distro request on a link: who sends what to whom, under an id that its four trace rows share."""

    id: str
    source: str
    target: str
    call: DistroCall


class Journal(Protocol):
    """Hears of every Distro call on a link, in the order in which things happen. See `recording.py`."""

    def new_id(self) -> str: ...
    def sent(self, carried: Carried) -> None: ...
    def received(self, carried: Carried) -> None: ...
    def replied(self, carried: Carried, outcome: Outcome, reply: Message) -> None: ...
    def ended(self, carried: Carried, outcome: Outcome) -> None: ...
    def fault(self, source: str, target: str, what: str) -> None: ...


_Fate = Literal["drop", "swallow"]


@dataclass(frozen=True, slots=True)
class _Armed:
    """A fault that waits for its call; None matches any operation, any client."""

    fate: _Fate
    operation: str | None
    client: str | None

    def matches(self, call: DistroCall) -> bool:
        if self.fate == "swallow" and call.operation not in _ACKNOWLEDGED:
            return False
        return self.operation in (None, call.operation) and self.client in (None, call.client)


class Link(PeerLink):
    """The link source -> target, requests and their replies. Names are whatever the run calls its members."""

    def __init__(self, source: str, target: str, journal: Journal, clock: Clock | None = None) -> None:
        self.source = source
        self.target = target
        self.is_cut = False
        self.is_held = False
        self._journal = journal
        self._clock = clock or SystemClock()
        self._waiting: list[tuple[Waiting[None], bool]] = []  # and whether a release frees it
        self._armed: list[_Armed] = []
        self._source_is_gone = False
        self._severed = asyncio.Event()

    def cut(self) -> None:
        """From now on, and for what is held, the target is unreachable."""
        self._journal.fault(self.source, self.target, "cut")
        self.is_cut = True
        self._severed.set()
        self.target_gone()

    def heal(self) -> None:
        """The target can be reached again."""
        self._journal.fault(self.source, self.target, "healed")
        self.is_cut = False
        self._severed.clear()

    def hold(self) -> None:
        """Messages wait here until `release`, or until their sender gives up."""
        self._journal.fault(self.source, self.target, "held")
        self.is_held = True

    def release(self) -> None:
        """What was held travels on, in its order."""
        self._journal.fault(self.source, self.target, "released")
        self.is_held = False
        released = [waiting for waiting, held in self._waiting if held]
        self._waiting = [entry for entry in self._waiting if not entry[1]]
        for waiting in released:
            waiting.give(None)

    def drop(self, operation: str | None = None, client: str | None = None) -> None:
        """The next Distro request (of that operation, about that client id) is lost; its sender hears nothing."""
        self._arm("drop", operation, client)

    def swallow(self, operation: str | None = None, client: str | None = None) -> None:
        """The next such CHANGE, DELETE or VERIFY is acknowledged, and its target never sees it."""
        self._arm("swallow", operation, client)

    def source_gone(self) -> None:
        """The source crashed: what it still waited for is nobody's business any more."""
        self._source_is_gone = True

    def source_back(self) -> None:
        """The source was started again, without a memory of what it had sent."""
        self._source_is_gone = False

    def target_gone(self) -> None:
        """The connection is at its end, and with it everything that waits for a reply, lost requests too."""
        ended, self._waiting = self._waiting, []
        for waiting, _ in ended:
            waiting.fail(LinkCutError("the link is cut"))

    async def until_cut(self) -> None:
        """Returns when the link is cut, at once when it is: a connection that goes over it ends with it."""
        await self._severed.wait()

    def check_connect(self) -> None:
        """No connection is opened over a cut link, nor tried: its packets would be lost. Raises LinkCutError."""
        if self.is_cut:
            raise LinkCutError("the link is cut")

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        """Take one request over the link and bring back its reply. Raises LinkCutError when the link is cut."""
        type_name = request.metadata.type
        call = read_request(decode(request)) if type_name == DISTRO_REQUEST else None
        if call is None:
            self.check_connect()
            if self.is_held and type_name not in _ALWAYS_DELIVERED:
                await self._wait(held=True)
            return await forward(request)
        carried = Carried(self._journal.new_id(), self.source, self.target, call)
        self._journal.sent(carried)
        try:
            reply, outcome = await self._carry_distro(carried, request, forward)
        except (LinkCutError, grpc.aio.AioRpcError):
            self._end(carried, Outcome.UNREACHABLE)
            raise
        except asyncio.CancelledError:  # the sender gave up: its time-out, or its end
            self._end(carried, Outcome.TIMEOUT)
            raise
        self._end(carried, outcome)
        return reply

    async def _carry_distro(self, carried: Carried, request: Payload, forward: Forward) -> tuple[Payload, Outcome]:
        self.check_connect()
        fate = self._fate_of(carried.call)
        if fate == "drop":
            await self._wait()
        if fate == "swallow":
            return encode(DISTRO_RESPONSE, {"resultCode": 200, "errorCode": 0, "success": True}), Outcome.SUCCESS
        if self.is_held:
            await self._wait(held=True)
        self._journal.received(carried)
        payload = await forward(request)
        reply = decode(payload)
        outcome = outcome_of(reply)
        self._journal.replied(carried, outcome, reply)
        return payload, outcome

    def _arm(self, fate: _Fate, operation: str | None, client: str | None) -> None:
        self._journal.fault(self.source, self.target, " ".join([fate, operation or "any", client or ""]).rstrip())
        self._armed.append(_Armed(fate, operation, client))

    def _fate_of(self, call: DistroCall) -> _Fate | None:
        """Of the first fault armed for such a call, which is spent on it."""
        for armed in self._armed:
            if armed.matches(call):
                self._armed.remove(armed)
                return armed.fate
        return None

    async def _wait(self, *, held: bool = False) -> None:
        """Until the link is released (if held), the connection ends, or the sender gives up."""
        waiting = Waiting[None](self._clock)
        self._waiting.append((waiting, held))
        await waiting.taken()

    def _end(self, carried: Carried, outcome: Outcome) -> None:
        if not self._source_is_gone:
            self._journal.ended(carried, outcome)
