"""A real Nacos server as the node under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from distro_conformance.release import Span
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.mutants import no_mutant
from distro_conformance.targets.nacos import NacosServer, release_and_jars
from distro_conformance.targets.nacos_home import LEASE_KEY
from distro_conformance.targets.real_mutants import Fired, agent_options, real_mutants
from distro_conformance.targets.served import ServedTarget
from distro_conformance.targets.server_process import ServerProcess
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import UsageError

LEASE_MS = 40_000
"""Shortened from 180 s, so that a check can observe the end of a lease; 2.0.x does not read it at start
(docs/real-servers.md#starting).
"""

_TAKES_A_LEASE = Span(since="2.2.0")


class NacosTarget(ServedTarget):
    """`nacos:2.2.4` fetches the jars of a release, `nacos:DIRECTORY` uses the jars of the directory, or of a
    distribution.

    `mutant`: rules that change the behaviour of the server (`real_mutants.py`); `fired` is known after its stop."""

    kind = "nacos"

    def __init__(self, version_or_directory: str, profile: str | None, mutant: str | None = None) -> None:
        super().__init__(f"nacos:{version_or_directory}")
        self._jars, self._release = release_and_jars(version_or_directory)
        self.profile = f"nacos-{self._release.version}"
        if profile not in (None, self.profile):
            raise UsageError(f"the target {self.spec} behaves as {self.profile}, not as {profile}")
        if mutant is not None and mutant not in real_mutants():
            raise no_mutant("real", mutant)
        self.member_headers = self._release.member_headers
        self._mutant = mutant
        self.fired = Fired()
        self._takes_lease = self.profile in _TAKES_A_LEASE

    @property
    def lease_ms(self) -> int | None:
        return LEASE_MS if self._takes_lease else None

    def fresh(self) -> Self:
        other = type(self)(self.spec.partition(":")[2], self.profile, self._mutant)
        other.fired, other.clock = self.fired, self.clock
        other._takes_lease = False  # copies from a snapshot must outlive a start on a busy machine
        return other

    def shorten_lease(self) -> None:
        self._takes_lease = self.profile in _TAKES_A_LEASE

    async def _made(self, members: Sequence[str], on_progress: OnProgress) -> ServerProcess:
        jars = self._jars or await jars_of(self._release, on_progress)
        on_progress(f"starting Nacos {self._release.version} at {self.address}")
        options = await agent_options(self._mutant, on_progress) if self._mutant else ()
        properties = {LEASE_KEY: str(LEASE_MS)} if self._takes_lease else {}
        return NacosServer(
            self._release,
            jars,
            port=self._port,
            members=members,
            jvm_properties=properties,
            jvm_options=options,
            on_progress=on_progress,
        )

    async def stop(self) -> None:
        if self._server is not None and self._mutant:
            await self._server.stop()
            self.fired.add(self._server.said)
        await super().stop()
