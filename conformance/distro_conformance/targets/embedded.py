"""The reference node in this process; as a target on real sockets, in virtual time.

Time passes only when a check waits for it. Where many checks wait on one node, time passes when all of them wait, up to
the first instant that one of them waits for; so no check misses an event, however long another check takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from distro_conformance.node.replies import SilentLink
from distro_conformance.node_mutants import MUTANTS, with_mutant
from distro_conformance.targets.credentials import headers_of, options_for
from distro_conformance.targets.mutants import no_mutant
from distro_conformance.targets.target import OnProgress, Place, Target
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import Clock, RealClock, eventually, poll_local
from distro_impl import Node, NodeConfig, NodeEvent, SystemClock, VirtualClock
from distro_impl.clocks.virtual_clock import NotSettledError, WorkFailedError
from distro_impl.options import NodeOptions
from distro_impl.profiles import Profile, profile_named
from distro_impl.transport.transport import PeerLink, Transport

LOADED_WITHIN_MS = 60_000


class EmbeddedClock(Clock):
    """The node's virtual clock."""

    def __init__(self) -> None:
        self.virtual = VirtualClock()
        self._start_ms = self.virtual.now_ms()
        self._participants = 0
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []  # until when, and the future of the waiting check
        self._passing: asyncio.Task[None] | None = None

    def now_ms(self) -> int:
        return self.virtual.now_ms() - self._start_ms

    async def pass_ms(self, ms: int) -> None:
        """Raises TargetError when the node itself fails meanwhile: a defect, but not an answer to the check."""
        if not self._participants:
            await self._advance(ms)
            return
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.virtual.now_ms() + ms, awake))
        self._pass_if_all_wait()
        await awake

    @contextmanager
    def participating(self) -> Iterator[None]:
        self._participants += 1
        try:
            yield
        finally:
            self._participants -= 1
            self._pass_if_all_wait()

    def _pass_if_all_wait(self) -> None:
        self._sleepers = [(until_ms, awake) for until_ms, awake in self._sleepers if not awake.done()]
        is_passing = self._passing is not None and not self._passing.done()
        if self._sleepers and len(self._sleepers) >= self._participants and not is_passing:
            self._passing = asyncio.create_task(self._pass(), name="virtual time")

    async def _pass(self) -> None:
        """Advance to the first instant that a check waits for, and resume the checks that wait for it."""
        due_ms = min(until_ms for until_ms, _ in self._sleepers)
        failure: TargetError | None = None
        try:
            await self._advance(max(0, due_ms - self.virtual.now_ms()))
        except TargetError as error:
            failure = error
        due = [awake for until_ms, awake in self._sleepers if failure or until_ms <= due_ms]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[1] not in due]
        for awake in due:
            if awake.done():
                continue
            if failure is None:
                awake.set_result(None)
            else:
                awake.set_exception(TargetError(str(failure)))
        asyncio.get_running_loop().call_soon(self._pass_if_all_wait)  # a due check may have been cancelled meanwhile

    async def _advance(self, ms: int) -> None:
        try:
            await self.virtual.advance(ms)
        except (NotSettledError, WorkFailedError) as error:
            raise TargetError(f"the reference node failed: {error}") from error


@dataclass
class ReferenceNode:
    """One reference node. Its configuration counts from its next start on."""

    config: NodeConfig
    clock: SystemClock | VirtualClock
    links: Callable[[str], PeerLink]
    observer: Callable[[NodeEvent], None] | None = None
    transport: Transport | None = None
    node: Node | None = field(default=None, init=False)
    pid: None = field(default=None, init=False)

    @property
    def address(self) -> str:
        return self.config.address

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a member's requests to it."""
        return headers_of(self.config.options.identity)

    def behave_as(self, profile: Profile) -> None:
        self.config = replace(self.config, profile=profile, options=options_for(profile))

    @property
    def logs(self) -> Sequence[Path]:
        return ()

    async def start(self, *, until_loaded: bool = True) -> None:
        """`until_loaded` is for a node in real time: virtual time would stand still meanwhile."""
        node = Node(self.config, clock=self.clock, transport=self.transport, observer=self.observer, links=self.links)
        try:
            await node.start()
        except OSError as error:
            raise TargetError(f"the reference node {self.address} cannot be started: {error}") from error
        self.node = node
        loaded = poll_local(lambda: node.record.load_ms)
        if until_loaded and await eventually(loaded, RealClock(), LOADED_WITHIN_MS, step_ms=5) is None:
            raise TargetError(f"the reference node {self.address} has not loaded within {LOADED_WITHIN_MS} ms")

    async def stop(self) -> None:
        node, self.node = self.node, None
        if node is not None:
            await node.crash()

    async def close(self) -> None:
        await self.stop()

    async def change_members(self, addresses: Sequence[str]) -> None:
        """From its next start on the node is on its own list too: a server that a list lacks writes it back so
        (docs/protocol #member-self)."""
        self.config = replace(self.config, members=tuple(sorted({*addresses, self.address})))
        if self.node is not None:
            self.node.change_members(tuple(sorted(addresses)))

    async def members(self) -> Mapping[str, str]:
        known = self.node.members.all_members() if self.node is not None else ()
        return {member.address: member.state.value for member in known}


class EmbeddedTarget(Target):
    """One reference node.

    `with_known_members`: its members count as known from the start, which they must when they speak no HTTP. A node
    with `options` of its own is started without any member list when it has no other members. Raises
    UnknownProfileError, and UsageError for an unknown mutant.
    """

    kind = "embedded"
    clock: EmbeddedClock

    def __init__(
        self,
        profile: str | Profile,
        mutant: str | None = None,
        *,
        with_known_members: bool = True,
        options: NodeOptions | None = None,
    ):
        if mutant is not None and mutant not in MUTANTS:
            raise no_mutant("node", mutant)
        super().__init__("embedded", clock=EmbeddedClock())
        self.mutant = mutant
        sound = profile_named(profile) if isinstance(profile, str) else profile
        adapted = sound.with_known_members() if with_known_members else sound
        self._profile = with_mutant(adapted, mutant)  # last, so that nothing repairs the mutant
        self.profile = self._profile.name
        self._options, self._may_be_alone = options or options_for(self._profile), options is not None
        self.member_headers = headers_of(self._options.identity)

    def fresh(self) -> Self:
        other = super().fresh()
        other.clock = EmbeddedClock()
        return other

    async def node(self, place: Place, on_progress: OnProgress) -> ReferenceNode:  # noqa: ARG002 - it starts at once
        """Its links are its own, and a lease takes no real time here."""
        listed = place.members if len(place.members) > 1 or not self._may_be_alone else ()
        config = NodeConfig(port=place.port, members=listed, profile=self._profile, options=self._options)
        return ReferenceNode(config, self.clock.virtual, lambda _: SilentLink(self.clock.virtual))

    async def start(
        self,
        other_members: Sequence[str],
        on_progress: OnProgress,
        *,
        until_loaded: bool = True,  # noqa: ARG002 - it loads while it starts, unless a member delays the load
    ) -> None:
        await super().start(other_members, on_progress, until_loaded=False)
        await self.clock.virtual.settle()
        on_progress(f"the reference node is ready at {self.address}, profile {self.profile}, in virtual time")

    async def change_members(self, other_members: Sequence[str]) -> None:
        await super().change_members(other_members)
        await self.clock.virtual.settle()

    async def suspend(self, ms: int) -> None:
        self.clock.virtual.jump(ms)
        await self.clock.pass_ms(0)
