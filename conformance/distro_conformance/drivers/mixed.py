"""One real Nacos server and two reference nodes of its release, as members of one cluster.

Neither kind may be able to tell the other from its own. The real server has the lowest address, so a reference node
that starts asks it first for a snapshot if it asks in that order, and it has nobody but reference nodes to ask. What is
done with this cluster is in mixed_script.py.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace

from distro_conformance.node.player import PlayedClient
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.nacos import NacosServer
from distro_conformance.targets.nacos_home import HOST, LOAD_RETRY_MS
from distro_conformance.targets.ports import SDK_OFFSET, free_base_ports, with_offset
from distro_conformance.targets.releases import nacos_release
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, UsageError
from distro_impl import Cluster, NodeEvent, NodeEventKind, UnknownProfileError, profile_named
from distro_impl.transport.transport import Forward, PeerLink
from distro_protos import Payload, decode

REAL, REFERENCES = "real", ("reference1", "reference2")
MEMBERS = (REAL, *REFERENCES)

START_WITHIN_S = 300.0
"""A start takes 5 s alone on the machine, and minutes on one that is busy with other things."""

LEASE_KEY = "nacos.naming.client.expired.time"
LEASE_FIXED = ("2.0.4",)
"""Releases on which the key was seen to have no effect (real-nacos.md section 2)."""

_NODES_PATH = "/nacos/v1/core/cluster/nodes"


@dataclass
class MixedCluster:
    """`lease_ms` is what both kinds were given, or what the release cannot be talked out of."""

    real: NacosServer
    references: Cluster
    lease_ms: int
    snapshots: list[tuple[str, str]] = field(default_factory=list)
    """(member that asked, member that answered) of each SNAPSHOT that a reference node got."""
    events: list[NodeEvent] = field(default_factory=list)

    @property
    def addresses(self) -> Mapping[str, str]:
        """Name of a member to `ip:P`."""
        return dict(zip(MEMBERS, (self.real.address, *self.references.addresses), strict=True))

    def sdk_address(self, member: str) -> str:
        return with_offset(self.addresses[member], SDK_OFFSET)

    async def client(self, member: str) -> PlayedClient:
        return await PlayedClient.connect(self.sdk_address(member))

    async def states_at_real(self) -> Mapping[str, str]:
        """Address to state, as the real server lists its members; empty while it does not answer."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            listed = json.loads(await self.real.get(_NODES_PATH))["data"]
            return {member["address"]: member["state"] for member in listed}
        return {}

    def states_at_reference(self, index: int) -> Mapping[str, str]:
        return {member.address: member.state.value for member in self.references.nodes[index].members.all_members()}

    def givers(self, member: str) -> set[str]:
        """The members that have given a reference node a snapshot."""
        names = {address: name for name, address in self.addresses.items()}
        return {names[giver] for asker, giver in self.snapshots if names[asker] == member}

    def loaded(self, member: str) -> set[str]:
        """The clients that a reference node has from snapshots."""
        applied = (self.addresses[member], NodeEventKind.REPLICA_APPLIED, "SNAPSHOT")
        return {event.client for event in self.events if (event.node, event.kind, event.reason) == applied}


@contextlib.asynccontextmanager
async def mixed_cluster(release: str, lease_ms: int, on_progress: OnProgress) -> AsyncIterator[MixedCluster]:
    """All three running and loaded; gone when the block ends, however it ends.

    Raises UsageError for a release that one of the kinds does not know, TargetError when it cannot be fetched or
    started.
    """
    found = nacos_release(release)
    try:
        profile = profile_named(f"nacos-{release}")
    except UnknownProfileError as error:
        raise UsageError(str(error)) from error
    if release in LEASE_FIXED:
        lease_ms = profile.client_expired_ms
    jars = await jars_of(found, on_progress)
    real_port, *ports = sorted(free_base_ports(len(MEMBERS)))
    real_address = f"{HOST}:{real_port}"
    snapshots: list[tuple[str, str]] = []
    events: list[NodeEvent] = []
    references = Cluster(
        len(ports),
        profile=replace(profile, client_expired_ms=lease_ms, load_retry_delay_ms=LOAD_RETRY_MS),
        ports=ports,
        further_members=[real_address],
        observer=events.append,
        links=lambda sender, peer: _SnapshotNotes(lambda: snapshots.append((sender, peer))),
    )
    real = NacosServer(
        found,
        jars,
        port=real_port,
        members=[real_address, *references.addresses],
        jvm_properties={LEASE_KEY: str(lease_ms)},
        on_progress=on_progress,
    )
    try:
        await references.start()
        await real.start(ready_within_s=START_WITHIN_S)
        yield MixedCluster(real, references, lease_ms, snapshots, events)
    except OSError as error:
        raise TargetError(f"the reference nodes cannot be started: {error}") from error
    finally:
        await references.stop()
        await real.close()


class _SnapshotNotes(PeerLink):
    """Stands on a link of a reference node and notes each snapshot that was given."""

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        answer = await forward(request)
        if request.metadata.type == "DistroDataRequest" and decode(request).body.get("dataOperation") == "SNAPSHOT":
            reply = decode(answer)
            if reply.succeeded and reply.body.get("distroData"):
                self._note()
        return answer
