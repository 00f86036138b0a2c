"""Every transition of small clusters, done on the nodes: tours of their state graphs in lockstep with the model.

Random walks reach the same states again and again; a tour takes each transition once. Its walks are walks of the
untimed model, so times are assigned first (`distro_model.timing`), as far as a clock can follow the walk, and the
transitions done are counted. A transition that no clock does next (a verify round before a task that has been due for
seconds) is counted by its kind. Walks are chosen greedily: a short budget goes to the walks with the most new
transitions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.language.expectations import ExpectModel
from distro_conformance.language.text import build
from distro_conformance.walks.driver import Lockstep
from distro_conformance.walks.result import FoundFailure, GraphCoverage, TourCoverage, WalkOptions, WalkResult
from distro_conformance.wire.transports import wire_of
from distro_model.actions import Action, Advance
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.profiles import Profile, beside_nodes, profile_named
from distro_model.search.graph import StateGraph, state_graph
from distro_model.search.results import Run
from distro_model.search.system import Finding
from distro_model.search.tours import transition_tours
from distro_model.timing import NoTimesError, TimedWalk, Timing

TOURS: Mapping[str, Bounds] = {
    "faults": Bounds(changes=2, drops=1, swallows=1, in_flight=1),
    "crash": Bounds(changes=1, crashes=1, drops=0, swallows=0, in_flight=1),
}
"""With two calls on a link at once there are six times as many transitions, and a clock does not do the second call of
most of them: a reply comes before the next timer, which takes seconds."""

LONGEST = 40
"""Transitions in a walk: the cost of assigning times grows with them."""

CALM_MS = 6_000
"""A verify round after each walk, in which a wrong copy is detected."""


def tour(
    options: WalkOptions,
    on_progress: Callable[[str], None] = lambda _: None,
    bounds: Mapping[str, Bounds] = TOURS,
) -> WalkResult:
    """Run until every walk is done, the time is used, or nodes and model diverge. The walks of all `bounds` share the
    time; `options.runs_max` is the largest number of walks.

    Raises the look-up errors of profiles and mutants, and errors other than a divergence unchanged.
    """
    return _Touring(options, on_progress, bounds).run()


@dataclass(frozen=True, slots=True)
class _Planned:
    """A walk of one tour, as edges of its graph."""

    tour: _Tour
    edges: tuple[int, ...]


class _Tour:
    """One state graph, with the edges that were tried and done."""

    def __init__(self, name: str, bounds: Bounds, profile: Profile) -> None:
        self.name = name
        self.bounds = bounds
        self.graph: StateGraph = state_graph(bounded_cluster(bounds, profile, ()))
        self.planned = [_Planned(self, walk) for walk in transition_tours(self.graph, longest=LONGEST)]
        self.covered: set[int] = set()
        self.tried: set[int] = set()
        self._profile = profile

    @cached_property
    def clock(self) -> Timing:
        return Timing(self.bounds, self._profile)

    def run(self, edges: tuple[int, ...]) -> Run:
        return self.graph.run(edges, Finding("TOUR", self.name))

    def summary(self) -> GraphCoverage:
        return GraphCoverage(
            self.name, self.bounds, self.graph.states, self.graph.edges, len(self.covered), len(self.planned)
        )


class _Touring:
    def __init__(self, options: WalkOptions, on_progress: Callable[[str], None], bounds: Mapping[str, Bounds]) -> None:
        self.options = options
        self.on_progress = on_progress
        self.began_s = time.monotonic()
        profile = beside_nodes(profile_named(options.profile))
        self.tours = [_Tour(name, each, profile) for name, each in bounds.items()]
        self.report = TourCoverage()
        self.result = WalkResult(options, tours=self.report)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    def run(self) -> WalkResult:
        report = self.report
        for planned in self.chosen():
            timed = self.timed(planned)
            if timed is None:
                continue
            self.on_nodes(planned, timed)
            edges, covered = sum(each.graph.edges for each in self.tours), sum(len(t.covered) for t in self.tours)
            self.on_progress(
                f"tours: {report.walks} walks, {self.result.steps} steps, {covered} of {edges} transitions"
            )
        report.graphs = tuple(each.summary() for each in self.tours)
        report.cut_short = Counter(dict(report.cut_short.most_common()))
        self.result.runs, self.result.seconds = report.walks, self.seconds
        return self.result

    def chosen(self) -> Iterator[_Planned]:
        """Yield the walk with the most untried transitions, while there is time and a walk with new ones."""
        left = [planned for each in self.tours for planned in each.planned]
        while left and self.result.failure is None and self.seconds < self.options.seconds:
            if self.options.runs_max is not None and self.report.walks >= self.options.runs_max:
                return
            best = max(left, key=_promise)
            left.remove(best)
            if _promise(best) == (0, 0):
                self.report.left_out += 1 + len(left)
                return
            yield best

    def timed(self, planned: _Planned) -> TimedWalk | None:
        """None when a clock cannot follow it to a new transition."""
        tour_ = planned.tour
        run = tour_.run(planned.edges)
        tour_.tried.update(planned.edges)
        try:
            timed = tour_.clock.timed(run)
            transitions = timed.transitions
        except NoTimesError:
            timed, transitions = None, 0
        if transitions < len(run.transitions):
            self.report.cut_short[run.transitions[transitions].chain.kind] += 1
        if timed is None or tour_.covered.issuperset(planned.edges[:transitions]):
            self.report.left_out += 1
            return None
        return timed

    def on_nodes(self, planned: _Planned, timed: TimedWalk) -> None:
        """Compare every action. A transition counts as done when the action after which it is done was right."""
        options, report, done = self.options, self.report, list[Action]()
        wire = wire_of(options.transport, report.walks, report.walks)
        report.walks += 1
        try:
            with Lockstep(planned.tour.bounds.node_names, options.profile, options.mutant, wire=wire) as lockstep:
                for action, taken in (*zip(timed.actions, timed.taken, strict=True), (Advance(CALM_MS), 0)):
                    done.append(action)
                    self.result.steps += 1
                    self.result.steps_over[wire.kind.value] += 1
                    lockstep.perform(action)
                    planned.tour.covered.update(planned.edges[:taken])
            report.whole += timed.stopped_at is None
        except DivergedError as error:
            comment = f"Found by a tour of all transitions ({planned.tour.bounds}): {error}"
            scenario = build(
                [*done, ExpectModel()],
                nodes=planned.tour.bounds.node_names,
                profile=options.profile,
                mutant=options.mutant,
                wire=wire,
                comment=comment,
            )
            self.result.failure = FoundFailure(scenario, str(error), len(done), self.result.steps, self.seconds)


def _promise(planned: _Planned) -> tuple[int, int]:
    """The numbers of its transitions that no walk has tried, and that no walk has done."""
    edges = frozenset(planned.edges)
    return len(edges - planned.tour.tried), len(edges - planned.tour.covered)
