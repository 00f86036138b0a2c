"""The rules about members that the kit plays: they send false messages, answer with failures, and are slow.

A played member sends messages about its own clients, clients of other members and clients of the node. Most of them fit
the state, since a node that refuses everything exercises little code.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from distro_conformance.walks.walk import ADDRESSES, INDEX, SERVICES, Walk, pick
from distro_model.actions import (
    ACKNOWLEDGED,
    MALFORMED,
    RESULTS,
    Advance,
    Connect,
    Crash,
    Drop,
    Duplicate,
    Hold,
    HttpBeat,
    LoseReply,
    PeerAnswer,
    PeerRequest,
    Register,
    Release,
)
from distro_model.messages import Content

FOREIGN = ("f1", "f2", "f3")
"""Clients of played members."""
BESIDE = "10.1.0.9:90"
"""The second instance of each batch."""
LOST = "nothing"
"""The result of a request that is dropped."""

SYNC_MS = 1_100
"""The sync delay and a tick: changes have been sent by then."""
VERIFY_MS = 5_100
"""A verify round, and the tick in which its results are repaired."""
LATE_MS = 100_000
"""More than half a lease."""
LATE_MAX = 2
SLOW_MS = (1_000, 2_900, 3_100)
"""How long a reply takes: within the time-out of a call, just within it, and just too long."""

SILENCES_MS = ((4_000,) * 3, (4_000,) * 4, (4_000,) * 8)
"""Without a beat: shorter than detection, until unhealthy, until removed; in real time a single wait is at most five
seconds."""
UNTIL_DOWN_MS = (4_000,) * 8
"""Four reports to a member, of three in turn."""

VERSIONS = ("80", "81", "80 zone=b", "80 cluster=north", "80 weight=2.5", "80 enabled=false")
"""The port and other parts of what a client registers."""

_OPERATION = st.sampled_from(ACKNOWLEDGED)
_FOREIGN, _CONTENT = st.sampled_from(FOREIGN), st.integers(0, 15)


class Messages(Walk):
    renewed_late = 0

    def __init__(self) -> None:
        super().__init__()
        self.revisions: dict[str, int] = {}  # foreign client -> revision that was sent last

    @property
    def senders(self) -> list[str]:
        return [member for member in self.played if member in self.up]

    def fail(self, operation: str, client: str, peer: int, result: str) -> None:
        """The next such request gets this result where the member is played; else, or if it is LOST, it is dropped."""
        source, target = self.link_of(client, peer)
        is_lost = result == LOST or target not in self.played
        self.perform(
            Drop(source, target, operation, client) if is_lost else PeerAnswer(target, operation, result, client)
        )

    def connect_one(self, node: str) -> str:
        client = f"c{len(self.homes) + 1}"
        self.perform(Connect(client, node))
        return client

    def register_one(self, client: str, service: str, version: int) -> None:
        """Each version differs from version 1 in one part of the content only."""
        self.perform(Register(client, service, f"10.0.0.{client[1:]}:{VERSIONS[version - 1]}"))

    def registered_one(self, index: int) -> tuple[str, str]:
        """A service, and an instance that was registered there over HTTP."""
        (service, _), instance = pick(self.registered.items(), index)
        return service, instance

    def _content(self, client: str, number: int) -> Content:
        """The bits of `number` choose the services, the port of the second, and whether each is published as a batch.
        A client of the HTTP API is its address, and has no batch."""
        chosen = ((SERVICES[1], 0, number & 1), (SERVICES[0], number >> 2 & 1, number & 2))
        address, hash_sign, _ = client.partition("#")
        content: list[tuple[str, str]] = []
        for service, port, is_there in chosen:
            instance = address if hash_sign else f"10.1.0.{client[1:]}:{80 + port}"
            is_batch = number & 8 and self.can_batch and not hash_sign
            if is_there:
                content.append((service, f"{instance}, {BESIDE}" if is_batch else instance))
        return tuple(content)

    def _send_change(self, peer: int, client: str, revision: int, content: Content) -> None:
        self.orphans = True
        self.revisions[client] = revision
        self.perform(PeerRequest(pick(self.senders, peer), "CHANGE", client, revision, content))

    @precondition(lambda self: self.senders)
    @rule(peer=INDEX, client=_FOREIGN, step=st.sampled_from((1, 1, 1, 0, 2, -1)), content=_CONTENT)
    def send_change(self, peer: int, client: str, step: int, content: int) -> None:
        self._send_change(peer, client, max(0, self.revisions.get(client, 0) + step), self._content(client, content))

    @precondition(lambda self: self.senders)
    @rule(peer=INDEX, client=_FOREIGN, step=st.integers(-1, 1), content=_CONTENT)
    def send_two_changes(self, peer: int, client: str, step: int, content: int) -> None:
        """The second CHANGE may be older than the first, or have the same revision."""
        first = self.revisions.get(client, 0) + 1
        self._send_change(peer, client, first, self._content(client, content ^ 3))
        self._send_change(peer, client, first + step, self._content(client, content))

    @precondition(lambda self: self.senders and self.revisions)
    @rule(peer=INDEX, client=INDEX, off=st.sampled_from((0, 0, 0, 1, -1)))
    def send_verify(self, peer: int, client: int, off: int) -> None:
        name = pick(self.revisions, client)
        self.perform(PeerRequest(pick(self.senders, peer), "VERIFY", name, max(0, self.revisions[name] + off)))

    @precondition(lambda self: self.senders and self.revisions)
    @rule(peer=INDEX, client=INDEX)
    def send_delete(self, peer: int, client: int) -> None:
        self.perform(PeerRequest(pick(self.senders, peer), "DELETE", pick(self.revisions, client)))

    @precondition(lambda self: self.senders and (self.changes or self.http))
    @rule(
        peer=INDEX,
        client=INDEX,
        operation=st.sampled_from((*ACKNOWLEDGED, "QUERY")),
        off=st.integers(-1, 1),
        content=_CONTENT,
    )
    def send_about_own_client(self, peer: int, client: int, operation: str, off: int, content: int) -> None:
        """Send a message about a client that is, or was, connected to the node, or that uses the HTTP API."""
        name = pick({*self.changes, *(f"{address}#true" for address in ADDRESSES if self.http)}, client)
        revision = max(0, self.changes.get(name, 1) + off) if operation in ("CHANGE", "VERIFY") else 0
        published = self._content(name, content) if operation == "CHANGE" else ()
        self.orphans = True
        self.ever_over_http |= "#" in name
        self.perform(PeerRequest(pick(self.senders, peer), operation, name, revision, published))

    @precondition(lambda self: self.senders)
    @rule(peer=INDEX, operation=st.sampled_from(("SNAPSHOT", "REPORT")))
    def send_without_client(self, peer: int, operation: str) -> None:
        self.perform(PeerRequest(pick(self.senders, peer), operation))

    @precondition(lambda self: self.senders)
    @rule(peer=INDEX, client=_FOREIGN, kind=st.sampled_from(MALFORMED))
    def send_malformed(self, peer: int, client: str, kind: str) -> None:
        self.perform(PeerRequest(pick(self.senders, peer), kind, client))

    @precondition(lambda self: self.senders and self.renewed_late < LATE_MAX)
    @rule(
        patience=st.integers(0, 3),
        peer=INDEX,
        client=_FOREIGN,
        content=_CONTENT,
        operation=st.sampled_from(("CHANGE", "VERIFY")),
    )
    def renew_late(self, patience: int, peer: int, client: str, content: int, operation: str) -> None:
        """Renew a lease by a last message just before the lease expires."""
        if patience:
            return
        self.renewed_late += 1
        revision, published = self.revisions.get(client, 0) + 1, self._content(client, content)
        self._send_change(peer, client, revision, published)
        again = PeerRequest(
            pick(self.senders, peer), operation, client, revision, published if operation == "CHANGE" else ()
        )
        self.perform(Advance(LATE_MS), again, Advance(LATE_MS))

    @precondition(lambda self: self.http and self.senders)
    @rule(peer=INDEX, address=st.sampled_from(ADDRESSES), silence=st.sampled_from(SILENCES_MS))
    def renew_by_verify(self, peer: int, address: str, silence: tuple[int, ...]) -> None:
        """A member sends a CHANGE and later VERIFYs of it: these count as a beat where the node is not the owner."""
        sender, client = pick(self.senders, peer), f"{address}#true"
        self.orphans = self.ever_over_http = True
        self.perform(PeerRequest(sender, "CHANGE", client, 1, ((SERVICES[0], address),)))
        self.perform(*map(Advance, silence), PeerRequest(sender, "VERIFY", client, 1))

    @precondition(lambda self: self.registered and self.senders)
    @rule(patience=st.integers(0, 2), peer=INDEX)
    def inherit(self, patience: int, peer: int) -> None:
        """A member is gone until the node marks it DOWN; the clients that exist send beats meanwhile."""
        if patience:
            return
        self.perform(Crash(pick(self.senders, peer)))
        for ms in UNTIL_DOWN_MS:
            beats = [HttpBeat(service, each, self.nodes[0]) for (service, _), each in sorted(self.registered.items())]
            self.perform(Advance(ms), *beats)

    @precondition(lambda self: self.registered and self.played)
    @rule(silence=st.sampled_from(SILENCES_MS))
    def miss_beats(self, silence: tuple[int, ...]) -> None:
        self.perform(*map(Advance, silence))

    # Replies of members

    @precondition(lambda self: self.played and self.clients)
    @rule(client=INDEX, peer=INDEX, result=st.sampled_from(("fail", *RESULTS)))
    def fail_a_verify(self, client: int, peer: int, result: str) -> None:
        self.fail("VERIFY", pick(self.clients, client), peer, result)
        self.perform(Advance(VERIFY_MS))

    @precondition(lambda self: self.played)
    @rule(peer=INDEX, operation=st.sampled_from((*ACKNOWLEDGED, "REPORT")), result=st.sampled_from(RESULTS))
    def answer(self, peer: int, operation: str, result: str) -> None:
        self.perform(PeerAnswer(pick(self.played, peer), operation, result))

    @precondition(lambda self: self.played and self.changes)
    @rule(client=INDEX, peer=INDEX, operation=_OPERATION, result=st.sampled_from(("fail", *RESULTS)))
    def fail_at_it(self, client: int, peer: int, operation: str, result: str) -> None:
        self.fail(operation, pick(self.changes, client), peer, result)

    @precondition(lambda self: self.played and self.changes)
    @rule(kind=st.sampled_from((LoseReply, Duplicate)), operation=_OPERATION, client=INDEX, peer=INDEX)
    def take_effect_unheard(self, kind: type[LoseReply | Duplicate], operation: str, client: int, peer: int) -> None:
        name = pick(self.changes, client)
        self.perform(kind(*self.link_of(name, peer), operation, name))

    @precondition(lambda self: self.played and not self.held)
    @rule(peer=INDEX, ms=st.sampled_from(SLOW_MS))
    def answer_slowly(self, peer: int, ms: int) -> None:
        link = pick(self.links, peer)
        self.perform(Hold(*link), Advance(ms), Release(*link))

    @precondition(lambda self: self.played and len(self.held) < len(self.links))
    @rule(link=INDEX)
    def hold_link(self, link: int) -> None:
        self.perform(Hold(*pick([each for each in self.links if each not in self.held], link)))
