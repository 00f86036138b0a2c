"""A walk through the states of a bounded cluster: the current state, the path to it, and what may happen next.

A walk is a value; taking a choice or going back gives another one. The steps ahead are kept, so a counterexample is a
walk at its beginning. The choices are the transitions of the search: an exhaustive search takes the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from distro_conformance.diagrams.sequence import Sequence as Diagram
from distro_conformance.diagrams.transitions import sequence_of
from distro_conformance.exploration.explored import counterexample_scenario
from distro_conformance.verdict import UsageError
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.view import Situation, call_line, node_lines, situation_of
from distro_model.explorer import counterexample_of, explore
from distro_model.mutants import with_mutant
from distro_model.profiles import Profile, profile_named
from distro_model.properties import PROPERTIES, Property, property_named
from distro_model.search.results import Run, until_found
from distro_model.search.system import Finding, Kind, Row, System, Transition, findings, transitions

SEARCH_STATES_MAX = 5_000_000
"""Some seconds; a limit in seconds would let a busy machine decide what is found."""


class PropertyStatus(StrEnum):
    """The standing of a property on the walk so far. A walk cannot show that a property holds: that takes a search."""

    BROKEN = "broken"
    REACHED = "reached"
    OPEN = "open"


@dataclass(frozen=True)
class Setting:
    """The explored cluster. `mutant` None: the unchanged profile."""

    profile: str = "strict"
    mutant: str | None = None
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def rules(self) -> Profile:
        """Raises the look-up errors of profiles and mutants."""
        return with_mutant(profile_named(self.profile), self.mutant)

    @property
    def properties(self) -> tuple[Property, ...]:
        return tuple(each for each in PROPERTIES.values() if each.applies(self.bounds))


@dataclass(frozen=True)
class Part:
    """A node or a link as lines; lines that the last transition added are marked."""

    name: str
    lines: tuple[tuple[str, bool], ...]
    is_down: bool = False


@dataclass(frozen=True)
class Walk:
    """The first `at` transitions of `path` have been taken; the others lie ahead."""

    setting: Setting
    system: System
    path: tuple[Transition, ...] = ()
    at: int = 0
    sought: Finding | None = None
    """The finding at the end of the path, for a walk that a search found."""

    @classmethod
    def begin(cls, setting: Setting) -> Walk:
        return cls(setting, bounded_cluster(setting.bounds, setting.rules, setting.properties))

    @property
    def taken(self) -> tuple[Transition, ...]:
        return self.path[: self.at]

    @property
    def row(self) -> Row:
        return self.taken[-1].after if self.at else self.system.initial

    @property
    def situation(self) -> Situation:
        return situation_of(self.row, self.setting.bounds)

    def choices(self) -> tuple[Transition, ...]:
        """Everything that may happen next, in the order of the search."""
        return tuple(transitions(self.system, self.row))

    def take(self, choice: int) -> Walk:
        """Raises UsageError for an unknown choice: the page is older than the walk."""
        choices = self.choices()
        if not 0 <= choice < len(choices):
            raise UsageError(f"there is no choice {choice} here; load the page again")
        return replace(self, path=(*self.taken, choices[choice]), at=self.at + 1, sought=None)

    def move(self, steps: int) -> Walk:
        """Moves back or forth along the path, up to its ends."""
        return replace(self, at=min(max(self.at + steps, 0), len(self.path)))

    def find(self, property_id: str) -> Walk:
        """The shortest run that breaks or reaches the property, at its beginning.

        Raises UsageError when a search finds none; the message says whether the search was complete.
        """
        if property_id not in PROPERTIES:
            raise UsageError(f"there is no property '{property_id}'")
        sought = [property_named(property_id)]
        bounds = replace(self.setting.bounds, max_states=min(self.setting.bounds.max_states, SEARCH_STATES_MAX))
        found = explore(bounds, self.setting.rules, sought, until_found(property_id))
        result = found.result(property_id)
        shown = result.counterexample or result.witness
        if shown is None:
            seen = "in all" if found.complete else "in the first"
            raise UsageError(f"{property_id}: nothing found {seen} {found.distinct_states:,} states")
        return replace(self, path=shown.run.transitions, at=0, sought=shown.run.finding)

    def standings(self) -> Mapping[str, tuple[PropertyStatus, str]]:
        """The standing of each property here and on the path so far, with the sentence of the finding; broken ones
        first."""
        seen: dict[str, str] = {}
        for transition in self.taken:
            for finding in (*transition.findings, *findings(self.system, transition.after)):
                seen.setdefault(finding.property_id, finding.what)
        if self.sought is not None and self.at == len(self.path):
            seen.setdefault(self.sought.property_id, self.sought.what)
        found = {each.id: _property_status(each, seen.get(each.id)) for each in self.setting.properties}
        return dict(sorted(found.items(), key=lambda item: list(PropertyStatus).index(item[1][0])))

    def nodes(self) -> Iterator[Part]:
        now, before = self.situation, self._before()
        for name, node in now.nodes.items():
            old = before.nodes[name] if before else None
            lines = [] if node is None else ["loaded" if node.loaded else "not loaded", *node_lines(node)]
            were = {"loaded" if old.loaded else "not loaded", *node_lines(old)} if old else {*lines[:1]}
            yield Part(name, tuple((line, line not in were) for line in lines), node is None)

    def links(self) -> Iterator[Part]:
        now, before = self.situation, self._before()
        for ends, link in now.links.items():
            were = Counter(map(call_line, before.links[ends].calls) if before else ())
            lines = [call_line(call) for call in link.calls] + (["half-open"] if link.half_open else [])
            if lines:  # calls can look alike: the first ones are the old ones
                new = [lines[: at + 1].count(line) > were[line] for at, line in enumerate(lines)]
                yield Part("->".join(ends), tuple(zip(lines, new, strict=True)))

    def diagram(self) -> Diagram:
        labels = [transition.label for transition in self.taken]
        broken = any(standing is PropertyStatus.BROKEN for standing, _ in self.standings().values())
        return sequence_of(self.setting.bounds.node_names, labels, last_is_bad=broken)  # type: ignore[arg-type]

    def scenario(self) -> str:
        """The walk so far as a scenario for nodes, or the reason why it has no times."""
        rows = (self.system.initial, *(transition.after for transition in self.taken))
        run = Run(self.sought or Finding("WALK", "as it was clicked"), rows, self.taken)
        scenario = counterexample_scenario(
            counterexample_of(run, self.setting.bounds), self.setting.profile, self.setting.mutant
        )
        return scenario if isinstance(scenario, str) else scenario.render()

    def _before(self) -> Situation | None:
        if not self.at:
            return None
        row = self.path[self.at - 2].after if self.at > 1 else self.system.initial
        return situation_of(row, self.setting.bounds)


def _property_status(property_: Property, what: str | None) -> tuple[PropertyStatus, str]:
    if what is None:
        return PropertyStatus.OPEN, property_.sentence
    return (PropertyStatus.REACHED if property_.kind is Kind.SOMETIMES else PropertyStatus.BROKEN), what


def grouped(choices: Sequence[Transition]) -> Mapping[str, list[tuple[int, str]]]:
    """The choices by kind of transition, each with its number."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for number, choice in enumerate(choices):
        groups.setdefault(choice.chain.kind, []).append((number, str(choice.label)))
    return groups
