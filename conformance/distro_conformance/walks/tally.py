"""The counts of a search, updated run by run, and whether the search is done.

Hypothesis only repeats a run that failed; its actions and its error are kept here.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from distro_conformance.commands import command
from distro_conformance.drivers.lockstep import DivergedError, LostError
from distro_conformance.findings.expected import DESCRIBED
from distro_conformance.findings.finding import SHOULD, Finding, Judgement
from distro_conformance.node.timings import Timings
from distro_conformance.walks.comparable import left_out_after
from distro_conformance.walks.result import Hunt
from distro_conformance.walks.shrink import Run
from distro_conformance.wire.transports import OVER_GRPC, Wire
from distro_model.actions import Action, Advance, Answers, Reorder, Says, Shape
from distro_model.profiles import Profile
from distro_model.rules.watching import Taken, counting

Check = Callable[[Path], Iterable[Finding]]
"""Checks the invariants over the recordings in a directory."""

KNOWN = Judgement.KNOWN
CONVERGENCE = "INV-CONV"
"""The invariant that a run violates whose nodes differ at the end."""


def kind_of(action: type) -> str:
    """`http register` of HttpRegister."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", action.__name__).lower()


ACTIONS = tuple(kind_of(each) for each in get_args(Action) if not issubclass(each, Shape | Reorder | Says | Answers))
"""The actions of walks of three nodes: all that the model has too, without those of played members."""


def beside_nodes(taken: Taken) -> Mapping[str, Mapping[str, int]]:
    """The counts of the model that ran beside the nodes, under the names of a report."""
    return {"rules beside nodes": taken.of_rules, "guards beside nodes": taken.of_guards}


@dataclass
class Tally:
    """The counts of the runs, as the machine reports them run by run."""

    hunt: Hunt
    began_s: float
    on_progress: Callable[[str], None]
    is_over: Callable[[], bool]
    check: Check | None = None
    wire: Wire = OVER_GRPC
    http: bool = False
    actions: Counter[str] = field(default_factory=Counter)
    taken: Taken = field(default_factory=Taken)
    first_failure: tuple[int, float] | None = None
    failing: tuple[list[Action], DivergedError] | None = None
    recording: Path | None = None
    """Of the current run, in real time. The runs of a search share a directory, and are checked together: one alone
    may show too little."""
    is_spoilt: bool = False
    """The nodes still hold data of the run before."""
    broken: BaseException | None = None
    """An error other than a divergence that ended a run: Hypothesis repeats such a run, and reports only that the
    second run differed."""

    def watch(self, profile: Profile) -> Profile:
        return counting(profile, self.taken)

    def ended(self, actions: list[Action], failure: BaseException | None) -> None:
        self._count(actions)
        if self.hunt.options.is_elsewhere:
            lease_ms = Timings.of(self.hunt.options.profile).lease_ms
            self.hunt.clients_left_out += len(left_out_after(actions, lease_ms))
        self.hunt.runs_with_http += self.http
        self.hunt.runs_idle += all(isinstance(action, Advance) for action in actions)
        self.actions.update(kind_of(type(action)) for action in actions)
        if isinstance(failure, DivergedError):
            self.first_failure = self.first_failure or (self.hunt.steps, time.monotonic() - self.began_s)
            self.failing = self.failing or (actions, failure)
        elif isinstance(failure, LostError):
            self.hunt.runs_lost += 1
        elif failure is not None:
            self.broken = failure
        self._report("they diverge" if self.failing else "nodes and model agree")

    def leave_open(self) -> None:
        """Count a run of which it is not known whether its nodes came to agree in time. They may still differ."""
        self.hunt.runs_open += 1
        self.is_spoilt = True

    def is_known(self, clients: Collection[str], left_out: Collection[str]) -> bool:
        """Whether the recording shows that known defects of the release are the only reason why the nodes of a run
        differ, for each of these clients. Violations of clients left out of the comparison are ignored. The release of
        a described server excuses no failure."""
        if self.check is None or self.recording is None:
            return False
        self._report("checking why the nodes of a run differ")
        found = [each for each in self._checked(self.check, self.recording) if each.client not in left_out]
        self.hunt.checked += found
        listed = {each.client for each in found if (each.about, each.judgement) == (CONVERGENCE, KNOWN)}
        is_described = self.hunt.options.target.partition(":")[0] in DESCRIBED
        is_explained = listed.issuperset(clients) and not any(each.violates for each in found)
        self.is_spoilt = is_explained and not is_described
        self.hunt.runs_known += self.is_spoilt
        return self.is_spoilt

    def _checked(self, check: Check, recording: Path) -> Iterator[Finding]:
        """The violations of this run. A run that cannot be checked is kept."""
        try:
            for finding in check(recording.parent):
                is_of_run = finding.run == recording.stem and finding.judgement in (KNOWN, Judgement.VIOLATES)
                if is_of_run or (finding.run is None and finding.violates):  # counted, and not listed
                    yield finding
        except Exception as error:  # noqa: BLE001 - Spark, its Java, a disk: the nodes differ all the same
            why = f"the recording could not be checked: {error}"
            again = command("check", recording.parent)
            yield Finding(
                about=CONVERGENCE, by="trace", judgement=Judgement.NOT_JUDGED, level=SHOULD, message=why, again=again
            )

    def tidy(self) -> None:
        """After the search: remove the recordings that no finding refers to."""
        if self.recording is not None and not (self.failing or self.broken or self.hunt.checked):
            shutil.rmtree(self.recording.parent)

    def tried(self, run: Run) -> None:
        """A smaller run, on the nodes."""
        self._count(run.actions)
        self._report("making the failing run smaller")

    def _count(self, actions: Sequence[Action]) -> None:
        self.hunt.runs += 1
        self.hunt.steps += len(actions)
        self.hunt.steps_over[self.wire.carrier.value] += len(actions)

    def _report(self, what: str) -> None:
        hunt = self.hunt
        self.on_progress(f"{hunt.options.name}: {hunt.runs} runs, {hunt.steps} steps, {what}")

    def is_enough(self) -> bool:
        """Whether to stop: Hypothesis itself ends only after more runs than requested."""
        options = self.hunt.options
        is_late = options.is_elsewhere and time.monotonic() - self.began_s > options.seconds
        is_whole = options.runs_max is not None and self.hunt.runs >= options.runs_max
        return self.failing is not None or is_late or is_whole or self.is_over()
