"""The environment of a scenario: one SDK, its programs, and the nodes, read until they show the expected list.

Two programs serve all scenarios of an SDK, since starting one can take seconds: the publisher knows the first node
only, the roamer all.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from distro_conformance.release import Span
from distro_interop.sdks.listing import Listing, addresses, shown
from distro_interop.sdks.nodes import Nodes
from distro_interop.sdks.program import SdkProgram
from distro_interop.sdks.registry import Sdk

_numbers = itertools.count(1)


class FailedError(Exception):
    """The scenario failed; the text is the reason in the table."""


@dataclass(slots=True)
class Environment:
    """One SDK among the nodes."""

    sdk: Sdk
    place: Path
    nodes: Nodes
    guarded: Callable[[], AbstractAsyncContextManager[Nodes]] | None = None
    """Starts a node like these that accepts no client without a password; None where there is none."""
    _programs: dict[str, SdkProgram] = field(default_factory=dict)

    async def publisher(self) -> SdkProgram:
        return await self._program("publisher", self.nodes.addresses[:1])

    async def roamer(self) -> SdkProgram:
        return await self._program("roamer", self.nodes.addresses)

    def new_service(self, name: str) -> str:
        return f"{self.sdk.name}-{name}-{next(_numbers)}".replace(".", "-")

    @contextlib.asynccontextmanager
    async def at(self, nodes: Nodes, credentials: Sequence[str]) -> AsyncIterator[SdkProgram]:
        """A program of its own among other nodes, killed at the end."""
        program = await SdkProgram.start(self.sdk, self.place, nodes.addresses, credentials)
        try:
            yield program
        finally:
            await program.kill()

    async def kill_programs(self) -> None:
        for name in tuple(self._programs):
            await self._programs.pop(name).kill()

    async def show(self, service: str, wanted: tuple[str, ...], within_s: float, what: str) -> None:
        """`everywhere`, for the addresses alone."""
        await self.everywhere(service, lambda found: addresses(found) == wanted, within_s, what)

    async def everywhere(self, service: str, meant: Callable[[Listing], bool], within_s: float, what: str) -> None:
        """Wait until every running node shows such a list. Raises FailedError with the list of the last one."""
        found: Listing = ()

        async def holds(index: int) -> bool:
            nonlocal found
            found = await self.nodes.shown(index, service)
            return meant(found)

        if (at := await self.nodes.lagging(holds, within_s)) is not None:
            raise FailedError(f"{what}: not within {within_s:.0f} s at {at}, which shows {shown(found)}")

    async def _program(self, name: str, servers: tuple[str, ...]) -> SdkProgram:
        program = self._programs.get(name)
        if program is None or not program.is_running:
            program = self._programs[name] = await SdkProgram.start(self.sdk, self.place, servers)
        return program


_ALL = Span()


@dataclass(frozen=True, slots=True)
class Scenario:
    """`on`: whether SDK and nodes have the feature of the scenario; `releases`: the servers that have it."""

    name: str
    text: str
    run: Callable[[Environment], Awaitable[None]]
    on: Callable[[Environment], bool] = lambda _: True
    releases: Span = _ALL

    def is_offered(self, environment: Environment) -> bool:
        return self.on(environment) and environment.nodes.profile in self.releases
