"""The levels of a mutant: built into the model, into the reference node, or loaded into a real server as rules.

The levels share their names, and few names exist at all levels; an error for the wrong level names the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from distro_conformance.node_mutants import MUTANTS as NODE_MUTANTS
from distro_conformance.node_mutants import UnknownMutantError as NotOfNodeError
from distro_conformance.targets.real_mutants import real_mutants
from distro_conformance.verdict import UsageError, alike
from distro_model.mutants import MUTANTS as MODEL_MUTANTS
from distro_model.mutants import UnknownMutantError as NotOfModelError

_WHOSE = {"model": "the model", "node": "the reference node", "real": "a real server"}


def mutants_at() -> Mapping[str, Collection[str]]:
    """By level."""
    return {"model": MODEL_MUTANTS, "node": NODE_MUTANTS, "real": real_mutants()}


def no_mutant(level: str, mutant_id: str) -> UsageError:
    """The error for a mutant that this level does not have."""
    levels = [each for each, known in mutants_at().items() if mutant_id in known]
    if levels:
        have = f"{' and '.join(_WHOSE[each] for each in levels)} {'has' if len(levels) == 1 else 'have'} it"
        return UsageError(f"{_WHOSE[level]} has no mutant '{mutant_id}'; {have} (level {' and '.join(levels)})")
    return UsageError(f"{_WHOSE[level]} has no mutant '{mutant_id}'; {alike('mutant', mutants_at()[level], mutant_id)}")


def with_hint(error: Exception) -> Exception:
    """The same error for a library's look-up error, which knows its own mutants only; other errors unchanged."""
    match error:
        case NotOfModelError():
            return no_mutant("model", error.mutant_id)
        case NotOfNodeError():
            return no_mutant("node", error.mutant_id)
    return error
