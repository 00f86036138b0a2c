"""One real Nacos server and reference nodes of its release, as members of one cluster, in real time.

Neither kind may be able to distinguish the other from its own. The real server has the first name and the lowest
address, so a reference node that starts asks it first for a snapshot if it asks in that order, and it has only
reference nodes to ask. The real server's links are forwarders, those of the reference nodes are in their channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from distro_conformance.drivers.embedded import NodeServer
from distro_conformance.drivers.nacos import NacosCluster
from distro_conformance.drivers.server import Server
from distro_conformance.targets.identity import options_for
from distro_conformance.targets.nacos_home import LEASE_KEY, LOAD_RETRY_MS
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import UsageError
from distro_impl import NodeConfig, SystemClock, UnknownProfileError, profile_named
from distro_traces.ndjson import Recorder

LEASE_FIXED = ("2.0.4",)
"""Releases on which LEASE_KEY was seen to have no effect (docs/real-servers.md#starting)."""


class MixedCluster(NacosCluster):
    """`release` in the form of `nacos:`. `lease_ms` None: the default of the release. Raises UsageError."""

    def __init__(
        self,
        release: str,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        lease_ms: int | None = None,
    ) -> None:
        super().__init__(release, recorder, on_progress)
        self.kind = f"mixed:{release}"
        try:
            own = profile_named(self.profile)
        except UnknownProfileError as error:
            raise UsageError(str(error)) from error
        lease_ms = lease_ms if lease_ms and self.release.version not in LEASE_FIXED else own.client_expired_ms
        self._more = {LEASE_KEY: str(lease_ms)}
        self._behaviour = replace(own, client_expired_ms=lease_ms, load_retry_delay_ms=LOAD_RETRY_MS)
        self._nodes_clock = SystemClock()

    def _is_forwarded(self, name: str) -> bool:
        """Only the real server: it has the first name."""
        return name == next(iter(self._lists))

    async def _server(self, name: str, port: int, members: Sequence[str], offset: int | None) -> Server:
        if self._is_forwarded(name):
            return await super()._server(name, port, members, offset)
        config = NodeConfig(
            port=port, members=tuple(members), profile=self._behaviour, options=options_for(self._behaviour)
        )
        return NodeServer(config, self._nodes_clock, None, partial(self.link_to, name))
