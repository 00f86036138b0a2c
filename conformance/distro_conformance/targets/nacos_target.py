"""Real Nacos servers as a target."""

from __future__ import annotations

from distro_conformance.release import Span
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.mutants import no_mutant
from distro_conformance.targets.nacos import NacosServer, release_and_jars
from distro_conformance.targets.nacos_home import LEASE_KEY
from distro_conformance.targets.real_mutants import Fired, agent_options, real_mutants
from distro_conformance.targets.target import OnProgress, Place, Target
from distro_conformance.verdict import UsageError

LEASE_MS = 40_000
"""Shortened from 180 s, so that a check can observe the end of a lease; 2.0.x does not read it at start
(docs/real-servers.md#starting).
"""

OFFSET_PROPERTY = "nacos.server.grpc.port.offset"
_TAKES_A_LEASE = Span(since="2.2.0")


class NacosTarget(Target):
    """`nacos:2.2.4` fetches the jars of a release, `nacos:DIRECTORY` uses the jars of the directory, or of a
    distribution.

    `mutant`: rules that change the behaviour of the server (`real_mutants.py`); `fired` is known after its stop."""

    kind = "nacos"

    def __init__(self, version_or_directory: str, profile: str | None = None, mutant: str | None = None) -> None:
        super().__init__(f"nacos:{version_or_directory}")
        self._jars, self.release = release_and_jars(version_or_directory)
        self.profile = f"nacos-{self.release.version}"
        if profile not in (None, self.profile):
            raise UsageError(f"the target {self.spec} behaves as {self.profile}, not as {profile}")
        if mutant is not None and mutant not in real_mutants():
            raise no_mutant("real", mutant)
        self.member_headers = self.release.member_headers
        self._mutant = mutant
        self.fired = Fired()
        self.short_lease_ms = LEASE_MS if self.profile in _TAKES_A_LEASE else None
        self._has_short_lease = True  # a fresh one has the default: copies from a snapshot must outlive a busy start

    async def node(self, place: Place, on_progress: OnProgress) -> NacosServer:
        configured = {OFFSET_PROPERTY: place.offset, LEASE_KEY: place.lease_ms}
        return NacosServer(
            self.release,
            self._jars or await jars_of(self.release, on_progress),
            port=place.port,
            members=place.members,
            jvm_properties={key: str(value) for key, value in configured.items() if value is not None},
            jvm_options=await agent_options(self._mutant, on_progress) if self._mutant else (),
            on_progress=on_progress,
            on_end=self.fired.add if self._mutant else lambda _: None,
        )
