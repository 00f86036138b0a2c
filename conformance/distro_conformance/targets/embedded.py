"""The reference node as a target: in this process, on real sockets, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, UsageError
from distro_impl import Node, NodeConfig, VirtualClock
from distro_impl.clocks.virtual_clock import NotSettledError, WorkFailedError
from distro_impl.membership.cluster_clients import PeerLinks
from distro_impl.mutants import with_mutant
from distro_impl.options import DEFAULT_OPTIONS, NodeOptions
from distro_impl.profiles import Profile, profile_named


class EmbeddedClock:
    """The node's virtual clock; no slack, since nothing in it depends on the machine."""

    slack_ms = 0

    def __init__(self) -> None:
        self.virtual = VirtualClock()
        self._start_ms = self.virtual.now_ms()

    def now_ms(self) -> int:
        return self.virtual.now_ms() - self._start_ms

    async def pass_ms(self, ms: int) -> None:
        """Raises TargetError when the node itself fails on the way: a defect, but no answer to what was asked."""
        try:
            await self.virtual.advance(ms)
        except (NotSettledError, WorkFailedError) as error:
            raise TargetError(f"the reference node failed: {error}") from error


class EmbeddedTarget:
    """One reference node. `links` stand between it and its peers: the kit's own, or a broken wire.

    `acquainted`: its members count as known from the start, which they must when they speak no HTTP. A node with
    `options` of its own is started without any member list when it has no other members.
    """

    kind = spec = "embedded"

    def __init__(
        self,
        profile: str | Profile,
        mutant: str | None = None,
        *,
        links: PeerLinks | None = None,
        acquainted: bool = True,
        options: NodeOptions | None = None,
    ):
        try:
            found = profile_named(profile) if isinstance(profile, str) else profile
            self._profile = found if mutant is None else with_mutant(found, mutant)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self.profile = self._profile.name
        self.clock = EmbeddedClock()
        (self._port,) = free_base_ports()
        self._links, self._acquainted, self._options = links, acquainted, options
        self._node: Node | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def start(self, other_members: Sequence[str], on_progress: OnProgress) -> None:
        profile = self._profile.acquainted() if self._acquainted else self._profile
        members = (self.address, *other_members) if other_members or self._options is None else ()
        options = self._options or DEFAULT_OPTIONS
        config = NodeConfig(port=self._port, members=members, profile=profile, options=options)
        self._node = Node(config, clock=self.clock.virtual, links=self._links)
        try:
            await self._node.start()
        except OSError as error:
            self._node = None
            raise TargetError(str(error)) from error
        await self.clock.virtual.settle()
        on_progress(f"the reference node is ready at {self.address}, profile {self.profile}, in virtual time")

    async def stop(self) -> None:
        if self._node is not None:
            await self._node.stop()
            self._node = None
