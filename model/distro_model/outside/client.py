"""One client at one node, observed from outside: the set of states in which the node may hold it.

Events of the node (a request of a client or a member, the end of one of its own requests) happen within a known time
window. Messages of the node are observed within a skew after they were sent. Each observation keeps only the states
that explain it. If none is left, no order of the events within their windows leads to the observation; it is reported
with the expectation of the states before it. With virtual time all windows are instants.

Actions of the node without a message (a task that is dropped, a request without a connection) are not observed. So a
task may be executed at any time after it is due, and it must be executed if its target can certainly be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from itertools import product

from distro_model.clock.cluster import View
from distro_model.events import CallEnded, Event, Forward, LeaseCheckDue, Reply, Send, TaskDue, VerifyDue
from distro_model.messages import FAIL, Answer, CallResult, Change, Request, Verify
from distro_model.node import Action, NodeState, Step
from distro_model.outside.deadlines import Deadlines, Reach
from distro_model.outside.ip_clients import (
    Alive,
    announced,
    as_seen,
    believing,
    checked,
    does_nothing,
    is_publishing,
)
from distro_model.outside.possible import Possible, Unseen, Waiting, merged
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import Unexplained, request_text, view_text
from distro_model.outside.views import is_of_several, view_of
from distro_model.profile import Profile
from distro_model.release import STRICT
from distro_model.rules.owners import is_ip_client
from distro_model.rules.rule import name_of
from distro_model.rules.watching import Refusal, watched
from distro_model.step import rule_for, step

REMEMBERED_MS = 10_000
"""States are kept for this time after an event has ended, since its messages may still be in transit."""

STATES_MAX = 600
"""A client with more possible states is no longer judged, and is counted as undecided."""


class Undecided(Enum):
    """The reasons why a client is no longer judged."""

    STATES = "too many possible states"
    LATE = "an event was late by no more than the machine's delay"
    LOST = "the outcome of a request about it is unknown"
    IN_PARTS = "it was sent while it was being changed"


class ClientOutside:
    """`node` is the state of the node without other clients."""

    def __init__(self, client: str, nodes: Iterable[NodeState], profile: Profile, slack: Slack, reach: Reach) -> None:
        self.client, self._profile, self._slack, self._reach = client, profile, slack, reach
        self._is_ip_client = is_ip_client(client)
        self._due = Deadlines(client, self._is_ip_client, profile, slack, reach)
        self._states: frozenset[Possible] = frozenset(Possible(node) for node in nodes)
        self._before: list[
            tuple[int, frozenset[Possible]]
        ] = []  # the time until which the node may have been in these states
        self._verified_ms: dict[str, int] = {}
        self._gathered_ms: dict[str, int] = {}
        """Of each member: when the last VERIFY arrived, and when its revision was read at the earliest."""
        self._excused_ms: dict[str, int] = {}
        self._owned_ms: int | None = None
        self._open: set[str] = set()
        self.in_parts = 0
        """The number of views that show the client during a change, neither as before nor as after it. A server changes
        a client in several steps, and the model in one."""
        self.undecided: Undecided | None = None
        """The reason why the client is no longer judged; None: it is judged."""

    @property
    def is_undecided(self) -> bool:
        return self.undecided is not None

    @property
    def nodes(self) -> frozenset[NodeState]:
        return frozenset(each.node for each in self._states)

    @property
    def views(self) -> frozenset[View | None]:
        """The views of the client that the node may return; None: it may return none."""
        return frozenset(self._view(each.node) for each in self._states)

    # Events of the node

    def begin(self, key: str, event: Event, now_ms: int) -> None:
        """From now on the event may happen at any time, until `finish` reports that it has happened."""
        if self.is_undecided:
            return
        self._open.add(key)
        self._due.touched_ms = now_ms
        self._add(now_ms, Waiting(key, event, now_ms, None))

    def finish(self, key: str, answer: Answer | None, now_ms: int, seen: str) -> None:
        """The event has happened by now, with this answer (None: without one). Raises Unexplained."""
        self._open.discard(key)
        before = self._judged(now_ms)
        if before is None:
            return
        self._remember(before, now_ms)
        states = self._after(before, key, now_ms)
        self._due.touched_ms = now_ms
        if answer is None:
            self._states = merged(each.without_answer(key) for each in states)
            return
        kept = [each for each in states if each.answer_to(key) == answer.result]
        if not kept:
            expected = " or ".join(sorted({str(each.answer_to(key)) for each in states})) or "another answer"
            raise Unexplained(*self._contradicting_rule(key), seen, expected, self._refusals(key, now_ms))
        self._states = merged(each.without_answer(key) for each in kept)

    def notice(self, key: str, now_ms: int) -> None:
        """From now on the event happens by itself, at the latest when the allowed delay of the node is over."""
        if self.is_undecided or not self._slack.skew_ms:
            self.finish(key, None, now_ms, "")
            return
        self._open.discard(key)
        states, until_ms = self._now(now_ms), now_ms + self._slack.late_ms
        if not self.is_undecided:
            self._due.touched_ms = now_ms
            self._states = merged(each.happening_by(key, until_ms) for each in states)

    def happens(self, key: str, event: Event, now_ms: int, *, or_else: Event | None = None) -> None:
        """The event happens now, or at most a skew later. In real time `or_else` may happen in its place."""
        if self.is_undecided:
            return
        if not _leaves_tasks(event):
            self._due.touched_ms = now_ms
        if not self._slack.skew_ms:
            self._states = merged(self._applied(each, event, now_ms) for each in self._now(now_ms))
            return
        events = (event,) if or_else is None else (event, or_else)
        self._add(now_ms, *(Waiting(key, each, now_ms, now_ms + self._slack.skew_ms) for each in events))

    def may_not_happen(self, key: str, instead: Event, now_ms: int) -> None:
        """In states in which the event has not happened yet, `instead` may happen in its place."""
        until_ms = now_ms + self._slack.skew_ms
        waiting = [each for each in self._states if each.waiting_for(key) is not None]
        self._states = merged((*self._states, *(each.happening_by(key, until_ms, instead) for each in waiting)))

    def learn(self, change: Callable[[NodeState], NodeState | None]) -> None:
        """Apply a fact about the whole node. `change` returns the next state, or None for a state that is
        impossible."""
        changed = ((each, change(each.node)) for each in self._states)
        self._states = merged(replace(each, node=node) for each, node in changed if node is not None)

    def believe(self, alive: Alive, now_ms: int) -> None:
        """Set the members that the node may believe to be alive from now on. They matter only for the owner of a client
        of the HTTP API."""
        if self.is_undecided or not self._is_ip_client or alive == self._due.alive:
            return
        states = self._now(now_ms) if self._due.alive else self._states
        self._due.alive, self._due.believed_ms, self._owned_ms = alive, now_ms, None
        self._states = merged(after for each in states for after in self._believing(each))

    def settle(self, now_ms: int) -> None:
        """All events that must have happened by now have happened."""
        self._judged(now_ms)

    # Observations of messages and views

    def sent(self, target: str, request: Request, now_ms: int, gathered_ms: int) -> None:
        """The node has sent this request. A VERIFY has the state at `gathered_ms` or later. Raises Unexplained."""
        states = self._judged(now_ms)
        if states is None:
            return
        if isinstance(request, Verify):
            self._sent_verify(target, request, states, now_ms, gathered_ms)
            return
        kept = [after for each in states if (after := self._sent_by(each, target, request, now_ms)) is not None]
        if not kept and (self._is_sent_in_parts(request, target, states) or self._is_torn(request, states, now_ms)):
            self.in_parts += 1
            self.undecided = Undecided.IN_PARTS
            return
        if not kept:
            expected = " or ".join(sorted({self._wanted(each.node, target) for each in states}))
            raise Unexplained("execute-a-task", self.client, f"it sends {request_text(request)} to {target}", expected)
        self._states = merged(kept)

    def shown(self, view: View | None, asked_ms: int, now_ms: int, how: str) -> None:
        """The node has returned this view of the client, as of some time since the query. Raises Unexplained."""
        states = self._judged(now_ms)
        if states is None:
            return
        if any(self._view(each.node) == view for each in self._lately(asked_ms)):
            return  # with any content, it may be of that time
        kept = [each for each in states if self._view(each.node) == view]
        if not kept and self._slack.skew_ms and self._is_in_parts(view, states, asked_ms):
            self.in_parts += 1
            return
        if not kept:
            expected = " or ".join(sorted({view_text(self._view(each.node)) for each in states}))
            seen = f"{how} {self.client} as {view_text(view)}"
            raise Unexplained("take-a-copy", self.client, seen, expected)
        if len(kept) < len(states):  # a message from one of the other states may still be in transit
            self._remember(states, now_ms)
        self._states = merged(kept)

    def check(self, now_ms: int, peers: Iterable[str]) -> None:
        """Require that all messages that are due by now were sent. Raises Unexplained."""
        states = self._judged(now_ms)
        if states is None or not all(self._is_verified(each.node, now_ms) for each in states):
            self._owned_ms = None
            return
        self._owned_ms = now_ms if self._owned_ms is None else self._owned_ms
        for peer in peers:
            reached_ms = self._reach(peer)
            if reached_ms is None:
                continue
            known_ms = max(self._verified_ms.get(peer, 0), self._excused_ms.get(peer, 0))
            base_ms = max(self._owned_ms, reached_ms, known_ms)
            due_ms = base_ms + self._profile.verify_interval_ms + self._profile.tick_ms + self._slack.late_ms
            if now_ms > due_ms:
                seen = f"it has sent no VERIFY to {peer} since {base_ms} ms"
                raise Unexplained("verify", self.client, seen, f"one by {due_ms} ms")
            if now_ms > due_ms - self._slack.taken_ms:
                self.undecided = Undecided.LATE

    def excuse_verify(self, peer: str, now_ms: int) -> None:
        """A round to this peer may have been skipped, since the round before was not over."""
        self._excused_ms[peer] = now_ms

    # Time

    def _judged(self, now_ms: int) -> frozenset[Possible] | None:
        """The states that are possible now; None: the client is no longer judged. Raises Unexplained."""
        states = None if self.is_undecided else self._now(now_ms)
        return None if self.is_undecided else states

    def _now(self, now_ms: int) -> frozenset[Possible]:
        """The states that are possible now and have no overdue event. Raises Unexplained if there is none."""
        found: dict[Possible, Possible] = {}
        frontier = list(self._states)
        while frontier:
            each = frontier.pop()
            known = found.get(each)
            if known is not None and not each.is_later(known):
                continue
            found[each] = each if known is None else known.or_later(each)
            if len(found) > STATES_MAX:
                self.undecided = Undecided.STATES
                return self._states
            frontier += self._next(found[each], now_ms)
        kept = frozenset(each for each in found.values() if not self._due.is_passed(each, now_ms))
        taken_ms = self._slack.taken_ms
        if taken_ms and kept and all(self._due.is_passed(each, now_ms + taken_ms) for each in kept):
            self.undecided = Undecided.LATE  # the event is not overdue only because of the measured delay
            return self._states
        if not kept:
            overdue = sorted({text for each in found.values() for text in self._due.overdue(each, now_ms)})
            seen = f"by {now_ms} ms it has sent nothing"
            raise Unexplained("execute-a-task", self.client, seen, " or ".join(overdue) or "something")
        if self._is_ip_client and any(is_publishing(each.node, self.client) for each in kept):
            self._due.published_ms = now_ms
        self._states = kept
        return kept

    def _next(self, state: Possible, now_ms: int) -> Iterator[Possible]:
        """The states after each event that may have happened meanwhile."""
        for waiting in state.waiting:
            if waiting.from_ms <= now_ms:
                yield from self._happened(state, waiting, now_ms)
        for task in state.node.tasks:
            if task.due_ms - self._slack.skew_ms <= now_ms:
                after = step(state.node, TaskDue(now_ms, task.client, task.target), self._profile)
                if not _sends(after) and after.node.task(task.client, task.target) is None:
                    yield replace(state, node=after.node)
        if self._is_ip_client:
            if not self._due.is_owner_known:
                yield from self._believing(state)
            until_ms = now_ms + self._slack.skew_ms
            for before in self._executed(state, now_ms):
                for _, node in checked(before.node, self.client, until_ms, self._profile):
                    yield replace(before, node=node)
        elif self._due.may_expire(state.node, now_ms):
            after = step(state.node, LeaseCheckDue(now_ms), self._profile)
            yield replace(state, node=after.node)

    def _executed(self, state: Possible, now_ms: int) -> list[Possible]:
        """The state, and those in which due tasks were executed whose messages are not observed yet."""
        found = [state]
        for task in state.node.tasks if self._slack.skew_ms else ():
            if task.due_ms - self._slack.skew_ms <= now_ms:
                for before in tuple(found):
                    after = step(before.node, TaskDue(now_ms, task.client, task.target), self._profile)
                    if unseen := [Unseen(send.target, send.request, now_ms) for send in _sends(after)]:
                        found.append(replace(before, node=after.node).having_sent(unseen))
        return found

    def _happened(self, state: Possible, waiting: Waiting, now_ms: int) -> Iterator[Possible]:
        for before in self._executed(state, now_ms):
            left = tuple(each for each in before.waiting if each is not waiting)
            still = replace(before, waiting=left)
            done = self._applied(still, waiting.event, waiting.from_ms, waiting.key)
            yield done
            if does_nothing(waiting.event, before.node, done.node) or self._precedes_delete(waiting, before.node):
                yield replace(done, node=before.node)

    def _precedes_delete(self, waiting: Waiting, node: NodeState) -> bool:
        """Whether a CHANGE may have failed before the DELETE was queued. A server first removes the client, and queues
        the DELETE when it handles the event of the removal. Then the DELETE replaces the retry of the CHANGE."""
        event = waiting.event
        if not self._slack.skew_ms or not isinstance(event, CallEnded) or not isinstance(event.request, Change):
            return False
        task = node.task(self.client, event.target)
        if task is None or task.action is not Action.DELETE:
            return False
        return waiting.from_ms - task.since_ms <= self._slack.late_ms + self._slack.skew_ms

    def _believing(self, state: Possible) -> Iterator[Possible]:
        for node in believing(state.node, self.client, self._due.alive, self._profile):
            yield replace(state, node=node)

    def _lately(self, since_ms: int) -> Iterator[Possible]:
        """The states before the events that have begun since then."""
        return (each for until_ms, states in self._before if until_ms >= since_ms for each in states)

    # Steps

    def _add(self, now_ms: int, *one_of: Waiting) -> None:
        states = self._now(now_ms)
        self._remember(states, now_ms)
        self._states = merged(replace(each, waiting=(*each.waiting, one)) for each in states for one in one_of)

    def _remember(self, states: frozenset[Possible], now_ms: int) -> None:
        """Note, in real time, that the node may have been in these states until now."""
        if self._slack.skew_ms:
            remembered_ms = REMEMBERED_MS + self._slack.skew_ms
            self._before = [each for each in self._before if each[0] >= now_ms - remembered_ms]
            self._before.append((now_ms, states))

    def _after(self, states: Iterable[Possible], key: str, now_ms: int) -> list[Possible]:
        """The states after the event."""
        found: list[Possible] = []
        for each in states:
            waiting = each.waiting_for(key)
            found += [each] if waiting is None else self._happened(each, waiting, now_ms)
        return found

    def _applied(self, state: Possible, event: Event, at_ms: int, key: str = "") -> Possible:
        after = step(state.node, replace(event, at_ms=at_ms), self._profile)
        answers = tuple((key, _answer_in(output)) for output in after.outputs if key and not isinstance(output, Send))
        node = announced(after.node, at_ms, self._profile)
        return replace(state, node=node, answers=(*state.answers, *answers))

    # Observations

    def _sent_by(self, state: Possible, target: str, request: Request, now_ms: int) -> Possible | None:
        for unseen in state.unseen:
            if (unseen.target, unseen.request) == (target, request):
                return replace(state, unseen=tuple(each for each in state.unseen if each is not unseen))
        task = state.node.task(self.client, target)
        if task is None or task.due_ms - self._slack.skew_ms > now_ms:
            return None
        after = step(state.node, TaskDue(now_ms, self.client, target), self._profile)
        return replace(state, node=after.node) if Send(target, request) in _sends(after) else None

    def _sent_verify(
        self, target: str, request: Verify, states: Iterable[Possible], now_ms: int, gathered_ms: int
    ) -> None:
        wanted = Send(target, request)
        last_ms = self._gathered_ms.get(target)
        self._verified_ms[target], self._gathered_ms[target] = now_ms, gathered_ms
        earliest_ms = 0 if last_ms is None else last_ms + self._profile.verify_interval_ms - self._slack.late_ms
        seen = f"it sends {request_text(request)} to {target} at {now_ms} ms"
        if now_ms < earliest_ms - self._profile.tick_ms:
            raise Unexplained("verify", self.client, seen, f"none before {earliest_ms} ms, one round after the last")
        if last_ms is not None and now_ms < earliest_ms + self._slack.taken_ms - self._profile.tick_ms:
            self.undecided = Undecided.LATE
            return
        lately = self._lately(gathered_ms - self._slack.skew_ms)
        if any(wanted in self._verifies(each.node, now_ms) for each in lately):
            return
        kept = [each for each in states if wanted in self._verifies(each.node, now_ms)]
        if kept:
            self._states = merged(kept)
            return
        texts = {request_text(output.request) for each in states for output in self._verifies(each.node, now_ms)}
        raise Unexplained("verify", self.client, seen, " or ".join(sorted(texts)) or "no VERIFY")

    def _verifies(self, node: NodeState, now_ms: int) -> tuple[Send, ...]:
        return _sends(step(node, VerifyDue(now_ms), self._profile))

    def _is_verified(self, node: NodeState, now_ms: int) -> bool:
        held = node.client(self.client)
        return held is not None and (held.native or self._is_ip_client) and bool(self._verifies(node, now_ms))

    def _view(self, node: NodeState) -> View | None:
        return view_of(self.client, node, self._profile)

    def _is_in_parts(self, view: View | None, states: Iterable[Possible], asked_ms: int) -> bool:
        if self._open or self._due.touched_ms >= asked_ms:
            return True
        return self._is_of_several(view, states)

    def _is_sent_in_parts(self, request: Request, target: str, states: Iterable[Possible]) -> bool:
        """In real time a node checks the heartbeats of the services of a client one after the other, and two heartbeats
        of one request differ by milliseconds. So a CHANGE may have one service as after a check and another one as
        before it."""
        if not self._slack.skew_ms or not isinstance(request, Change):
            return False
        is_due = any(isinstance(send.request, Change) for each in states for send in self._sent_for(each.node, target))
        return is_due and self._is_of_several(View(request.revision, request.content), states)

    def _is_torn(self, request: Request, states: Iterable[Possible], now_ms: int) -> bool:
        """A release changes and reads a client in two steps (B05). So a CHANGE that is sent during a change may have
        the new content and the old revision, or the old content and the new revision."""
        if not self._slack.skew_ms or not isinstance(request, Change) or self._profile.name == STRICT:
            return False
        now, before = self._held(states), self._held(self._lately(now_ms - self._slack.skew_ms))
        return any(
            one.content == request.content and other.revision == request.revision
            for one, other in (*product(now, before), *product(before, now))
        )

    def _is_of_several(self, view: View | None, states: Iterable[Possible]) -> bool:
        return self._is_ip_client and is_of_several(view, self._held(states))

    def _held(self, states: Iterable[Possible]) -> list[View]:
        """The views of the states in which the node holds the client."""
        return [view for each in states if (view := self._view(each.node)) is not None]

    def _sent_for(self, node: NodeState, target: str) -> tuple[Send, ...]:
        """The messages that the task of the client for this member sends when it is due."""
        task = node.task(self.client, target)
        return () if task is None else _sends(step(node, TaskDue(task.due_ms, self.client, target), self._profile))

    def _wanted(self, node: NodeState, target: str) -> str:
        task = node.task(self.client, target)
        if task is None:
            return "no CHANGE and no DELETE"
        sent = self._sent_for(node, target)
        return f"{request_text(sent[0].request)} from {task.due_ms} ms on" if sent else "nothing"

    def _contradicting_rule(self, key: str) -> tuple[str, str | None]:
        for each in self._states:
            waiting = each.waiting_for(key)
            if waiting is not None:
                return name_of(rule_for(waiting.event)), self.client
        return "confirm", self.client

    def _refusals(self, key: str, now_ms: int) -> tuple[Refusal, ...]:
        """The guards that were false when the event happened."""
        found: list[Refusal] = []
        profile = watched(self._profile, found)
        for each in self._states:
            waiting = each.waiting_for(key)
            if waiting is not None:
                step(each.node, replace(waiting.event, at_ms=now_ms), profile)
        return tuple(dict.fromkeys(found))[:3]


def _leaves_tasks(event: Event) -> bool:
    """A member that confirms a copy does not delay any due event."""
    if not isinstance(event, CallEnded) or not isinstance(event.request, Verify):
        return False
    return event.answer.result is CallResult.SUCCESS


def _sends(after: Step) -> tuple[Send, ...]:
    return tuple(Send(each.target, as_seen(each.request)) for each in after.outputs if isinstance(each, Send))


def _answer_in(output: Reply | Forward) -> Answer:
    """The answer of the node; FAIL for a request that it forwards, since it does not handle that one."""
    return FAIL if isinstance(output, Forward) else output.answer
