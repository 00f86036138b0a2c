"""Servers started as processes, by a description or a command: any server that takes a member list. Time is real.

If the description can pass a server an offset to its peers' ports (`{offset}`), each directed link is a forwarder of
the kit; otherwise no link can have a fault.
"""

from __future__ import annotations

from collections.abc import Sequence

from distro_conformance.drivers.nacos import RealTimeCluster
from distro_conformance.drivers.server import Server
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.process import ProcessServer, description_of
from distro_model.actions import Action, ListMembers
from distro_traces.ndjson import Recorder


class ProcessCluster(RealTimeCluster):
    """`text` is the part after `process:`. Raises UsageError."""

    def __init__(self, text: str, recorder: Recorder | None = None, credentials: Credentials = NO_CREDENTIALS) -> None:
        super().__init__(recorder)
        self.kind = f"process:{text}"
        self._described = description_of(text)
        self.credentials = self._described.shown(credentials)
        self.has_links = self._described.takes_offset

    def cannot(self, action: Action) -> str | None:
        if isinstance(action, ListMembers) and not self._described.rereads_members:
            return "its description names no file of members: a running server cannot get another list"
        return super().cannot(action)

    async def _server(self, name: str, port: int, members: Sequence[str], offset: int | None) -> Server:  # noqa: ARG002
        return ProcessServer(self._described, port, members, offset)
