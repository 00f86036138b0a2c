"""The levels of a mutant: built into the model, into the reference node, or loaded into a real server as rules.

The levels share their names, and few names exist at all levels; an error for the wrong level names the right one. Each
file of `byteman/` is one mutant of a real server: a comment with one sentence about the wrong behaviour, and the rules
that cause it. The sentences are negated statements of the protocol reference, and its defects. Classes and methods are
those of 2.2.4. Each rule first writes a line to the server's console, `fired ID`: the agent silently ignores a rule
that matches nothing, and then a mutant that is not noticed does not count as a survivor.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distro_conformance.node_mutants import MUTANTS as NODE_MUTANTS
from distro_conformance.node_mutants import UnknownMutantError as NotOfNodeError
from distro_conformance.targets.jars import artifact
from distro_conformance.targets.target import OnProgress
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


AGENT = "org.jboss.byteman:byteman:4.0.23"
_RULES = Path(__file__).with_name("byteman")


@dataclass(frozen=True, slots=True)
class RealMutant:
    """`text`: the wrong behaviour of the server; `path`: the rules."""

    id: str
    text: str
    path: Path


@cache
def real_mutants() -> dict[str, RealMutant]:
    """By id, which is the file name."""
    found = {}
    for path in sorted(_RULES.glob("*.btm")):
        first = path.read_text("utf-8").splitlines()[0]
        found[path.stem] = RealMutant(path.stem, first.removeprefix("#").strip(), path)
    return found


async def agent_options(mutant_id: str, on_progress: OnProgress) -> list[str]:
    """Additional options of the server's Java. Raises TargetError without Maven."""
    jar = await artifact(AGENT, on_progress)
    return [f"-javaagent:{jar}=script:{real_mutants()[mutant_id].path},boot:{jar}"]


@dataclass
class Fired:
    """The rules on all servers that were started with them: how often one fired, or why it did not."""

    times: int = 0
    problem: str = ""

    def add(self, console: str) -> None:
        """Add the console of a stopped server."""
        self.times += len(re.findall(r"^fired \S+$", console, re.MULTILINE))
        problem = re.search(r"^.*(?:TypeException|ExecuteException|ParseException|ERROR : ).*$", console, re.MULTILINE)
        if problem and not self.problem:
            self.problem = problem[0].strip()

    def missing(self) -> str | None:
        """Why no rule has fired, so that the servers behaved as without them; None if one has."""
        if self.times:
            return None
        return f"its rules never fired{': ' if self.problem else ''}{self.problem}"
