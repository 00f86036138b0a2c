"""A directed link between two members, and what may happen to a message on it.

One class decides (deliver, hold, drop, swallow, cut) and reports; how a message gets to it is up to its
callers: an embedded node carries its requests over it, and a forwarder on a real socket stands in front of a real
server. So a fault means the same on every target. Cut and hold concern everything that travels; what becomes of one
request (lost, swallowed, its reply lost, delivered twice) is decided for Distro requests only, since those are the
ones whose loss the protocol must survive: for the next that is sent, or for one that a hold keeps back. A request
meets them in this order: cut, loss or swallowing, hold, delivery, loss of the reply.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum

import grpc.aio

from distro_conformance.wire.messages import (
    ACKNOWLEDGED,
    DISTRO_REQUEST,
    DISTRO_RESPONSE,
    REFUSED,
    UNHEARD_TYPE,
    DistroCall,
    Journal,
    RoutedCall,
    mistyped,
    outcome_of,
    read_request,
)
from distro_impl import Clock, SystemClock
from distro_impl.clocks.clock import Waiting
from distro_impl.transport.transport import Forward, PeerLink
from distro_model.actions import (
    AnswerLate,
    BaseRequestAction,
    Drop,
    Duplicate,
    Fault,
    Garble,
    LoseReply,
    Mistype,
    Reorder,
    Reply,
    Swallow,
)
from distro_protos import Message, Payload, UnreadableBodyError, decode, encode
from distro_traces.event import Outcome

_ALWAYS_DELIVERED = frozenset({"ServerCheckRequest", "HealthCheckRequest"})
"""Set-up of a connection: a held link holds the traffic, a cut one lets nothing through at all."""


class LinkCutError(ConnectionError):
    """The link is cut: the sender finds its peer unreachable."""


class _Stage(Enum):
    """What a held message waits for, besides the end of its connection and its sender's time-out."""

    NOTHING = "nothing"
    TIME = "the end of its delay"
    NEXT = "the delivery of another request"
    RELEASE = "the release of the link"
    TURN = "what was held before it"
    REPLY = "the release of its reply"


@dataclass(slots=True, eq=False)
class _HeldMessage:
    """A message that waits here, and for what."""

    call: DistroCall | None
    stage: _Stage
    decided: Waiting[BaseRequestAction | None]


class Link(PeerLink):
    """The link source -> target, requests and their replies. Names are whatever the run calls its members."""

    def __init__(self, source: str, target: str, journal: Journal, clock: Clock | None = None) -> None:
        self.source = source
        self.target = target
        self.is_cut = False
        self.is_held = self._others_pass = False
        self.is_blackhole = self.is_refusing = False
        self._delay_ms = self._spacing_ms = self._next_ms = 0
        self._journal = journal
        self._clock = clock or SystemClock()
        self._waiting: list[_HeldMessage] = []
        self._armed: list[Fault] = []
        self._source_is_gone = self._target_is_gone = False
        self._severed = asyncio.Event()

    def cut(self) -> None:
        """From now on, and for what is held, the target is unreachable."""
        self._journal.fault(self.source, self.target, "cut")
        self.is_cut = True
        self._severed.set()
        self._end_waiting()

    def heal(self) -> None:
        """The target can be reached again and refuses nothing more."""
        self._journal.fault(self.source, self.target, "healed")
        self.is_cut = self.is_blackhole = self.is_refusing = False
        self._severed.clear()

    @property
    def is_faulty(self) -> bool:
        """Whether a fault keeps requests from their target, or is armed to."""
        return self.is_cut or self.is_blackhole or self.is_refusing or self.is_held or bool(self._armed)

    def clear_faults(self) -> None:
        """Repairs every fault: held messages travel on, the target can be reached and refuses nothing, and no fault is
        armed."""
        self._armed.clear()
        if self.is_held:
            self.release()
        if self.is_cut or self.is_blackhole or self.is_refusing:
            self.heal()

    def refuse(self) -> None:
        """From now on, until `heal`, Distro requests that arrive are answered with a failure, and go no further."""
        self._journal.fault(self.source, self.target, "refusing")
        self.is_refusing = True

    def hold(self, *, distro: bool = False) -> None:
        """Messages wait here until `release`, or until their sender gives up; `distro`: Distro requests only."""
        self._journal.fault(self.source, self.target, "held")
        self.is_held, self._others_pass = True, distro

    def release(self) -> None:
        """Held messages travel on in their order: each after the answer to the previous one.

        Nothing else would keep that order, for requests on their way at once overtake each other.
        """
        self._journal.fault(self.source, self.target, "released")
        self.is_held = False
        for waiting in self._waiting:
            if waiting.stage is _Stage.RELEASE:
                waiting.stage = _Stage.TURN
        self._next_turn()

    def blackhole(self) -> None:
        """From now on, until `heal`, everything is dropped, and neither end sees the connection end."""
        self._journal.fault(self.source, self.target, "black hole")
        self.is_blackhole = True

    def delay(self, ms: int) -> None:
        """From now on each request takes this time."""
        self._journal.fault(self.source, self.target, f"delay {ms} ms")
        self._delay_ms = ms

    def throttle(self, ms: int) -> None:
        """From now on requests arrive at least this time apart."""
        self._journal.fault(self.source, self.target, f"throttle {ms} ms")
        self._spacing_ms, self._next_ms = ms, self._clock.now_ms()

    def arm(self, fault: Fault) -> None:
        """Arms a fault for the next request that it applies to. Clients are named by their ids."""
        self._journal.fault(self.source, self.target, f"{fault.verb} {_request_text(fault)}")
        self._armed.append(fault)

    def decide(self, decision: BaseRequestAction) -> bool:
        """The same for the first such request that a hold keeps back; False when there is none."""
        held = self._first(_Stage.RELEASE, decision)
        if held is None:
            return False
        self._journal.fault(self.source, self.target, f"{decision.verb} held {_request_text(decision)}")
        if isinstance(decision, Drop):
            held.stage = _Stage.NOTHING
        else:
            self._decide(held, decision)
        return True

    def reply(self, late: Reply) -> bool:
        """The first such reply that `answer-late` keeps back arrives; False when there is none."""
        waiting = self._first(_Stage.REPLY, late)
        if waiting is None:
            return False
        self._journal.fault(self.source, self.target, f"{late.verb} {_request_text(late)}")
        self._decide(waiting, None)
        return True

    def _first(self, stage: _Stage, decision: BaseRequestAction) -> _HeldMessage | None:
        at_stage = (waiting for waiting in self._waiting if waiting.stage is stage)
        return next(
            (waiting for waiting in at_stage if waiting.call is not None and _matches(waiting.call, decision)), None
        )

    def _next_turn(self) -> None:
        """The first released message that has not travelled on."""
        first = next((waiting for waiting in self._waiting if waiting.stage is _Stage.TURN), None)
        if first is not None:
            self._decide(first, None)

    def _decide(self, waiting: _HeldMessage, decision: BaseRequestAction | None) -> None:
        self._waiting.remove(waiting)
        waiting.decided.give(decision)

    def source_gone(self) -> None:
        """The source is stopped: what it still sends until it has ended is lost, and results no longer matter."""
        self._source_is_gone = True

    def source_back(self) -> None:
        """The source was restarted without memory of its requests."""
        self._source_is_gone = False

    def target_gone(self) -> None:
        """The target is stopped: until it has ended it neither receives nor answers anything more."""
        self._target_is_gone = True
        self._end_waiting()

    def target_back(self) -> None:
        """The target is started again."""
        self._target_is_gone = False

    def _end_waiting(self) -> None:
        """The connection has ended, and with it every request that waits for a reply, also a lost one."""
        ended, self._waiting = self._waiting, []
        for waiting in ended:
            waiting.decided.fail(LinkCutError("the link is cut"))

    async def until_cut(self) -> None:
        """Returns when the link is cut, at once when it is: a connection that goes over it ends with it."""
        await self._severed.wait()

    def check_connect(self) -> None:
        """No connection is opened over a cut link, nor tried: its packets would be lost. Raises LinkCutError."""
        if self.is_cut:
            raise LinkCutError("the link is cut")

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        """Take one request over the link and bring back its reply. Raises LinkCutError when the link is cut, or one of
        its ends is stopped."""
        if self._source_is_gone:
            raise LinkCutError(f"{self.source} is stopped")
        type_name = request.metadata.type
        call = read_request(decode(request)) if type_name == DISTRO_REQUEST else None
        if call is None:
            self.check_connect()
            await self._travels(None)
            if self.is_held and not self._others_pass and type_name not in _ALWAYS_DELIVERED:
                await self._wait(None, _Stage.RELEASE)
            return await self._forward(request, forward)
        routed = RoutedCall(self._journal.new_id(), self.source, self.target, call)
        self._journal.sent(routed)
        try:
            reply, outcome = await self._carry_distro(routed, request, forward)
        except (LinkCutError, grpc.aio.AioRpcError):
            self._end(routed, Outcome.UNREACHABLE)
            raise
        except asyncio.CancelledError:  # the sender stopped waiting: its time-out, or its end
            self._end(routed, Outcome.TIMEOUT)
            raise
        self._end(routed, outcome)
        return reply

    async def _carry_distro(self, routed: RoutedCall, request: Payload, forward: Forward) -> tuple[Payload, Outcome]:
        self.check_connect()
        await self._travels(routed.call)
        decision = self._decision_for(routed.call)
        if isinstance(decision, Drop):
            await self._wait(routed.call, _Stage.NOTHING)
        while self.is_held and not isinstance(decision, Swallow):
            decided = await self._wait(routed.call, _Stage.RELEASE)
            decision = decided or decision
            if not isinstance(decided, Duplicate):
                break
            if not self.is_refusing:
                await self._deliver(routed, request, forward)
            decision = None
        if isinstance(decision, Swallow):
            return encode(DISTRO_RESPONSE, ACKNOWLEDGED), Outcome.SUCCESS
        if self.is_refusing:
            return await self._refuse(routed.call, decision)
        if isinstance(decision, Reorder):
            self._next_turn()
            await self._wait(routed.call, _Stage.NEXT)
        if isinstance(decision, Mistype):
            request = mistyped(request)
        answer = await self._deliver(routed, request, forward)
        for overtaken in [waiting for waiting in self._waiting if waiting.stage is _Stage.NEXT]:
            self._decide(overtaken, None)
        if isinstance(decision, Duplicate):
            answer = await self._deliver(routed, request, forward)
        if isinstance(decision, Garble):
            return encode(UNHEARD_TYPE, ACKNOWLEDGED), Outcome.ERROR
        if isinstance(decision, LoseReply | AnswerLate):
            await self._wait(routed.call, _Stage.NOTHING if isinstance(decision, LoseReply) else _Stage.REPLY)
        return answer

    async def _refuse(self, call: DistroCall, decision: BaseRequestAction | None) -> tuple[Payload, Outcome]:
        """Any other fault of the request makes no difference, unless its reply is lost."""
        self._next_turn()
        if isinstance(decision, LoseReply):
            await self._wait(call, _Stage.NOTHING)
        return encode(DISTRO_RESPONSE, REFUSED), Outcome.FAIL

    async def _travels(self, call: DistroCall | None) -> None:
        """Waits for the time of a request on this link; for ever in a black hole."""
        if self.is_blackhole:
            await self._wait(call, _Stage.NOTHING)
        now_ms = self._clock.now_ms()
        arrives_ms = max(now_ms + self._delay_ms, self._next_ms if self._spacing_ms else 0)
        self._next_ms = arrives_ms + self._spacing_ms
        if arrives_ms > now_ms:
            await self._wait(call, _Stage.TIME, until_ms=arrives_ms)

    async def _deliver(self, routed: RoutedCall, request: Payload, forward: Forward) -> tuple[Payload, Outcome]:
        self._check_target()
        self._journal.received(routed)
        payload = await self._forward(request, forward)
        self._check_target()
        reply, outcome = _read(payload)
        self._journal.replied(routed, outcome, reply)
        return payload, outcome

    def _check_target(self) -> None:
        if self._target_is_gone:
            raise LinkCutError(f"{self.target} is stopped")

    async def _forward(self, request: Payload, forward: Forward) -> Payload:
        try:
            return await forward(request)
        finally:
            self._next_turn()

    def _decision_for(self, call: DistroCall) -> BaseRequestAction | None:
        """The first fault armed for such a call, which is spent on it."""
        for armed in self._armed:
            if _matches(call, armed):
                self._armed.remove(armed)
                return armed
        return None

    async def _wait(
        self, call: DistroCall | None, stage: _Stage, *, until_ms: int | None = None
    ) -> BaseRequestAction | None:
        """Waits until the run decides, the time is reached, the connection ends, or the sender stops waiting."""
        waiting = _HeldMessage(call, stage, Waiting(self._clock))
        self._waiting.append(waiting)
        timer = None
        if until_ms is not None:
            timer = self._clock.call_at(until_ms, lambda: self._decide(waiting, None), f"{self.source}->{self.target}")
        try:
            return await waiting.decided.taken()
        finally:
            if timer is not None:
                timer.cancel()
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def _end(self, routed: RoutedCall, outcome: Outcome) -> None:
        if not self._source_is_gone:
            self._journal.ended(routed, outcome)


def _matches(call: DistroCall, decision: BaseRequestAction) -> bool:
    """An ADD is handled as a CHANGE."""
    return decision.matches("CHANGE" if call.operation == "ADD" else call.operation, call.client)


def _request_text(decision: BaseRequestAction) -> str:
    return f"{decision.operation or 'any'} {decision.client or ''}".rstrip()


def _read(payload: Payload) -> tuple[Message, Outcome]:
    """A reply with its meaning for the sender of the request; an unreadable reply is an error there."""
    try:
        reply = decode(payload)
    except UnreadableBodyError:
        return Message(payload.metadata.type, {}, {}), Outcome.ERROR
    return reply, outcome_of(reply)
