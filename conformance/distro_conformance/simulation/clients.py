"""What the clients of a simulation do: connect somewhere, publish, change, withdraw, leave, come back as somebody new.

There is a fixed number of them. Each does something every few seconds; one that left, or whose node crashed, connects
anew under a new name, because a connection id is never used twice.
"""

from __future__ import annotations

from random import Random

from distro_conformance.simulation.agenda import Agenda
from distro_conformance.simulation.cluster import SimulatedCluster
from distro_conformance.simulation.faults import SERVICES, instance_of
from distro_model.actions import Connect, Deregister, Disconnect, Register

MEAN_PAUSE_MS = 5000


class Clients:
    """So many clients of one cluster. They act while a season lasts and keep still between seasons."""

    def __init__(self, number: int, cluster: SimulatedCluster, agenda: Agenda, random: Random) -> None:
        self._cluster, self._agenda, self._random = cluster, agenda, random
        self._names: list[str | None] = [None] * number
        self._ever = 0

    def act_until(self, end_ms: int) -> None:
        """Plan a season that begins now."""
        for position in range(len(self._names)):
            self._plan(position, end_ms)

    def _plan(self, position: int, end_ms: int) -> None:
        at_ms = self._agenda.now_ms + int(self._random.expovariate(1 / MEAN_PAUSE_MS))
        if at_ms < end_ms:
            self._agenda.at(at_ms, self._act, position, end_ms)

    def _act(self, position: int, end_ms: int) -> None:
        name, perform, random = self._names[position], self._cluster.perform, self._random
        chance = random.random()
        if name is None or name not in self._cluster.clients:
            self._names[position] = self._connect()
        elif chance < 0.15:
            perform(Disconnect(name))
        elif chance < 0.3 and (services := self._cluster.services(name)):
            perform(Deregister(name, random.choice(services)))
        else:
            perform(Register(name, random.choice(SERVICES), instance_of(name, random)))
        self._plan(position, end_ms)

    def _connect(self) -> str | None:
        """A new connection to any node that is up; most publish at once."""
        up = [node for node, state in self._cluster.nodes().items() if state is not None]
        if not up:
            return None
        self._ever += 1
        name = f"c{self._ever}"
        self._cluster.perform(Connect(name, self._random.choice(up)))
        if self._random.random() < 0.8:
            self._cluster.perform(Register(name, self._random.choice(SERVICES), instance_of(name, self._random)))
        return name
