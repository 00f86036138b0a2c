"""Checks a node among played members: what it holds is judged after each action, and its lists and last pushes are
compared with that after a wait that is long enough for a push.

In virtual time each action is followed by a reading of the node. In real time runs side by side share readings, which
cost the kit most, and change services at any time: a service is compared while no reading has shown a change of it and
no request has published in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from distro_conformance.drivers.clients import ConnectedClients
from distro_conformance.drivers.cluster import Lists
from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.drivers.oracle import Oracle
from distro_conformance.drivers.reader import Reader
from distro_conformance.drivers.service_lists import (
    PUSHED_WITHIN_MS,
    Published,
    projection,
    published_by_service,
    wrong_lists,
)
from distro_model.actions import Action, Advance, BaseHttpRequest, PeerRequest, Register, RegisterBatch
from distro_model.clock.cluster import View

COMPARED_EVERY_MS = 3_000
"""In real time."""
PORTION = 8
"""The number of clients that are judged before the event loop runs again."""


@dataclass(frozen=True, slots=True)
class NodeReading:
    """What the node held then, in all and by service."""

    at_ms: int
    held: Mapping[str, View]
    published: Published

    @classmethod
    def at(cls, at_ms: int, held: Mapping[str, View]) -> NodeReading:
        return cls(at_ms, held, published_by_service(held))

    def as_in(self, other: NodeReading, services: Iterable[str]) -> Lists:
        """The lists of those services under which the same clients publish the same, in the same revisions."""
        lists = projection(self.held)
        same = (each for each in services if other.published.get(each) == self.published.get(each))
        return {each: lists.get(each, ()) for each in same}


class NodeChecker:
    """`note_members`: notes which members are connected, before a reading. `node` is named at the start."""

    node = ""

    def __init__(
        self,
        reader: Reader,
        clients: ConnectedClients,
        oracle: Oracle,
        note_members: Callable[[], None],
        *,
        in_real_time: bool,
    ) -> None:
        self._reader, self._clients, self._oracle, self._note_members = reader, clients, oracle, note_members
        self._in_real_time = in_real_time
        self.deleted: set[str] = set()
        """The clients for which a member sent a DELETE: their subscriptions may have ended with what the node held."""
        self._services: dict[str, None] = {}
        """The services that the node has ever been observed to hold."""
        self._changed_ms: dict[str, int] = {}
        """When a reading has shown a change of a service, or a request to publish in it began or ended; in real time
        only."""
        self._checking = asyncio.Lock()
        self._last = NodeReading(-1, {}, {})
        self._compared_ms = -COMPARED_EVERY_MS
        """When the last comparison of lists began."""

    async def check(self) -> NodeReading:
        """What the node holds, after what was due has been judged: by a reading that began after this call."""
        called_ms = self._oracle.now_ms()
        async with self._checking:
            if not self._in_real_time or self._last.at_ms <= called_ms:
                await self._read_and_judge()
            return self._last

    async def _read_and_judge(self) -> None:
        """In real time in portions: the messages of the node are observed in between, and not after all of them."""
        self._note_members()
        asked_ms = self._oracle.now_ms()
        reading = NodeReading.at(asked_ms, await self._reader.held(self.node))
        outside = self._oracle.outside
        if not self._in_real_time:
            self._oracle.measure_slack()
            outside.shown(reading.held, asked_ms, self._oracle.now_ms(), "it shows")
            outside.check(self._oracle.now_ms())
            self._last = reading
            return
        self._note_changes(reading)
        clients = sorted(outside.clients)
        for at in range(0, len(clients), PORTION):
            portion = outside.clients.keys() & clients[at : at + PORTION]
            self._oracle.measure_slack()
            outside.shown(reading.held, asked_ms, self._oracle.now_ms(), "it shows", portion)
            outside.check_clients(portion, self._oracle.now_ms())
            await asyncio.sleep(0)
        self._oracle.measure_slack()
        outside.check_node(self._oracle.now_ms())
        self._last = reading

    def _note_changes(self, reading: NodeReading) -> None:
        now_ms = self._oracle.now_ms()
        for each in self._last.published.keys() | reading.published.keys():
            if self._last.published.get(each) != reading.published.get(each):
                self._changed_ms[each] = now_ms

    @contextmanager
    def publishing(self, action: Action) -> Iterator[None]:
        """While the action is performed: what it publishes may end before the next reading, which then shows no
        change."""
        services = _published_in(action) if self._in_real_time else frozenset()
        self._changed_ms.update(dict.fromkeys(services, self._oracle.now_ms()))
        try:
            yield
        finally:
            self._changed_ms.update(dict.fromkeys(services, self._oracle.now_ms()))

    # Lists

    def time_of_a_push(self, action: Action) -> int | None:
        """The last part of a wait, in ms, which is long enough for a push; lists are compared after it. None for any
        other action; in real time also for most waits of runs side by side, since each reads all lists."""
        self._oracle.measure_slack()
        now_ms, push_ms = self._oracle.now_ms(), self._push_ms()
        is_soon = self._in_real_time and now_ms < self._compared_ms + COMPARED_EVERY_MS
        if not isinstance(action, Advance) or action.ms < push_ms or is_soon:
            return None
        self._compared_ms = now_ms
        return action.ms if self._in_real_time else push_ms

    async def before_push(self) -> NodeReading:
        held = await self._reader.held(self.node)
        return NodeReading.at(self._oracle.now_ms(), held)

    async def compare_lists(self, action: Action, before: NodeReading, push_ms: int, reading: NodeReading) -> None:
        """Compares the node's lists and its last pushes with what it holds, also of services that it no longer holds;
        not of those that have changed since `before`, `push_ms` ago. Raises DivergedError."""
        self._services.update(dict.fromkeys(before.published))
        calm = self._calm(before, reading)
        lists = await self._reader.lists(self.node, calm)
        if self._wrong(calm, lists) is None:
            return
        calm = self._calm(before, await self.before_push())  # other runs may have changed some of them since
        self._oracle.measure_slack()
        wrong = self._wrong(calm, lists)
        if wrong is None:
            return
        if self._push_ms() > push_ms:
            self._oracle.outside.note_late(f"lists at {self._oracle.now_ms()} ms")
            return
        raise DivergedError(action, self._oracle.now_ms(), f"after `{action}` {wrong}")

    def _wrong(self, calm: Lists, lists: Lists) -> str | None:
        """The first of these services with another list or last push than the node holds, as a clause."""
        shown = {service: lists[service] for service in calm if service in lists}
        held = {self.node: calm}
        return wrong_lists({self.node: shown}, held) or self._clients.wrong_push(held, self.deleted)

    def _calm(self, before: NodeReading, reading: NodeReading) -> Lists:
        """The lists of the services that have not changed since, nor been changed back by another run."""
        lists = reading.as_in(before, self._services)
        return {each: due for each, due in lists.items() if self._changed_ms.get(each, 0) <= before.at_ms}

    def _push_ms(self) -> int:
        """The longest time until a change is pushed."""
        return PUSHED_WITHIN_MS + self._oracle.outside.slack.late_ms


def _published_in(action: Action) -> frozenset[str]:
    """The services in which the action may publish."""
    match action:
        case Register(service=service) | RegisterBatch(service=service) | BaseHttpRequest(service=service):
            return frozenset((service,))
        case PeerRequest(content=content):
            return frozenset(service for service, _ in content)
    return frozenset()
