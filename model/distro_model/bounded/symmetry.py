"""Which nodes and clients are interchangeable, and what a value becomes when they change places.

Sound means: renaming every name in a row, and then letting a transition happen, leads to the same row as letting it
happen first. Two rules of the protocol depend on the order of names, and forbid it: a load asks the members in
ascending order (6.8), and a verify round of a node with several clients sends in their order, which a link keeps.
Ownership by hash forbids it too: a hash does not move with a name. Where a bound brings in such a rule, symmetry is
refused, with the reason; nothing is reduced by guessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from itertools import permutations

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.layout import client_column, link_column, node_column
from distro_model.cluster.budget import Clock
from distro_model.cluster.values import address_of
from distro_model.messages import Answer
from distro_model.node import NodeState
from distro_model.search.system import Symmetry, Value

SOUND_FOR = frozenset(
    {"nodes", "clients", "changes", "drops", "lost_replies", "swallows", "late_replies", "reorders"}
    | {"delays", "garbles", "periods", "lease_periods", "pauses", "in_flight", "max_states"}
)
"""The bounds for which the argument above was made. Every other bound that is not at its default forbids symmetry."""


class NoSymmetryError(ValueError):
    """Nothing is interchangeable within these bounds; the message says why."""


def symmetry_of(bounds: Bounds) -> Symmetry:
    """All permutations under which the bounded cluster is the same. Raises NoSymmetryError."""
    _sound(bounds)
    names = [_names(bounds, order) for order in permutations(bounds.node_names) if _keeps_homes(bounds, order)]
    if len(names) < 2:
        raise NoSymmetryError(
            "symmetry: there is no other arrangement of the nodes in which every home is still a home"
        )
    names.sort(key=lambda each: sum(old != new for old, new in each.items()))  # the identity is number 0
    columns = [_columns(bounds, each) for each in names]

    def renamed(column: str, value: Value, permutation: int) -> tuple[str, Value]:
        return columns[permutation].get(column, column), _renamed(value, names[permutation])

    return Symmetry(len(names), renamed)


def _sound(bounds: Bounds) -> None:
    if bounds.crashes:
        raise NoSymmetryError("symmetry: after a crash a node asks the others for a snapshot in ascending order")
    if bounds.clients > bounds.nodes:
        raise NoSymmetryError("symmetry: a verify round sends the clients of one node in the order of their names")
    unproved = [
        each.name
        for each in fields(bounds)
        if each.name not in SOUND_FOR and getattr(bounds, each.name) != each.default
    ]
    if unproved:
        raise NoSymmetryError(f"symmetry: not proved for {', '.join(unproved)}")


def _homes(bounds: Bounds) -> dict[str, str]:
    return {bounds.home(number): client for number, client in enumerate(bounds.client_names)}


def _keeps_homes(bounds: Bounds, order: tuple[str, ...]) -> bool:
    moved = dict(zip(bounds.node_names, order, strict=True))
    homes = _homes(bounds)
    return {moved[home] for home in homes} == set(homes)


def _names(bounds: Bounds, order: tuple[str, ...]) -> dict[str, str]:
    """Old name -> new name, of nodes, of the clients that move with their homes, and of what those publish."""
    moved = dict(zip(bounds.node_names, order, strict=True))
    homes = _homes(bounds)
    clients = {client: homes[moved[home]] for home, client in homes.items()}
    return {**moved, **clients, **{address_of(old): address_of(new) for old, new in clients.items()}}


def _columns(bounds: Bounds, names: Mapping[str, str]) -> dict[str, str]:
    pairs = [(source, target) for source in bounds.node_names for target in bounds.node_names if source != target]
    return {
        **{node_column(name): node_column(names[name]) for name in bounds.node_names},
        **{link_column(*pair): link_column(names[pair[0]], names[pair[1]]) for pair in pairs},
        **{client_column(name): client_column(names[name]) for name in bounds.client_names},
    }


def _renamed(value: Value, names: Mapping[str, str]) -> Value:
    """The value with every name in it replaced, and every collection that is kept in order of names in order again."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        first, space, rest = value.partition(" ")
        return names.get(first, first) + space + rest
    if isinstance(value, tuple):
        return tuple(_renamed(each, names) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _renamed(getattr(value, each.name), names) for each in fields(value)}
        return _in_order(replace(value, **changed))
    return value


def _in_order(value: Value) -> Value:
    match value:
        case NodeState():
            return replace(
                value,
                others=tuple(sorted(value.others)),
                clients=tuple(sorted(value.clients, key=lambda each: each.name)),
                tasks=tuple(sorted(value.tasks, key=lambda each: (each.client, each.target))),
                members=tuple(sorted(value.members, key=lambda each: each.name)),
                gone=tuple(sorted(value.gone)),
                applies=tuple(sorted(value.applies)),
                reads=tuple(sorted(value.reads)),
                under_way=tuple(sorted(value.under_way)),
            )
        case Answer():
            return replace(value, copies=tuple(sorted(value.copies, key=lambda each: each.client)))
        case Clock():
            return replace(
                value,
                verified=tuple(sorted(value.verified)),
                checked=tuple(sorted(value.checked)),
                loaded=tuple(sorted(value.loaded)),
                slept=tuple(sorted(value.slept)),
            )
        case _:
            return value
