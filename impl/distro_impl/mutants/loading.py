"""The first load."""

from __future__ import annotations

from typing import Any

from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.transport_agent import DistroReply
from distro_impl.distro.verify_task import VerifyTask
from distro_impl.mutants.mutant import Change, Mutant, instead


def _fails_first(old: Any) -> Any:
    async def round_(self: Any) -> bool:
        is_first, self._has_tried = not getattr(self, "_has_tried", False), True
        return not is_first and bool(await old(self))

    return round_


async def _asks_everybody(self: Any) -> bool:
    replies = [await self._load_from(peer) for peer in self._members.other_addresses()]
    return DistroReply.SUCCESS in replies


async def _asks_the_first(self: Any) -> bool:
    peers = self._members.other_addresses()
    return bool(peers) and await self._load_from(peers[0]) is DistroReply.SUCCESS


def _gives_up(old: Any) -> Any:
    async def round_(self: Any) -> bool:
        return bool(await old(self)) or bool(self._members.others)

    return round_


def _verifies_early(old: Any) -> Any:
    def run(self: Any) -> None:
        kept, self._load_task = self._load_task, _Loaded()
        try:
            old(self)
        finally:
            self._load_task = kept

    return run


class _Loaded:
    finished_initial = True


def _applies_nothing(old: Any) -> Any:
    async def load_from(self: Any, peer: str) -> DistroReply:
        kept, self._processor = self._processor, _Ignorant()
        try:
            return await old(self, peer)  # type: ignore[no-any-return]
        finally:
            self._processor = kept

    return load_from


class _Ignorant:
    def process_snapshot(self, elements: Any) -> None: ...


def _descending(old: Any) -> Any:
    async def round_(self: Any) -> bool:
        members, self._members = self._members, _Backwards(self._members)
        try:
            return bool(await old(self))
        finally:
            self._members = members

    return round_


class _Backwards:
    def __init__(self, members: Any) -> None:
        self._members = members

    def other_addresses(self) -> tuple[str, ...]:
        return tuple(reversed(self._members.other_addresses()))

    def is_down(self, address: str) -> bool:
        return bool(self._members.is_down(address))


MUTANTS = (
    Mutant("B32", "The first try to load always fails.", changes=(Change(LoadTask, "_round", _fails_first),)),
    Mutant(
        "m-load-asks-everybody",
        "All members are asked, and the last one wins.",
        changes=(instead(LoadTask, "_round", _asks_everybody),),
    ),
    Mutant(
        "m-load-asks-the-first",
        "Only the first member is asked.",
        changes=(instead(LoadTask, "_round", _asks_the_first),),
    ),
    Mutant("m-load-descends", "The highest member is asked first.", changes=(Change(LoadTask, "_round", _descending),)),
    Mutant(
        "m-load-is-not-repeated",
        "A load that failed is over.",
        changes=(instead(LoadTask, "_try_again_later", lambda _: None),),
    ),
    Mutant(
        "m-load-believes-errors",
        "A round in which members failed in whatever way completes the load, as one of refusals does.",
        changes=(Change(LoadTask, "_round", _gives_up),),
    ),
    Mutant(
        "m-load-applies-nothing",
        "What a snapshot holds is thrown away.",
        changes=(Change(LoadTask, "_load_from", _applies_nothing),),
    ),
    Mutant(
        "m-verifies-before-the-load",
        "A node that has not loaded verifies.",
        changes=(Change(VerifyTask, "run", _verifies_early),),
    ),
)
