"""The outcomes of a call: everything between the sending of a request and the moment its sender observes its end.

A call is delivered, answered and ended in one transition, unless it is lost, swallowed, overtaken, doubled, delayed or
answered late; each of those is a separate transition. Which call is affected is a choice: a search takes the first
one on the link, a clock the one that a scenario names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from distro_model.actions import ACKNOWLEDGED, OPERATIONS, SYNCS
from distro_model.cluster import alarms
from distro_model.cluster.registers import Before, Taken
from distro_model.cluster.statement import Function, Step, Transition, chooses, handles, of, records, watches, writes
from distro_model.cluster.values import Call, Life, Link, Phase
from distro_model.events import CallEnded, HandlingRaised, RequestReceived, UnknownReceived
from distro_model.messages import FAIL as FAILED
from distro_model.messages import SUCCESS, TIMEOUT, UNREACHABLE, Answer, CallResult, Delete, Operation
from distro_model.search.system import NO_GUARD, Fairness
from distro_model.transitions import CallStep, OnLink

WAITING = frozenset({Phase.LOST, Phase.REFUSED, Phase.ANSWERED, Phase.ABANDONED})


# Selection of a call


def first_sent(link: Link) -> int | None:
    """The position of the first request in transit: requests on one link keep their order."""
    return next((position for position, call in enumerate(link.calls) if call.phase is Phase.SENT), None)


class MaybeTaken(NamedTuple):
    link: Link
    call: Call | None


class MaybeFirst(NamedTuple):
    call: Call | None


def take_first(link: Link) -> MaybeTaken:
    position = first_sent(link)
    return MaybeTaken(link, None) if position is None else MaybeTaken(link.without(position), link.calls[position])


def first_call(link: Link) -> MaybeFirst:
    position = first_sent(link)
    return MaybeFirst(None if position is None else link.calls[position])


def take_overtaking(link: Link) -> list[Taken]:
    """Every request in transit that is not the first one."""
    sent = [position for position, call in enumerate(link.calls) if call.phase is Phase.SENT]
    return [Taken(link.without(position), link.calls[position]) for position in sent[1:]]


def take_waiting(link: Link) -> list[MaybeTaken]:
    """Every call with which its receiver has nothing to do any more, or not yet; equal calls once."""
    found = {call: position for position, call in enumerate(link.calls) if call.phase in WAITING}
    return [MaybeTaken(link.without(position), call) for call, position in found.items()] or [MaybeTaken(link, None)]


# Whether there is a call of this kind: a separate step, so that a search examines each link once for all kinds.


def is_operation(call: Call | None, operation: Operation) -> Call | None:
    return call if call is not None and call.request.operation is operation else None


def one_of(operations: tuple[str, ...]) -> Function:
    def is_one(call: Call | None) -> Call | None:
        return call if call is not None and call.request.operation in operations else None

    return is_one


is_sync, is_acknowledged, is_any = map(one_of, (SYNCS, ACKNOWLEDGED, OPERATIONS))


def has_come_to(phase: Phase) -> Function:
    def has_come(call: Call | None) -> Call | None:
        return call if call is not None and call.phase is phase else None

    return has_come


def deadline(call: Call) -> int:
    return call.deadline_ms


# Effects on the call


def arrival(call: Call, source_name: str, now: int) -> RequestReceived:
    return RequestReceived(now, source_name, call.request)


def end(call: Call, answer: Answer | None, target_name: str, now: int) -> CallEnded | None:
    return None if answer is None else CallEnded(now, target_name, call.request, answer)


def lose(link: Link, call: Call) -> Link:
    return link.with_phase(call, Phase.LOST)


def abandon(link: Link, call: Call) -> Link:
    return link.with_phase(call, Phase.ABANDONED)


def keep_answer(link: Link, call: Call, answer: Answer | None) -> Link:
    return link.with_phase(call, Phase.ANSWERED, answer)


def ended_with(answer: Answer) -> Function:
    def ended(call: Call, target_name: str, now: int) -> CallEnded:
        return CallEnded(now, target_name, call.request, answer)

    return ended


def raised(call: Call, source_name: str, now: int) -> HandlingRaised:
    return HandlingRaised(now, source_name, call.request)


def mistyped(call: Call, source_name: str, now: int) -> UnknownReceived:
    return UnknownReceived(now, source_name, call.request)


def end_by_itself(call: Call, target_name: str, now: int) -> CallEnded:
    answers = {Phase.LOST: TIMEOUT, Phase.REFUSED: UNREACHABLE}
    return CallEnded(now, target_name, call.request, call.answer or answers[call.phase])


# History for properties, and checks


class Left(NamedTuple):
    left: str | None


def left_to_lease(call: Call) -> Left:
    """The client whose DELETE does not arrive: the copy that it should remove remains until its lease ends."""
    return Left(call.request.client if isinstance(call.request, Delete) else None)


def without_delete(life: Life, left: str | None) -> Life:
    return replace(life, left_cleanly=False) if left == life.client else life


# Transitions


def _says(step: CallStep) -> Function:
    return lambda source_name, target_name, call: OnLink(source_name, target_name, call.request, step)


def _ends(step: CallStep) -> Function:
    """The label also states which end of the call the sender observed."""
    return lambda source_name, target_name, call, event: OnLink(
        source_name, target_name, call.request, step, event.answer.result
    )


NO_CALL = "no such call"


def taking(kind: Function) -> tuple[Step, ...]:
    """The first request in transit arrives, if it is of this kind."""
    return chooses(take_first, NO_GUARD), chooses(kind, NO_CALL)


def deciding(kind: Function) -> tuple[Step, ...]:
    """An outcome of the first request in transit, if it is of this kind."""
    return chooses(first_call, NO_GUARD), chooses(kind, NO_CALL)


def ending(phase: Phase) -> tuple[Step, ...]:
    """The sender observes the end of a call that has reached this phase."""
    return chooses(take_waiting, NO_GUARD), chooses(has_come_to(phase), NO_CALL)


_EXCHANGE = (handles("target", arrival), handles("source", end, "it is still being handled"))

DELIVER = Transition(
    "deliver {operation}", (*taking(is_operation), *_EXCHANGE), _ends(CallStep.DELIVERED), fair=Fairness.STRONG
)
DELIVER_VERIFY = replace(
    DELIVER,
    steps=(
        *taking(is_operation),
        writes(of(Before, "target")),
        _EXCHANGE[0],
        writes(alarms.confirmation),
        _EXCHANGE[1],
        watches(alarms.false_confirmation),
        watches(alarms.false_ip_confirmation),
        watches(of(alarms.forgotten, "before", "target", "ip_life")),
        watches(alarms.repair),
    ),
)
DELIVER_SNAPSHOT = replace(DELIVER, steps=(*DELIVER.steps, writes(alarms.snapshot_source), watches(alarms.left_out)))

OVERTAKE = Transition(
    "overtake",
    (chooses(take_overtaking, NO_CALL), *_EXCHANGE),
    _ends(CallStep.OVERTAKES),
    cost="reorders",
)
"""A request arrives before one that was sent earlier (the receiver's thread pool, D3)."""

DUPLICATE = Transition(
    "duplicate", (*deciding(is_acknowledged), handles("target", arrival)), _says(CallStep.DUPLICATED)
)
"""The request arrives, and will arrive again. A clock does so on request; a search loses the reply instead, after which
the sender retries."""

LOSE = Transition("lose", (*deciding(is_any), writes(lose)), _says(CallStep.LOST), cost="drops")

LOSE_REPLY = Transition(
    "lose reply",
    (*deciding(is_any), writes(lose), handles("target", arrival)),
    _says(CallStep.REPLY_LOST),
    cost="lost_replies",
)
SWALLOW = Transition(
    "swallow",
    (
        *taking(is_acknowledged),
        records(left_to_lease),
        records(without_delete),
        handles("source", ended_with(SUCCESS)),
    ),
    _ends(CallStep.SWALLOWED),
    cost="swallows",
)
"""The request is acknowledged and not delivered. A snapshot request cannot be: its acknowledgement would have no
content."""

REPLY_LATE = Transition(
    "reply late",
    (*deciding(is_any), handles("target", arrival), writes(keep_answer)),
    _says(CallStep.REPLY_LATE),
    cost="late_replies",
)
"""The request takes effect; its reply stays in transit."""

REPLY_ARRIVES = Transition(
    "reply arrives",
    (*ending(Phase.ANSWERED), handles("source", end_by_itself)),
    _ends(CallStep.REPLY_ARRIVES),
    fair=Fairness.STRONG,
)
FAIL = Transition(
    "fail", (*ending(Phase.REFUSED), handles("source", end_by_itself)), _ends(CallStep.FAILS), fair=Fairness.STRONG
)
"""There is no connection; the sender receives a failure."""

TIME_OUT = Transition(
    "time out",
    (*ending(Phase.LOST), handles("source", end_by_itself), watches(alarms.requeued)),
    _ends(CallStep.TIMES_OUT),
    fair=Fairness.STRONG,
    due=deadline,
)
ABANDON = Transition(
    "abandon",
    (
        *deciding(is_acknowledged),
        writes(abandon),
        handles("source", ended_with(TIMEOUT)),
    ),
    _ends(CallStep.ABANDONED),
    cost="delays",
)
"""The sender stops waiting; the request is still in transit."""

ARRIVE = Transition(
    "arrive", (*ending(Phase.ABANDONED), handles("target", arrival)), _says(CallStep.ARRIVES_LATE), fair=Fairness.STRONG
)
GARBLE = Transition(
    "garble",
    (*taking(is_sync), handles("target", arrival), handles("source", ended_with(Answer(CallResult.UNHEARD)))),
    _ends(CallStep.GARBLED),
    cost="garbles",
)
"""The request takes effect, and the answer is of an unknown type (B42)."""

REFUSE = Transition("refuse", (*taking(is_any), handles("source", ended_with(FAILED))), _ends(CallStep.FAILS))
"""Of clocks only. The target answers with a failure and does nothing, for as long as the scenario requests it."""

RAISE = Transition(
    "raise",
    (*taking(is_sync), handles("target", raised), handles("source", end, "it is still being handled")),
    _ends(CallStep.RAISES),
    cost="raises",
)
"""The request arrives, and an exception leaves its handler."""

MISTYPE = replace(
    RAISE,
    kind="mistype",
    steps=(*taking(is_sync), handles("target", mistyped), *RAISE.steps[-1:]),
    says=_ends(CallStep.MISTYPED),
)
"""The request arrives as data of a type that the receiver does not know (D6)."""
