"""What a mutant is: a switch of the profile, a changed method, or both.

A method is changed in its class while a node with the mutant runs (`Alteration` of the node), so all nodes of a process
have it meanwhile, and a process can have one mutant at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import getdoc
from typing import Any, TypeVar

from distro_impl.profiles import Profile

Method = TypeVar("Method", bound=Callable[..., Any])


class UnknownMutantError(ValueError):
    """There is no mutant of that id; the message lists those there are."""

    def __init__(self, mutant_id: str) -> None:
        super().__init__(mutant_id)
        self.mutant_id = mutant_id

    def __str__(self) -> str:
        return f"the node has no mutant {self.mutant_id!r}; known: {', '.join(sorted(added()))}"


@dataclass(frozen=True, slots=True)
class Change:
    """`made` is given what `owner.name` was and gives what it shall be."""

    owner: Any
    name: str
    made: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of behaviour. `text` says what the node does wrong, `switches` are fields of the profile."""

    id: str
    text: str
    switches: Mapping[str, Any] = field(default_factory=dict, hash=False)
    changes: tuple[Change, ...] = ()

    def apply(self, profile: Profile) -> Profile:
        return replace(profile, **self.switches)

    def switch_on(self) -> None:
        """For one more node. Raises ValueError while another mutant with changes is on."""
        if not self.changes:
            return
        if others := set(_on) - {self.id}:
            raise ValueError(f"{self.id} cannot be switched on in a process where {', '.join(others)} is")
        _on[self.id] = _on.get(self.id, 0) + 1
        if _on[self.id] > 1:
            return
        for change in self.changes:
            old = vars(change.owner)[change.name]
            setattr(change.owner, change.name, change.made(old))
            _undo.append(lambda change=change, old=old: setattr(change.owner, change.name, old))  # type: ignore[misc]

    def switch_off(self) -> None:
        """One of its nodes has ended; the last one restores the methods."""
        if self.id not in _on:
            return
        _on[self.id] -= 1
        if not _on[self.id]:
            del _on[self.id]
            while _undo:
                _undo.pop()()


_on: dict[str, int] = {}
"""How many nodes of each mutant live."""
_undo: list[Callable[[], None]] = []


_added: dict[str, Mutant] = {}


def add(*mutants: Mutant) -> None:
    """Raises ValueError when an id is taken."""
    for each in mutants:
        if each.id in _added:
            raise ValueError(f"two mutants are called {each.id}")
        _added[each.id] = each


def added() -> dict[str, Mutant]:
    """All, by id."""
    return dict(sorted(_added.items()))


def mutant(mutant_id: str, owner: Any, name: str, **switches: Any) -> Callable[[Method], Method]:
    """In the place of `owner.name` comes the decorated function, to which that is given first. The first paragraph of
    its docstring says what the node does wrong."""

    def register(function: Method) -> Method:
        def made(old: Any) -> Any:
            return lambda *arguments, **named: function(old, *arguments, **named)

        text = " ".join((getdoc(function) or "").partition("\n\n")[0].split())
        add(Mutant(mutant_id, text, switches, (Change(owner, name, made),)))
        return function

    return register


def left_out(mutant_id: str, owner: Any, name: str, text: str) -> None:
    """The method does nothing."""
    add(Mutant(mutant_id, text, changes=(instead(owner, name, lambda *_, **__: None),)))


def instead(owner: Any, name: str, method: Any) -> Change:
    """The method, whatever it was."""
    return Change(owner, name, lambda _: method)


@contextmanager
def swapped(owner: Any, name: str, value: Any) -> Iterator[None]:
    """While it is entered the attribute has another value. Where it is awaited meanwhile the owner has to be an object
    that one task uses at a time: who enters it then keeps that value for the original one."""
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


def as_if(owner: Any, name: str, **switches: Any) -> Change:
    """The method as it is under another profile; its object keeps that in `_profile`."""

    def made(old: Any) -> Any:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            with swapped(self, "_profile", replace(self._profile, **switches)):
                return old(self, *arguments, **named)

        return method

    return Change(owner, name, made)
