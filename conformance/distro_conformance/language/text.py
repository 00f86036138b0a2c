"""Scenarios: one text that people read, edit and keep, and that every executor runs.

The explorer prints counterexamples in this form, Hypothesis saves shrunk failures in it, and the catalogue of bugs is
written in it. This file parses a text into steps and renders it; `verbs.py` defines the possible lines.

    profile nacos-2.2.4             # optional, the command line may say otherwise
    nodes a b c                     # started, loaded and quiet; time is 0 from here
    connect c1 a
    register c1 web 10.0.0.1:80 version=1
    swallow a->b CHANGE
    advance 2.5s
    expect within 15s: b has c1 web 10.0.0.1:80 version=1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from distro_conformance.language.expectations import Expect
from distro_conformance.language.running import Step
from distro_conformance.language.steps import NodeRelease
from distro_conformance.language.verbs import HEADER, VERBS, VERSION, expectation
from distro_conformance.language.words import Words, duration_ms, render_duration
from distro_conformance.verdict import UsageError, why_unreadable
from distro_conformance.wire.transports import IN_MEMORY, Wire, parse_wire
from distro_model.actions import Advance

DEFAULT_NODES = ("a", "b", "c")

COMMENT = re.compile(r"(?:^|\s)#")
"""A word may have one in it: `10.0.0.1:80#true` is a client of the HTTP API."""


class ScenarioError(UsageError):
    """A line that is not a step; the message names the file, the line and the expected form."""


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str
    step: Step


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps with the header. `comment` is the text before the first step, without the hash signs."""

    lines: tuple[Line, ...]
    nodes: tuple[str, ...] = DEFAULT_NODES
    profile: str | None = None
    mutant: str | None = None
    comment: str = ""
    lease_ms: int | None = None
    """The lease of synced clients, for a run that waits for its end and needs another one than the release's."""
    wire: Wire = IN_MEMORY
    """How embedded nodes exchange messages."""
    played: tuple[str, ...] = ()
    """The nodes that the kit plays; the remaining one is under test."""

    spare: tuple[str, ...] = ()
    """Addresses under which nodes may come back."""
    releases: tuple[NodeRelease, ...] = ()
    """Profiles of the nodes that start with another one than the scenario's."""

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(line.step for line in self.lines)

    def render(self) -> str:
        head = [f"# {row}".rstrip() for row in self.comment.splitlines()]
        head += [f"profile {self.profile}"] if self.profile else []
        head += [f"mutant {self.mutant}"] if self.mutant else []
        head += [f"lease {render_duration(self.lease_ms)}"] if self.lease_ms else []
        head += [f"wire {self.wire}"] if self.wire != IN_MEMORY else []
        head.append("nodes " + " ".join(self.nodes))
        head += ["spare " + " ".join(self.spare)] if self.spare else []
        head += map(str, self.releases)
        head += ["played " + " ".join(self.played)] if self.played else []
        return "\n".join([*head, *(render_step(step) for step in self.steps)]) + "\n"


def build(
    steps: Iterable[Step],
    *,
    nodes: Sequence[str] = DEFAULT_NODES,
    profile: str | None = None,
    mutant: str | None = None,
    wire: Wire = IN_MEMORY,
    comment: str = "",
    played: Sequence[str] = (),
) -> Scenario:
    """A scenario from steps, numbered as it will be printed."""
    unnumbered = Scenario((), tuple(nodes), profile, mutant, comment, wire=wire, played=tuple(played))
    first = unnumbered.render().count("\n") + 1
    lines = tuple(Line(first + index, render_step(step), step) for index, step in enumerate(steps))
    return replace(unnumbered, lines=lines)


def read(path: Path) -> Scenario:
    """Parse a file. Raises ScenarioError, also when it cannot be read."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"cannot read the scenario {path}: {why_unreadable(error)}") from error


def parse(text: str, name: str = "scenario") -> Scenario:
    """Parse the text of a scenario. Raises ScenarioError with name and line."""
    scenario = Scenario(())
    comment: list[str] = []
    lines: list[Line] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        content = COMMENT.split(raw, maxsplit=1)[0].strip()
        if not content:
            if not lines and raw.lstrip().startswith("#"):
                comment.append(raw.lstrip()[1:].strip())
            continue
        try:
            is_step = bool(lines) and content.split()[0] == "node"
            header = None if is_step else _header(scenario, content)
            if header is not None and lines:
                known = ", ".join(each.split()[0] for each in HEADER)
                raise ValueError(f"the header ({known}) stands before the first step")
            scenario = header or scenario
            if header is None:
                lines.append(Line(number, content, _step(content, scenario.nodes + scenario.spare)))
        except ValueError as error:
            raise ScenarioError(f"{name} line {number}: {error}: '{content}'") from error
    return replace(scenario, lines=tuple(lines), comment="\n".join(comment))


def read_line(text: str, nodes: Sequence[str]) -> Step:
    """One step by itself. Raises ScenarioError."""
    try:
        return _step(text.strip(), tuple(nodes))
    except ValueError as error:
        raise ScenarioError(f"{error}: '{text}'") from error


def _header(scenario: Scenario, content: str) -> Scenario | None:
    verb, *words = content.split()
    if verb == "node":
        step = _step(content, scenario.nodes + scenario.spare)
        assert isinstance(step, NodeRelease)
        return replace(scenario, releases=(*scenario.releases, step))
    if verb == "nodes":
        if any(word.endswith(":") or word.startswith("nacos-") for word in words):
            named = [word.removesuffix(":") for word in words]
            node, release = next(pair for pair in pairwise([*named, "nacos-2.3.2"]) if pair[1].startswith("nacos-"))
            raise ValueError(f"'nodes' takes names; another release for one of them is a line 'node {node} {release}'")
        if len(words) < 2 or len(set(words)) != len(words) or words != sorted(words):
            raise ValueError("'nodes' takes two or more different names in ascending order")
        return replace(scenario, nodes=tuple(words))
    if verb == "spare":
        if not words or len({*words, *scenario.nodes}) != len(words) + len(scenario.nodes):
            raise ValueError("'spare' takes names that differ from each other and from the nodes, after 'nodes'")
        return replace(scenario, spare=tuple(words))
    if verb == "played":
        if len(words) != len(scenario.nodes) - 1 or not set(words) < set(scenario.nodes):
            raise ValueError("'played' names all nodes but one, after 'nodes'")
        return replace(scenario, played=tuple(words))
    if verb == "lease":
        if len(words) != 1:
            raise ValueError("'lease' takes one duration")
        return replace(scenario, lease_ms=duration_ms(words[0]))
    if verb in ("profile", "mutant"):
        if len(words) != 1:
            raise ValueError(f"'{verb}' takes one name")
        return replace(scenario, profile=words[0]) if verb == "profile" else replace(scenario, mutant=words[0])
    if verb == "language":
        if len(words) != 1 or not words[0].isdigit() or not 1 <= int(words[0]) <= VERSION:
            raise ValueError(f"this program reads the language up to version {VERSION}; a later release may read more")
        return scenario
    if verb == "wire":
        return replace(scenario, wire=parse_wire(" ".join(words)))
    return None


def _step(content: str, nodes: tuple[str, ...]) -> Step:
    verb, *words = content.split() or [""]
    if not verb:
        raise ValueError("there is no step in this line")
    if verb == "expect":
        return expectation(content.removeprefix("expect").strip(), nodes)
    if verb not in VERBS:
        raise ValueError(
            f"unknown verb; known are {', '.join(sorted({name.split()[0] for name in VERBS} | {'expect'}))}"
        )
    arguments = Words(verb, words, nodes)
    step = VERBS[verb].read(arguments)
    arguments.end()
    return step


def render_step(step: Step) -> str:
    """The line of a step; `parse` reads it back to the same step."""
    match step:
        case Expect(condition, within_ms, for_ms):
            within = f"within {render_duration(within_ms)}: " if within_ms else ""
            throughout = f"for {render_duration(for_ms)}: " if for_ms else ""
            return f"expect {within}{throughout}{condition}"
        case Advance(ms):
            return f"advance {render_duration(ms)}"
    return str(step)
