"""Properties: what must always hold, and what must be reachable, in every bounded cluster.

A property has an id (those of `known-bugs.md` where one exists), a kind, a sentence and a check. A check looks at one
move of the explorer and says what it found there: for `always` a violation, for `sometimes` the thing looked for. A
`sometimes` that is never found does not hold, so that nothing passes because nothing happened. `eventually`, liveness
under fairness, needs cycles of the state graph; no property has that kind yet.

**Quiescence.** Three words are used below, each stronger than the one before:

* *idle*: every node runs and is loaded, no task is queued, no call is unfinished;
* *settled*: idle, and a full verify round at every node, with everything that follows from it over perfect links,
  leaves every node as it was. Messages may flow in that round (a release with B10 syncs in vain for ever);
* *quiescent*: settled, and no lease is running out, that is, each copy belongs to a client whose connection is open.

So INV-CONV claims: a state from which neither anti-entropy nor any lease would ever change anything again shows the
same instances everywhere. It claims nothing about how long that takes, nothing about leftovers of clients that are gone
while their lease still runs (INV-DELETE does, for clients that left in an orderly way), and nothing about revisions
(INV-REV does).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from distro_model.events import TaskDue, VerifyDue
from distro_model.messages import CallResult, Change, Content, Delete, Operation, Verify, text_of
from distro_model.node import NodeState
from distro_model.transitions import Delivers, TimesOut
from distro_model.untimed import Bounds, Move, Situation

ROUNDS_UNTIL_RESTLESS = 20
"""A verify round is followed for so many executions of all queued tasks; one that goes on has not settled."""


class Kind(StrEnum):
    ALWAYS = "always"
    SOMETIMES = "sometimes"
    EVENTUALLY = "eventually"


@dataclass(frozen=True, slots=True)
class Property:
    id: str
    kind: Kind
    sentence: str
    finds: Callable[[Move], str | None]
    """What this move shows: a violation (always) or the thing looked for (sometimes). None: nothing."""
    applies: Callable[[Bounds], bool] = lambda _: True
    """Whether the bounds allow for what a `sometimes` looks for, and for what an `always` speaks about."""


def is_idle(situation: Situation) -> bool:
    return all(node is not None and node.loaded and not node.tasks for node in situation.cluster.nodes) and not any(
        link.calls or not link.is_clear for link in situation.cluster.links
    )


def is_settled(situation: Situation) -> bool:
    return is_idle(situation) and after_verify_rounds(situation) == situation.cluster.nodes


def is_quiescent(situation: Situation) -> bool:
    return is_settled(situation) and not any(
        _runs_out(situation, client.name)
        for node in situation.cluster.nodes
        if node is not None
        for client in node.clients
        if not client.native
    )


def after_verify_rounds(situation: Situation) -> tuple[NodeState | None, ...] | None:
    """The nodes after one verify round at each, over perfect links; None when the exchange does not come to rest."""
    turn = situation.cluster.turn(instant=True)
    for position in range(turn.size):
        turn.tell(position, VerifyDue(0))
    for _ in range(ROUNDS_UNTIL_RESTLESS):
        waiting = [(p, task) for p, node in enumerate(turn.nodes) if node is not None for task in node.tasks]
        if not waiting:
            return tuple(turn.nodes)
        for position, task in waiting:
            turn.tell(position, TaskDue(0, task.client, task.target))
    return None


def diverged(situation: Situation) -> str | None:
    """The first client of which two running nodes publish different instances."""
    nodes = [node for node in situation.cluster.nodes if node is not None]
    for life in situation.lives:
        contents = {node.name: _content(node, life.client) for node in nodes}
        if len(set(contents.values())) > 1:
            return f"{life.client}: " + ", ".join(f"{name} shows {text_of(shown)}" for name, shown in contents.items())
    return None


def _conv(move: Move) -> str | None:
    difference = diverged(move.after)
    return difference if difference is not None and is_quiescent(move.after) else None


def _owner(move: Move) -> str | None:
    for life in move.after.lives:
        connection = move.after.cluster.connection(life.client)
        holder = [connection.node] if connection is not None and connection.node is not None else []
        owners = [
            node.name
            for node in move.after.cluster.nodes
            if node is not None and (held := node.client(life.client)) is not None and held.native
        ]
        if owners != holder:
            return f"{life.client} is connected to {_names(holder)} and native at {_names(owners)}"
    return None


def _rev(move: Move) -> str | None:
    for node in move.after.cluster.nodes:
        for client in () if node is None else node.clients:
            contents = move.after.life(client.name).contents
            if client.revision == 0 and not client.native:
                continue  # not stamped
            if client.revision >= len(contents):
                return f"{node.name if node else ''} has {client.name} at revision {client.revision}, never reached"
            if contents[client.revision] != client.content:
                return (
                    f"{node.name if node else ''} has {client.name} at revision {client.revision}"
                    f" with {text_of(client.content)}, its owner had {text_of(contents[client.revision])}"
                )
    return None


def _verify(move: Move) -> str | None:
    """The owner's content between send and answer: from the change at which the verify was sent up to the last one."""
    if not isinstance(move.transition, Delivers) or not isinstance(move.transition.request, Verify):
        return None
    verified = move.transition.request.client
    receiver = move.before.cluster.node(move.transition.target)
    replica = receiver.client(verified) if receiver is not None else None
    if not any(call.outcome is CallResult.SUCCESS for call in move.traffic) or replica is None:
        return None
    between = move.after.life(verified).contents[move.transition.call.sent_as :]
    if replica.content in between:
        return None
    return (
        f"{move.transition.target} confirmed {verified} with {text_of(replica.content)}"
        f" while its owner had {' then '.join(map(text_of, between))}"
    )


def _delete(move: Move) -> str | None:
    for life in move.after.lives:
        if not life.left_cleanly:
            continue
        holders = [n.name for n in move.after.cluster.nodes if n is not None and n.client(life.client) is not None]
        if holders and is_settled(move.after):
            return f"{life.client} has disconnected and is still at {_names(holders)}"
    return None


def _second_revision(move: Move) -> str | None:
    for node in move.after.cluster.nodes:
        for client in () if node is None else node.clients:
            contents = move.after.life(client.name).contents
            if not client.native and len(contents) > 2 and client.content == contents[2] != contents[1]:
                return f"{node.name if node else ''} holds the second content of {client.name}"
    return None


def _retry(move: Move) -> str | None:
    if not isinstance(move.transition, TimesOut) or not isinstance(move.transition.request, Change | Delete):
        return None
    source, target, client = move.transition.source, move.transition.target, move.transition.request.client
    before, after = move.before.cluster.node(source), move.after.cluster.node(source)
    if before is None or after is None or before.task(client, target) is not None:
        return None
    task = after.task(client, target)
    return None if task is None else f"{source} queued the {task.action} of {client} for {target} again"


def _verify_repairs(move: Move) -> str | None:
    for call in move.traffic:
        if call.operation is Operation.VERIFY and call.outcome is CallResult.FAIL and call.client is not None:
            repaired = after_verify_rounds(move.after)
            nodes = {} if repaired is None else {node.name: node for node in repaired if node is not None}
            if call.source in nodes and call.target in nodes:
                owned, copied = nodes[call.source].client(call.client), nodes[call.target].client(call.client)
                if owned is not None and copied is not None and owned.content == copied.content:
                    return f"{call.target} failed the verify of {call.client} and was brought up to date"
    return None


PROPERTIES: Mapping[str, Property] = MappingProxyType(
    {
        each.id: each
        for each in (
            Property(
                "INV-CONV",
                Kind.ALWAYS,
                "In a quiescent state every node shows the same instances of every client.",
                _conv,
            ),
            Property(
                "INV-OWNER",
                Kind.ALWAYS,
                "A client is native at the node that holds its connection and nowhere else, at every moment.",
                _owner,
            ),
            Property(
                "INV-REV",
                Kind.ALWAYS,
                "A copy stamped with revision r > 0 holds what its owner had at revision r.",
                _rev,
            ),
            Property(
                "INV-VERIFY",
                Kind.ALWAYS,
                "A confirmed verify means: the copy had the owner's content at some moment between send and answer.",
                _verify,
            ),
            Property(
                "INV-DELETE",
                Kind.ALWAYS,
                "In a settled state nobody holds a client that has disconnected, unless a crash, a load at that time"
                " (B27) or a swallowed DELETE has left it to the lease.",
                _delete,
            ),
            Property(
                "REACH-SECOND-REVISION",
                Kind.SOMETIMES,
                "A copy holds what its owner had at revision 2.",
                _second_revision,
                lambda bounds: bounds.nodes > 1 and bounds.clients > 0 and bounds.changes > 1,
            ),
            Property(
                "REACH-RETRY",
                Kind.SOMETIMES,
                "A sync that timed out is queued again.",
                _retry,
                lambda bounds: bounds.nodes > 1 and bounds.clients > 0 and bounds.drops + bounds.lost_replies > 0,
            ),
            Property(
                "REACH-VERIFY-REPAIR",
                Kind.SOMETIMES,
                "A copy that failed its verify can be brought up to date by what follows from the failure.",
                _verify_repairs,
                lambda bounds: bounds.nodes > 1 and bounds.clients > 0,
            ),
        )
    }
)


class UnknownPropertyError(ValueError):
    """There is no property of that id; the message lists those there are."""


def property_named(name: str) -> Property:
    """Look a property up. Raises UnknownPropertyError."""
    try:
        return PROPERTIES[name]
    except KeyError:
        raise UnknownPropertyError(f"unknown property {name!r}; known: {', '.join(sorted(PROPERTIES))}") from None


def _runs_out(situation: Situation, client: str) -> bool:
    """Nobody who holds the connection of this client will ever verify it again."""
    connection = situation.cluster.connection(client)
    return connection is None or connection.node is None


def _content(node: NodeState, client: str) -> Content:
    held = node.client(client)
    return () if held is None else held.content


def _names(names: list[str]) -> str:
    return ", ".join(names) or "nobody"
