"""Walks with clients of the HTTP API: beats keep them alive, and the hash names the node that owns them.

Member lists change, nodes crash, and links are cut, so owners change, on each node separately: for a while a client may
have two owners or none, and a forwarded request may be refused, or find no node. All rules of the other walks apply
here too. This is a separate machine because a new rule in the other machine would change the runs of its seeds.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from distro_conformance.walks.client_rules import NODES, SERVICES
from distro_conformance.walks.machine import LockstepMachine
from distro_conformance.walks.stage import Stage
from distro_conformance.walks.walk import Walk, pick
from distro_model.actions import Action, Advance, Drop, HttpBeat, HttpDeregister, HttpRegister, Swallow
from distro_model.rules.owners import place

ADDRESSES = tuple(f"10.0.1.{number}:80" for number in range(1, 5))
"""Each node owns at least one."""

FORGOTTEN_MS = 75_000
"""The stages after the last beat: unhealthy, expired, empty for half a minute, and removed on every node."""

LEASES_OF_KEPT = 2
"""A node that keeps a client which the hash gives to another node (D7) drops it when a lease has ended, and sends no
DELETE; copies that it verified until then expire a lease later."""

_INDEX = st.integers(0, len(ADDRESSES) * len(SERVICES) - 1)
_ADDRESS, _NODE, _BY_V2 = st.sampled_from(ADDRESSES), st.integers(0, len(NODES) - 1), st.booleans()


def _owner(address: str) -> str:
    """The owner of the client at this address, while all nodes are UP."""
    return NODES[place(address, len(NODES))]


def _address(instance: str) -> str:
    return instance.split(maxsplit=1)[0]


class HttpClients(Walk):
    """The state of the clients of the HTTP API in a run, whatever the other rules."""

    def __init__(self) -> None:
        super().__init__()
        self.registered: dict[tuple[str, str], str] = {}  # (service, address) -> the instance as last registered
        self.has_v2 = self.suits(HttpRegister(SERVICES[0], ADDRESSES[0], NODES[0], by_v2=True))
        self.beats_by_v2 = self.suits(HttpBeat(SERVICES[0], ADDRESSES[0], NODES[0], by_v2=True))

    def note(self, action: Action) -> None:
        """Also note the registrations of a beginning."""
        super().note(action)
        match action:
            case HttpRegister(service, instance) | HttpBeat(service, instance):
                self.registered[service, _address(instance)] = instance
            case HttpDeregister(service, instance):
                self.registered.pop((service, _address(instance)), None)

    def _one(self, index: int) -> tuple[str, str]:
        """A service, and the address that was registered there."""
        (service, _), instance = pick(tuple(self.registered.items()), index)
        return service, instance


class HttpMachine(HttpClients, LockstepMachine):
    @rule(address=_ADDRESS, service=st.sampled_from(SERVICES), version=st.integers(1, 2), node=_NODE, by_v2=_BY_V2)
    def register_over_http(self, address: str, service: str, version: int, node: int, by_v2: bool) -> None:
        """Through version 2 of the API where the release has it: there the called node keeps the client (D7)."""
        instance = f"{address} version={version}"
        self.perform(HttpRegister(service, instance, self._asked(node), by_v2 and self.has_v2))

    @precondition(lambda self: self.registered)
    @rule(index=_INDEX, node=_NODE, by_v2=_BY_V2)
    def beat(self, index: int, node: int, by_v2: bool) -> None:
        """Send a beat, also of an instance that was removed: the node registers it again."""
        service, instance = self._one(index)
        self.perform(HttpBeat(service, instance, self._asked(node), by_v2 and self.beats_by_v2))

    @precondition(lambda self: self.registered)
    @rule(index=_INDEX, node=_NODE, by_v2=_BY_V2)
    def deregister_over_http(self, index: int, node: int, by_v2: bool) -> None:
        service, instance = self._one(index)
        self.perform(HttpDeregister(service, instance, self._asked(node), by_v2 and self.has_v2))

    @rule(
        kind=st.sampled_from((Drop, Swallow)),
        operation=st.sampled_from(("CHANGE", "DELETE", "VERIFY")),
        address=_ADDRESS,
        peer=st.integers(0, 1),
    )
    def fault_of_http_client(self, kind: type[Drop | Swallow], operation: str, address: str, peer: int) -> None:
        owner = _owner(address)
        about = f"{address}#true"
        self.perform(kind(owner, [node for node in NODES if node != owner][peer], operation, about))

    def come_to_rest(self, stage: Stage) -> None:
        self.repair()  # while a link is cut the wait has hundreds of indistinguishable outcomes
        if self.registered:
            self.perform(Advance(FORGOTTEN_MS))
        super().come_to_rest(stage)
        if self.registered:
            for _ in range(LEASES_OF_KEPT):
                self.outlast_orphans(stage)

    def _asked(self, node: int) -> str:
        return self.up[node % len(self.up)]
