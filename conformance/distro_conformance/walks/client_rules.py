"""The rules about clients of three nodes: clients connect, publish, leave, and fall silent.

The rules about nodes and links are in `machine.py`. A client acts at the node that holds its connection. This class
knows which clients exist, so that a rule about a client draws among the clients that can do it.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from distro_conformance.walks.walk import Walk, pick
from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    Connect,
    Crash,
    Deregister,
    Disconnect,
    FallSilent,
    Register,
    RegisterBatch,
)

NODES = ("a", "b", "c")
SERVICES = ("web", "api")
CLIENTS_MAX = 6
"""In one run. A client id is never used again: every connection is a new client."""

SILENCES_MS = (0, 21_000, 27_000)
"""Shorter than detection; around the time when the node asks an idle connection; after the connection was closed."""

_CLIENT = st.integers(0, CLIENTS_MAX - 1)


class ClientRules(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.up = list(NODES)
        self.clients: dict[str, str] = {}  # connected clients that act, with their node
        self.silent: dict[str, str] = {}  # connected, or were when they fell silent
        self.homes: dict[str, str] = {}  # of every client that ever connected
        self.published: set[tuple[str, str]] = set()  # (client, service)
        self.single_ever: set[tuple[str, str]] = set()  # (client, service)
        self.connected_ever = 0
        self.must_agree = self.stage is not None and self.stage.must_agree
        self.can_batch = self.suits(RegisterBatch("c1", SERVICES[0], ()))
        self.can_fall_silent = self.suits(FallSilent("c1"))

    @precondition(lambda self: self.up and self.connected_ever < CLIENTS_MAX)
    @rule(node=st.integers(0, 2))
    def connect(self, node: int) -> None:
        self.connect_one(self.up[node % len(self.up)])

    @precondition(lambda self: self.clients)
    @rule(client=_CLIENT, service=st.sampled_from(SERVICES), version=st.integers(1, 3))
    def register(self, client: int, service: str, version: int) -> None:
        self.register_one(pick(self.clients, client), service, version)

    @precondition(lambda self: self.clients and self.can_batch)
    @rule(client=_CLIENT, service=st.sampled_from(SERVICES), size=st.integers(2, 3))
    def register_batch(self, client: int, service: str, size: int) -> None:
        """In real time a client that has published a single instance registers no batch: nodes from 2.1.1 to 2.3.0
        acknowledge such a batch and do not apply it (B19), so the nodes would not agree at the end of the run."""
        name = pick(self.clients, client)
        if self.must_agree and (name, service) in self.single_ever:
            return
        instances = tuple(f"10.0.0.{name[1:]}:{90 + number}" for number in range(size))
        self.perform(RegisterBatch(name, service, instances))

    @precondition(lambda self: self.published)
    @rule(index=st.integers(0, CLIENTS_MAX * len(SERVICES) - 1))
    def deregister(self, index: int) -> None:
        chosen = pick(self.published, index)
        self.published.remove(chosen)
        action = Deregister(*chosen)
        if self.stage and not self.stage.forbidden(action):  # a stale snapshot may have removed it (B01)
            self.perform(action)

    @precondition(lambda self: self.clients)
    @rule(client=_CLIENT)
    def disconnect(self, client: int) -> None:
        self.perform(Disconnect(pick(self.clients, client)))

    @precondition(lambda self: self.clients and self.can_fall_silent)
    @rule(client=_CLIENT)
    def fall_silent(self, client: int) -> None:
        self.perform(FallSilent(pick(self.clients, client)))

    @precondition(lambda self: self.silent)
    @rule(client=_CLIENT, ms=st.sampled_from(SILENCES_MS))
    def end_silence(self, client: int, ms: int) -> None:
        """End the silence some time later; if the node has closed the connection meanwhile, the client has gone."""
        name = pick(self.silent, client)
        if ms:
            self.perform(Advance(ms))
        action = AnswerAgain(name)
        if self.stage and not self.stage.forbidden(action):
            self.perform(action)
        else:
            del self.silent[name]

    def connect_one(self, node: str) -> str:
        client = f"c{self.connected_ever + 1}"
        self.perform(Connect(client, node))
        return client

    def register_one(self, client: str, service: str, version: int) -> None:
        """Versions 1 and 2 differ in the port only, versions 2 and 3 in the metadata only."""
        instance = f"10.0.0.{client[1:]}:{80 + version // 2} version={(version + 1) // 2}"
        self.perform(Register(client, service, instance))

    def link_from_home(self, client: str, peer: int) -> tuple[str, str]:
        """Only the owner sends messages about a client, so a fault on any other link would never apply."""
        home = self.homes[client]
        return home, [node for node in NODES if node != home][peer]

    def client_ever(self, number: int) -> str:
        """A fault names its client, since the order of several requests at one instant is not specified."""
        return f"c{(number - 1) % self.connected_ever + 1}"

    # State of the clients

    def note(self, action: Action) -> None:
        match action:
            case Connect(client, node):
                self.connected_ever += 1
                self.clients[client] = self.homes[client] = node
            case Register(client, service, _):
                self.published.add((client, service))
                self.single_ever.add((client, service))
            case RegisterBatch(client, service):
                self.published.add((client, service))
            case Deregister(client, service):
                self.published.discard((client, service))
            case Disconnect(client):
                self.gone({client})
            case FallSilent(client):
                self.silent[client] = self.clients[client]
                self.gone({client})
            case AnswerAgain(client):
                self.clients[client] = self.silent.pop(client)
            case Crash(node):
                self.gone({client for client, at in self.clients.items() if at == node})
                self.silent = {client: at for client, at in self.silent.items() if at != node}

    def gone(self, clients: set[str]) -> None:
        """Forget these clients."""
        self.clients = {client: node for client, node in self.clients.items() if client not in clients}
        self.published = {(client, service) for client, service in self.published if client not in clients}
