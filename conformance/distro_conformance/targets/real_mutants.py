"""Mutants of a real server: rule files that an agent reads into it at start.

Each file of `byteman/` is one mutant: a comment that says in a sentence what the server does wrong, and rules that make
it so. The sentences are those of the protocol reference and its defects, turned round. Classes and methods
are those of 2.2.4. What a rule does begins with a line on the server's console, `fired ID`: a rule that fits nothing is
passed over without a word, and then whoever lives is no survivor.
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
    """`text` says what the server does wrong; `path` holds the rules."""

    id: str
    text: str
    path: Path


@cache
def real_mutants() -> dict[str, RealMutant]:
    """By id, which is the name of the file."""
    found = {}
    for path in sorted(_RULES.glob("*.btm")):
        first = path.read_text("utf-8").splitlines()[0]
        found[path.stem] = RealMutant(path.stem, first.removeprefix("#").strip(), path)
    return found


async def agent_options(mutant_id: str, on_progress: OnProgress) -> list[str]:
    """What the server's Java is given besides. Raises TargetError without Maven."""
    jar = await artifact(AGENT, on_progress)
    return [f"-javaagent:{jar}=script:{real_mutants()[mutant_id].path},boot:{jar}"]


@dataclass
class Fired:
    """What became of the rules on all servers that were started with them: how often one fired, and why not."""

    times: int = 0
    complaint: str = ""

    def add(self, console: str) -> None:
        """Of a server that has been stopped."""
        self.times += len(re.findall(r"^fired \S+$", console, re.MULTILINE))
        complaint = re.search(
            r"^.*(?:TypeException|ExecuteException|ParseException|ERROR : ).*$", console, re.MULTILINE
        )
        if complaint and not self.complaint:
            self.complaint = complaint[0].strip()
