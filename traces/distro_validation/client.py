"""One client through a trace: the set of states in which each node may hold it, given its rows so far.

A received request is a step of the model (`distro_model.step`) with several possible outcomes. The following rows,
about the state of the node and its answer, keep only the outcomes that agree with them. If none is left, the row is
rejected. The state of a node is unknown until its start or a row shows it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from distro_model.events import ClientConnected, LeaseCheckDue, Reply, RequestReceived
from distro_model.events import Event as Input
from distro_model.messages import Change, Verify
from distro_model.node import NodeState, fresh_node
from distro_model.profile import Profile
from distro_model.rules import torn
from distro_model.step import whole_step
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import Event, Kind, Outcome
from distro_validation.cluster import Call, ClusterRows, Handling
from distro_validation.verdict import Candidate, Rejection, rejected
from distro_validation.wording import (
    OWN,
    View,
    batches_of,
    content_of,
    digest_of,
    false_guard,
    of_one_service,
    own_inputs,
    requests_of,
    row_text,
    views_text,
)

_READ_MS = 50
"""A node may read the content of a request this time before the call."""
_READ_WITHIN_MS = 5_000
"""The state of a server that reports nothing is read, and recorded, after each action of a client. A request may be
sent this time before the row that explains it."""
_LEASE_SLACK_MS = {"virtual": 0, "wall": 10_000}

_States = frozenset[NodeState]


@dataclass(slots=True)
class _Handled:
    """A request at its receiver.

    `before`: the possible states; `outcomes`: the states after it, each with the answer; `unchanged`: those outcomes in
    which the client is as before. `among_others`: another request that changes the client was handled at the same time.
    """

    before: _States
    outcomes: frozenset[tuple[NodeState, str]]
    unchanged: _States
    changed: bool
    among_others: bool
    handling: Handling
    is_change: bool = False  # its steps overwrite those of another request, even if it has no effect alone
    shown: bool = False


@dataclass(slots=True)
class _Holder:
    """The possible states of one node for this client. `states` is None while the state is unknown."""

    life: tuple[int, int]
    states: _States | None
    handled: dict[str, _Handled] = field(default_factory=dict)
    replaced: frozenset[tuple[int, str]] = frozenset()  # the state before its last change or the last snapshot
    replaced_ms: int = 0
    has_left: bool = False  # the client's own connection to this node has ended
    early: list[Rejection] = field(
        default_factory=list
    )  # for sent requests that the next row of the client may explain


BY_BEATS = "of a client by ip:port, whose heartbeats and owner are not recorded"
NO_STATE = "of a node whose clients were not recorded"
UNKNOWN = "a message to or from a node whose state at that time is unknown"
TORN = "a copy from a snapshot that was made while its source applied a CHANGE in steps"
UNSAID = "a request whose content was not recorded"
TO_UNJUDGED = "the answer to a request that was not judged"
FIRST = "the state of a node whose earlier rows were not recorded"


class ClientRows:
    """The rows of one client, in causal order."""

    def __init__(self, client: str, profile: Profile, cluster: ClusterRows, clock: str) -> None:
        self._client, self._profile, self._cluster = client, profile, cluster
        self._slack_ms = _LEASE_SLACK_MS[clock]
        self._holders: dict[str, _Holder] = {}
        self._held: defaultdict[str, set[tuple[int, str]]] = defaultdict(
            set
        )  # by node all contents that it has held: those that snapshots may have
        self._in_parts: defaultdict[str, list[Handling]] = defaultdict(list)  # CHANGEs that were applied in steps
        self.undecided: Counter[str] = Counter()  # rows that were not judged, by reason

    def take(self, event: Event) -> Rejection | None:
        """The rejection of this row, or None."""
        if "#" in self._client:
            self.undecided[BY_BEATS] += 1
            return None
        late = self._unexplained(event.at_ms - _READ_WITHIN_MS)
        if late is not None:
            return late
        holder = self._holder(event)
        judge = self._judge if self._cluster.shows_state(event.node) else self._judge_answers
        rejection = judge(event, holder)
        if rejection is None or self._cluster.shows_causes(event.node):
            return rejection
        return self._learn(event, holder)  # a missing row may explain this one

    def finish(self) -> Rejection | None:
        """The rejection after the last row, or None."""
        return self._unexplained(None)

    def _unexplained(self, until_ms: int | None) -> Rejection | None:
        """The rejection of the first request sent by then that no later row of the client at its sender has
        explained."""
        early = (each for holder in self._holders.values() for each in holder.early)
        return next((each for each in early if until_ms is None or each.event.at_ms < until_ms), None)

    def _judge_answers(self, event: Event, holder: _Holder) -> Rejection | None:
        """Judge a row of a node whose state was not recorded: its answers must follow from its received requests."""
        if event.kind is Kind.REQUEST_RECEIVED and holder.states is not None:
            holder.states |= self._without_lease(event, holder.states)
            self._received(event, holder)
        elif event.kind is Kind.REPLY_SENT and event.message in holder.handled:
            return self._answered(event, holder)
        else:
            self.undecided[NO_STATE] += 1
            if event.kind is Kind.REPLY_SENT and event.outcome is Outcome.SUCCESS and holder.states is None:
                holder.states = self._states_by_verify(event)
        return None

    def _without_lease(self, event: Event, states: _States) -> _States:
        """The states, and those after the end of a lease that may have ended by then. A node that does not report its
        state has no row of that."""
        leases_end = LeaseCheckDue(event.at_ms + self._slack_ms)
        return frozenset(self._after(state, leases_end).node for state in states)

    def _states_by_verify(self, event: Event) -> _States | None:
        """The states that follow from a VERIFY that succeeded: it shows the held revision, if the release compares
        it."""
        sent = self._cluster.calls[event.message or ""].sent
        if sent is None or sent.operation != "VERIFY" or sent.revision is None:
            return None
        node, verify = fresh_node(event.node, (), 0).changed(loaded=True), Verify(self._client, sent.revision)
        copies = [Change(self._client, revision, ()) for revision in (sent.revision, sent.revision + 1)]
        held = [self._after(node, RequestReceived(event.at_ms, "", copy)).node for copy in copies]
        answers = [_answer(self._after(each, RequestReceived(event.at_ms, "", verify))) for each in held]
        return frozenset(held[:1]) if answers == [Outcome.SUCCESS, Outcome.FAIL] else None

    def _judge(self, event: Event, holder: _Holder) -> Rejection | None:
        is_read = not self._cluster.observed.reports(event.node)
        if is_read and holder.states is not None and event.kind in (Kind.REQUEST_RECEIVED, Kind.OBSERVED):
            holder.states |= self._without_lease(event, holder.states)
        if event.kind in OWN and holder.states is not None:
            return self._own(event, holder, holder.states) or self._explained(holder)
        match event.kind:
            case Kind.REQUEST_SENT:
                rejection = self._sent(event, holder)
                if rejection is not None and is_read:
                    holder.early.append(rejection)
                    return None
                return rejection
            case Kind.REQUEST_RECEIVED:
                self._received(event, holder)
            case Kind.REPLICA_APPLIED | Kind.REPLICA_REMOVED:
                return self._copied(event, holder)
            case Kind.REPLY_SENT:
                return self._answered(event, holder)
            case Kind.OBSERVED:
                return self._observed(event, holder)
        return None

    def _holder(self, event: Event) -> _Holder:
        life = self._cluster.life(event.node)
        holder = self._holders.get(event.node)
        if holder is None or holder.life != life:
            states = None
            if self._cluster.is_empty_at_first(event.node):
                node = fresh_node(event.node, (), self._cluster.started_ms[event.node])
                states = frozenset((node.changed(loaded=True),))
            holder = self._holders[event.node] = _Holder(life, states)
        return holder

    def _own(self, event: Event, holder: _Holder, states: _States) -> Rejection | None:
        """Judge a change of the client by its own connection."""
        transition, inputs = own_inputs(event, self._client)
        is_there = any(self._view(state) for state in states)
        if event.kind is Kind.CLIENT_DISCONNECTED and not is_there:
            return rejected(event, transition, "the client is held until then", "nothing", "disconnected")
        if event.kind is Kind.CLIENT_DISCONNECTED and event.owned is False:
            return rejected(event, transition, "it is native", "native", "a copy")
        holder.has_left = event.kind is Kind.CLIENT_DISCONNECTED
        views = {self._view(state) for state in states}
        if event.kind is Kind.CLIENT_CONNECTED and all(view is not None and view[0] for view in views):
            return rejected(event, transition, "a connection is made once", views_text(views), "connected again")
        self._replace(event, holder, states)
        asked = [self._without_batches(state) for state in states]
        after = frozenset(self._after(state, one).node for state in asked for one in inputs)
        return self._keep(event, holder, after, transition)

    def _explained(self, holder: _Holder) -> Rejection | None:
        """After a row of the client: the rejection of the first request sent shortly before that does not fit this row
        either."""
        early, holder.early = holder.early, []
        return next((each for each in early if self._sent(each.event, holder) is not None), None)

    def _without_batches(self, state: NodeState) -> NodeState:
        """The state without batches, since the row of a request has the digest of everything that the client
        publishes."""
        held = state.client(self._client)
        return state if held is None else state.with_client(replace(held, content=of_one_service(held.content)))

    def _sent(self, event: Event, holder: _Holder) -> Rejection | None:
        if holder.states is None:
            self.undecided[UNKNOWN] += 1
            return None
        views = {self._view(state) for state in holder.states}
        if event.operation == "DELETE":
            restored = any(view and not view[0] for view in views)  # B27: the DELETE may still be queued for a member
            fits, guard = None in views or (holder.has_left and restored), "the client is gone here"
        elif event.operation == "VERIFY":
            fits = any(view and view[0] and self._revision_fits(event, view[1]) for view in views)
            guard = "it is the owner, and this its revision"
        else:
            current = {view[1:] for view in views if view and view[0]}
            may_be_sent = current | self._read_before(event, holder, current)
            fits = any(
                self._revision_fits(event, revision) and event.digest in (None, content)
                for revision, content in may_be_sent
            )
            guard = "it is the owner, and sends what it holds"
        return None if fits else rejected(event, f"send {event.operation}", guard, views_text(views), row_text(event))

    def _read_before(self, event: Event, holder: _Holder, current: set[tuple[int, str]]) -> set[tuple[int, str]]:
        """The states that a CHANGE may have if it is read in two steps (B05), with a change of the client in between:
        the old content with the new revision, or with the old one if the client has left."""
        if not self._profile.has(torn.on_task_due) or event.at_ms - holder.replaced_ms > _READ_MS:
            return set()
        revisions = {revision for revision, _ in current or holder.replaced}
        return {(revision, content) for revision in revisions for _, content in holder.replaced}

    def _received(self, event: Event, holder: _Holder) -> None:
        requests = requests_of(event, self._client)
        if not requests or holder.states is None or event.message is None:
            self.undecided[UNKNOWN if requests else UNSAID] += 1
            return
        outcomes, unchanged, changed = set(), set(), False
        others = self._in_steps(holder)
        for state in holder.states.union(*(each.before for each in others)):
            for request in requests:
                after = self._after(state, RequestReceived(event.at_ms, event.peer or "", request))
                outcomes.add((after.node, _answer(after)))
                if self._view(after.node) == self._view(state):
                    unchanged.add(after.node)
                else:
                    changed = True
        for each in others if changed else ():
            each.among_others = True
        is_change = any(isinstance(request, Change) for request in requests)
        handled = _Handled(
            holder.states,
            frozenset(outcomes),
            frozenset(unchanged),
            changed,
            changed and bool(others),
            Handling(self._cluster.lives[event.node], event.seq),
            is_change,
        )
        holder.handled[event.message] = handled
        if is_change and self._profile.has(torn.on_change):
            self._in_parts[event.node].append(handled.handling)
        self._set(event.node, holder, frozenset(node for node, _ in outcomes))

    def _in_steps(self, holder: _Holder) -> list[_Handled]:
        """The requests that a release is applying in steps (B05). Other requests may meet the state of before them."""
        if not self._profile.has(torn.on_change):
            return []
        return [each for each in holder.handled.values() if (each.changed or each.is_change) and not each.shown]

    def _mixed(self, event: Event, handled: _Handled, states: _States | None) -> _States:
        """The possible results of a CHANGE and others that are applied at the same time: each service, and the
        revision, may come from any of them."""
        sent = self._cluster.calls[event.message].sent if event.message in self._cluster.calls else None
        if not handled.among_others or event.digest is None or sent is None or sent.revision is None:
            return frozenset()
        contents = (content_of(event.digest), *batches_of(event.digest))
        copies = [Change(self._client, sent.revision, each) for each in contents]
        if (
            event.digest == sent.digest
        ):  # its content was applied last, with the revision that the row of the other request shows
            views = filter(None, map(self._view, states or ()))
            copies += [Change(self._client, revision, each) for _, revision, _ in views for each in contents]
        arrived = [RequestReceived(event.at_ms, sent.node, copy) for copy in copies]
        return frozenset(self._after(state, each).node for state in handled.before for each in arrived)

    def _copied(self, event: Event, holder: _Holder) -> Rejection | None:
        handled = self._cause(event, holder)
        if handled is not None:
            if handled.shown:
                return rejected(
                    event, "apply a request", "its effect is reported once", "reported before", row_text(event)
                )
            handled.shown, handled.handling.end = True, event.seq
            is_recorded = event.node in self._cluster.observed.reported or "*" in self._cluster.observed.reported
            if event.kind is Kind.REPLICA_REMOVED and not handled.changed and is_recorded:
                return rejected(event, "apply a request", "it removes something", "nothing", "removed")
            made = frozenset(node for node, _ in handled.outcomes) | self._mixed(event, handled, holder.states)
            if handled.among_others and holder.states is not None:
                made |= holder.states  # the steps of the other request came last, and its row shows the result
            return self._keep(event, holder, made, "apply a request")
        if holder.states is None:
            return self._learn(event, holder)
        if event.kind is Kind.REPLICA_REMOVED and event.message is None:
            if all(self._view(state) is None for state in holder.states):
                return rejected(event, "end a lease", "the client is held until then", "nothing", "removed")
            return self._keep(event, holder, self._without_lease(event, holder.states), "end a lease")
        asked = self._asked(event)
        if asked is not None and asked.sent is not None:
            return self._loaded(event, holder, holder.states, asked, asked.sent.peer or "")
        return rejected(event, "apply a request", "a request for it was received here", "none", row_text(event))

    def _cause(self, event: Event, holder: _Holder) -> _Handled | None:
        """The request whose effect the row reports. If the node does not name it, the latest one without such a row."""
        if event.message is not None:
            return holder.handled.get(event.message)
        return next((each for each in reversed(holder.handled.values()) if each.changed and not each.shown), None)

    def _asked(self, event: Event) -> Call | None:
        """The request for the snapshot that the row may come from."""
        if event.message is None:
            return self._cluster.asked.get(event.node)
        call = self._cluster.calls.get(event.message)
        return call if call is not None and call.sent is not None and call.sent.operation == "SNAPSHOT" else None

    def _loaded(self, event: Event, holder: _Holder, states: _States, asked: Call, source: str) -> Rejection | None:
        if event.revision is None and self._profile.revisions_travel and not self._is_known(source):
            self.undecided[UNKNOWN] += 1
            holder.states = None
            return None
        given = (event.revision or 0, event.digest or NOTHING_PUBLISHED)
        held = self._held[source]
        if self._is_known(source) and given[1] not in {content for _, content in held}:
            if not self._is_torn(asked, source):
                shown = ", ".join(f"revision {revision} {content}" for revision, content in sorted(held)) or "nothing"
                return rejected(event, "load a snapshot", f"a content that {source} has held", shown, row_text(event))
            self.undecided[TORN] += 1
        revisions = {revision for revision, _ in held}
        copies = [Change(self._client, revision, content_of(given[1])) for revision in {given[0], *revisions}]
        # The row does not show whether it contains a batch, which would carry its revision.
        batches = batches_of(given[1])
        copies += [Change(self._client, revision, batch) for revision in revisions or {given[0]} for batch in batches]
        after = frozenset(
            self._after(state, RequestReceived(event.at_ms, source, copy)).node for state in states for copy in copies
        )
        if after != states:
            self._replace(event, holder, states)
            for each in self._in_steps(holder):
                each.among_others = True
        return self._keep(event, holder, after | states, "load a snapshot")

    def _replace(self, event: Event, holder: _Holder, states: _States) -> None:
        """Note that these states are replaced now. Their content may still be sent for a short time."""
        views = map(self._view, states)
        holder.replaced, holder.replaced_ms = frozenset(view[1:] for view in views if view), event.at_ms

    def _is_torn(self, asked: Call, source: str) -> bool:
        """Whether the source was applying a CHANGE in steps when it made the snapshot (B05)."""
        return asked.handled is not None and any(asked.handled.overlaps(each) for each in self._in_parts[source])

    def _is_known(self, node: str) -> bool:
        """Whether the rows show all that the node may hold of the client."""
        holder = self._holders.get(node)
        if holder is None or holder.life != self._cluster.life(node):
            return self._cluster.shows_state(node) and self._cluster.is_empty_at_first(node)
        return self._cluster.shows_state(node) and holder.states is not None

    def _answered(self, event: Event, holder: _Holder) -> Rejection | None:
        handled = holder.handled.get(event.message or "")
        if handled is None:
            self.undecided[TO_UNJUDGED] += 1
            return None
        del holder.handled[event.message or ""]
        handled.handling.end = event.seq if handled.handling.end is None else handled.handling.end
        if event.outcome is Outcome.ERROR:  # the request was refused before a handler received it
            self._set(event.node, holder, handled.before)
            return None
        answers = {answer for _, answer in handled.outcomes}
        if event.outcome is not None and event.outcome.value not in answers:
            return rejected(event, "answer", "it is what the model answers", ", ".join(sorted(answers)), event.outcome)
        kept = frozenset(node for node, answer in handled.outcomes if answer == event.outcome)
        if kept and holder.states is not None and holder.states & kept:
            holder.states &= kept
        is_recorded = self._cluster.observed.lossless and self._cluster.shows_state(event.node)
        if handled.changed and not handled.shown and is_recorded:
            if holder.states is not None and holder.states & handled.unchanged:
                holder.states &= handled.unchanged
                return None
            if handled.among_others and holder.states is not None:
                gone = frozenset(state for state in holder.states if self._view(state) is None)
                if gone:  # its last steps were applied to a client that a DELETE had removed (B05)
                    holder.states = gone
                    return None
            made = views_text({self._view(node) for node, _ in handled.outcomes})
            return rejected(event, "answer", "what a request made is reported before", made, "no row")
        return None

    def _observed(self, event: Event, holder: _Holder) -> Rejection | None:
        if holder.states is None:
            return self._learn(event, holder)
        return self._keep(event, holder, holder.states, "read")

    def _learn(self, event: Event, holder: _Holder) -> Rejection | None:
        """Take the state from a row that is the first about its node, or before which rows may be missing."""
        self.undecided[FIRST] += 1
        holder.states = None
        if event.digest is None or event.revision is None or event.owned is None:
            return None
        node = fresh_node(event.node, (), 0).changed(loaded=True)
        copy = Change(self._client, event.revision, content_of(event.digest))
        after = self._after(node, RequestReceived(event.at_ms, "", copy)).node
        if event.owned:
            connected = self._after(node, ClientConnected(event.at_ms, self._client)).node
            clients = (replace(c, revision=copy.revision, content=copy.content) for c in connected.clients)
            after = connected.changed(clients=tuple(clients))
        self._set(event.node, holder, frozenset((after,)))
        return None

    def _keep(self, event: Event, holder: _Holder, after: Iterable[NodeState], transition: str) -> Rejection | None:
        """Keep the possible states that agree with the row."""
        after = tuple(after)
        kept = frozenset(state for state in after if self._agrees(event, self._view(state)))
        if kept:
            self._set(event.node, holder, kept)
            return None
        views = {self._view(state) for state in after}
        seen = row_text(event)
        candidates = [Candidate(transition, false_guard(event, view), views_text({view}), seen) for view in views]
        return Rejection(event, tuple(sorted(candidates, key=str)))

    def _agrees(self, event: Event, view: View) -> bool:
        if event.digest is None:
            return view is None
        if view is None:
            return False
        native, revision, content = view
        # The recorder of nodes that report their state fills in the owner of the client, also after a restart.
        is_recorded = event.kind in OWN or event.message is not None
        return (
            (not is_recorded or event.owned in (None, native))
            and (event.revision in (None, revision) or (event.revision == 0 and not self._profile.revisions_travel))
            and event.digest == content
        )

    def _revision_fits(self, event: Event, revision: int) -> bool:
        return event.revision is None or not self._profile.revisions_travel or event.revision == revision

    def _after(self, state: NodeState, event: Input) -> _Step:
        after = whole_step(state, event, self._profile)
        return _Step(after.node.changed(tasks=()) if after.node.tasks else after.node, after.outputs)

    def _set(self, node: str, holder: _Holder, states: _States) -> None:
        holder.states = states
        for state in states:
            held = state.client(self._client)
            if held is not None:
                self._held[node].add((held.revision, digest_of(held.content)))

    def _view(self, state: NodeState) -> View:
        held = state.client(self._client)
        return None if held is None else (held.native, held.revision, digest_of(held.content))


@dataclass(frozen=True, slots=True)
class _Step:
    node: NodeState
    outputs: tuple[object, ...]


def _answer(after: _Step) -> str:
    return next((output.answer.result.value for output in after.outputs if isinstance(output, Reply)), "")
