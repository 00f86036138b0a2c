"""The machine of one node among played members: clients connect and leave, members send false data, fail or are silent.

As in `machine.py`, a rule draws small numbers, which index what exists at that moment. A played member sends messages
about its own clients, clients of other members and clients of the node. Most of them fit the state, since a node that
refuses everything exercises little code.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from distro_conformance.walks.client_rules import SERVICES
from distro_conformance.walks.machine import LEASES_MS
from distro_conformance.walks.stage import Stage
from distro_conformance.walks.walk import SYNC_MS, Walk, pick
from distro_model.actions import (
    MALFORMED,
    RESULTS,
    Action,
    Advance,
    Answers,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Duplicate,
    Heal,
    Hold,
    LoseReply,
    Register,
    RegisterBatch,
    Release,
    Restart,
    Says,
    Swallow,
)

NODE, PEERS = "a", ("b", "c", "d")
CLIENTS_MAX, FOREIGN = 6, ("f1", "f2", "f3")
SYNCED = ("CHANGE", "DELETE", "VERIFY")
CALM_MS = 15_000
VERIFY_MS = 5_100
"""A verify round, and the tick in which its results are repaired."""

LATE_MS = 100_000
"""More than half a lease."""

LEASES_OUTLASTED_MAX = 2
SLOW_MS = (1_000, 2_900, 3_100)
"""How long a reply takes: within the time-out of a call, just within it, and just too long."""

_peer = st.sampled_from(PEERS)
_client = st.integers(0, CLIENTS_MAX - 1)
_foreign = st.sampled_from(FOREIGN)
_version = st.integers(1, 3)


class AmongMachine(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.connected: dict[str, set[str]] = {}  # client -> services
        self.changes: dict[str, int] = {}  # of every client that ever connected
        self.revisions: dict[str, int] = {}  # foreign client -> revision that was sent last
        self.up = list(PEERS)
        self.cut: list[str] = []
        self.held: list[str] = []
        self.has_copies = False
        self.leases_outlasted = 0

    # Clients

    @precondition(lambda self: len(self.changes) < CLIENTS_MAX)
    @rule()
    def connect(self) -> None:
        self.perform(Connect(f"c{len(self.changes) + 1}", NODE))

    @precondition(lambda self: self.connected)
    @rule(client=_client, service=st.sampled_from(SERVICES), version=_version)
    def register(self, client: int, service: str, version: int) -> None:
        self._register(pick(self.connected, client), service, version)

    @precondition(lambda self: self.connected)
    @rule(client=_client, service=st.sampled_from(SERVICES), version=_version)
    def register_batch(self, client: int, service: str, version: int) -> None:
        name = pick(self.connected, client)
        instances = (f"10.0.0.{name[1:]}:{90 + version}", f"10.0.0.{name[1:]}:{91 + version}")
        self.perform(RegisterBatch(name, service, instances))

    @precondition(lambda self: any(self.connected.values()))
    @rule(index=st.integers(0, CLIENTS_MAX * len(SERVICES) - 1))
    def deregister(self, index: int) -> None:
        client, service = pick({(name, each) for name, services in self.connected.items() for each in services}, index)
        self.perform(Deregister(client, service))

    @precondition(lambda self: self.connected)
    @rule(client=_client)
    def disconnect(self, client: int) -> None:
        self.perform(Disconnect(pick(self.connected, client)))

    # Messages of members

    @precondition(lambda self: self.up)
    @rule(peer=st.integers(0, 2), client=_foreign, step=st.sampled_from((1, 1, 1, 0, 2, -1)), content=st.integers(0, 7))
    def say_change(self, peer: int, client: str, step: int, content: int) -> None:
        revision = max(0, self.revisions.get(client, 0) + step)
        self.revisions[client], self.has_copies = revision, True
        self.perform(Says(pick(self.up, peer), "CHANGE", client, revision, _content(client, content)))

    @precondition(lambda self: self.up and self.revisions)
    @rule(peer=st.integers(0, 2), client=st.integers(0, 2), off=st.sampled_from((0, 0, 0, 1, -1)))
    def say_verify(self, peer: int, client: int, off: int) -> None:
        name = pick(self.revisions, client)
        self.perform(Says(pick(self.up, peer), "VERIFY", name, max(0, self.revisions[name] + off)))

    @precondition(lambda self: self.up and self.revisions)
    @rule(peer=st.integers(0, 2), client=st.integers(0, 2))
    def say_delete(self, peer: int, client: int) -> None:
        self.perform(Says(pick(self.up, peer), "DELETE", pick(self.revisions, client)))

    @precondition(lambda self: self.up and self.changes)
    @rule(
        peer=st.integers(0, 2),
        client=_client,
        operation=st.sampled_from((*SYNCED, "QUERY")),
        off=st.integers(-1, 1),
        content=st.integers(0, 7),
    )
    def say_of_own(self, peer: int, client: int, operation: str, off: int, content: int) -> None:
        """Send a message about a client that is, or was, connected to the node."""
        name = pick(self.changes, client)
        revision = max(0, self.changes[name] + off) if operation in ("CHANGE", "VERIFY") else 0
        published = _content(name, content) if operation == "CHANGE" else ()
        self.perform(Says(pick(self.up, peer), operation, name, revision, published))

    @precondition(lambda self: self.up)
    @rule(peer=st.integers(0, 2), operation=st.sampled_from(("SNAPSHOT", "REPORT")))
    def say_of_all(self, peer: int, operation: str) -> None:
        self.perform(Says(pick(self.up, peer), operation))

    @precondition(lambda self: self.up)
    @rule(peer=st.integers(0, 2), client=_foreign, kind=st.sampled_from(MALFORMED))
    def say_malformed(self, peer: int, client: str, kind: str) -> None:
        self.perform(Says(pick(self.up, peer), kind, client))

    @precondition(lambda self: self.up)
    @rule(peer=st.integers(0, 2), client=_foreign, step=st.integers(-1, 1), content=st.integers(0, 7))
    def say_two_changes(self, peer: int, client: str, step: int, content: int) -> None:
        """The second CHANGE may be older than the first, or have the same revision."""
        first = self.revisions.get(client, 0) + 1
        self.revisions[client], self.has_copies = first + step, True
        self.perform(Says(pick(self.up, peer), "CHANGE", client, first, _content(client, content ^ 3)))
        self.perform(Says(pick(self.up, peer), "CHANGE", client, first + step, _content(client, content)))

    @precondition(lambda self: self.up and self.leases_outlasted < LEASES_OUTLASTED_MAX)
    @rule(
        patience=st.integers(0, 3),
        peer=st.integers(0, 2),
        client=_foreign,
        content=st.integers(0, 7),
        operation=st.sampled_from(("CHANGE", "VERIFY")),
    )
    def renew_late(self, patience: int, peer: int, client: str, content: int, operation: str) -> None:
        """Renew a lease by a last message just before the lease expires."""
        if patience:
            return
        self.leases_outlasted += 1
        speaker, revision, published = pick(self.up, peer), self.revisions.get(client, 0) + 1, _content(client, content)
        self.revisions[client] = revision
        self.perform(Says(speaker, "CHANGE", client, revision, published))
        self.perform(Advance(LATE_MS))
        self.perform(Says(speaker, operation, client, revision, published if operation == "CHANGE" else ()))
        self.perform(Advance(LATE_MS))

    # Replies of members

    @precondition(lambda self: self.connected)
    @rule(client=_client, peer=_peer, result=st.sampled_from(("fail", *RESULTS)))
    def fail_a_verify(self, client: int, peer: str, result: str) -> None:
        self.perform(Answers(peer, "VERIFY", result, pick(self.connected, client)))
        self.perform(Advance(VERIFY_MS))

    @rule(peer=_peer, operation=st.sampled_from((*SYNCED, "REPORT")), result=st.sampled_from(RESULTS))
    def answer(self, peer: str, operation: str, result: str) -> None:
        self.perform(Answers(peer, operation, result))

    @precondition(lambda self: self.connected and len(self.up) == len(PEERS))
    @rule(
        client=_client,
        peer=_peer,
        version=_version,
        result=st.sampled_from((*RESULTS, "nothing")),
        leaves_after_ms=st.sampled_from((None, None, 0, 2_200)),
    )
    def fail_a_change(self, client: int, peer: str, version: int, result: str, leaves_after_ms: int | None) -> None:
        """A member does not apply a change; the client may leave before the failure shows, or before the retry."""
        name = pick(self.connected, client)
        fails = Drop(NODE, peer, "CHANGE", name) if result == "nothing" else Answers(peer, "CHANGE", result, name)
        self.perform(fails)
        self._register(name, SERVICES[0], version)
        self.leave_after_sync(name, leaves_after_ms)

    @precondition(lambda self: self.connected)
    @rule(client=_client, peer=_peer, result=st.sampled_from((*RESULTS, "nothing")))
    def fail_a_delete(self, client: int, peer: str, result: str) -> None:
        name = pick(self.connected, client)
        fails = Drop(NODE, peer, "DELETE", name) if result == "nothing" else Answers(peer, "DELETE", result, name)
        self.perform(fails)
        self.perform(Disconnect(name))
        self.perform(Advance(SYNC_MS))

    @precondition(lambda self: self.changes)
    @rule(
        kind=st.sampled_from((Drop, LoseReply, Duplicate, Swallow)),
        peer=_peer,
        operation=st.sampled_from(SYNCED),
        client=_client,
    )
    def fault(self, kind: type[Drop | LoseReply | Duplicate | Swallow], peer: str, operation: str, client: int) -> None:
        self.perform(kind(NODE, peer, operation, pick(self.changes, client)))

    @precondition(lambda self: not self.held)
    @rule(peer=_peer, ms=st.sampled_from(SLOW_MS))
    def answer_slowly(self, peer: str, ms: int) -> None:
        self.perform(Hold(NODE, peer))
        self.perform(Advance(ms))
        self.perform(Release(NODE, peer))

    @rule(peer=_peer)
    def hold_or_release(self, peer: str) -> None:
        self.perform(Release(NODE, peer) if peer in self.held else Hold(NODE, peer))

    @rule(peer=_peer)
    def cut_or_heal(self, peer: str) -> None:
        self.perform(Heal(NODE, peer) if peer in self.cut else Cut(NODE, peer))

    @rule(peer=_peer)
    def die_or_return(self, peer: str) -> None:
        self.perform(Crash(peer) if peer in self.up else Restart(peer))

    # Time

    @precondition(lambda self: self.has_copies and self.leases_outlasted < LEASES_OUTLASTED_MAX)
    @rule(patience=st.integers(0, 5), ms=st.sampled_from(LEASES_MS))
    def outlast_lease(self, patience: int, ms: int) -> None:
        if patience == 0:
            self.leases_outlasted += 1
            self.perform(Advance(ms))

    def come_to_rest(self, stage: Stage) -> None:  # noqa: ARG002 - other machines use it
        for peer in tuple(self.held):
            self.perform(Release(NODE, peer))
        for peer in tuple(self.cut):
            self.perform(Heal(NODE, peer))
        for peer in sorted(set(PEERS) - set(self.up)):
            self.perform(Restart(peer))
        self.perform(Advance(CALM_MS))
        if self.has_copies:
            self.perform(Advance(LEASES_MS[-1]))

    def _register(self, client: str, service: str, version: int) -> None:
        self.perform(Register(client, service, f"10.0.0.{client[1:]}:{80 + version}"))

    def note(self, action: Action) -> None:
        match action:
            case Connect(client):
                self.connected[client], self.changes[client] = set(), 0
            case Register(client, service) | RegisterBatch(client, service):
                self.connected[client].add(service)
                self.changes[client] += 1
            case Deregister(client, service):
                self.connected[client].discard(service)
                self.changes[client] += 1
            case Disconnect(client):
                del self.connected[client]
            case Hold(_, peer):
                self.held.append(peer)
            case Release(_, peer):
                self.held.remove(peer)
            case Cut(_, peer):
                self.cut.append(peer)
            case Heal(_, peer):
                self.cut.remove(peer)
            case Crash(peer):
                self.up.remove(peer)
            case Restart(peer):
                self.up = sorted([*self.up, peer])


def _content(client: str, number: int) -> tuple[tuple[str, str], ...]:
    """The bits of `number` choose the services, and the port of the first."""
    chosen = ((SERVICES[1], 0, number & 1), (SERVICES[0], number >> 2, number & 2))
    return tuple((service, f"10.1.0.{client[1:]}:{80 + port}") for service, port, is_there in chosen if is_there)
