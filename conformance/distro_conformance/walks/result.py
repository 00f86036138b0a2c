"""The options and the result of a search: values that are sent between processes and go into reports, as a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from distro_conformance.drivers.lockstep import DivergedError
from distro_conformance.findings.finding import Finding, Judgement, command
from distro_conformance.language.text import Scenario
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.verdict import Verdict
from distro_conformance.walks import NODES, PEERS, STEPS_PER_RUN
from distro_conformance.wire.transports import TransportKind, steps_over
from distro_model.bounded.bounds import Bounds
from distro_model.defects import link_of
from distro_model.outside import Undecided, Unexplained
from distro_model.possible import Rejection
from distro_model.rules.rule import RULES
from distro_model.rules.watching import Taken

SHRINK_SECONDS = 20.0


HTTP_EVERY, HTTP_ROUND = 2, 1
"""The number of rounds in a cycle, and the one (from 0) that walks with clients of the HTTP API by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """What is driven, for how long, and the directory for recordings of the runs (None: no recordings)."""

    target: str = "embedded"
    """Embedded nodes are compared with the model after each step; the nodes of other clusters must agree at the end."""
    profile: str = "strict"
    mutant: str | None = None
    credentials: Credentials = field(default=NO_CREDENTIALS, repr=False)
    """For a target that the kit has not configured."""
    seconds: float = 20.0
    seed: int = 0
    runs_max: int | None = None
    steps_per_run: int = STEPS_PER_RUN
    shrink_seconds: float = SHRINK_SECONDS
    record_into: Path | None = None
    logs_into: Path | None = None
    """The directory for the logs of servers whose run has failed."""
    rare_starts: bool = True
    """Every third run starts from a state that random runs seldom reach."""
    database: Path | None = None
    """The directory of kept failures, which are replayed first."""
    transport: TransportKind | None = None
    """None: most rounds of runs in memory, some over gRPC."""
    among_played: bool = False
    """One node among played members, instead of nodes only."""
    tours: bool = False
    """Every transition of small clusters, instead of random walks."""
    http: bool | None = None
    """Clients of the HTTP API beside those that connect; None: in some rounds of runs. For embedded nodes only: one
    real node among played members always has some."""

    @property
    def in_real_time(self) -> bool:
        """Whether the nodes are others than embedded ones: their time is real."""
        return self.target != "embedded"

    @property
    def nodes(self) -> tuple[str, ...]:
        return (NODES[0], *self.played) if self.among_played else NODES

    @property
    def played(self) -> tuple[str, ...]:
        return PEERS if self.among_played else ()

    def has_http(self, round_number: int) -> bool:
        """Whether the runs of that round, from 0, have clients of the HTTP API."""
        if self.in_real_time:
            return False
        return round_number % HTTP_EVERY == HTTP_ROUND if self.http is None else self.http

    @property
    def name(self) -> str:
        return "tours" if self.tours else "machine" if self.among_played else "lockstep"

    @property
    def failure_name(self) -> str:
        """The name of the files of a failure."""
        return f"{self.name}-{self.mutant or self.profile}-{self.seed}"

    @property
    def failure_logs(self) -> Path | None:
        """The directory for the logs of the servers of a failing run."""
        return self.logs_into and self.logs_into / f"{self.failure_name}-logs"


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """The smallest failing run that was reached, and the cost of the first one."""

    scenario: Scenario
    message: str
    steps: int
    steps_until_found: int
    seconds_until_found: float
    error: DivergedError | None = None
    recording: Path | None = None
    """The recording of a run in real time, which cannot be repeated."""
    target: str = "embedded"
    logs: Path | None = None
    """A directory of logs for each server, as far as the kit started some."""

    def replayed_by(self, scenario: Path) -> str:
        """The command that replays it on the target where it failed."""
        where = () if self.target == "embedded" else ("--target", self.target)
        return command("replay", scenario, *where)


def beside_nodes(taken: Taken) -> Mapping[str, Mapping[str, int]]:
    """The counts of the model that ran beside the nodes, under the names of a report."""
    return {"rules beside nodes": taken.of_rules, "guards beside nodes": taken.of_guards}


@dataclass(frozen=True, slots=True)
class GraphCoverage:
    """One state graph. `covered`: the transitions that were done on nodes, and compared."""

    name: str
    bounds: Bounds
    states: int
    edges: int
    covered: int
    walks_planned: int


@dataclass(slots=True)
class TourCoverage:
    """The walks of all graphs: `walks` were begun on nodes, and `whole` of them done to their end.

    `cut_short`: by kind of the first transition that a clock could not follow, the number of walks that ended there.
    `left_out`: walks whose timed part was done before.
    """

    graphs: tuple[GraphCoverage, ...] = ()
    walks: int = 0
    whole: int = 0
    left_out: int = 0
    cut_short: Counter[str] = field(default_factory=Counter)

    @property
    def edges(self) -> int:
        return sum(each.edges for each in self.graphs)

    @property
    def covered(self) -> int:
        return sum(each.covered for each in self.graphs)


NOT_JUDGED: Mapping[str, str] = {
    "runs_lost": "model state limit exceeded in {} runs",
    **{f"clients_{each.name.lower()}": f"{{}} clients are no longer judged: {each.value}" for each in Undecided},
    "clients_left_out": "{} clients are in no comparison: not every node can know their last change or end",
    "runs_open": "in {} runs the machine took too much of the time in which the nodes have to agree",
    "node_late": "{} times the node was late, and the machine may be why",
    "views_in_parts": "{} views of clients that were being changed are not judged",
}
"""What neither passes nor fails.

In lockstep: runs that ended because the model could not follow the nodes any longer. In real time: clients whose node
crashed before all other nodes can have received their last change or end, or of which a fault lost it; runs after which
it is not known whether the nodes came to agree in time. In runs side by side: clients, by reason; reports and snapshot
requests of the node; views of a client between two states."""


@dataclass(slots=True)
class WalkResult:
    """The result, counted during the search. `steps` counts the actions done on the nodes, also while shrinking; `runs`
    counts their runs."""

    options: WalkOptions
    steps: int = 0
    runs: int = 0
    steps_over: dict[str, int] = field(default_factory=lambda: steps_over({}))
    seconds: float = 0.0
    failure: FoundFailure | None = None
    runs_with_http: int = 0
    runs_idle: int = 0
    """Runs in which only time passed: the nodes received no request, so such runs support no verdict."""
    runs_known: int = 0
    """Runs in real time whose nodes did not come to agree, with listed defects as the only reason."""
    not_judged: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(NOT_JUDGED, 0)))
    coverage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The number of times that each kind of action was done on the nodes, and that the model beside them applied each
    rule and gave each guard answer; what never happened is listed with 0."""
    checked: list[Finding] = field(default_factory=list)
    """Findings of the invariants about these runs, and about the run that ended the search."""
    tours: TourCoverage | None = None

    @property
    def unjudged(self) -> str:
        """The part of a summary about what was not judged; empty if there is nothing."""
        counted = ((text, self.not_judged[name]) for name, text in NOT_JUDGED.items())
        return "".join(f"; {text.format(count)}" for text, count in counted if count)

    @property
    def verdict(self) -> Verdict:
        if self.failure is not None:
            return Verdict.VIOLATES
        is_tried = self.runs > self.runs_idle + self.not_judged["runs_open"]
        return Verdict.CONFORMS if is_tried else Verdict.INCONCLUSIVE


_LOCKSTEP_TEXT = "After every action the nodes hold and send what the model allows."
_AGREE_TEXT = "At the end of each run, when its faults are healed, all nodes come to hold the same."
_MACHINE_TEXT = "Whatever members and clients do, the node sends, answers and holds what the model allows."


def finding_of(result: WalkResult, again: str | None = None) -> Finding:
    """`again`: the command that judges it again, if it is not the same search."""
    options = result.options
    played = ("--played",) if options.among_played else ()
    seeded = command("test cluster", *played, "--seed", options.seed, profile=options.profile, mutant=options.mutant)
    finding = Finding(
        about=options.name.upper(),
        by="machine" if options.among_played else "lockstep",
        judgement=Judgement.CONFORMS,
        text=_MACHINE_TEXT if options.among_played else _AGREE_TEXT if options.in_real_time else _LOCKSTEP_TEXT,
        message=f"{result.steps} steps",
        link=link_of(options.mutant),
        again=seeded if again is None else again,
        seconds=result.seconds,
        details={"steps": result.steps},
    )
    if result.failure is not None:
        return _failed(finding, result.failure, result.verdict)
    if result.runs_known:
        bugs = sorted({each.known for each in result.checked if each.known})
        message = (
            f"known, {', '.join(bugs)}: in {result.runs_known} of {result.runs} runs the nodes do not come to agree"
        )
        return replace(finding, judgement=Judgement.KNOWN, known=bugs[0], link=link_of(bugs[0]), message=message)
    if result.verdict is Verdict.CONFORMS:
        return finding
    why = f"nothing was asked of the nodes in {result.steps} steps: give it more time (--seconds)"
    if open_runs := result.not_judged["runs_open"]:
        why = f"in {open_runs} of {result.runs} runs this machine took too much of the time"
    return replace(finding, judgement=Judgement.NOT_JUDGED, message=why)


def _failed(finding: Finding, failure: FoundFailure, verdict: Verdict) -> Finding:
    lines = failure.scenario.render().splitlines()
    found = failure.error.__cause__ if failure.error is not None else None
    if isinstance(found, Unexplained):
        rule = RULES.get(found.rule)
        finding = replace(
            finding,
            text=rule.sentence if rule is not None else finding.text,
            node=failure.scenario.nodes[0],
            client=found.client,
            expected=found.expected,
            observed={"seen": found.seen, "rule": found.rule},
            after=str(failure.error.action) if failure.error is not None else None,
            since=f"{failure.error.at_ms} ms" if failure.error is not None else None,
        )
    message = failure.message
    error = failure.error
    if error is not None and isinstance(error.reason, Rejection):
        first = error.reason.nearest[0][0]
        message = str(first)
        finding = replace(
            finding,
            node=first.node,
            client=first.client,
            since=f"{error.at_ms} ms",
            after=f"“{error.action}”",
        )
    judgement = Judgement.VIOLATES if verdict is Verdict.VIOLATES else Judgement.NOT_JUDGED
    return replace(
        finding,
        judgement=judgement,
        message=message,
        evidence=tuple(lines),
        details={"steps": failure.steps, "steps_until_found": failure.steps_until_found},
    )
