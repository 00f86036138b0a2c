"""One real Nacos server and reference nodes of its release, as members of one cluster, in real time.

Neither kind may be able to tell the other from its own. The real server has the first name and the lowest address, so
a reference node that starts asks it first for a snapshot if it asks in that order, and it has nobody but reference
nodes to ask. The real server's links are forwarders, those of the reference nodes stand on their channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from distro_conformance.drivers.embedded import NodeServer
from distro_conformance.drivers.nacos import LEASE_KEY, OFFSET_PROPERTY, RealTimeCluster, forward
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.nacos import NacosServer
from distro_conformance.targets.nacos_home import LOAD_RETRY_MS
from distro_conformance.targets.releases import nacos_release
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import UsageError
from distro_conformance.wire.links import Link
from distro_impl import NodeConfig, SystemClock, UnknownProfileError, profile_named
from distro_traces.ndjson import Recorder

LEASE_FIXED = ("2.0.4",)
"""Releases on which LEASE_KEY was seen to have no effect (docs/real-servers.md#starting)."""


class MixedCluster(RealTimeCluster):
    """`release` as `nacos:` takes it. `lease_ms` None: the release's own. Raises UsageError."""

    def __init__(
        self,
        release: str,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        lease_ms: int | None = None,
    ) -> None:
        super().__init__(recorder)
        self.kind = f"mixed:{release}"
        self.release = nacos_release(release)
        try:
            self._profile = profile_named(f"nacos-{release}")
        except UnknownProfileError as error:
            raise UsageError(str(error)) from error
        self.profile = self._profile.name
        self.lease_ms = lease_ms if lease_ms and release not in LEASE_FIXED else self._profile.client_expired_ms
        self._on_progress = on_progress

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        ports = self._lay_out(names, spare, profile)
        real, references = names[0], [name for name in self.names if name != names[0]]
        jars = await jars_of(self.release, self._on_progress)
        self._link_all()
        forwarded = {ends: link for ends, link in self.links.items() if ends[0] == real}
        offsets = await forward(self._forwarders, forwarded, ports)
        self.servers[real] = NacosServer(
            self.release,
            jars,
            port=ports[real],
            members=self._listed(real, ports),
            jvm_properties={OFFSET_PROPERTY: str(offsets[real]), LEASE_KEY: str(self.lease_ms)},
            on_progress=self._on_progress,
        )
        behaviour = replace(self._profile, client_expired_ms=self.lease_ms, load_retry_delay_ms=LOAD_RETRY_MS)
        clock = SystemClock()
        for name in references:
            config = NodeConfig(port=ports[name], members=self._listed(name, ports), profile=behaviour)
            self.servers[name] = NodeServer(config, clock, None, partial(self._link, name))
        await self._begin(profile)

    def _link(self, name: str, peer: str) -> Link:
        return self.links[name, self.name_of(peer)]
