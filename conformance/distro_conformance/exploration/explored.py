"""Exhaustive search of the model for the command line and the gate: budgets, scenarios, known defects.

The search itself is the model's. Here a counterexample becomes a scenario that nodes can replay, and known violations
of a release are separated from new ones.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from distro_conformance.diagrams.sequence import Fault, Sequence
from distro_conformance.diagrams.transitions import sequence_of
from distro_conformance.findings.finding import Finding, Held, Judgement, command, differ, verdict_of
from distro_conformance.language.expectations import AllAgree, Expect, ExpectModel, NodeLacks
from distro_conformance.language.running import Step
from distro_conformance.language.text import Scenario, build
from distro_conformance.verdict import Verdict
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.view import Situation
from distro_model.defects import breaking, link_of, repaired
from distro_model.explorer import Counterexample, Engine, Exploration, Result, explore, search_compiled
from distro_model.messages import text_of
from distro_model.mutants import MUTANTS, with_mutant
from distro_model.node import Client
from distro_model.profiles import Profile, beside_nodes, profile_named
from distro_model.properties import PROPERTIES, property_named
from distro_model.repeating import as_timed
from distro_model.search.readable import search_readably
from distro_model.search.results import Limits, Progress, Search, Watch
from distro_model.search.system import NO_GUARD, System
from distro_model.timing import NoTimesError


def _exact(system: System, limits: Limits, watch: Watch) -> Search:
    from distro_model.search.engine import search  # noqa: PLC0415 - numba is loaded when it is asked for

    return search(system, limits, watch, exact=True)


ENGINES: Mapping[str, Engine] = {
    "local": search_compiled,
    "exact": _exact,
    "readable": search_readably,
}
"""By the name that `--engine` takes. All count the same; `exact` compares states instead of their fingerprints."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of the search that do not change its findings."""

    engine: Engine = search_compiled
    properties: tuple[str, ...] = ()  # none: all
    max_memory_bytes: int | None = None


BY = "model"

BOUND_OPTIONS = ("nodes", "clients", "changes", "crashes", "drops", "swallows", "in_flight", "max_states")
"""The bounds that `distrocheck explore` has an option of their own for; every other one is set by `--bound`."""

RECOVERY_MS = 15_000
"""The time that a scenario gives a cluster to agree: three verify periods, since no repair in any release takes
longer."""


@dataclass(frozen=True, slots=True)
class Explored:
    """One bounded search: a finding for each property that its bounds speak about.

    `scenarios` by property; a violation that cannot be given times has the reason instead.
    """

    profile: str
    mutant: str | None
    bounds: Bounds
    explored: Profile
    exploration: Exploration
    seconds: float
    findings: tuple[Finding, ...]
    scenarios: dict[str, Scenario | str]

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)

    @property
    def taken(self) -> Counter[str]:
        """How often each kind of transition was taken, 0 included."""
        taken: Counter[str] = Counter()
        for name, count in self.exploration.search.taken.items():
            taken[self.exploration.kinds[name]] += count
        return taken

    @property
    def guards(self) -> dict[str, dict[str, int]]:
        """Kind of transition -> guard -> how often it forbade one, 0 included."""
        refused = self.exploration.search.refused
        guards: dict[str, Counter[str]] = {}
        for chain in self.exploration.system.chains:
            counts = guards.setdefault(chain.kind, Counter())
            for lookup, count in zip(chain.lookups, refused[chain.name], strict=True):
                if lookup.guard != NO_GUARD:
                    counts[lookup.guard] += count
        return {kind: dict(counts) for kind, counts in guards.items()}

    def result(self, finding: Finding) -> Result:
        return next(result for result in self.exploration.results if result.name == finding.about)


def explore_profile(
    profile: str,
    bounds: Bounds,
    *,
    mutant: str | None = None,
    seconds_max: float | None = None,
    search: SearchOptions = SearchOptions(),
    on_progress: Callable[[Progress, float], None] = lambda *_: None,
) -> Explored:
    """Search every reachable state within the bounds.

    `on_progress` gets the progress of the search and the seconds since it began. Raises the look-up errors of profiles,
    mutants and properties.
    """
    began = time.monotonic()
    chosen = with_mutant(profile_named(profile), mutant)

    def watch(progress: Progress) -> bool:
        seconds = time.monotonic() - began
        on_progress(progress, seconds)
        return seconds_max is not None and seconds > seconds_max

    found = explore(
        bounds,
        chosen,
        [property_named(name) for name in search.properties or PROPERTIES],
        watch,
        search.engine,
        max_memory_bytes=search.max_memory_bytes,
    )
    broken = [result.counterexample for result in found.results if result.counterexample]
    scenarios = {each.property_id: counterexample_scenario(each, profile, mutant) for each in broken}
    findings = tuple(_judge(result, profile, mutant, bounds) for result in found.results if result.applies)
    if mutant and found.holds and (why := _without_effect(found, bounds, profile, watch, search)):
        message = f"not decided: {mutant} {why} within these bounds; its own are {MUTANTS[mutant].bounds}"
        findings = tuple(replace(each, judgement=Judgement.NOT_JUDGED, message=message) for each in findings)
    return Explored(profile, mutant, bounds, chosen, found, time.monotonic() - began, findings, scenarios)


def _without_effect(
    found: Exploration, bounds: Bounds, profile: str, watch: Watch, options: SearchOptions
) -> str | None:
    """Why a mutant of which all properties hold may have no effect, as a clause. It has none if the same search without
    it has the same transitions: then no rule of the mutant was reached. That search may be cut, too."""
    without = explore(
        bounds, profile_named(profile), (), watch, options.engine, max_memory_bytes=options.max_memory_bytes
    )
    if without.complete:
        return "changes nothing" if _size(without.search) == _size(found.search) else None
    has_more = without.distinct_states > found.distinct_states
    return None if has_more else "was not compared with a whole search without it"


def _size(search: Search) -> tuple[object, ...]:
    return search.distinct_states, search.transitions, search.taken, search.refused


def counterexample_scenario(counterexample: Counterexample, profile: str, mutant: str | None) -> Scenario | str:
    """The counterexample as a text that the nodes can replay, or the reason why it has no times."""
    try:
        run = as_timed(counterexample, with_mutant(beside_nodes(profile_named(profile)), mutant))
    except NoTimesError as reason:
        return str(reason)
    steps: list[Step] = [*run.actions, *_expectation(counterexample)]
    comment = f"{counterexample.property_id}, {len(counterexample.steps)} transitions: {counterexample.found}"
    return build(steps, nodes=run.nodes, profile=profile, mutant=mutant, comment=comment)


def _expectation(counterexample: Counterexample) -> list[Step]:
    """The expectation at the end, if a scenario can express it; else that the nodes agree with the model."""
    if counterexample.property_id in ("INV-CONV", "EVENTUALLY-CONV"):
        return [Expect(AllAgree(), RECOVERY_MS)]
    if counterexample.property_id == "INV-DELETE":
        return [
            Expect(NodeLacks(node, client), RECOVERY_MS)
            for client in counterexample.last.lives
            for node, held in counterexample.last.nodes.items()
            if held is not None and held.client(client) is not None
        ]
    return [ExpectModel()]


def _judge(result: Result, profile: str, mutant: str | None, bounds: Bounds) -> Finding:
    finding = Finding(
        about=result.name,
        by=BY,
        judgement=Judgement.CONFORMS,
        text=PROPERTIES[result.name].sentence,
        message="reached" if result.witness else "holds in every state within the bounds",
        again=_command(profile, mutant, bounds, result.name),
        details={"kind": result.kind, "bounds": str(bounds)},
    )
    if result.holds is None:
        return replace(finding, judgement=Judgement.NOT_JUDGED, message=f"not decided: {result.undecided}")
    if result.holds:
        return finding
    found = result.counterexample
    if found is None:
        message = "never reached: the model proves nothing about it"
        return replace(finding, judgement=Judgement.VIOLATES, message=message)
    client, held = _held_in(found.last)
    causes = () if mutant else breaking(result.name, profile, bounds)
    return replace(
        finding,
        judgement=Judgement.VIOLATES,
        client=client,
        held=held,
        link=causes[0].link if causes else link_of(mutant),
        message=f"after {len(found.steps)} transitions: {found.found}",
        after=str(found.steps[-1].transition) if found.steps else None,
        evidence=tuple(str(found).splitlines()),
        details={**finding.details, "steps": len(found.steps)},
    )


def _held_in(last: Situation) -> tuple[str | None, tuple[Held, ...]]:
    """The first client whose copy differs from its owner's, or that has no owner any more: the copies side by side."""
    for client in last.lives:
        copies = {name: None if node is None else node.client(client) for name, node in last.nodes.items()}
        owner = next((copy for copy in copies.values() if copy is not None and copy.native), None)
        rows = tuple(
            Held(node, copy is not None and copy.native, _described(copy), differ(_revised(owner), _revised(copy)))
            for node, copy in copies.items()
        )
        if any(row.differs for row in rows):
            return client, rows
    return None, ()


def _described(copy: Client | None) -> str:
    return "nothing" if copy is None else f"revision {copy.revision}: {text_of(copy.content)}"


def _revised(copy: Client | None) -> tuple[int, object] | None:
    return None if copy is None else (copy.revision, copy.content)


def diagram_of(found: Counterexample) -> Sequence:
    """The run; the first wrong event is its last one."""
    labels = [step.transition for step in found.steps]
    drawn = sequence_of(found.bounds.node_names, labels, last_is_bad=True)
    return replace(drawn, items=(*drawn.items, Fault(found.found, bad=True)))


def _command(profile: str, mutant: str | None, bounds: Bounds, property_id: str) -> str:
    options: list[object] = ["--property", property_id]
    for name, value in asdict(bounds).items():
        if value != getattr(Bounds(), name) and name in BOUND_OPTIONS:
            options += [f"--{name.replace('_', '-')}", value]
        elif value != getattr(Bounds(), name):
            options += ["--bound", f"{name}={value}"]
    return command("explore", *options, profile=profile, mutant=mutant)


def against_the_list(explored: Explored, seconds_max: float | None = None) -> Explored:
    """For the gate: a violation by known defects of the release is not new if the property holds with all of them
    repaired; a listed violation that does not show is new."""
    profile, bounds = explored.profile, explored.bounds
    broken = [each for each in explored.findings if each.violates and breaking(each.about, profile, bounds)]
    without: dict[str, Result] = {}
    if broken:
        found = explore(
            explored.bounds,
            repaired(explored.explored),
            [property_named(each.about) for each in broken],
            stop_after(seconds_max),
        )
        without = {result.name: result for result in found.results}
    findings = tuple(_excused(each, explored, without.get(each.about)) for each in explored.findings)
    return replace(explored, findings=findings)


def _excused(finding: Finding, explored: Explored, without: Result | None) -> Finding:
    """`without`: the same property where every listed cause is repaired; None where nothing is listed, or all holds."""
    causes = breaking(finding.about, explored.profile, explored.bounds)
    names = ", ".join(cause.id for cause in causes)
    if causes and finding.judgement is Judgement.CONFORMS:
        message = f"{names} is listed as breaking it in {explored.profile}, and it holds: remove the entry"
        return replace(finding, judgement=Judgement.VIOLATES, message=message)
    if without is None:
        return finding
    if without.counterexample is not None:
        message = f"broken also where {names} is repaired: {without.counterexample.found}"
        evidence = tuple(str(without.counterexample).splitlines())
        return replace(finding, message=message, evidence=evidence)
    if not without.holds:
        message = f"it is not known whether only {names} breaks it: {without.undecided}"
        return replace(finding, judgement=Judgement.NOT_JUDGED, message=message)
    why = "; ".join(f"{cause.id}: {cause.breaks_in(explored.profile)[finding.about]}" for cause in causes)
    message = f"{finding.message}. Known, {why}"
    return replace(finding, judgement=Judgement.KNOWN, known=names, link=causes[0].link, message=message)


def stop_after(seconds_max: float | None) -> Watch:
    """Stops the search after this number of seconds, None: never."""
    began = time.monotonic()
    return lambda _: seconds_max is not None and time.monotonic() - began > seconds_max
