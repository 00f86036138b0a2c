"""The clients of a simulation: they connect to a node, publish, change, deregister, disconnect, and return as a new
client.

There is a fixed number of them. Each acts every few seconds; one that left, or whose node crashed, connects again under
a new name, because a connection id is never used twice.
"""

from __future__ import annotations

from distro_model.actions import Connect, Deregister, Disconnect, Register, RegisterBatch
from distro_model.simulation.cluster import SimulatedCluster
from distro_model.simulation.faults import SERVICES, batch_of, instance_of
from distro_model.simulation.scheduler import Chance, Scheduler

MEAN_PAUSE_MS = 5000


class Clients:
    """A number of clients of one cluster. They act during an active phase and are quiet between two of them."""

    def __init__(self, number: int, cluster: SimulatedCluster, scheduler: Scheduler, chance: Chance) -> None:
        self._cluster, self._scheduler, self._chance = cluster, scheduler, chance
        self._names: list[str | None] = [None] * number
        self._ever = 0

    def act_until(self, end_ms: int) -> None:
        """Plan an active phase that begins now."""
        for position in range(len(self._names)):
            self._plan(position, end_ms)

    def _plan(self, position: int, end_ms: int) -> None:
        at_ms = self._scheduler.now_ms + int(self._chance.expovariate(1 / MEAN_PAUSE_MS))
        if at_ms < end_ms:
            self._scheduler.at(at_ms, self._act, position, end_ms)

    def _act(self, position: int, end_ms: int) -> None:
        name, perform, chance = self._names[position], self._cluster.perform, self._chance
        share = chance.random()
        if name is None or self._cluster.home(name) is None:
            self._names[position] = self._connect()
        elif share < 0.15:
            perform(Disconnect(name))
        elif share < 0.3 and (services := self._cluster.services(name)):
            perform(Deregister(name, chance.choice(services)))
        elif share < 0.4 and self._cluster.plan.profile.batches:
            perform(RegisterBatch(name, chance.choice(SERVICES), batch_of(name, chance)))
        else:
            perform(Register(name, chance.choice(SERVICES), instance_of(name, chance)))
        self._plan(position, end_ms)

    def _connect(self) -> str | None:
        """A new connection to any node that is up; most publish at once."""
        up = [node for node, state in self._cluster.by_name().items() if state is not None]
        if not up:
            return None
        self._ever += 1
        name = f"c{self._ever}"
        self._cluster.perform(Connect(name, self._chance.choice(up)))
        if self._chance.random() < 0.8:
            self._cluster.perform(Register(name, self._chance.choice(SERVICES), instance_of(name, self._chance)))
        return name
