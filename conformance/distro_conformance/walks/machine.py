"""The Hypothesis machine: which actions there are, and when each makes sense.

Every rule draws small numbers and turns them into one action of the model's vocabulary; what the action means is known
to the lockstep alone. Numbers index what exists at that moment, so that a shrunk run stays a legal run.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from distro_conformance.language.words import OPERATIONS
from distro_conformance.walks.stage import Stage
from distro_conformance.walks.walk import SHORT_PAUSES_MS, SYNC_MS, Walk, pick
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    Register,
    Release,
    Restart,
    Swallow,
)

NODES = ("a", "b", "c")
LINKS = tuple((source, target) for source in NODES for target in NODES if source != target)
SERVICES = ("web", "api")
ABOUT_A_CLIENT = tuple(operation for operation in OPERATIONS if operation != "SNAPSHOT")
CLIENTS_MAX = 6
"""In one run. A client id never comes back, so every connection is a client of its own."""

JUST_BEFORE_TIME_OUT_MS = 2_200
"""After a CHANGE was sent: it times out while a DELETE of now still waits."""

JUST_BEFORE_LOAD_MS = 29_400
"""Less than the sync delay before a failed load is repeated."""

LEASES_MS = (177_000, 181_000, 186_000)
"""Around the lease of 180 s and the cleaner's period. Dear in real time, hence at most once in a run."""

CALM_MS = 15_000
"""What a healed cluster is given before it is held to agree: sync retry, report and verify."""

CALMS_MAX = 3
"""So often at most, while something is left to repair."""

LOADS_CALMS_MAX = 12
"""So often while a node is not loaded: an ask may time out after 30 s, and the next round is a minute later."""

BEGINNINGS_MAX = 8


class LockstepMachine(Walk):
    """Nodes that follow the model step by step. Every third run or so goes on from one of `beginnings`."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[str, str] = {}  # connected ones, with their node
        self.homes: dict[str, str] = {}  # of everyone who ever connected
        self.published: set[tuple[str, str]] = set()  # (client, service)
        self.connected_ever = 0
        self.up = list(NODES)
        self.cut: list[tuple[str, str]] = []
        self.held: list[tuple[str, str]] = []  # by a beginning; no rule here holds
        self.orphans = False
        self.outlasted_lease = False

    @initialize(number=st.integers(0, 3 * BEGINNINGS_MAX - 1))
    def begin(self, number: int) -> None:
        """Two of three begin with nothing."""
        without = 2 * len(self.beginnings)
        chosen = number % (without + len(self.beginnings) or 1) - without
        for action in self.beginnings[chosen] if self.beginnings and chosen >= 0 else ():
            if self.stage is None or self.stage.forbidden(action):
                return
            self._note(action)
            self.perform(action)

    def _note(self, action: Action) -> None:
        """What the rules know of a run."""
        match action:
            case Connect(client, node):
                self.connected_ever += 1
                self.clients[client] = self.homes[client] = node
            case Register(client, service, _):
                self.published.add((client, service))
            case Deregister(client, service):
                self.published.discard((client, service))
            case Disconnect(client):
                self._gone({client})
            case Swallow(operation="DELETE"):
                self.orphans = True
            case Hold(source, target):
                self.held.append((source, target))
            case Release(source, target):
                self.held.remove((source, target))

    @precondition(lambda self: self.up and self.connected_ever < CLIENTS_MAX)
    @rule(node=st.integers(0, 2))
    def connect(self, node: int) -> None:
        self._connect(self.up[node % len(self.up)])

    @precondition(lambda self: self.clients)
    @rule(client=st.integers(0, CLIENTS_MAX - 1), service=st.sampled_from(SERVICES), version=st.integers(1, 3))
    def register(self, client: int, service: str, version: int) -> None:
        self._register(pick(self.clients, client), service, version)

    @precondition(lambda self: self.published)
    @rule(index=st.integers(0, CLIENTS_MAX * len(SERVICES) - 1))
    def deregister(self, index: int) -> None:
        chosen = pick(self.published, index)
        self.published.remove(chosen)
        action = Deregister(*chosen)
        if self.stage and not self.stage.forbidden(action):  # a stale snapshot may have taken it away (B01)
            self.perform(action)

    @precondition(lambda self: self.clients)
    @rule(client=st.integers(0, CLIENTS_MAX - 1))
    def disconnect(self, client: int) -> None:
        self.disconnect_one(pick(self.clients, client))

    @precondition(lambda self: self.orphans and not self.outlasted_lease)
    @rule(patience=st.integers(0, 4), ms=st.sampled_from(LEASES_MS))
    def outlast_lease(self, patience: int, ms: int) -> None:
        """Copies whose owner crashed, or whose DELETE was swallowed, live until their lease ends."""
        if patience == 0:
            self.outlasted_lease, self.orphans = True, ms < LEASES_MS[-1]
            self.perform(Advance(ms))
        else:
            self.perform(Advance(SHORT_PAUSES_MS[0]))

    @precondition(lambda self: self.connected_ever)
    @rule(operation=st.sampled_from(ABOUT_A_CLIENT), client=st.integers(1, CLIENTS_MAX), peer=st.integers(0, 1))
    def drop(self, operation: str, client: int, peer: int) -> None:
        about = self._client_ever(client)
        self.perform(Drop(*self._link_from_home(about, peer), operation, about))

    @rule(link=st.sampled_from(LINKS))
    def drop_load(self, link: tuple[str, str]) -> None:
        self.perform(Drop(*link, "SNAPSHOT"))

    @precondition(lambda self: self.clients)
    @rule(
        client=st.integers(0, CLIENTS_MAX - 1),
        version=st.integers(1, 3),
        peer=st.integers(0, 1),
        leaves_after_ms=st.sampled_from((None, 0, JUST_BEFORE_TIME_OUT_MS)),
    )
    def lose_a_change(self, client: int, version: int, peer: int, leaves_after_ms: int | None) -> None:
        """A CHANGE is lost under way, and its client may leave before the owner knows; late, both wait at once."""
        name = pick(self.clients, client)
        self.perform(Drop(*self._link_from_home(name, peer), "CHANGE", name))
        self._register(name, SERVICES[0], version)
        self.leave_after_sync(name, leaves_after_ms)

    @precondition(lambda self: self.connected_ever)
    @rule(
        operation=st.sampled_from(("CHANGE", "DELETE")),
        client=st.integers(1, CLIENTS_MAX),
        peer=st.integers(0, 1),
    )
    def swallow(self, operation: str, client: int, peer: int) -> None:
        self.orphans |= operation == "DELETE"  # nobody repeats it: only the lease ends that copy
        about = self._client_ever(client)
        self.perform(Swallow(*self._link_from_home(about, peer), operation, about))

    @precondition(lambda self: len(self.cut) < len(LINKS))
    @rule(link=st.integers(0, len(LINKS) - 1))
    def cut_link(self, link: int) -> None:
        opened = [candidate for candidate in LINKS if candidate not in self.cut]
        chosen = opened[link % len(opened)]
        self.cut.append(chosen)
        self.perform(Cut(*chosen))

    @precondition(lambda self: self.cut)
    @rule(link=st.integers(0, len(LINKS) - 1))
    def heal_link(self, link: int) -> None:
        self.perform(Heal(*self.cut.pop(link % len(self.cut))))

    @precondition(lambda self: self.held)
    @rule(link=st.integers(0, len(LINKS) - 1))
    def release_link(self, link: int) -> None:
        self.perform(Release(*self.held.pop(link % len(self.held))))

    @precondition(lambda self: len(self.up) > 1)
    @rule(node=st.integers(0, 2))
    def crash(self, node: int) -> None:
        name = self.up.pop(node % len(self.up))
        self.orphans = True
        self._gone({client for client, at in self.clients.items() if at == name})
        self.perform(Crash(name))

    @precondition(lambda self: len(self.up) < len(NODES))
    @rule()
    def restart(self) -> None:
        self._restart(min(set(NODES) - set(self.up)))

    @precondition(lambda self: len(self.up) < len(NODES) and self.connected_ever < CLIENTS_MAX)
    @rule(version=st.integers(1, 3), is_stale=st.booleans())
    def restart_unloaded(self, version: int, is_stale: bool) -> None:
        """A node whose load fails has a client already; that client may change just before the load succeeds."""
        name = min(set(NODES) - set(self.up))
        outgoing = [link for link in LINKS if link[0] == name]
        for link in outgoing:
            if link not in self.cut:
                self.cut.append(link)
                self.perform(Cut(*link))
        self._restart(name)
        for link in outgoing:
            self.cut.remove(link)
            self.perform(Heal(*link))
        client = self._connect(name)
        self._register(client, SERVICES[0], version)
        if is_stale:
            self.perform(Advance(JUST_BEFORE_LOAD_MS))
            self._register(client, SERVICES[1], version)
            self.perform(Advance(SYNC_MS))

    def _connect(self, node: str) -> str:
        self.connected_ever += 1
        client = f"c{self.connected_ever}"
        self.clients[client] = self.homes[client] = node
        self.perform(Connect(client, node))
        return client

    def _register(self, client: str, service: str, version: int) -> None:
        """From version 1 to 2 only the port changes, from 2 to 3 only the metadata."""
        self.published.add((client, service))
        instance = f"10.0.0.{client[1:]}:{80 + version // 2} version={(version + 1) // 2}"
        self.perform(Register(client, service, instance))

    def disconnect_one(self, client: str) -> None:
        self._gone({client})
        self.perform(Disconnect(client))

    def _restart(self, node: str) -> None:
        self.up = sorted([*self.up, node])
        self.perform(Restart(node))

    def _link_from_home(self, client: str, peer: int) -> tuple[str, str]:
        """Only its owner ever speaks for a client; on any other link a fault would wait for nothing."""
        home = self.homes[client]
        return home, [node for node in NODES if node != home][peer]

    def _client_ever(self, number: int) -> str:
        """A fault names its client: which of several requests of one instant comes first, nothing prescribes."""
        return f"c{(number - 1) % self.connected_ever + 1}"

    def _gone(self, clients: set[str]) -> None:
        self.clients = {client: node for client, node in self.clients.items() if client not in clients}
        self.published = {(client, service) for client, service in self.published if client not in clients}

    def come_to_rest(self, stage: Stage) -> None:
        while self.held:
            self.perform(Release(*self.held.pop()))
        while self.cut:
            self.perform(Heal(*self.cut.pop()))
        for name in sorted(set(NODES) - set(self.up)):
            self.perform(Restart(name))
        for calms in range(1, LOADS_CALMS_MAX + 1):
            self.perform(Advance(CALM_MS))
            if stage.is_at_rest or (calms >= CALMS_MAX and stage.is_loaded):
                break
        if self.orphans and not stage.is_at_rest:  # about clients that nobody owns any more, until their leases end
            self.perform(Advance(LEASES_MS[-1]))
        stage.checkpoint()
