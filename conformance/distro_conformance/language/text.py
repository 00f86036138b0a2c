"""Scenarios: one text that a person reads, edits and keeps, and that every executor runs.

The explorer prints its counterexamples so, Hypothesis saves its shrunk failures so, a bug of the catalogue is told
so. This file is the grammar and nothing else: text to steps and back. The actions are the model's, so that model and
node are told the same thing; what concerns only observation stands in `expectations.py` and `observing.py`.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distro_conformance.language.expectations import (
    STATES,
    AllAgree,
    AllUp,
    Condition,
    Counts,
    Expect,
    ExpectModel,
    Has,
    HasNot,
    LoadsFrom,
    QueryShows,
    SubscriptionShows,
)
from distro_conformance.language.observing import Checkpoint, Look, Query, Subscribe
from distro_conformance.verdict import UsageError
from distro_conformance.wire.transports import IN_MEMORY, Wire, parse_wire
from distro_model import actions
from distro_model.actions import MALFORMED, RESULTS, SAID, Action, Advance

DEFAULT_NODES = ("a", "b", "c")
OPERATIONS = ("CHANGE", "DELETE", "VERIFY", "SNAPSHOT")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000}


class ScenarioError(UsageError):
    """A line that is no step; names the file, the line and what was expected."""


Step = Action | Look | Expect | ExpectModel


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
    """Of synced clients, where the run needs another than the release's: they wait for its end."""
    wire: Wire = IN_MEMORY
    """What embedded nodes speak over."""
    played: tuple[str, ...] = ()
    """Of the nodes those that the kit plays; the one that is left is under test."""

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
                raise ValueError(
                    "the header (profile, mutant, lease, wire, nodes, played) stands before the first step"
                )
            scenario = header or scenario
            if header is None:
                lines.append(Line(number, content, _step(content, scenario.nodes)))
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
    if verb == "nodes":
        if len(words) < 2 or len(set(words)) != len(words) or words != sorted(words):
            raise ValueError("'nodes' takes two or more different names in ascending order")
        return replace(scenario, nodes=tuple(words))
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
    if verb == "wire":
        return replace(scenario, wire=parse_wire(" ".join(words)))
    return None


def _step(content: str, nodes: tuple[str, ...]) -> Step:
    verb, *words = content.split()
    if verb == "expect":
        return _expect(content.removeprefix("expect").strip(), nodes)
    if verb not in VERBS:
        raise ValueError(f"unknown verb; known are {', '.join(sorted([*VERBS, 'expect']))}")
    arguments = Words(verb, words, nodes)
    step = VERBS[verb](arguments)
    arguments.end()
    return step


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
        return self.known(self.word("node"))

    def link(self) -> tuple[str, str]:
        source, arrow, target = self.word("link").partition("->")
        if not arrow:
            raise ValueError(f"'{self._verb}' takes a link such as a->b")
        if source == target:
            raise ValueError("a link has two ends")
        return self.known(source), self.known(target)

    def operation(self) -> str | None:
        if not self._rest:
            return None
        operation = self._rest.pop(0)
        if operation not in OPERATIONS:
            raise ValueError(f"'{operation}' is no operation; known are {', '.join(OPERATIONS)}")
        return operation

    def optional(self) -> str | None:
        return self._rest.pop(0) if self._rest else None

    def keyword(self, word: str) -> None:
        if self.word(f"'{word}'") != word:
            raise ValueError(f"'{self._verb}' expects '{word}' there")

    def node_after(self, word: str) -> str:
        self.keyword(word)
        return self.node()

    def takes(self, word: str) -> bool:
        """Whether that word comes next; then it is taken."""
        if not self._rest or self._rest[0] != word:
            return False
        self._rest.pop(0)
        return True

    def nodes(self) -> tuple[str, ...]:
        """All that are left, one at least."""
        named = [self.node()]
        while self._rest:
            named.append(self.node())
        return tuple(sorted(named))

    def instance(self, until: str | None = None) -> str:
        """`ip:port key=value …` up to a word or the end; the keys in order, so that equal instances are equal texts."""
        address = self.word("instance")
        if not re.fullmatch(r"\d+(\.\d+){3}:\d+", address):
            raise ValueError(f"'{address}' is no instance such as 10.0.0.1:80")
        end = self._rest.index(until) if until in self._rest else len(self._rest)
        metadata, self._rest = sorted(self._rest[:end]), self._rest[end:]
        if any("=" not in pair for pair in metadata):
            raise ValueError("metadata is written key=value")
        return " ".join([address, *metadata])

    def instances(self) -> tuple[str, ...]:
        """`INSTANCE and INSTANCE …`, or `nothing`; sorted."""
        if self.takes("nothing"):
            return ()
        found = [self.instance("and")]
        while self.takes("and"):
            found.append(self.instance("and"))
        return tuple(sorted(found))

    def batch(self) -> tuple[str, ...]:
        """`INSTANCE, INSTANCE …`"""
        parts = [Words(self._verb, part.split(), self._nodes) for part in " ".join(self._rest).split(",")]
        self._rest = []
        if len(parts) < 2:
            raise ValueError("a batch has two or more instances, with commas between them")
        return tuple(sorted(part.instance() for part in parts))

    def end(self) -> None:
        if self._rest:
            raise ValueError(f"'{self._verb}' does not take '{' '.join(self._rest)}'")

    def known(self, node: str) -> str:
        if node not in self._nodes:
            raise ValueError(f"there is no node '{node}'; the nodes are {' '.join(self._nodes)}")
        return node


def duration_ms(text: str) -> int:
    """Read `300ms`, `2.5s` or `3m`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", text)
    if match is None or (value := float(match[1]) * _UNITS_MS[match[2]]) != int(value):
        raise ValueError(f"'{text}' is no duration such as 300ms, 2.5s or 3m")
    return int(value)


_FAULTS: Mapping[str, Callable[..., Action]] = {
    fault.verb: fault for fault in (actions.Drop, actions.Swallow, actions.LoseReply, actions.Duplicate)
}
_DECISIONS: Mapping[str, Callable[..., Action]] = {
    decision.verb: decision for decision in (actions.Deliver, actions.AnswerLate, actions.Reply)
}
_HTTP: Mapping[str, Callable[[str, str, str], actions.HttpRequest]] = {
    request.verb: request for request in (actions.HttpRegister, actions.HttpDeregister, actions.HttpBeat)
}


def _fault(kind: Callable[..., Action]) -> Callable[[Words], Action]:
    def read(words: Words) -> Action:
        held = words.takes("held")
        return kind(*words.link(), words.operation(), words.optional(), held=held)

    return read


def _decision(kind: Callable[..., Action]) -> Callable[[Words], Action]:
    return lambda words: kind(*words.link(), words.operation(), words.optional())


def _over_http(words: Words) -> actions.HttpRequest:
    verb = words.word("request")
    if verb not in _HTTP:
        raise ValueError(f"'{verb}' is no request of the HTTP API; known are {', '.join(_HTTP)}")
    service, instance = words.word("service"), words.instance("at")
    return _HTTP[verb](service, instance, words.node_after("at"))


def _says(words: Words) -> actions.Says:
    """`say b CHANGE c1 revision 3 web 10.0.0.1:80 and api 10.0.0.1:81`"""
    peer, operation = words.node(), words.word("operation")
    if operation not in (*SAID, *MALFORMED):
        raise ValueError(f"'{operation}' is nothing that a member says; known are {', '.join((*SAID, *MALFORMED))}")
    client = words.optional()
    revision = int(words.word("revision")) if words.takes("revision") else 0
    content = []
    while (service := words.optional()) is not None:
        content.append((service, words.instance("and")))
        if not words.takes("and"):
            break
    return actions.Says(peer, operation, client, revision, tuple(sorted(content)))


def _answers(words: Words) -> actions.Answers:
    peer, operation, result = words.node(), words.word("operation"), words.word("result")
    if operation not in (*OPERATIONS, "REPORT"):
        raise ValueError(f"'{operation}' is no operation; known are {', '.join((*OPERATIONS, 'REPORT'))}")
    if result not in RESULTS:
        raise ValueError(f"'{result}' is no answer; known are {', '.join(RESULTS)}")
    return actions.Answers(peer, operation, result, words.optional())


def _members(words: Words) -> actions.ListMembers:
    node = words.word("node").removesuffix(":")
    return actions.ListMembers(words.known(node), words.nodes())


def _query(words: Words) -> Query:
    service = words.word("service")
    return Query(service, words.node_after("at"))


VERBS: Mapping[str, Callable[[Words], Action | Look]] = {
    "connect": lambda words: actions.Connect(words.word("client"), words.node()),
    "register": lambda words: actions.Register(words.word("client"), words.word("service"), words.instance()),
    "batch": lambda words: actions.RegisterBatch(words.word("client"), words.word("service"), words.batch()),
    "deregister": lambda words: actions.Deregister(words.word("client"), words.word("service")),
    "disconnect": lambda words: actions.Disconnect(words.word("client")),
    "silent": lambda words: actions.FallSilent(words.word("client")),
    "answers": lambda words: actions.AnswerAgain(words.word("client")),
    "http": _over_http,
    "advance": lambda words: Advance(duration_ms(words.word("duration"))),
    "cut": lambda words: actions.Cut(*words.link()),
    "heal": lambda words: actions.Heal(*words.link()),
    "hold": lambda words: actions.Hold(*words.link()),
    "release": lambda words: actions.Release(*words.link()),
    **{verb: _fault(kind) for verb, kind in _FAULTS.items()},
    **{verb: _decision(kind) for verb, kind in _DECISIONS.items()},
    "crash": lambda words: actions.Crash(words.node()),
    "restart": lambda words: actions.Restart(words.node()),
    "pause": lambda words: actions.Pause(words.node()),
    "resume": lambda words: actions.Resume(words.node()),
    "members": _members,
    "say": _says,
    "answer": _answers,
    "query": _query,
    "subscribe": lambda words: Subscribe(words.word("client"), words.word("service")),
    "checkpoint": lambda _: Checkpoint(),
}
"""One entry per verb: how its arguments are read. `render_step` is the way back."""


def _expect(text: str, nodes: tuple[str, ...]) -> Expect | ExpectModel:
    if text == "model agrees":
        return ExpectModel()
    window = re.match(r"(within|for)\s+(\S+?):\s*", text)
    words = Words("expect", text[window.end() if window else 0 :].split(), nodes)
    condition = _condition(words)
    words.end()
    ms = duration_ms(window[2]) if window else 0
    return Expect(condition, for_ms=ms) if window and window[1] == "for" else Expect(condition, ms)


def _condition(words: Words) -> Condition:
    if words.takes("all"):
        if words.takes("agree"):
            return AllAgree()
        words.keyword("up")
        return AllUp()
    if words.takes("query"):
        service = words.word("service")
        node = None if words.takes("everywhere") else words.node_after("at")
        words.keyword("shows")
        return QueryShows(service, node, words.instances())
    if words.takes("subscription"):
        client, service = words.word("client"), words.word("service")
        words.keyword("shows")
        return SubscriptionShows(client, service, words.instances())
    node = words.node()
    if words.takes("counts"):
        member, state = words.node(), words.word("state")
        if state not in STATES:
            raise ValueError(f"'{state}' is no state of a member; known are {', '.join(STATES)}")
        return Counts(node, member, state)
    if words.takes("loads"):
        words.keyword("from")
        return LoadsFrom(node, words.nodes())
    return _held(words, node)


def _held(words: Words, node: str) -> Condition:
    if not words.takes("has"):
        raise ValueError(
            "expected 'NODE has CLIENT', 'NODE has no CLIENT', 'NODE counts NODE STATE', 'query …', 'subscription …', "
            "'all agree', 'all up' or 'model agrees'"
        )
    if words.takes("no"):
        return HasNot(node, words.word("client"))
    client, service = words.word("client"), words.optional()
    return Has(node, client) if service is None else Has(node, client, service, words.instance())


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


def render_duration(ms: int) -> str:
    return f"{ms}ms" if ms % 100 else f"{ms / 1000:g}s"
