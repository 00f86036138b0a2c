"""CHANGEs that are made and applied in steps, for profiles that do so (B05): what may happen between two of them.

A CHANGE that its receiver is applying is a call in the phase HANDLED; the node's `applies` has the other half. In a
search every step is a choice; on a clock the steps follow at once, and interleave with those of other CHANGEs of the
same client.
"""

from __future__ import annotations

from distro_model.cluster.calls import arrival, deciding, end, one_of
from distro_model.cluster.registers import Taken
from distro_model.cluster.statement import Transition, handles, writes
from distro_model.cluster.values import Call, Link, Phase
from distro_model.events import ApplyDue, ReadDue
from distro_model.messages import Answer, Change, Operation
from distro_model.node import NodeState
from distro_model.search.system import Fairness
from distro_model.transitions import CallStep, Happens, OnLink
from distro_model.work import Apply

is_change = one_of((Operation.CHANGE,))


def begin(link: Link, call: Call) -> Link:
    return link.with_phase(call, Phase.HANDLED)


def is_unanswered(answer: Answer | None) -> bool:
    return answer is None


BEGIN = Transition(
    "begin CHANGE",
    (
        *deciding(is_change),
        writes(begin),
        handles("target", arrival),
        writes(is_unanswered, "it is answered at once"),
    ),
    lambda source_name, target_name, call: OnLink(source_name, target_name, call.request, CallStep.BEGINS_TO_APPLY),
    fair=Fairness.STRONG,
)
"""A CHANGE arrives and is not answered yet. (One that is answered at once is delivered as usual.)"""


def next_parts(target: NodeState | None, source_name: str, now: int) -> list[ApplyDue]:
    applies = () if target is None else target.applies
    return [ApplyDue(now, apply) for apply in dict.fromkeys(applies) if apply.source == source_name]


def _position(link: Link, apply: Apply) -> int | None:
    request = Change(apply.client, apply.revision, apply.content)
    found = (at for at, call in enumerate(link.calls) if call.phase is Phase.HANDLED and call.request == request)
    return next(found, None)


def is_unobserved(link: Link, event: ApplyDue, answer: Answer | None) -> bool:
    return answer is None or _position(link, event.apply) is None


def take_handled(link: Link, event: ApplyDue) -> Taken | None:
    position = _position(link, event.apply)
    return None if position is None else Taken(link.without(position), link.calls[position])


def part_of(apply: Apply) -> str:
    """What the next step does, as a clause."""
    if apply.done < len(apply.content):
        step = f"puts {apply.content[apply.done][0]}"
    else:
        step = "removes what it does not mention" if apply.done == len(apply.content) else "sets its revision"
    return f"applies CHANGE {apply.client} revision {apply.revision}: {step}"


NOTHING_APPLIED = "nothing of {source_name} is being applied"
APPLY_PART = Transition(
    "apply",
    (handles("target", next_parts, NOTHING_APPLIED), writes(is_unobserved, "its caller observes the end")),
    lambda target_name, event: Happens(target_name, part_of(event.apply)),
    fair=Fairness.STRONG,
)
"""A step whose end no caller observes: it is not the last step, or its caller has crashed."""

APPLY_LAST = Transition(
    "apply the last",
    (
        handles("target", next_parts, NOTHING_APPLIED),
        writes(take_handled, "its caller has crashed"),
        handles("source", end, "it is not the last step"),
    ),
    lambda source_name, target_name, event: OnLink(
        source_name, target_name, event.request, CallStep.APPLIES_LAST_PART, event.answer.result
    ),
    fair=Fairness.STRONG,
)


def pending_reads(node: NodeState | None, now: int) -> list[ReadDue]:
    return [] if node is None else [ReadDue(now, read) for read in dict.fromkeys(node.reads)]


def all_parts(node: NodeState, now: int) -> list[ReadDue | ApplyDue]:
    return [*pending_reads(node, now), *(ApplyDue(now, each) for each in dict.fromkeys(node.applies))]


READ_REVISION = Transition(
    "read revision",
    (handles("node", pending_reads, "nothing is being read"),),
    lambda node_name, event: Happens(
        node_name, f"reads the revision of {event.read.client} and sends it to {event.read.target}"
    ),
    fair=Fairness.STRONG,
)
