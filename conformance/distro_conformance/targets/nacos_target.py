"""A real Nacos server as the node under test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.nacos import NacosServer
from distro_conformance.targets.nacos_home import HOST
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.releases import NacosRelease, nacos_release
from distro_conformance.targets.target import OnProgress, RealClock
from distro_conformance.verdict import UsageError

SLACK_MS = 2000
"""What a busy machine may add to any bound; events at regular server load come 50 to 150 ms late."""


class NacosTarget:
    """`nacos:2.2.4` fetches the jars of a release, `nacos:DIRECTORY` takes the jars that are there."""

    kind = "nacos"

    def __init__(self, version_or_directory: str, profile: str | None) -> None:
        self.spec = f"nacos:{version_or_directory}"
        self._jars, self._release = _release_and_jars(version_or_directory)
        self.profile = f"nacos-{self._release.version}"
        if profile not in (None, self.profile):
            raise UsageError(f"the target {self.spec} behaves as {self.profile}, not as {profile}")
        self.clock = RealClock(SLACK_MS)
        (self._port,) = free_base_ports()
        self._server: NacosServer | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    async def start(self, other_members: Sequence[str], on_progress: OnProgress) -> None:
        jars = self._jars or await jars_of(self._release, on_progress)
        on_progress(f"starting Nacos {self._release.version} at {self.address}")
        members = (self.address, *other_members)
        self._server = NacosServer(
            self._release, jars, port=self._port, members=members, jvm_properties={}, on_progress=on_progress
        )
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.close()
            self._server = None


def _release_and_jars(text: str) -> tuple[Path | None, NacosRelease]:
    """A directory is known by its slash or by being there; its release by the name of the naming jar."""
    directory = Path(text)
    if not text or ("/" not in text and not directory.is_dir()):
        return None, nacos_release(text)
    found = sorted(directory.glob("nacos-naming-*.jar"))
    if len(found) != 1:
        raise UsageError(
            f"{directory} is no directory with the jars of one Nacos release (it holds {len(found)} "
            "nacos-naming-*.jar); name a release, nacos:2.2.4, or a directory that Maven filled"
        )
    return directory, nacos_release(found[0].stem.removeprefix("nacos-naming-"))
