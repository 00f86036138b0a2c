"""The reference node as a target: in this process, on real sockets, in virtual time.

Time passes only when a check waits for it. Where many checks wait on one node, time passes when all of them wait, up to
the first instant that one of them waits for; so no check misses an event, however long another check takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from distro_conformance.node_mutants import MUTANTS, with_mutant
from distro_conformance.release import listed_profile
from distro_conformance.targets.identity import NO_HEADERS, headers_of, options_for
from distro_conformance.targets.mutants import no_mutant
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.target import UNLIMITED, OnProgress
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import WithoutSlack
from distro_conformance.wire.silence import SilentLink
from distro_impl import Node, NodeConfig, VirtualClock
from distro_impl.clocks.virtual_clock import NotSettledError, WorkFailedError
from distro_impl.options import NodeOptions
from distro_impl.profiles import Profile, profile_named


class EmbeddedClock(WithoutSlack):
    """The node's virtual clock."""

    def __init__(self) -> None:
        self.virtual = VirtualClock()
        self._start_ms = self.virtual.now_ms()
        self._taking_part = 0
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []  # until when, and the future of the waiting check
        self._passing: asyncio.Task[None] | None = None

    def now_ms(self) -> int:
        return self.virtual.now_ms() - self._start_ms

    async def pass_ms(self, ms: int) -> None:
        """Raises TargetError when the node itself fails meanwhile: a defect, but not an answer to the check."""
        if not self._taking_part:
            await self._advance(ms)
            return
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.virtual.now_ms() + ms, awake))
        self._pass_if_all_wait()
        await awake

    @contextmanager
    def taking_part(self) -> Iterator[None]:
        self._taking_part += 1
        try:
            yield
        finally:
            self._taking_part -= 1
            self._pass_if_all_wait()

    def _pass_if_all_wait(self) -> None:
        self._sleepers = [(until_ms, awake) for until_ms, awake in self._sleepers if not awake.done()]
        is_passing = self._passing is not None and not self._passing.done()
        if self._sleepers and len(self._sleepers) >= self._taking_part and not is_passing:
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


class EmbeddedTarget:
    """One reference node.

    `acquainted`: its members count as known from the start, which they must when they speak no HTTP. A node with
    `options` of its own is started without any member list when it has no other members.
    """

    kind = spec = "embedded"

    def __init__(
        self,
        profile: str | Profile,
        mutant: str | None = None,
        *,
        acquainted: bool = True,
        options: NodeOptions | None = None,
    ):
        if isinstance(profile, str):
            listed_profile(profile)
        if mutant is not None and mutant not in MUTANTS:
            raise no_mutant("node", mutant)
        self._sound, self._mutant = profile_named(profile) if isinstance(profile, str) else profile, mutant
        suited = self._sound.acquainted() if acquainted else self._sound
        self._profile = with_mutant(suited, mutant)  # last, so that nothing repairs the mutant
        self.profile = self._profile.name
        self.clock = EmbeddedClock()
        (self._port,) = free_base_ports()
        self._acquainted, self._options = acquainted, options
        self._node: Node | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def member_headers(self) -> Mapping[str, str]:
        return headers_of(self._node_options)

    @property
    def _node_options(self) -> NodeOptions:
        return self._options or options_for(self._profile)

    lease_ms = None
    client_headers = NO_HEADERS
    limits = UNLIMITED

    def fresh(self) -> Self:
        return type(self)(self._sound, self._mutant, acquainted=self._acquainted, options=self._options)

    async def start(
        self,
        other_members: Sequence[str],
        on_progress: OnProgress,
        *,
        until_loaded: bool = True,  # noqa: ARG002 - it loads while it starts, unless a member delays the load
    ) -> None:
        members = (self.address, *other_members) if other_members or self._options is None else ()
        config = NodeConfig(port=self._port, members=members, profile=self._profile, options=self._node_options)
        self._node = Node(config, clock=self.clock.virtual, links=lambda _: SilentLink(self.clock.virtual))
        try:
            await self._node.start()
        except OSError as error:
            self._node = None
            raise TargetError(str(error)) from error
        await self.clock.virtual.settle()
        on_progress(f"the reference node is ready at {self.address}, profile {self.profile}, in virtual time")

    async def change_members(self, other_members: Sequence[str]) -> None:
        assert self._node is not None
        self._node.change_members((self.address, *other_members))
        await self.clock.virtual.settle()

    def shorten_lease(self) -> None:
        """Nothing to do: a lease takes no real time here."""

    async def suspend(self, ms: int) -> None:
        self.clock.virtual.jump(ms)
        await self.clock.pass_ms(0)

    async def stop(self) -> None:
        if self._node is not None:
            await self._node.stop()
            self._node = None
