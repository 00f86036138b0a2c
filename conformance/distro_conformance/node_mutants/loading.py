"""The first load."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from distro_conformance.node_mutants.mutant import Mutant, add, instead, left_out, mutant, swapped
from distro_impl.distro import transport_agent
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.transport_agent import DistroReply
from distro_impl.distro.verify_task import VerifyTask
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.client import MalformedSyncDataError
from distro_impl.naming.client_manager import ClientManager
from distro_impl.remote.payloads import DataOperation


@mutant("B32", LoadTask, "_round")
async def _fails_first(old: Any, self: Any) -> bool:
    """The first try to load always fails."""
    is_first, self._has_tried = not getattr(self, "_has_tried", False), True
    return not is_first and bool(await old(self))


@mutant("m-snapshot-only-adds", ClientManager, "apply")
def _only_adds(old: Any, self: Any, sync: Any, *, revision: int | None, reason: str) -> None:
    """A SNAPSHOT does not change a copy that is there."""
    if reason != DataOperation.SNAPSHOT or self.get(sync.client_id) is None:
        old(self, sync, revision=revision, reason=reason)


@mutant("m-load-asks-everybody", LoadTask, "_round")
async def _asks_everybody(_: Any, self: Any) -> bool:
    """All members are asked, and the last one wins."""
    replies = [await self._load_from(peer) for peer in self._members.other_addresses()]
    return DistroReply.SUCCESS in replies


@mutant("m-load-asks-the-first", LoadTask, "_round")
async def _asks_the_first(_: Any, self: Any) -> bool:
    """Only the first member is asked."""
    peers = self._members.other_addresses()
    return bool(peers) and await self._load_from(peers[0]) is DistroReply.SUCCESS


@mutant("m-load-believes-errors", LoadTask, "_round")
async def _gives_up(old: Any, self: Any) -> bool:
    """A round in which members failed in whatever way completes the load, as one of refusals does."""
    return bool(await old(self)) or bool(self._members.others)


@mutant("m-verifies-before-the-load", VerifyTask, "run")
def _verifies_early(old: Any, self: Any) -> None:
    """A node that has not loaded verifies."""
    with swapped(self, "_load_task", _Loaded()):
        old(self)


class _Loaded:
    finished_initial = True


@mutant("m-load-applies-nothing", LoadTask, "_load_from")
async def _applies_nothing(old: Any, self: Any, peer: str) -> DistroReply:
    """What a snapshot holds is thrown away."""
    with swapped(self, "_processor", _Ignorant()):
        return await old(self, peer)  # type: ignore[no-any-return]


class _Ignorant:
    def process_snapshot(self, elements: Any, sender: str) -> None: ...


@mutant("m-snapshot-ends-at-a-refusal", DistroClientDataProcessor, "process_snapshot")
def _ends_at_a_refusal(_: Any, self: Any, elements: Any, sender: str) -> None:
    """What comes in a snapshot after a client that is refused is not taken."""
    all(self.process_change(element, DataOperation.SNAPSHOT, sender) for element in elements)


@mutant("m-snapshot-skips-what-is-broken", DistroClientDataProcessor, "process_snapshot")
def _skips_what_is_broken(old: Any, self: Any, elements: Any, sender: str) -> None:
    """A snapshot of which some clients cannot be taken completes the load without them."""
    for element in elements:
        with suppress(MalformedSyncDataError):
            old(self, [element], sender)


@mutant("m-loaded-batches-are-lost", DistroClientDataProcessor, "process_snapshot")
def _without_batches(old: Any, self: Any, elements: Any, sender: str) -> None:
    """The clients of a SNAPSHOT are applied without their batches."""
    old(self, [{**each, "batchInstanceData": {}} for each in elements], sender)


@mutant("m-half-a-snapshot-loads", transport_agent, "decode_content")
def _half_is_empty(old: Any, data: Any) -> Any:
    """A snapshot that cannot be read counts as an empty one."""
    try:
        return old(data)
    except ValueError:
        return {"clientSyncDataList": []}


@mutant("m-load-descends", LoadTask, "_round")
async def _descending(old: Any, self: Any) -> bool:
    """The highest member is asked first."""
    with swapped(self, "_members", _Backwards(self._members)):
        return bool(await old(self))


class _Backwards:
    def __init__(self, members: Any) -> None:
        self._members = members

    def other_addresses(self) -> tuple[str, ...]:
        return tuple(reversed(self._members.other_addresses()))

    def is_down(self, address: str) -> bool:
        return bool(self._members.is_down(address))


add(
    Mutant(
        "m-load-waits-for-down",
        "A load waits for members that are DOWN, too.",
        changes=(instead(ServerMemberManager, "is_down", lambda *_: False),),
    )
)
left_out("m-load-is-not-repeated", LoadTask, "_try_again_later", "A load that failed is over.")
