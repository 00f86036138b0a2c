"""A node observed from outside: its possible states of each client, the progress of its load, and its beliefs about its
members.

The driver of the played members reports here the actions of the members and of the node, with the times of observation.
The rules cross clients in two places only, the load and the members; both are followed here and passed on to every
client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from distro_model.clock.cluster import View
from distro_model.events import CallEnded, Event, LoadDue, RequestReceived
from distro_model.messages import Answer, CallResult, Change, Operation, Request, Snapshot, subject_of
from distro_model.node import Member, MemberState, NodeState, fresh_node
from distro_model.outside.client import ClientOutside, Undecided
from distro_model.outside.history import History
from distro_model.outside.ip_clients import Alive
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import Unexplained
from distro_model.profile import Profile
from distro_model.rules.members import judged
from distro_model.rules.sync import is_reachable
from distro_model.step import step

NO_CLIENT = ""


@dataclass(slots=True)
class _Peer:
    """The possible beliefs of the node about one member, and whether requests reach it."""

    believed: frozenset[Member]
    can_answer: bool = True
    is_held: bool = False
    sure_since_ms: int | None = 0
    """Since when requests certainly reach it; None: perhaps not."""
    is_doubtful: bool = False
    """An event has happened since it last answered a report with success."""
    up_until_ms: int | None = None
    """The last time at which it may have been believed UP, if it is no longer."""
    reported_ms: int | None = None
    left_ms: int | None = None
    open_verifies: set[str] = field(default_factory=set)

    @property
    def is_up(self) -> bool:
        return all(each.state is MemberState.UP for each in self.believed)

    @property
    def believed_text(self) -> str:
        return " or ".join(sorted({each.state for each in self.believed}))

    @property
    def may_be_up(self) -> bool:
        return any(each.state is MemberState.UP for each in self.believed)

    def may_be_up_after(self, since_ms: int) -> bool:
        return self.may_be_up or (self.up_until_ms is not None and self.up_until_ms > since_ms)

    def may_be_alive(self, slack: Slack) -> frozenset[bool]:
        """In real time some failed reports are not observed."""
        if slack.skew_ms and self.is_doubtful:
            return frozenset((True, False))
        return frozenset(each.state is not MemberState.DOWN for each in self.believed)


@dataclass(frozen=True, slots=True)
class _Call:
    target: str
    request: Request
    sent_ms: int


class NodeOutside:
    """`start` begins a life of the node, with its first load at once. Every method raises Unexplained."""

    def __init__(self, name: str, peers: Sequence[str], profile: Profile, slack: Slack) -> None:
        self.name, self.peers = name, tuple(sorted(peers))
        self.profile, self.slack = profile, slack
        self.history = History()
        self.start(0)

    def start(self, now_ms: int) -> None:
        self._members = {peer: _Peer(frozenset({Member(peer)}), sure_since_ms=now_ms) for peer in self.peers}
        self._started_ms = now_ms
        self._load_ended_ms: int | None = None
        self._calls: dict[str, _Call] = {}
        self._answered: list[tuple[str, CallEnded]] = []
        """In real time: those that the node may not have noticed yet."""
        self._round_ms = self._verified_ms = -self.profile.verify_interval_ms
        node = fresh_node(self.name, self.peers, now_ms)
        loading = step(node, LoadDue(now_ms), self.profile).node
        self._blank = self._watch(NO_CLIENT, (loading,))
        self._clients: dict[str, ClientOutside] = {}
        self._believed: Alive = self._alive()
        self._late: set[str] = set()

    def joined(self, now_ms: int) -> None:
        """The node serves, and is connected to all members: the time until then is not judged."""
        for member in self._members.values():
            member.reported_ms = member.sure_since_ms = now_ms

    def forget(self) -> None:
        """No client so far is judged any more."""
        self._clients = {}
        self._calls, self._answered = {}, []

    @property
    def clients(self) -> Mapping[str, ClientOutside]:
        return self._clients

    @property
    def undecided(self) -> Counter[Undecided]:
        """The number of clients that are no longer judged, by reason."""
        return Counter(each.undecided for each in self._clients.values() if each.undecided is not None)

    @property
    def late(self) -> int:
        """The number of times that the node itself, and not a client, was late by no more than the machine's delay, or
        while the machine took more than half of the time."""
        return len(self._late)

    def note_late(self, what: str) -> None:
        """It was late by no more than the machine's delay."""
        self._late.add(what)

    @property
    def in_parts(self) -> int:
        return sum(each.in_parts for each in self._clients.values())

    @property
    def has_loaded(self) -> bool:
        return all(node.loaded for node in self._blank.nodes)

    # Events of the node

    def begin(self, key: str, client: str, event: Event, now_ms: int) -> None:
        if self.slack.skew_ms:  # else it is handled at this instant, and has an answer
            self.history.note(client, now_ms, f"from now on it may handle {type(event).__name__}")
        self._age_beliefs(now_ms)
        self._of(client, now_ms).begin(key, event, now_ms)

    def finish(self, key: str, client: str, answer: Answer | None, now_ms: int, seen: str) -> None:
        self.history.note(client, now_ms, seen)
        self._age_beliefs(now_ms)
        self._of(client, now_ms).finish(key, answer, now_ms, seen)

    def notice(self, key: str, client: str, now_ms: int) -> None:
        """An action on the node, which the node detects itself."""
        self.history.note(client, now_ms, "it notices that by itself, soon")
        self._age_beliefs(now_ms)
        self._of(client, now_ms).notice(key, now_ms)

    def lose(self, client: str, now_ms: int) -> None:
        """It is no longer known whether the node holds the client: it is no longer judged."""
        self.history.note(client, now_ms, "from now on it is not judged")
        self._of(client, now_ms).undecided = Undecided.LOST

    def ended(self, call: str, result: CallResult, copies: Iterable[Change], now_ms: int) -> None:
        """A request of the node was answered, or timed out: from now on the node has its end."""
        sent = self._calls.pop(call, None)
        if sent is None:  # of a client that was forgotten meanwhile
            return
        took_ms = now_ms - sent.sent_ms
        subject = subject_of(sent.request)
        self.history.note(subject, now_ms, sent.target, "answers", sent.request, "with", result, f"after {took_ms} ms")
        peer = self._members[sent.target]
        peer.open_verifies.discard(call)
        answer = Answer(result, tuple(copies))
        if isinstance(sent.request, Snapshot):
            self._load_answered(sent.target, answer, now_ms)
            return
        if self.slack.skew_ms and took_ms > self.slack.skew_ms and peer.sure_since_ms is not None:
            peer.sure_since_ms = now_ms  # a server may have closed the connection meanwhile, and made another
        client = self._of(subject or NO_CLIENT, now_ms)
        if sent.request.operation is Operation.VERIFY and now_ms > sent.sent_ms:
            client.excuse_verify(sent.target, now_ms)
        ended = CallEnded(now_ms, sent.target, sent.request, answer)
        client.happens(call, ended, now_ms, or_else=self._given_up(ended, sent.sent_ms))
        if self.slack.skew_ms:
            lately = [each for each in self._answered if each[1].at_ms >= now_ms - self.slack.skew_ms]
            self._answered = [*lately, (call, ended)]

    def _given_up(self, ended: CallEnded, sent_ms: int) -> CallEnded | None:
        """In real time an answer that takes about as long as the node's time-out may arrive after it. Then the node has
        not read the answer, whatever it says."""
        longest_ms = self.profile.call_timeout_ms - self.slack.skew_ms
        if not self.slack.skew_ms or ended.answer.result in (CallResult.TIMEOUT, CallResult.UNREACHABLE):
            return None
        is_late = ended.at_ms - sent_ms > longest_ms
        return replace(ended, answer=Answer(CallResult.TIMEOUT)) if is_late else None

    def peer_left(self, peer: str, now_ms: int) -> None:
        """From now on no request reaches it, or perhaps none. Answers that came just before may be lost with the
        connection."""
        member = self._members[peer]
        if member.can_answer:
            self.history.note(None, now_ms, f"requests to {peer} may fail from now on")
        for call, ended in self._answered:
            client = self._clients.get(subject_of(ended.request) or NO_CLIENT)
            if ended.target == peer and client is not None and ended.at_ms >= now_ms - self.slack.skew_ms:
                client.may_not_happen(call, replace(ended, answer=Answer(CallResult.UNREACHABLE)), now_ms)
        if member.can_answer:
            member.can_answer, member.left_ms, member.sure_since_ms = False, now_ms, None
            member.is_doubtful = True

    def peer_back(self, peer: str, now_ms: int) -> None:
        """The node's connection to it works again, as far as is known."""
        self.history.note(None, now_ms, f"requests reach {peer} again")
        member = self._members[peer]
        self._age_beliefs(now_ms)
        member.can_answer, member.left_ms, member.reported_ms = True, None, now_ms
        member.sure_since_ms = now_ms if member.is_up else None

    def peer_waits(self, peer: str, now_ms: int, *, waits: bool) -> None:
        """Requests to it are held in transit, reports too; or no longer."""
        self.history.note(None, now_ms, f"requests to {peer}", "are held" if waits else "are no longer held")
        member = self._members[peer]
        member.is_held, member.reported_ms, member.is_doubtful = waits, now_ms, True
        self._update_owners(now_ms)

    def reported(self, peer: str, result: CallResult | None, now_ms: int) -> None:
        """The node has reported itself to this peer and was answered in this way; None: with an answer without
        meaning."""
        member = self._members[peer]
        member.reported_ms = now_ms
        member.can_answer, member.left_ms = True, None  # a peer that is reached is no longer away
        member.is_doubtful = member.is_held or result is not CallResult.SUCCESS
        if result is not None:
            after = [judged(each, result, self.profile) for each in member.believed]
            is_late = self.slack.skew_ms >= self.profile.call_timeout_ms  # the node may not have waited so long
            self._believe(peer, (*after, *(member.believed if is_late else ())), now_ms)

    def reported_to(self, peer: str, now_ms: int) -> None:
        """This peer has reported itself to the node."""
        member = self._members[peer]
        after = [Member(each.name, MemberState.UP, each.failures) for each in member.believed]
        before = member.believed if self.slack.skew_ms else frozenset()
        member.left_ms = None if member.left_ms is None else now_ms
        self._believe(peer, (*after, *before), now_ms)

    # Observations

    def sent(self, call: str, target: str, request: Request, now_ms: int) -> None:
        self.history.note(subject_of(request), now_ms, "it sends", request, "to", target)
        self._calls[call] = _Call(target, request, now_ms)
        member = self._members[target]
        self._age_beliefs(now_ms)
        if not member.may_be_up_after(now_ms - self.slack.skew_ms) and self._sends_only_to_up(target):
            seen = f"it sends {request} to {target} at {now_ms} ms"
            expected = f"nothing: {target} is {member.believed_text} there"
            raise Unexplained("is_reachable", subject_of(request), seen, expected)
        if isinstance(request, Snapshot):
            self._asked_for_snapshot(target, now_ms)
            return
        client = self._of(subject_of(request) or NO_CLIENT, now_ms)
        if request.operation is Operation.VERIFY:
            member.open_verifies.add(call)
            self._note_round(now_ms)
        client.sent(target, request, now_ms, self._gathered_ms(member, now_ms))

    def _note_round(self, now_ms: int) -> None:
        """A round reads what it says of all clients before it sends the first VERIFY (docs/protocol #verify-round)."""
        if now_ms - self._verified_ms > self.profile.verify_interval_ms // 2:
            self._round_ms = now_ms
        self._verified_ms = now_ms

    def _gathered_ms(self, member: _Peer, now_ms: int) -> int:
        """Where requests may not have reached the member, the round waited for its connection at each client, and the
        revisions may be those of the round before (RpcClient.asyncRequest)."""
        before_ms = now_ms - self.profile.verify_interval_ms
        waited = member.sure_since_ms is None or member.sure_since_ms > before_ms
        return min(self._round_ms, before_ms) if self.slack.skew_ms and waited else self._round_ms

    def shown(
        self,
        held: Mapping[str, View],
        asked_ms: int,
        now_ms: int,
        how: str,
        clients: Collection[str] | None = None,
    ) -> None:
        """The node has shown all its clients, at some time since the query; None: judge all of them."""
        self._age_beliefs(now_ms)
        for client in sorted({*held, *self._clients} if clients is None else clients):
            view = held.get(client)
            self.history.note(client, now_ms, how, view)
            self._of(client, now_ms).shown(view, asked_ms, now_ms, how)

    def check(self, now_ms: int) -> None:
        """All messages due by now have been observed."""
        self.check_clients(self._clients, now_ms)
        self.check_node(now_ms)

    def check_clients(self, clients: Iterable[str], now_ms: int) -> None:
        """All messages about these clients that were due by now have been observed."""
        self._age_beliefs(now_ms)
        free = [peer for peer, member in self._members.items() if not member.open_verifies]
        for client in clients:
            self._clients[client].check(now_ms, free)

    def check_node(self, now_ms: int) -> None:
        """The same of the messages that are about no client: reports, and requests for a snapshot."""
        self._age_beliefs(now_ms)
        self._blank.settle(now_ms)
        self._check_reports(now_ms)
        self._check_load(now_ms)

    # Members

    def reach(self, peer: str) -> int | None:
        return self._members[peer].sure_since_ms

    def _believe(self, peer: str, members: Iterable[Member], now_ms: int) -> None:
        member = self._members[peer]
        was_up = member.is_up
        if member.may_be_up:
            member.up_until_ms = now_ms
        self._set_believed(peer, members, now_ms)
        self._update_owners(now_ms)
        if not member.is_up:
            member.sure_since_ms = None
        elif member.can_answer and (not was_up or member.sure_since_ms is None):
            member.sure_since_ms = now_ms

    def _set_believed(self, peer: str, members: Iterable[Member], now_ms: int) -> None:
        member = self._members[peer]
        before, member.believed = member.believed_text, frozenset(members)
        if member.believed_text != before:
            self.history.note(None, now_ms, f"it believes {peer} to be {member.believed_text}")

    def _alive(self) -> Alive:
        return {peer: member.may_be_alive(self.slack) for peer, member in self._members.items()}

    def _update_owners(self, now_ms: int) -> None:
        """The node's beliefs about its members determine the owners of the clients of the HTTP API."""
        if (alive := self._alive()) == self._believed:
            return
        self._believed = alive
        for client in self._clients.values():
            client.believe(alive, now_ms)

    @property
    def _report_round_ms(self) -> int:
        """A server reports to the next member two seconds after the one before has answered or timed out, the model two
        seconds after the report has begun."""
        waits_ms = self.profile.call_timeout_ms if self.slack.skew_ms else 0
        return (self.profile.report_interval_ms + waits_ms) * len(self.peers)

    def _age_beliefs(self, now_ms: int) -> None:
        """Reports to an absent member fail, at least one in each round; they are not observed."""
        for peer, member in self._members.items():
            if member.left_ms is None:
                continue
            after = set(member.believed)
            while more := {judged(each, CallResult.UNREACHABLE, self.profile) for each in after} - after:
                after |= more
            gone_ms = now_ms - member.left_ms - self.profile.report_first_ms - self.slack.late_ms
            sure = gone_ms > self._report_round_ms
            is_down = gone_ms > self._report_round_ms * (self.profile.failures_until_down + 1)
            if sure:
                after = {each for each in after if each.state is not MemberState.UP}
            if is_down:
                after = {each for each in after if each.state is MemberState.DOWN}
            self._set_believed(peer, after, now_ms)
        self._update_owners(now_ms)

    def _sends_only_to_up(self, target: str) -> bool:
        node = next(iter(self._blank.nodes))
        down = node.with_member(Member(target, MemberState.DOWN))
        return not is_reachable(down, target, self.profile)

    def _check_reports(self, now_ms: int) -> None:
        for peer, member in self._members.items():
            if not member.can_answer or member.is_held:
                continue
            first_ms = self._started_ms + self.profile.report_first_ms - self.profile.report_interval_ms
            base_ms = max(first_ms, member.reported_ms or 0)
            due_ms = base_ms + self._report_round_ms + self.profile.tick_ms + self.slack.late_ms
            if now_ms > due_ms and not self.slack.is_starved:
                seen = f"it has not reported itself to {peer} since {base_ms} ms"
                raise Unexplained("report", None, seen, f"a report by {due_ms} ms")
            if now_ms > due_ms - self.slack.taken_ms:
                self._late.add(f"report to {peer} after {base_ms} ms")

    # The load

    def _all(self) -> tuple[ClientOutside, ...]:
        return (self._blank, *self._clients.values())

    def _asked_for_snapshot(self, target: str, now_ms: int) -> None:
        """Where a member could not be asked, the next one may be."""
        for each in self._all():
            each.learn(lambda node: node.changed(asking=target) if not node.loaded else None)
        if not self._blank.nodes:
            raise Unexplained("load", None, f"it asks {target} for a snapshot at {now_ms} ms", "nothing: it has loaded")

    def _load_answered(self, target: str, answer: Answer, now_ms: int) -> None:
        self._load_ended_ms = now_ms
        for each in self._all():
            copies = tuple(copy for copy in answer.copies if copy.client == each.client)
            ended = CallEnded(now_ms, target, Snapshot(), replace(answer, copies=copies))
            each.happens(f"load {now_ms}", ended, now_ms)
        for copy in answer.copies:
            self._of(copy.client, now_ms, loaded=(target, copy))

    def _check_load(self, now_ms: int) -> None:
        if self._load_ended_ms is None or self.has_loaded:
            return
        if any(node.loaded for node in self._blank.nodes) or any(
            member.sure_since_ms is None for member in self._members.values()
        ):
            return
        asked = any(isinstance(call.request, Snapshot) for call in self._calls.values())
        due_ms = self._load_ended_ms + self.profile.load_retry_ms + self.profile.tick_ms + self.slack.late_ms
        if now_ms > due_ms and not asked and not self.slack.is_starved:
            seen = f"it has asked no member for a snapshot since {self._load_ended_ms} ms"
            raise Unexplained("load", None, seen, f"a request by {due_ms} ms")
        if now_ms > due_ms - self.slack.taken_ms and not asked:
            self._late.add(f"snapshot after {self._load_ended_ms} ms")

    # Clients

    def _of(self, client: str, now_ms: int, loaded: tuple[str, Change] | None = None) -> ClientOutside:
        found = self._clients.get(client)
        if found is None:
            self._blank.settle(now_ms)
            found = self._clients[client] = self._watch(client, self._blank.nodes)
            found.believe(self._believed, now_ms)
            if loaded is not None:
                found.happens(f"load {client}", RequestReceived(now_ms, *loaded), now_ms)
        return found

    def _watch(self, client: str, nodes: Iterable[NodeState]) -> ClientOutside:
        return ClientOutside(client, nodes, self.profile, self.slack, self.reach)
