"""Checks that the steps of a transition fit: a step reads values of the type that an earlier one wrote under that name.

Type checkers cannot see it, because the registers are names. A step that reads a node as running where an earlier one
may have left it down misses a guard; that is found here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from distro_model.cluster.statement import Does, Transition, hints_of, kinds_in, reads_of, written_by
from distro_model.messages import Answer
from distro_model.node import NodeState

RUNNING = frozenset({NodeState})


def mismatches(transition: Transition, columns: Mapping[str, Any]) -> Iterator[str]:
    """The mismatches as sentences. `columns`: parameter names of places -> types."""
    known = {name: kinds_in(hint) for name, hint in columns.items()}
    for step in transition.steps:
        for name in reads_of(step.function):
            wanted, written = kinds_in(hints_of(step.function)[name]), known.get(name)
            if written is None:
                yield f"{transition.kind}: {step.name} reads {name}, which nothing writes"
            elif not written <= wanted:
                yield f"{transition.kind}: {step.name} reads {name} as {_text(wanted)}, it is {_text(written)}"
        if step.does is Does.HANDLES:
            results = kinds_in(hints_of(step.function)["return"]) - {type(None)}
            event = frozenset(part for each in results for part in _elements(each))
            known |= {step.handler: RUNNING, "answer": kinds_in(Answer | None), "event": event}
        elif step.does is not Does.WATCHES:
            known |= {name: kinds_in(hint) for name, hint in written_by(step.function).items()}


def _elements(hint: Any) -> frozenset[Any]:
    """The elements of a list, or the value itself."""
    inner = getattr(hint, "__args__", None) if getattr(hint, "__origin__", None) is list else None
    return kinds_in(hint if inner is None else inner[0])


def _text(kinds: frozenset[Any]) -> str:
    return " | ".join(sorted(getattr(each, "__name__", str(each)) for each in kinds))
