"""A rule: a function of a node that has a name and a source, and that a profile may replace by another.

A function marked `@rule` is the behaviour of `strict`. A call of it calls the function that the profile, its last
argument, has in its place: a release, a mutant or a protocol under design replaces rules by functions marked
`@instead_of(rule)`. A guard is a rule that answers yes or no to one question, so that a refusal can name the question
(`watching.py`). The guards and other rules that a rule calls are read from its code, so that no list can become
outdated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dis import get_instructions
from functools import cache, wraps
from inspect import Parameter, signature
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Final, TypeVar, TypeVarTuple, cast

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
Function = Callable[..., Any]
PACKAGE: Final = "distro_model.rules"


@dataclass(frozen=True, slots=True)
class Rule:
    """`function` is what callers call, `own` the behaviour of `strict`; `source`: anchors of docs/protocol, then
    names."""

    name: str
    source: str
    is_guard: bool
    function: Function
    own: Function

    @property
    def place(self) -> str:
        return place_of(self.own)

    @property
    def sentence(self) -> str:
        return sentence_of(self.own)


_rules: dict[str, Rule] = {}
RULES: Mapping[str, Rule] = MappingProxyType(_rules)
_names: dict[Function, str] = {}
"""Of each rule as it is called, and of each function that replaces one: the name of the rule."""


class NotARuleError(TypeError):
    """A function that is neither a rule nor marked as the replacement of one, or that cannot be marked so."""


def rule(name: str, *, source: str) -> Callable[[Callable[[*Ts], R]], Callable[[*Ts], R]]:
    """Mark a function as the rule `name`: a verb with hyphens, so that "b may not …" reads well."""
    return lambda function: _listed(name, source, function, is_guard=False)


def guard(*, source: str) -> Callable[[Callable[[*Ts], bool]], Callable[[*Ts], bool]]:
    """Mark a function as a guard; its name is the name of the function."""
    return lambda function: _listed(cast("FunctionType", function).__name__, source, function, is_guard=True)


def _listed(name: str, source: str, function: Callable[[*Ts], R], *, is_guard: bool) -> Callable[[*Ts], R]:
    if name in _rules:
        raise ValueError(f"there are two rules named {name!r}")
    _check_last(function)

    @wraps(function)
    def chosen(*args: *Ts) -> R:
        every: tuple[Any, ...] = args
        replaced: Mapping[str, Callable[[*Ts], R]] = every[-1].replaced
        return replaced.get(name, function)(*args)

    _rules[name] = Rule(name, source, is_guard, chosen, function)
    _names[chosen] = name
    return chosen


def _check_last(function: Function) -> None:
    """Raises NotARuleError."""
    parameters = tuple(signature(function).parameters.values())
    if not parameters or not _is_profile(parameters[-1]):
        raise NotARuleError(
            f"{_written(function)}: the last argument of a rule is the profile that may replace it; "
            f"end the arguments with 'profile: Profile'"
        )


def _is_profile(last: Parameter) -> bool:
    """By its annotation, as text or as the class; without one the name is enough."""
    if last.annotation is last.empty:
        return last.name in ("profile", "_profile", "_")
    return "Profile" in (last.annotation, getattr(last.annotation, "__name__", None))


def _check_same_arguments(function: Function, replaced: Function) -> None:
    own, wanted = (len(signature(each).parameters) for each in (function, replaced))
    if own != wanted:
        raise NotARuleError(f"{_written(function)} has {own} arguments; {name_of(replaced)!r}, a rule, has {wanted}")


def _written(function: Function) -> str:
    """Name, file and line."""
    code = cast("FunctionType", function).__code__
    return f"{code.co_name}, in {code.co_filename}, line {code.co_firstlineno}"


def instead_of(
    replaced: Callable[[*Ts], R],
) -> Callable[[Callable[[*Ts], R]], Callable[[*Ts], R]]:
    """Mark a function as one that replaces a rule in a profile that has it (`Profile.with_rules`)."""

    def marked(function: Callable[[*Ts], R]) -> Callable[[*Ts], R]:
        _check_last(function)
        _check_same_arguments(function, replaced)
        _names[function] = name_of(replaced)
        return function

    return marked


def name_of(function: Function) -> str:
    """The name of the rule that this function is, or replaces. Raises NotARuleError."""
    try:
        return _names[function]
    except KeyError:
        raise NotARuleError(f"{place_of(function)} is no rule: mark it with @rule, @guard or @instead_of") from None


def is_own(function: Function) -> bool:
    """Whether this is a rule as callers call it, and not a replacement."""
    return _rules[name_of(function)].function is function


def place_of(function: Function) -> str:
    """Module and name, without the package."""
    return f"{function.__module__.removeprefix('distro_model.')}.{cast('FunctionType', function).__name__}"


def sentence_of(function: Function) -> str:
    """The first paragraph of its docstring, in one line."""
    return " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())


@cache
def asked_by(function: Function) -> tuple[Rule, ...]:
    """The rules, guards among them, that this function calls, itself or through helpers that are no rules."""
    found: dict[str, Rule] = {}
    _collect(function, found, set())
    return tuple(sorted(found.values(), key=lambda each: each.name))


def _collect(function: Function, found: dict[str, Rule], seen: set[Function]) -> None:
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    for called in _globals_in(function.__code__, function.__globals__):
        if not isinstance(called, FunctionType):
            continue
        if called in _names:
            asked = _rules[_names[called]]
            found[asked.name] = asked
        elif called.__module__.startswith(PACKAGE):
            _collect(called, found, seen)


def _globals_in(code: CodeType, names: Mapping[str, object]) -> Iterator[object]:
    """The globals that this code reads, and the names that it reads from a global that is a module. An attribute of any
    other value is a method or a field, with any name."""
    read: object = None
    for instruction in get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            read = names.get(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(read, ModuleType):
            read = getattr(read, instruction.argval, None)
        else:
            read = None
        yield read
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_in(constant, names)
