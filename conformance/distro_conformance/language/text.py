"""Scenarios: one text that a person reads, edits and keeps, and that every executor runs.

The explorer prints its counterexamples so, Hypothesis saves its shrunk failures so, a bug of the catalogue is told
so. This file is the grammar and nothing else: text to steps and back. What a step does is said by the executors in
`replay.py`; the actions themselves are the model's, so that model and node are told the same thing.

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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distro_conformance.verdict import UsageError
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    Register,
    Release,
    Restart,
    Swallow,
)

DEFAULT_NODES = ("a", "b", "c")
OPERATIONS = ("CHANGE", "DELETE", "VERIFY", "SNAPSHOT")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000}


class ScenarioError(UsageError):
    """A line that is no step; names the file, the line and what was expected."""


@dataclass(frozen=True, slots=True)
class Expect:
    """An assertion. `client` None: all nodes that are up hold the same; `present` False: the node has no such client.

    With `service` the node's replica must publish exactly that instance there. `within_ms` is how long it may take.
    """

    within_ms: int = 0
    node: str | None = None
    client: str | None = None
    present: bool = True
    service: str | None = None
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectModel:
    """From the first step to here, what the nodes hold and say is what the model allows."""


Step = Action | Expect | ExpectModel


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

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(line.step for line in self.lines)

    def render(self) -> str:
        head = [f"# {row}".rstrip() for row in self.comment.splitlines()]
        head += [f"profile {self.profile}"] if self.profile else []
        head += [f"mutant {self.mutant}"] if self.mutant else []
        head.append("nodes " + " ".join(self.nodes))
        return "\n".join([*head, *(render_step(step) for step in self.steps)]) + "\n"


def build(
    steps: Iterable[Step],
    *,
    nodes: Sequence[str] = DEFAULT_NODES,
    profile: str | None = None,
    mutant: str | None = None,
    comment: str = "",
) -> Scenario:
    """A scenario from steps, numbered as it will be printed."""
    unnumbered = Scenario((), tuple(nodes), profile, mutant, comment)
    first = unnumbered.render().count("\n") + 1
    lines = tuple(Line(first + index, render_step(step), step) for index, step in enumerate(steps))
    return replace(unnumbered, lines=lines)


def read(path: Path) -> Scenario:
    """Parse a file. Raises ScenarioError, also when it cannot be read."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"cannot read the scenario {path}: {error}") from error


def parse(text: str, name: str = "scenario") -> Scenario:
    """Parse the text of a scenario. Raises ScenarioError with name and line."""
    scenario = Scenario(())
    comment: list[str] = []
    lines: list[Line] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        content = raw.split("#", 1)[0].strip()
        if not content:
            if not lines and raw.lstrip().startswith("#"):
                comment.append(raw.lstrip()[1:].strip())
            continue
        try:
            header = _header(scenario, content)
            if header is not None and lines:
                raise ValueError("the header (profile, mutant, nodes) stands before the first step")
            scenario = header or scenario
            if header is None:
                lines.append(Line(number, content, _step(content, scenario.nodes)))
        except ValueError as error:
            raise ScenarioError(f"{name} line {number}: {error}: '{content}'") from error
    return replace(scenario, lines=tuple(lines), comment="\n".join(comment))


def _header(scenario: Scenario, content: str) -> Scenario | None:
    verb, *words = content.split()
    if verb == "nodes":
        if len(words) < 2 or len(set(words)) != len(words) or words != sorted(words):
            raise ValueError("'nodes' takes two or more different names in ascending order")
        return replace(scenario, nodes=tuple(words))
    if verb in ("profile", "mutant"):
        if len(words) != 1:
            raise ValueError(f"'{verb}' takes one name")
        return replace(scenario, profile=words[0]) if verb == "profile" else replace(scenario, mutant=words[0])
    return None


def _step(content: str, nodes: tuple[str, ...]) -> Step:
    verb, *words = content.split()
    if verb == "expect":
        return _expect(content.removeprefix("expect").strip(), nodes)
    if verb not in VERBS:
        raise ValueError(f"unknown verb; known are {', '.join(sorted([*VERBS, 'expect']))}")
    return VERBS[verb](Words(verb, words, nodes))


class Words:
    """The arguments of one line, taken from the left; each taker says what it misses."""

    def __init__(self, verb: str, words: list[str], nodes: tuple[str, ...]) -> None:
        self._verb = verb
        self._rest = list(words)
        self._nodes = nodes

    def word(self, what: str) -> str:
        if not self._rest:
            raise ValueError(f"'{self._verb}' misses its {what}")
        return self._rest.pop(0)

    def node(self) -> str:
        return self._known(self.word("node"))

    def link(self) -> tuple[str, str]:
        source, arrow, target = self.word("link").partition("->")
        if not arrow:
            raise ValueError(f"'{self._verb}' takes a link such as a->b")
        if source == target:
            raise ValueError("a link has two ends")
        return self._known(source), self._known(target)

    def operation(self) -> str | None:
        if not self._rest:
            return None
        operation = self.word("operation")
        if operation not in OPERATIONS:
            raise ValueError(f"'{operation}' is no operation; known are {', '.join(OPERATIONS)}")
        return operation

    def optional(self) -> str | None:
        return self._rest.pop(0) if self._rest else None

    def instance(self) -> str:
        """`ip:port key=value …`, the keys in order, so that equal instances are equal texts."""
        address = self.word("instance")
        if not re.fullmatch(r"\d+(\.\d+){3}:\d+", address):
            raise ValueError(f"'{address}' is no instance such as 10.0.0.1:80")
        metadata, self._rest = sorted(self._rest), []
        if any("=" not in pair for pair in metadata):
            raise ValueError("metadata is written key=value")
        return " ".join([address, *metadata])

    def end(self) -> None:
        if self._rest:
            raise ValueError(f"'{self._verb}' does not take '{' '.join(self._rest)}'")

    def _known(self, node: str) -> str:
        if node not in self._nodes:
            raise ValueError(f"there is no node '{node}'; the nodes are {' '.join(self._nodes)}")
        return node


def duration_ms(text: str) -> int:
    """Read `300ms`, `2.5s` or `3m`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", text)
    if match is None or (value := float(match[1]) * _UNITS_MS[match[2]]) != int(value):
        raise ValueError(f"'{text}' is no duration such as 300ms, 2.5s or 3m")
    return int(value)


def _done(words: Words, action: Action) -> Action:
    words.end()
    return action


VERBS: dict[str, Callable[[Words], Action]] = {
    "connect": lambda words: _done(words, Connect(words.word("client"), words.node())),
    "register": lambda words: _done(words, Register(words.word("client"), words.word("service"), words.instance())),
    "deregister": lambda words: _done(words, Deregister(words.word("client"), words.word("service"))),
    "disconnect": lambda words: _done(words, Disconnect(words.word("client"))),
    "advance": lambda words: _done(words, Advance(duration_ms(words.word("duration")))),
    "cut": lambda words: _done(words, Cut(*words.link())),
    "heal": lambda words: _done(words, Heal(*words.link())),
    "hold": lambda words: _done(words, Hold(*words.link())),
    "release": lambda words: _done(words, Release(*words.link())),
    "drop": lambda words: _done(words, Drop(*words.link(), words.operation(), words.optional())),
    "swallow": lambda words: _done(words, Swallow(*words.link(), words.operation(), words.optional())),
    "crash": lambda words: _done(words, Crash(words.node())),
    "restart": lambda words: _done(words, Restart(words.node())),
}
"""One entry per verb: how its arguments are read. `render_step` is the way back."""


def _expect(condition: str, nodes: tuple[str, ...]) -> Expect | ExpectModel:
    if condition == "model agrees":
        return ExpectModel()
    within = re.match(r"within\s+(\S+?):\s*", condition)
    within_ms = duration_ms(within[1]) if within else 0
    rest = condition[within.end() :] if within else condition
    if rest == "all agree":
        return Expect(within_ms)
    words = Words("expect", rest.split(), nodes)
    node = words.node()
    if words.word("'has'") != "has":
        raise ValueError("expected 'NODE has CLIENT', 'NODE has no CLIENT', 'all agree' or 'model agrees'")
    client = words.word("client")
    if client == "no":
        expect = Expect(within_ms, node, words.word("client"), present=False)
        words.end()
        return expect
    try:
        service = words.word("service")
    except ValueError:
        return Expect(within_ms, node, client)
    return Expect(within_ms, node, client, service=service, instance=words.instance())


def render_step(step: Step) -> str:
    """The line of a step; `parse` reads it back to the same step."""
    match step:
        case ExpectModel():
            return "expect model agrees"
        case Expect():
            return _render_expect(step)
        case Advance(ms):
            return f"advance {render_duration(ms)}"
    return str(step)


def render_duration(ms: int) -> str:
    return f"{ms}ms" if ms % 100 else f"{ms / 1000:g}s"


def _render_expect(expect: Expect) -> str:
    within = f"within {render_duration(expect.within_ms)}: " if expect.within_ms else ""
    if expect.client is None:
        return f"expect {within}all agree"
    has = "has" if expect.present else "has no"
    what = f" {expect.service} {expect.instance}" if expect.service else ""
    return f"expect {within}{expect.node} {has} {expect.client}{what}"
