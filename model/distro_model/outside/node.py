"""A node observed from outside: its possible states of each client, the progress of its load, and its beliefs about its
members.

The driver of the played members reports here the actions of the members and of the node, with the times of observation.
The rules cross clients in two places only, the load and the members; both are followed here and passed on to every
client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from distro_model.clock.cluster import View
from distro_model.events import CallEnded, Event, LoadDue, RequestReceived
from distro_model.messages import Answer, CallResult, Change, Operation, Request, Snapshot, subject_of
from distro_model.node import Member, MemberState, NodeState, fresh_node
from distro_model.outside.client import ClientOutside, Undecided
from distro_model.outside.history import History
from distro_model.outside.members import MembersOutside
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import Unexplained
from distro_model.profile import Profile
from distro_model.rules.sync import is_reachable
from distro_model.step import step

NO_CLIENT = ""


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
        self._members = MembersOutside(self.peers, self.profile, self.slack, self.history, now_ms)
        self._load_ended_ms: int | None = None
        self._calls: dict[str, _Call] = {}
        self._answered: list[tuple[str, CallEnded]] = []
        """In real time: those that the node may not have noticed yet."""
        node = fresh_node(self.name, self.peers, now_ms)
        loading = step(node, LoadDue(now_ms), self.profile).node
        self._blank = self._watch(NO_CLIENT, (loading,))
        self._clients: dict[str, ClientOutside] = {}
        self._alive = self._members.alive
        self._late: set[str] = set()

    def joined(self, now_ms: int) -> None:
        """The node serves, and is connected to all members: the time until then is not judged."""
        self._members.joined(now_ms)

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
        return len(self._late | self._members.late)

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
        self._age(now_ms)
        self._of(client, now_ms).begin(key, event, now_ms)

    def finish(self, key: str, client: str, answer: Answer | None, now_ms: int, seen: str) -> None:
        self.history.note(client, now_ms, seen)
        self._age(now_ms)
        self._of(client, now_ms).finish(key, answer, now_ms, seen)

    def notice(self, key: str, client: str, now_ms: int) -> None:
        """An action on the node, which the node detects itself."""
        self.history.note(client, now_ms, "it notices that by itself, soon")
        self._age(now_ms)
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
        self._members.ended(sent.target, call, took_ms, now_ms)
        answer = Answer(result, tuple(copies))
        if isinstance(sent.request, Snapshot):
            self._load_answered(sent.target, answer, now_ms)
            return
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
        for call, ended in self._answered:
            client = self._clients.get(subject_of(ended.request) or NO_CLIENT)
            if ended.target == peer and client is not None and ended.at_ms >= now_ms - self.slack.skew_ms:
                client.may_not_happen(call, replace(ended, answer=Answer(CallResult.UNREACHABLE)), now_ms)
        self._members.left(peer, now_ms)

    def peer_back(self, peer: str, now_ms: int) -> None:
        """The node's connection to it works again, as far as is known."""
        self._members.back(peer, now_ms)
        self._update_owners(now_ms)

    def peer_waits(self, peer: str, now_ms: int, *, waits: bool) -> None:
        """Requests to it are held in transit, reports too; or no longer."""
        self._members.waits(peer, now_ms, waits=waits)
        self._update_owners(now_ms)

    def reported(self, peer: str, result: CallResult | None, now_ms: int) -> None:
        """The node has reported itself to this peer and was answered in this way; None: with an answer without
        meaning."""
        self._members.reported(peer, result, now_ms)
        self._update_owners(now_ms)

    def reported_to(self, peer: str, now_ms: int) -> None:
        """This peer has reported itself to the node."""
        self._members.reported_to(peer, now_ms)
        self._update_owners(now_ms)

    # Observations

    def sent(self, call: str, target: str, request: Request, now_ms: int) -> None:
        self.history.note(subject_of(request), now_ms, "it sends", request, "to", target)
        self._calls[call] = _Call(target, request, now_ms)
        self._age(now_ms)
        if not self._members.may_be_up(target, now_ms) and self._sends_only_to_up(target):
            seen = f"it sends {request} to {target} at {now_ms} ms"
            expected = f"nothing: {target} is {self._members.belief(target)} there"
            raise Unexplained("is_reachable", subject_of(request), seen, expected)
        if isinstance(request, Snapshot):
            self._asked_for_snapshot(target, now_ms)
            return
        gathered_ms = now_ms
        if request.operation is Operation.VERIFY:
            gathered_ms = self._members.gathered_ms(target, call, now_ms)
        self._of(subject_of(request) or NO_CLIENT, now_ms).sent(target, request, now_ms, gathered_ms)

    def shown(
        self,
        held: Mapping[str, View],
        asked_ms: int,
        now_ms: int,
        how: str,
        clients: Collection[str] | None = None,
    ) -> None:
        """The node has shown all its clients, at some time since the query; None: judge all of them."""
        self._age(now_ms)
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
        self._age(now_ms)
        free = self._members.without_verifies
        for client in clients:
            self._clients[client].check(now_ms, free)

    def check_node(self, now_ms: int) -> None:
        """The same of the messages that are about no client: reports, and requests for a snapshot."""
        self._age(now_ms)
        self._blank.settle(now_ms)
        self._members.check_reports(now_ms)
        self._check_load(now_ms)

    # Members

    def _age(self, now_ms: int) -> None:
        self._members.age(now_ms)
        self._update_owners(now_ms)

    def _update_owners(self, now_ms: int) -> None:
        """The node's beliefs about its members determine the owners of the clients of the HTTP API."""
        if (alive := self._members.alive) == self._alive:
            return
        self._alive = alive
        for client in self._clients.values():
            client.believe(alive, now_ms)

    def _sends_only_to_up(self, target: str) -> bool:
        node = next(iter(self._blank.nodes))
        down = node.with_member(Member(target, MemberState.DOWN))
        return not is_reachable(down, target, self.profile)

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
        if any(node.loaded for node in self._blank.nodes) or not self._members.all_reached:
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
            found.believe(self._alive, now_ms)
            if loaded is not None:
                found.happens(f"load {client}", RequestReceived(now_ms, *loaded), now_ms)
        return found

    def _watch(self, client: str, nodes: Iterable[NodeState]) -> ClientOutside:
        return ClientOutside(client, nodes, self.profile, self.slack, self._members.reach)
