"""What is asked of a mixed cluster: a run of checks, each a sentence that holds or does not.

Instances come, outlive the lease, change and go, at members of both kinds; then a member of each kind is restarted and
must have its data from the other one. What a member shows is what it answers to an SDK.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import grpc.aio

from distro_conformance.drivers.mixed import (
    MEMBERS,
    REAL,
    REFERENCES,
    START_WITHIN_S,
    MixedCluster,
    mixed_cluster,
)
from distro_conformance.node.player import PlayedClient, RefusedError
from distro_conformance.targets.nacos_target import SLACK_MS
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, Verdict

SERVICE = "orders"
VISIBLE_WITHIN_S = 3.0
"""Sync delay, a tick, the request, the push that renews the list: 2.8 s on 2.0.4, less on later releases."""

KNOWN_WITHIN_S = 20.0
"""Each member is reported to every 4 s, the first time 5 s after the start."""

BEYOND_LEASE_S = 6.0
"""A cleaner runs every 5 s: what was not renewed is gone by then."""

LOADED_WITHIN_S = 10.0
"""A load that failed is tried again after a second; up to 2.2.0 it fails until the first reports, 5 to 7 s."""

_SLACK_S = SLACK_MS / 1000
_POLL_S = 0.05
_HOLD_POLL_S = 0.5

Missing = Callable[[], Awaitable[str]]
"""What is not as it should be, empty when all is."""


@dataclass(frozen=True, slots=True)
class Check:
    """`seconds`: until it held, or how long it was waited for. `detail`: what was missing."""

    name: str
    held: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MixedReport:
    release: str
    lease_ms: int
    checks: tuple[Check, ...]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        return Verdict.CONFORMS if all(check.held for check in self.checks) else Verdict.VIOLATES


async def run_mixed_cluster(release: str, lease_ms: int, on_progress: OnProgress) -> MixedReport:
    """Start the cluster, make all checks, stop it. Raises TargetError, UsageError."""
    began = time.monotonic()
    async with mixed_cluster(release, lease_ms, on_progress) as cluster:
        script = _Script(cluster, on_progress)
        try:
            await script.play()
        except RefusedError as error:  # what comes after it would make no sense
            script.checks.append(Check("what a client asks is not refused", held=False, seconds=0.0, detail=str(error)))
        except grpc.aio.AioRpcError as error:
            raise TargetError(
                f"a member of the mixed {release} cluster stopped answering: {error.details()}"
            ) from error
        finally:
            await script.close()
        return MixedReport(release, cluster.lease_ms, tuple(script.checks), time.monotonic() - began)


class _Script:
    def __init__(self, cluster: MixedCluster, on_progress: OnProgress) -> None:
        self.cluster, self._on_progress = cluster, on_progress
        self.checks: list[Check] = []
        self._clients: dict[str, PlayedClient] = {}
        self._readers: dict[str, PlayedClient] = {}
        self._instances: dict[str, int] = {}  # member -> port of the instance that its client has registered

    async def play(self) -> None:
        for member in MEMBERS:
            self._readers[member] = await self.cluster.client(member)
        await self._holds("every member counts every other one as UP", KNOWN_WITHIN_S, self._not_up)
        await self._holds("every member takes the requests of clients", KNOWN_WITHIN_S, self._unlike)
        await self._arrive(8080)
        hold_s = self.cluster.lease_ms / 1000 + BEYOND_LEASE_S
        await self._stays(f"none of them is lost within {hold_s:.0f} s, beyond the lease", hold_s)
        await self._change(9090)
        await self._leave()
        await self._restart_references()
        await self._restart_real()

    async def close(self) -> None:
        for client in (*self._clients.values(), *self._readers.values()):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await client.close()

    # The script

    async def _arrive(self, port: int, *members: str) -> None:
        for member in members or MEMBERS:
            self._clients[member] = await self.cluster.client(member)
            await self._register(member, port)
            await self._holds(f"an instance registered at {member} is visible at all", VISIBLE_WITHIN_S, self._unlike)

    async def _change(self, port: int) -> None:
        for member in MEMBERS:
            await self._register(member, port)
            await self._holds(f"an instance changed at {member} is changed at all", VISIBLE_WITHIN_S, self._unlike)

    async def _leave(self) -> None:
        for member in tuple(self._clients):
            await self._clients.pop(member).close()
            del self._instances[member]
            name = f"when a client at {member} ends its instance vanishes everywhere"
            await self._holds(name, VISIBLE_WITHIN_S, self._unlike)

    async def _restart_references(self) -> None:
        """Both are stopped, and the first starts alone: nobody but the real server can give it a snapshot.

        With the other one there it might give: up to 2.2.0 a node asks only whom it has heard of, in whatever order.
        """
        await self._arrive(7070, REAL)
        for index, member in enumerate(REFERENCES):
            await self._readers.pop(member).close()
            await self.cluster.references.crash(index)
        await self._restart_reference(0, {REAL})
        await self._restart_reference(1, {REAL, REFERENCES[0]})
        for member in REFERENCES:
            self._readers[member] = await self.cluster.client(member)
        # 2.0.x refuses clients until it has heard of all members again.
        await self._holds("both reference nodes show what they have loaded", KNOWN_WITHIN_S, self._unlike)
        await self._holds("both reference nodes are UP again everywhere", KNOWN_WITHIN_S, self._not_up)
        await self._arrive(7070, REFERENCES[1])

    async def _restart_reference(self, index: int, sources: set[str]) -> None:
        """It was crashed; `sources` are the members that run."""
        member, due = REFERENCES[index], {client.id for client in self._clients.values()}
        self.cluster.snapshots.clear()
        self.cluster.events.clear()
        await self.cluster.references.restart(index)

        async def not_loaded() -> str:
            givers = self.cluster.givers(member)
            if not givers or not givers <= sources:
                return f"it has snapshots from {_text(givers)}"
            missing = due - self.cluster.loaded(member)
            return f"the snapshot lacks {_text(missing)}" if missing else ""

        whom = " or ".join("the real server" if source == REAL else source for source in sorted(sources))
        await self._holds(f"{member}, restarted, loads from {whom}", LOADED_WITHIN_S, not_loaded)

    async def _restart_real(self) -> None:
        """Its own client ends with it; those of the reference nodes stay."""
        await self._clients.pop(REAL).close()
        await self._readers.pop(REAL).close()
        del self._instances[REAL]
        await self._arrive(6060, REFERENCES[0])
        before = len(self._lines_of_load())
        await self.cluster.real.stop()
        await self.cluster.real.start(ready_within_s=START_WITHIN_S)

        async def not_loaded() -> str:
            lines = self._lines_of_load()[before:]
            sources = [address for address in self.cluster.references.addresses if any(address in x for x in lines)]
            return "" if sources and any("result: true" in line for line in lines) else "it logs no load from them"

        await self._holds("the real server, restarted, loads from a reference node", LOADED_WITHIN_S, not_loaded)
        self._readers[REAL] = await self.cluster.client(REAL)
        await self._holds("the real server shows what it has loaded", KNOWN_WITHIN_S, self._unlike)
        await self._holds("the real server is UP again everywhere", KNOWN_WITHIN_S, self._not_up)

    async def _register(self, member: str, port: int) -> None:
        await self._clients[member].register(SERVICE, f"10.0.0.{MEMBERS.index(member) + 1}", port)
        self._instances[member] = port

    # What is looked at

    async def _unlike(self) -> str:
        """Members whose list is not what is registered."""
        due = {f"10.0.0.{MEMBERS.index(member) + 1}:{port}" for member, port in self._instances.items()}
        for member, reader in self._readers.items():
            try:
                shown = {host.address for host in await reader.query(SERVICE)}
            except RefusedError as error:  # 2.0.x, as long as it has not heard of all members
                return str(error)
            if shown != due:
                return f"{member} shows {_text(shown)}, and {_text(due)} is registered"
        return ""

    async def _not_up(self) -> str:
        due = set(self.cluster.addresses.values())
        views = {REAL: await self.cluster.states_at_real()}
        views |= {name: self.cluster.states_at_reference(index) for index, name in enumerate(REFERENCES)}
        for name, states in views.items():
            if {address for address, state in states.items() if state == "UP"} != due:
                return f"at {name} the members are {', '.join(f'{a} {s}' for a, s in states.items()) or 'unknown'}"
        return ""

    def _lines_of_load(self) -> list[str]:
        text = self.cluster.real.log("protocol-distro").read_text("utf-8", "replace")
        return [line for line in text.splitlines() if "[DISTRO-INIT]" in line]

    # How long

    async def _holds(self, name: str, within_s: float, missing: Missing) -> None:
        """Comes true in time, a busy machine's slack granted."""
        began = time.monotonic()
        while (text := await missing()) and time.monotonic() - began < within_s + _SLACK_S:  # noqa: ASYNC110 - servers
            await asyncio.sleep(_POLL_S)
        self._note(Check(name, not text, time.monotonic() - began, text))

    async def _stays(self, name: str, for_s: float) -> None:
        """Is true all the time. Meanwhile the clients give signs of life, as every SDK does each 5 s.

        Silent ones are asked by the server after 20 s (2.0.x, 2.3.x); 2.3.2 was seen to expel one that answered.
        """
        began = time.monotonic()
        while not (text := await self._unlike()) and time.monotonic() - began < for_s:
            for client in self._clients.values():
                await client.query(SERVICE)
            await asyncio.sleep(_HOLD_POLL_S)
        self._note(Check(name, not text, time.monotonic() - began, text))

    def _note(self, check: Check) -> None:
        self.checks.append(check)
        word = "holds" if check.held else f"fails ({check.detail})"
        self._on_progress(f"{check.name}: {word}, {check.seconds:.1f} s")


def _text(addresses: set[str]) -> str:
    return ", ".join(sorted(addresses)) or "nothing"
