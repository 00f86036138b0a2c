"""The constants of a run: its nodes and their profile, and values that are computed from them once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from distro_model.node import Addresses, address_book
from distro_model.profiles import Profile
from distro_model.rules import torn
from distro_model.rules.ip_clients import changed_and_announced_late
from distro_model.rules.receive import fresh_copy


@dataclass(frozen=True)
class Plan:
    """The values that never change in a run: the names of the nodes, ascending, and their profile."""

    names: tuple[str, ...]
    profile: Profile

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All links, as (source, target) positions."""
        return tuple((source, target) for source, others in enumerate(self.other_positions) for target in others)

    @cached_property
    def other_positions(self) -> tuple[tuple[int, ...], ...]:
        size = range(len(self.names))
        return tuple(tuple(other for other in size if other != position) for position in size)

    @cached_property
    def applies_in_parts(self) -> bool:
        return self.profile.has(torn.on_change)

    @cached_property
    def in_parts(self) -> bool:
        return self.applies_in_parts or self.profile.has(torn.on_task_due)

    @cached_property
    def has_native_copies(self) -> bool:
        return not self.profile.has(fresh_copy)

    @cached_property
    def has_events(self) -> bool:
        """Some actions of a node are events that another part of it handles later."""
        return self.profile.has(changed_and_announced_late) or self.profile.event_queue > 0

    @cached_property
    def addresses(self) -> Addresses:
        return address_book(self.names)

    def others(self, position: int) -> tuple[str, ...]:
        return tuple(self.names[other] for other in self.other_positions[position])
