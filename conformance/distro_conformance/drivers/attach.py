"""A running cluster that the kit did not start: the kit reads it, and its clients use a namespace of their own.

Nothing is started, stopped, paused or cut. What a node holds is read as any member may read it, and only the kit's own
clients are judged. With `allow_disruption` the clients use the public namespace, like applications.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from distro_conformance.drivers.cluster import CannotError
from distro_conformance.drivers.nacos import RealTimeCluster
from distro_conformance.node.player import NAMESPACE
from distro_conformance.targets.attached import OWN_NAMESPACE, addresses_in
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.identity import NO_HEADERS
from distro_conformance.targets.nacos import listed_members
from distro_conformance.verdict import UsageError
from distro_model.actions import Action, Crash, ListMembers, Move, OverHttp, Pause, Restart, Resume


class AttachedServer:
    """A node at an address that the kit neither starts nor stops."""

    pid = None

    def __init__(self, address: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        self.address, self._headers = address, headers

    async def start(self, *, until_loaded: bool = True) -> None:
        """Does nothing: the first reading shows whether the node runs."""

    async def stop(self) -> None:
        raise CannotError(f"{self.address} was not started by the kit, which does not stop it")

    async def close(self) -> None:
        """Does nothing: the node keeps running."""

    async def change_members(self, addresses: Sequence[str]) -> None:
        raise CannotError(f"the kit does not change the member list of {self.address}: {', '.join(addresses)}")

    async def members(self) -> Mapping[str, str]:
        listed = await asyncio.to_thread(listed_members, self.address, self._headers)
        return {str(member["address"]): str(member["state"]) for member in listed}


class AttachCluster(RealTimeCluster):
    """`addresses` are HOST:PORT with commas between them, main ports. Raises UsageError, TargetError."""

    def __init__(
        self, addresses: str, *, allow_disruption: bool = False, credentials: Credentials = NO_CREDENTIALS
    ) -> None:
        super().__init__()
        self.credentials = credentials
        self.kind = f"attach:{addresses}"
        self.addresses = addresses_in(addresses)
        self.clients.namespace = self.reader.namespace = NAMESPACE if allow_disruption else OWN_NAMESPACE
        self.only_own = True

    def cannot(self, action: Action) -> str | None:
        match action:
            case Crash() | Restart() | Move() | Pause() | Resume() | ListMembers():
                return "the kit did not start this cluster: its nodes are neither stopped nor changed"
            case OverHttp() if self.clients.namespace != NAMESPACE:
                return "clients of the HTTP API would come to the public namespace; --allow-disruption lets them"
        return super().cannot(action)

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        if spare:
            raise UsageError(f"{self.kind} runs already, and has no spare addresses: {' '.join(spare)}")
        if len(names) != len(self.addresses):
            raise UsageError(
                f"the scenario has the nodes {' '.join(names)}, and {self.kind} names {len(self.addresses)}"
            )
        self._name(names, spare, profile)
        headers = await asyncio.to_thread(self.credentials.client_headers, self.addresses[0])
        self.servers = {
            name: AttachedServer(address, headers) for name, address in zip(names, self.addresses, strict=True)
        }
        await self._begin(profile)

    async def _until_all_up(self) -> None:
        """Does not wait: the state of the cluster is to be observed as found."""
