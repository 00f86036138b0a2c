"""A real Nacos server as the node under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from distro_conformance.release import Span
from distro_conformance.targets.identity import NO_HEADERS
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.nacos import NacosServer, release_and_jars
from distro_conformance.targets.nacos_home import HOST
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.rules import Fired, agent_options, real_mutants
from distro_conformance.targets.target import UNLIMITED, OnProgress
from distro_conformance.verdict import UsageError
from distro_conformance.waiting import RealClock

LEASE_KEY, LEASE_MS = "nacos.naming.client.expired.time", 40_000
"""Shortened from 180 s, so that a lease can be seen to end; 2.0.x does not read it at start
(docs/real-servers.md#starting).
"""


class NacosTarget:
    """`nacos:2.2.4` fetches the jars of a release, `nacos:DIRECTORY` takes the jars that are there, or those of
    a distribution.

    `mutant`: rules that change what the server does (rules.py); `fired` is known once it has stopped."""

    kind = "nacos"
    member_headers = NO_HEADERS
    limits = UNLIMITED

    def __init__(self, version_or_directory: str, profile: str | None, mutant: str | None = None) -> None:
        self.spec = f"nacos:{version_or_directory}"
        self._jars, self._release = release_and_jars(version_or_directory)
        self.profile = f"nacos-{self._release.version}"
        if profile not in (None, self.profile):
            raise UsageError(f"the target {self.spec} behaves as {self.profile}, not as {profile}")
        if mutant is not None and mutant not in real_mutants():
            raise UsageError(f"a real server has no mutant '{mutant}'; known: {', '.join(real_mutants())}")
        self._mutant = mutant
        self.fired = Fired()
        self.clock = RealClock()
        (self._port,) = free_base_ports()
        self._takes_lease = self.profile in Span(since="2.2.0")
        self._server: NacosServer | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    @property
    def lease_ms(self) -> int | None:
        return LEASE_MS if self._takes_lease else None

    def fresh(self) -> Self:
        other = type(self)(self.spec.partition(":")[2], self.profile, self._mutant)
        other.fired, other.clock = self.fired, self.clock
        other._takes_lease = False  # what a snapshot brought has to outlive a start on a busy machine
        return other

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        jars = self._jars or await jars_of(self._release, on_progress)
        on_progress(f"starting Nacos {self._release.version} at {self.address}")
        members = (self.address, *other_members)
        options = await agent_options(self._mutant, on_progress) if self._mutant else ()
        properties = {LEASE_KEY: str(LEASE_MS)} if self._takes_lease else {}
        self._server = NacosServer(
            self._release,
            jars,
            port=self._port,
            members=members,
            jvm_properties=properties,
            jvm_options=options,
            on_progress=on_progress,
        )
        await self._server.start(until_loaded=until_loaded)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
            if self._mutant:
                self.fired.add(self._server.console.read_text("utf-8", "replace"))
            await self._server.close()
            self._server = None
