"""The faults of a simulation: a registry with one entry each, from which chance draws.

A fault is a plan: actions of the model's vocabulary, each a number of milliseconds after the start of the fault. All
its damage is healed before the next checkpoint. The time that a cluster needs after that depends on what was lost:
retries and verifies repair most of it within seconds, but a copy without an owner, or one whose DELETE will not be sent
again, is removed only when its lease expires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from distro_model.actions import (
    Action,
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
from distro_model.simulation.scheduler import Chance

SERVICES = ("api", "db", "web")
"""The service in which the clients of a simulation publish."""

PORTS = (80, 81, 82)

Plan = Iterable[tuple[int, Action]]
"""An action, and its time in ms after the start of the fault."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The possible targets of a fault: the nodes, and the connected clients, with their nodes."""

    nodes: Sequence[str]
    clients: Mapping[str, str]

    def link(self, chance: Chance) -> tuple[str, str]:
        source, target = chance.sample(self.nodes, 2)
        return source, target

    def link_of(self, client: str, chance: Chance) -> tuple[str, str]:
        """From the client's node to one of the others: only its owner sends requests about a client."""
        home = self.clients[client]
        return home, chance.choice([node for node in self.nodes if node != home])


@dataclass(frozen=True, slots=True)
class SimulatedFault:
    """`outlived_by_lease`: it can leave copies behind that only the end of their lease removes."""

    name: str
    sentence: str
    plan: Callable[[Chance, Situation], Plan]
    outlived_by_lease: bool = False


class UnknownFaultError(ValueError):
    """There is no fault of that name; the message lists the known names."""


def _drop(chance: Chance, at: Situation) -> Plan:
    if not at.clients:
        return
    client = chance.choice(list(at.clients))
    operation = chance.choice(("CHANGE", "CHANGE", "DELETE", "VERIFY"))
    yield 0, Drop(*at.link_of(client, chance), operation, client)
    yield 0, _word_of(client, chance, leaves=operation == "DELETE")


def _swallow(chance: Chance, at: Situation) -> Plan:
    if not at.clients:
        return
    client = chance.choice(list(at.clients))
    yield 0, Swallow(*at.link_of(client, chance), chance.choice(("CHANGE", "CHANGE", "CHANGE", "VERIFY")), client)
    yield 0, _word_of(client, chance)


def _swallow_delete(chance: Chance, at: Situation) -> Plan:
    if not at.clients:
        return
    client = chance.choice(list(at.clients))
    yield 0, Swallow(*at.link_of(client, chance), "DELETE", client)
    yield chance.randrange(1000), Disconnect(client)


def _cut(chance: Chance, at: Situation) -> Plan:
    link = at.link(chance)
    yield 0, Cut(*link)
    yield chance.randrange(500, 20_000), Heal(*link)


def _isolate(chance: Chance, at: Situation) -> Plan:
    alone, lasts_ms = chance.choice(at.nodes), chance.randrange(500, 20_000)
    for other in at.nodes:
        for link in ((alone, other), (other, alone)) if other != alone else ():
            yield 0, Cut(*link)
            yield lasts_ms, Heal(*link)


def _slow(chance: Chance, at: Situation) -> Plan:
    link = at.link(chance)
    yield 0, Hold(*link)
    yield chance.randrange(50, 6000), Release(*link)


def _crash(chance: Chance, at: Situation) -> Plan:
    node = chance.choice(at.nodes)
    yield 0, Crash(node)
    yield chance.randrange(500, 20_000), Restart(node)


def _word_of(client: str, chance: Chance, *, leaves: bool = False) -> Action:
    """An action that makes its node send the message for which the fault waits."""
    service = chance.choice(SERVICES)
    if leaves:
        return Disconnect(client)
    words: tuple[Action, ...] = (Register(client, service, instance_of(client, chance)), Deregister(client, service))
    return chance.choice(words)


def instance_of(client: str, chance: Chance) -> str:
    """An instance as a scenario writes it. There are few, so that a client also publishes an earlier one again."""
    return _instance(client, chance.choice(PORTS), chance)


def batch_of(client: str, chance: Chance) -> tuple[str, ...]:
    """Two of them, which differ by their port."""
    return tuple(_instance(client, port, chance) for port in sorted(chance.sample(PORTS, 2)))


def _instance(client: str, port: int, chance: Chance) -> str:
    number = int(client[1:])
    return f"10.0.{number // 250 % 250}.{number % 250}:{port} version={chance.randrange(1, 4)}"


FAULTS: Mapping[str, SimulatedFault] = MappingProxyType(
    {
        fault.name: fault
        for fault in (
            SimulatedFault("drop", "A request about a client is lost, and its sender left to its time-out.", _drop),
            SimulatedFault("swallow", "A CHANGE or VERIFY is acknowledged and takes no effect.", _swallow),
            SimulatedFault(
                "swallow-delete",
                "A DELETE is acknowledged and takes no effect; it is not repeated.",
                _swallow_delete,
                outlived_by_lease=True,
            ),
            SimulatedFault("cut", "One node cannot reach another for up to 20 s.", _cut),
            SimulatedFault("isolate", "A node and all others cannot reach each other for up to 20 s.", _isolate),
            SimulatedFault(
                "slow", "Requests on a link wait for up to 6 s; those beyond their time-out are lost.", _slow
            ),
            SimulatedFault(
                "crash",
                "A node ends with its memory and its connections, and starts again within 20 s.",
                _crash,
                outlived_by_lease=True,
            ),
        )
    }
)


def faults_named(names: str) -> tuple[SimulatedFault, ...]:
    """The entries of a comma-separated list of names; `all`, `none`. Raises UnknownFaultError."""
    words = [word.strip() for word in names.split(",")]
    unknown = [word for word in words if word not in (*FAULTS, "all", "none")]
    if unknown:
        known = ", ".join([*FAULTS, "all", "none"])
        raise UnknownFaultError(f"there is no fault '{unknown[0]}'; faults are {known}")
    if len(words) > 1 and "none" in words:
        raise UnknownFaultError("'none' means no faults; it cannot be combined with other names")
    return tuple(fault for fault in FAULTS.values() if "all" in words or fault.name in words)
