"""The machine of one node among played members in real time: many runs side by side, so that they share the waits.

The runs are drawn before anything is started: the actions that a rule makes of its numbers depend on the rules alone.
Each run has its own clients on the one node; an action of a run on a member affects all runs, and the oracle receives
it. Within a budget a failed run is repeated by itself, to report how often it fails. A run that does not fail each time
is called flaky, and is a violation all the same: nothing explained its first failure.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, cast

from distro_conformance.drivers.lockstep import DivergedError, Watch
from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.event_loop import event_loop
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.registry import resolve_target
from distro_conformance.verdict import TargetError
from distro_conformance.walks.among_machine import NODE, PEERS, AmongMachine
from distro_conformance.walks.http_among_machine import HttpAmongMachine
from distro_conformance.walks.stage import WAIT_MAX_MS, Stage, in_real_time
from distro_conformance.walks.walk import Walk, draw
from distro_model.actions import Action, Restart
from distro_model.rules.owners import is_ip_client, place

STEPS = 60
RUNS: Mapping[type[Walk], int] = {AmongMachine: 16, HttpAmongMachine: 8}
MISSED_MAX = 50
"""Actions that a stopped member could not do; more of them mean that the node does not answer."""
AGAIN = 2
"""The number of repetitions of a failing run."""

_NAMES = re.compile(r"^[cf]\d+$")
_ADDRESS = re.compile(r"10\.0\.1\.\d+:80\b")
"""Of a client of the HTTP API."""


class _Draft(Stage):
    """The walk only records the actions."""

    def suited(self, action: Action) -> Action | None:
        return in_real_time(action)


def drawn(seed: int) -> list[tuple[Action, ...]]:
    """Runs of both machines, the same for the same seed; none ends with the wait for leases."""
    found: list[tuple[Action, ...]] = []
    for machine, runs in RUNS.items():
        ended: list[tuple[Action, ...]] = []
        draw(machine, seed, runs, STEPS, start=staticmethod(_Draft), on_end=staticmethod(partial(_note, ended)))
        found += ended[:runs]
    return found


def _note(ended: list[tuple[Action, ...]], actions: list[Action], _: BaseException | None) -> None:
    ended.append(tuple(actions))


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that failed: its own actions until then, its attempts, and the failures of the repetitions."""

    actions: tuple[Action, ...]
    error: DivergedError
    steps: int
    seconds: float
    attempts: int = 1
    again: tuple[str, ...] = ()

    @property
    def failures(self) -> int:
        return 1 + len(self.again)

    @property
    def rate(self) -> str:
        times = f"it failed {self.failures} of {self.attempts} times"
        return f"{times}, then as {' and '.join(f'({each})' for each in self.again)}" if self.again else times

    @property
    def is_flaky(self) -> bool:
        return self.failures < self.attempts


@dataclass
class SideBySide:
    """`seconds` count from when the node serves. Raises UsageError, TargetError."""

    target: str
    seed: int
    seconds: float
    on_progress: Callable[[str], None] = lambda _: None
    watch: Watch = lambda profile: profile
    credentials: Credentials = field(default=NO_CREDENTIALS, repr=False)
    profile: str = ""
    """Of the node, once it has started."""
    steps: int = 0
    runs: int = 0
    undecided: int = 0
    in_parts: int = 0
    late: int = 0
    missed: int = 0
    _done: dict[int, list[Action]] = field(default_factory=dict)

    def run(self) -> Failed | None:
        return event_loop().run_until_complete(self._run())

    async def _run(self) -> Failed | None:
        node = resolve_target(self.target, credentials=self.credentials)
        self.profile = node.profile
        cluster = PeersCluster(node, on_progress=self.on_progress, watch=self.watch)
        try:
            await cluster.start((NODE, *PEERS), node.profile)
            return await self._search(cluster)
        finally:
            await cluster.stop()

    async def _search(self, cluster: PeersCluster) -> Failed | None:
        began_s = time.monotonic()
        until_s = began_s + self.seconds
        lanes = [asyncio.create_task(self._lane(cluster, run, until_s)) for run in drawn(self.seed)]
        failed: tuple[tuple[Action, ...], DivergedError] | None = None
        for ended in asyncio.as_completed(lanes):
            failed = await ended
            if failed is not None:
                break
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        outside = cluster.oracle.outside
        self.undecided, self.in_parts, self.late = outside.undecided, outside.in_parts, outside.late
        if failed is None:
            return None
        found = Failed(*failed, self.steps, time.monotonic() - began_s)
        return await self._again(cluster, found, until_s)

    async def _lane(
        self, cluster: PeersCluster, run: Sequence[Action], until_s: float
    ) -> tuple[tuple[Action, ...], DivergedError] | None:
        """Skip actions that are not possible in the state that the other runs have led to."""
        self.runs += 1
        number = self.runs
        done = self._done[number] = []
        for action in run:
            if time.monotonic() > until_s:
                break
            named = _of_lane(action, number)
            if cluster.forbidden(named) is not None:
                continue
            done.append(action)
            self.steps += 1
            self.on_progress(f"machine: {number} runs side by side, {self.steps} steps")
            try:
                await cluster.perform(named)
            except DivergedError as error:
                return tuple(self._done[_lane_of(error) or number]), error
            except (TargetError, asyncio.CancelledError):  # another run has just stopped the sending member
                task = asyncio.current_task()
                self.missed += 1
                if self.missed > MISSED_MAX or (task is not None and task.cancelling()):
                    raise
        return None

    async def _again(self, cluster: PeersCluster, found: Failed, until_s: float) -> Failed:
        """Repeat the run by itself, on the same node, within twice the time."""
        until_s += self.seconds
        for _ in range(AGAIN):
            if time.monotonic() > until_s:
                break
            await self._rest(cluster)
            failed = await self._lane(cluster, found.actions, until_s)
            again = found.again if failed is None else (*found.again, str(failed[1]))
            found = replace(found, attempts=found.attempts + 1, again=again)
        return found

    async def _rest(self, cluster: PeersCluster) -> None:
        """Repair all faults, and forget the failures."""
        for link in cluster.links.values():
            link.mend()
        await cluster.forget_clients()
        cluster.oracle.forgive()
        for peer in sorted(set(PEERS) - set(cluster.up)):
            with suppress(DivergedError):  # the node may still owe messages to the run that has ended
                await cluster.perform(Restart(peer))
        await asyncio.sleep(WAIT_MAX_MS / 1000)
        cluster.oracle.forgive()


def _lane_of(error: DivergedError) -> int | None:
    """The run whose client the error is about; any run may raise it."""
    client = getattr(error.__cause__, "client", None) or ""
    number = client.split(".")[2] if is_ip_client(client) else client.rpartition("-")[2]
    return int(number) if number.isdecimal() else None


def _of_lane(action: Action, number: int) -> Action:
    """The same action about clients of this run, whose names, addresses and services no other run has."""

    def here(text: str) -> str:
        named = f"{text}-{number}" if _NAMES.match(text) else text
        return _ADDRESS.sub(lambda found: _address_of_lane(found[0], number), named)

    changes: dict[str, Any] = {}
    for each in fields(cast("Any", action)):
        value = getattr(action, each.name)
        if each.name in ("client", "instance") and value is not None:
            changes[each.name] = here(value)
        elif each.name == "service":
            changes["service"] = f"{value}-{number}"
        elif each.name == "content":
            changes["content"] = tuple((f"{service}-{number}", here(instance)) for service, instance in value)
    return cast("Action", replace(cast("Any", action), **changes)) if changes else action


@cache
def _address_of_lane(address: str, number: int) -> str:
    """The address with the number of the run in its third part, and with the same owner."""
    last, nodes = address.rpartition(".")[2], 1 + len(PEERS)
    candidates = (f"10.{each}.{number}.{last}" for each in range(1, 256))
    return next(each for each in candidates if place(each, nodes) == place(address, nodes))
