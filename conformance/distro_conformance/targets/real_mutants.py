"""Mutants of a real server: rule files that an agent loads into it at start.

Each file of `byteman/` is one mutant: a comment with one sentence about the wrong behaviour, and the rules that cause
it. The sentences are negated statements of the protocol reference, and its defects. Classes and methods are those of
2.2.4. Each rule first writes a line to the server's console, `fired ID`: the agent silently ignores a rule that matches
nothing, and then a mutant that is not noticed does not count as a survivor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distro_conformance.targets.maven import artifact
from distro_conformance.targets.target import OnProgress

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
    complaint: str = ""

    def add(self, console: str) -> None:
        """Add the console of a stopped server."""
        self.times += len(re.findall(r"^fired \S+$", console, re.MULTILINE))
        complaint = re.search(
            r"^.*(?:TypeException|ExecuteException|ParseException|ERROR : ).*$", console, re.MULTILINE
        )
        if complaint and not self.complaint:
            self.complaint = complaint[0].strip()
