"""What can become of a call: everything between the sending of a request and the moment its sender hears of its end.

A call is delivered, answered and ended in one transition, unless it is lost, swallowed, overtaken, doubled, delayed or
answered late; each of those is a transition of its own. Which call is meant is a choice: a search takes the first on
its way, a clock the one that a scenario names.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.cluster import alarms
from distro_model.cluster.registers import Before, IpLived, Lived, Meant, OneLink, Taken
from distro_model.cluster.statement import Function, Transition, chooses, records, tells, watches, writes
from distro_model.cluster.values import Call, IpLife, Life, Link, Phase
from distro_model.events import CallEnded, HandlingRaised, RequestReceived
from distro_model.messages import SUCCESS, TIMEOUT, UNREACHABLE, Answer, CallResult, Delete, Operation
from distro_model.node import NodeState
from distro_model.search.system import Fairness
from distro_model.transitions import (
    Abandons,
    Arrives,
    Delivers,
    Duplicates,
    Fails,
    Garbles,
    Loses,
    LosesReply,
    OnLink,
    Overtakes,
    Raises,
    RepliesLate,
    ReplyArrives,
    Swallows,
    TimesOut,
)

SYNCS = frozenset({Operation.CHANGE, Operation.DELETE})
DISTRO = SYNCS | {Operation.VERIFY}
EVERY = DISTRO | {Operation.SNAPSHOT}

GARBLED = Answer(CallResult.UNHEARD)


# Which call


def first_sent(link: Link, operations: frozenset[Operation]) -> int | None:
    """Where the first request on its way is, if it is one of these: requests on one link keep their order."""
    for position, call in enumerate(link.calls):
        if call.phase is Phase.SENT:
            return position if call.request.operation in operations else None
    return None


def _taken(link: Link, position: int | None) -> Taken | None:
    return None if position is None else Taken(link.without(position), link.calls[position])


def _meant(link: Link, operations: frozenset[Operation]) -> Meant | None:
    position = first_sent(link, operations)
    return None if position is None else Meant(link.calls[position])


def take(link: Link, operation: Operation) -> Taken | None:
    return _taken(link, first_sent(link, frozenset({operation})))


def take_sync(link: Link) -> Taken | None:
    return _taken(link, first_sent(link, SYNCS))


def mean_any(link: Link) -> Meant | None:
    return _meant(link, EVERY)


def mean_distro(link: Link) -> Meant | None:
    return _meant(link, DISTRO)


def take_overtaking(link: Link) -> list[Taken]:
    """Every request that is not the first one on its way."""
    sent = [position for position, call in enumerate(link.calls) if call.phase is Phase.SENT]
    return [Taken(link.without(position), link.calls[position]) for position in sent[1:]]


def _taken_in(link: Link, phase: Phase) -> list[Taken]:
    found = {call: position for position, call in enumerate(link.calls) if call.phase is phase}
    return [Taken(link.without(position), call) for call, position in found.items()]


def take_lost(link: Link) -> list[Taken]:
    return _taken_in(link, Phase.LOST)


def take_refused(link: Link) -> list[Taken]:
    return _taken_in(link, Phase.REFUSED)


def take_answered(link: Link) -> list[Taken]:
    return _taken_in(link, Phase.ANSWERED)


def take_abandoned(link: Link) -> list[Taken]:
    return _taken_in(link, Phase.ABANDONED)


def deadline(call: Call) -> int:
    return call.deadline_ms


# What happens to it


def arrival(call: Call, source_name: str, now: int) -> RequestReceived:
    return RequestReceived(now, source_name, call.request)


def end(call: Call, answer: Answer | None, target_name: str, now: int) -> CallEnded | None:
    return None if answer is None else CallEnded(now, target_name, call.request, answer)


def lose(link: Link, call: Call) -> OneLink:
    return OneLink(link.with_phase(call, Phase.LOST))


def remove(link: Link, call: Call) -> OneLink:
    return OneLink(link.without(link.calls.index(call)))


def abandon(link: Link, call: Call) -> OneLink:
    return OneLink(link.with_phase(call, Phase.ABANDONED))


def keep_answer(link: Link, call: Call, answer: Answer | None) -> OneLink:
    return OneLink(link.with_phase(call, Phase.ANSWERED, answer))


def acknowledged(call: Call, target_name: str, now: int) -> CallEnded:
    return CallEnded(now, target_name, call.request, SUCCESS)


def given_up(call: Call, target_name: str, now: int) -> CallEnded:
    return CallEnded(now, target_name, call.request, TIMEOUT)


def unreadable(call: Call, target_name: str, now: int) -> CallEnded:
    return CallEnded(now, target_name, call.request, GARBLED)


def raised(call: Call, source_name: str, now: int) -> HandlingRaised:
    return HandlingRaised(now, source_name, call.request)


def end_by_itself(call: Call, target_name: str, now: int) -> CallEnded:
    answers = {Phase.LOST: TIMEOUT, Phase.REFUSED: UNREACHABLE}
    return CallEnded(now, target_name, call.request, call.answer or answers[call.phase])


# What properties remember and watch


def without_delete(life: Life, call: Call) -> Lived:
    """A DELETE of this client will not arrive: whatever copy it would have removed is left to the lease."""
    lost = isinstance(call.request, Delete) and call.request.client == life.client
    return Lived(replace(life, left_cleanly=False) if lost else life)


def without_ip_delete(ip_life: IpLife, call: Call) -> IpLived:
    lost = isinstance(call.request, Delete) and call.request.client == ip_life.client
    return IpLived(replace(ip_life, left_to_lease=True) if lost else ip_life)


def remember_target(target: NodeState | None) -> Before:
    return Before(target)


# The transitions


def _says(label: type[OnLink]) -> Function:
    return lambda source_name, target_name, call: label(source_name, target_name, call.request)


def _ends(label: type[OnLink]) -> Function:
    """The label also says how the sender heard of the call's end."""
    return lambda source_name, target_name, call, event: label(
        source_name, target_name, call.request, event.answer.result
    )


NO_CALL = "no such call"
_EXCHANGE = (tells("target", arrival), tells("source", end, "it is still being handled"))

DELIVER = Transition("deliver {operation}", (chooses(take, NO_CALL), *_EXCHANGE), _ends(Delivers), fair=Fairness.STRONG)
DELIVER_VERIFY = replace(
    DELIVER,
    steps=(
        chooses(take, NO_CALL),
        writes(remember_target),
        _EXCHANGE[0],
        writes(alarms.confirmation),
        _EXCHANGE[1],
        watches(alarms.false_confirmation),
        watches(alarms.false_ip_confirmation),
        watches(alarms.forgotten_by_verify),
        watches(alarms.repair),
    ),
)
DELIVER_SNAPSHOT = replace(DELIVER, steps=(*DELIVER.steps, writes(alarms.giver), watches(alarms.left_out)))

OVERTAKE = Transition("overtake", (chooses(take_overtaking, NO_CALL), *_EXCHANGE), _ends(Overtakes), cost="reorders")
"""A request arrives before one that was sent earlier (the receiver's thread pool, D3)."""

DUPLICATE = Transition("duplicate", (chooses(mean_distro, NO_CALL), tells("target", arrival)), _says(Duplicates))
"""The request arrives, and will arrive again. A clock does so where it is told to; a search loses the reply instead,
after which the sender tries again."""

LOSE = Transition("lose", (chooses(mean_any, NO_CALL), writes(lose)), _says(Loses), cost="drops")

LOSE_REPLY = Transition(
    "lose reply",
    (chooses(mean_any, NO_CALL), writes(lose), tells("target", arrival)),
    _says(LosesReply),
    cost="lost_replies",
)
SWALLOW = Transition(
    "swallow",
    (
        chooses(mean_distro, NO_CALL),
        writes(remove),
        records(without_delete),
        records(without_ip_delete),
        tells("source", acknowledged),
    ),
    _ends(Swallows),
    cost="swallows",
)
"""Acknowledged and not delivered. A snapshot cannot be: there is no content to acknowledge it with."""

REPLY_LATE = Transition(
    "reply late",
    (chooses(mean_any, NO_CALL), tells("target", arrival), writes(keep_answer)),
    _says(RepliesLate),
    cost="late_replies",
)
"""The request takes effect; its reply stays on its way."""

REPLY_ARRIVES = Transition(
    "reply arrives",
    (chooses(take_answered, NO_CALL), tells("source", end_by_itself)),
    _ends(ReplyArrives),
    fair=Fairness.STRONG,
)
FAIL = Transition(
    "fail", (chooses(take_refused, NO_CALL), tells("source", end_by_itself)), _ends(Fails), fair=Fairness.STRONG
)
"""There is no connection; the sender is told."""

TIME_OUT = Transition(
    "time out",
    (chooses(take_lost, NO_CALL), tells("source", end_by_itself), watches(alarms.requeued)),
    _ends(TimesOut),
    fair=Fairness.STRONG,
    due=deadline,
)
ABANDON = Transition(
    "abandon",
    (chooses(mean_distro, NO_CALL), writes(abandon), tells("source", given_up)),
    _ends(Abandons),
    cost="delays",
)
"""The sender stops waiting; the request is still on its way."""

ARRIVE = Transition(
    "arrive", (chooses(take_abandoned, NO_CALL), tells("target", arrival)), _says(Arrives), fair=Fairness.STRONG
)
GARBLE = Transition(
    "garble",
    (chooses(take_sync, NO_CALL), tells("target", arrival), tells("source", unreadable)),
    _ends(Garbles),
    cost="garbles",
)
"""The request takes effect, and the answer is of an unknown type (B42)."""

RAISE = Transition(
    "raise",
    (chooses(take_sync, NO_CALL), tells("target", raised), tells("source", end, "it is still being handled")),
    _ends(Raises),
    cost="raises",
)
"""The request arrives, and an exception leaves its handler."""
