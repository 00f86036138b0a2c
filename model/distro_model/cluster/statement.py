"""The definition of a transition: a sequence of functions whose parameter names are the registers that they read.

A parameter is a value that an earlier step of the transition wrote, or a column of the place where it happens
("source", "link"), or a constant of that place ("source_name", "profile"). Where a parameter belongs to a family
("life": one for each client), the step happens once for each member. A step that returns a value of the type of its
first parameter gives that its next value; any other writes the fields of the NamedTuple that it returns, and a list of
those is a choice. None (or False) is its guard being false. A test verifies that names and types match.

Nothing here chooses: a search derives look-ups from these steps (`bounded/chains.py`), a clock and a simulation a plain
function (`clock/compiled.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from distro_model.search.system import NO_GUARD, Fairness

Function = Callable[..., Any]


class StatementError(TypeError):
    """The steps of a transition do not match; the message states the step, the name and the place."""


class Does(Enum):
    WRITES = auto()
    CHOOSES = auto()
    """A search tries all alternatives; any other chooser selects one by giving the registers that this step would
    write."""
    RECORDS = auto()
    """The step writes history that no rule can read and that properties examine. Only a search keeps it."""
    HANDLES = auto()
    """A node handles the event that the step returns, and sends its messages; its answer is in the register
    `answer`."""
    WATCHES = auto()
    """A property of this transition: it returns a `Finding` or None, and writes nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    function: Function
    does: Does
    unless: str
    """The meaning of having no alternative, as a clause, with names of constants of the place in braces."""
    handler: str = ""
    """The parameter name of the node that handles the event."""

    @property
    def name(self) -> str:
        return self.function.__name__


def writes(function: Function, unless: str = NO_GUARD) -> Step:
    return Step(function, Does.WRITES, unless)


def chooses(function: Function, unless: str) -> Step:
    return Step(function, Does.CHOOSES, unless)


def records(function: Function, unless: str = NO_GUARD) -> Step:
    return Step(function, Does.RECORDS, unless)


def handles(node: str, function: Function, unless: str = NO_GUARD) -> Step:
    return Step(function, Does.HANDLES, unless, node)


def watches(function: Function) -> Step:
    return Step(function, Does.WATCHES, NO_GUARD)


@cache
def of(makes: Function, *names: str) -> Function:
    """The same function, or a constructor: its arguments are the registers of these names, in this order."""

    @wraps(makes, updated=())
    def made(*values: object, **registers: object) -> object:
        return makes(*values, *(registers[name] for name in names[len(values) :]))

    hints, own = get_type_hints(makes), inspect.signature(makes).parameters
    made.__annotations__ = {name: hints[each] for name, each in zip(names, own, strict=False)}
    made.__annotations__["return"] = makes if isinstance(makes, type) else hints["return"]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    setattr(made, "__signature__", inspect.Signature(parameters))  # noqa: B010 - functions have no such attribute
    return made


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """One kind of transition, at any place. `says` makes its label, from registers too."""

    kind: str
    """With names of constants of the place in braces."""
    steps: tuple[Step, ...]
    says: Function
    cost: str | None = None
    """The budget that a search decrements: a field of `Bounds`."""
    once: str | None = None
    """A search with periods lets it happen once in each: the field of its `Clock` that records the nodes."""
    fair: Fairness = Fairness.NONE
    due: Function | None = None
    """When a clock lets it happen, in ms, or None when it cannot happen now; a search does not use it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a family: the values of its parameter names."""

    columns: Mapping[str, str]
    constants: Mapping[str, Hashable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of any number of members at a place: a step that names it happens once for each member."""

    names: tuple[str, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A place where a transition happens: the values of the parameter names there."""

    name: str
    columns: Mapping[str, str]
    constants: Mapping[str, Hashable] = field(default_factory=dict)
    families: tuple[Family, ...] = ()
    absent: frozenset[str] = frozenset()
    """Parameter names of columns that this cluster does not have; the steps that use them are omitted."""

    def at(self, name: str, **constants: Hashable) -> Place:
        """A part of this place, under a separate name."""
        return replace(self, name=name, constants={**self.constants, **constants})

    def members(self, names: Sequence[str]) -> Sequence[Member]:
        """The members for which a step that reads or writes these names happens here: each member of the family that
        has one of them, else once."""
        foreign = {name for name in names if name not in self.columns and name not in self.constants}
        if foreign & self.absent:
            return ()
        return next((each.members for each in self.families if foreign & {*each.names}), (Member({}),))


@cache
def reads_of(function: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@cache
def hints_of(function: Function) -> Mapping[str, Any]:
    return get_type_hints(function)


def kinds_in(hint: Any) -> frozenset[Any]:
    """The parts of a union."""
    return frozenset(get_args(hint)) if get_origin(hint) in (Union, UnionType) else frozenset({hint})


@cache
def written_by(function: Function) -> Mapping[str, Any]:
    """Register name -> type: its first parameter, or the fields of the NamedTuple that it returns, maybe in a list,
    maybe or None."""
    parts = [each for each in kinds_in(hints_of(function).get("return", NoneType)) if each is not NoneType]
    if parts == [bool]:
        return {}
    if (name := changed_by(function)) is not None:
        return {name: parts[0]}
    result = get_args(parts[0])[0] if len(parts) == 1 and get_origin(parts[0]) is list else parts[0] if parts else None
    if len(parts) != 1 or not hasattr(result, "_fields"):
        raise StatementError(f"{function.__module__}.{function.__qualname__} does not say what it writes: {parts}")
    return dict(get_type_hints(result))


@cache
def changed_by(function: Function) -> str | None:
    """The first parameter, where the function returns its next value."""
    read, hints = reads_of(function), hints_of(function)
    result = kinds_in(hints.get("return", NoneType)) - {NoneType}
    return read[0] if read and result == kinds_in(hints.get(read[0])) - {NoneType} else None


def alternatives(result: Any) -> Sequence[tuple[Any, ...]]:
    """The result of a step, as alternatives: none, one, or several."""
    if result is None or result is False:
        return ()
    if isinstance(result, tuple):
        return (result,)
    return ((),) if result is True else result


def values(result: Any) -> Sequence[tuple[Any, ...]]:
    """The result of a step that returns an event, or the next value of its first parameter, likewise."""
    if result is None:
        return ()
    return [(each,) for each in result] if isinstance(result, list) else ((result,),)
