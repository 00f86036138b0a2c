"""A directed link between two members, and what may happen to a message on it.

One class decides (deliver, hold, drop, swallow, cut) and reports; how a message gets to it is somebody else's
matter: an interceptor on the channel of an embedded node, or a forwarder on a real socket in front of a real
server. So a fault means the same on every target. Cut and hold concern everything that travels; drop and swallow the
next Distro request only, since those are the ones whose loss the protocol must survive. design.md section 5.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import grpc
import grpc.aio

from distro_conformance.messages import DISTRO_RESPONSE, DistroCall, outcome_of, read_request
from distro_protos import Message, Payload, decode, encode
from distro_traces.event import Outcome

Forward = Callable[[Payload], Awaitable[Payload]]
Parked = Callable[[], AbstractContextManager[None]]

_ALWAYS_DELIVERED = frozenset({"ServerCheckRequest", "HealthCheckRequest"})
"""Set-up of a connection: a held link holds the traffic, a cut one lets nothing through at all."""


_ACKNOWLEDGED = frozenset({"CHANGE", "ADD", "DELETE", "VERIFY"})
"""Operations whose reply says nothing but that they arrived; only those can be answered by somebody else."""


class LinkMode(StrEnum):
    OPEN = "open"
    HELD = "held"
    CUT = "cut"


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


class Link:
    """The link source -> target, requests and their replies. Names are whatever the run calls its members."""

    def __init__(self, source: str, target: str, journal: Journal, parked: Parked = contextlib.nullcontext) -> None:
        self.source = source
        self.target = target
        self.mode = LinkMode.OPEN
        self._journal = journal
        self._parked = parked
        self._held: list[asyncio.Future[None]] = []
        self._lose: list[str | None] = []
        self._swallow: list[str | None] = []
        self._source_is_gone = False
        self._severed = asyncio.Event()

    def cut(self) -> None:
        """From now on, and for what is held, the target is unreachable."""
        self._switch(LinkMode.CUT, "cut")
        self._severed.set()
        for waiting in self._take_held():
            waiting.set_exception(LinkCutError())

    def hold(self) -> None:
        """Messages wait here until `release`, or until their sender gives up."""
        self._switch(LinkMode.HELD, "held")

    def heal(self) -> None:
        """Everything travels again; what was held goes first, in its order."""
        self._switch(LinkMode.OPEN, "released" if self.mode is LinkMode.HELD else "healed")
        self._severed.clear()
        for waiting in self._take_held():
            waiting.set_result(None)

    release = heal

    def drop(self, operation: str | None = None) -> None:
        """The next Distro request (of that operation) is lost; its sender hears nothing."""
        self._journal.fault(self.source, self.target, f"drop {operation or 'any'}")
        self._lose.append(operation)

    def swallow(self, operation: str | None = None) -> None:
        """The next CHANGE, DELETE or VERIFY (or just that operation) is acknowledged, and its target never sees it."""
        self._journal.fault(self.source, self.target, f"swallow {operation or 'any'}")
        self._swallow.append(operation)

    def source_gone(self) -> None:
        """The source crashed: what it still waited for is nobody's business any more."""
        self._source_is_gone = True

    def source_back(self) -> None:
        """The source was started again, without a memory of what it had sent."""
        self._source_is_gone = False

    def target_gone(self) -> None:
        """The target crashed: what is held on its way there cannot arrive."""
        for waiting in self._take_held():
            waiting.set_exception(LinkCutError())

    async def until_cut(self) -> None:
        """Returns when the link is cut, at once when it is: a connection that goes over it ends with it."""
        await self._severed.wait()

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        """Take one request over the link and bring back its reply. Raises LinkCutError when the link is cut."""
        message = decode(request)
        call = read_request(message)
        if call is None:
            await self._pass_gate(message.type in _ALWAYS_DELIVERED)
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
        operation = carried.call.operation
        await self._pass_gate(False)
        if _take(self._lose, operation):
            with self._parked():
                await asyncio.get_running_loop().create_future()  # until the sender gives up
        if operation in _ACKNOWLEDGED and _take(self._swallow, operation):
            return encode(DISTRO_RESPONSE, {"resultCode": 200, "errorCode": 0, "success": True}), Outcome.SUCCESS
        self._journal.received(carried)
        payload = await forward(request)
        reply = decode(payload)
        outcome = outcome_of(reply)
        self._journal.replied(carried, outcome, reply)
        return payload, outcome

    async def _pass_gate(self, held_too: bool) -> None:
        if self.mode is LinkMode.CUT:
            raise LinkCutError
        if self.mode is LinkMode.HELD and not held_too:
            waiting = asyncio.get_running_loop().create_future()
            self._held.append(waiting)
            with self._parked():
                await waiting

    def _end(self, carried: Carried, outcome: Outcome) -> None:
        if not self._source_is_gone:
            self._journal.ended(carried, outcome)

    def _switch(self, mode: LinkMode, what: str) -> None:
        if self.mode is not mode:
            self._journal.fault(self.source, self.target, what)
        self.mode = mode

    def _take_held(self) -> list[asyncio.Future[None]]:
        held, self._held = self._held, []
        return [waiting for waiting in held if not waiting.done()]


class LinkInterceptor(grpc.aio.UnaryUnaryClientInterceptor):
    """Puts a link on the cluster channel of an embedded node; the call behind it stays a real one."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        async def forward(payload: Payload) -> Payload:
            call = await continuation(client_call_details, payload)
            reply: Payload = await call
            return reply

        try:
            return await self._link.carry(request, forward)
        except LinkCutError as error:
            nothing = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing, nothing, "the link is cut") from error


def _take(waiting: list[str | None], operation: str) -> bool:
    for index, wanted in enumerate(waiting):
        if wanted in (None, operation):
            del waiting[index]
            return True
    return False
