"""A recorded run that a person steps through row by row, with the state of every node at that row.

A trace is opened directly; a scenario is first played on the requested target, and its recording is opened. So there
is one view for all runs on nodes. Rows are read through windows, so a run may have any length.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from distro_conformance.diagrams.sequence import Sequence as Diagram
from distro_conformance.diagrams.trace import sequence_of_client
from distro_conformance.language.holding import StepResult
from distro_conformance.language.recording import record
from distro_conformance.language.text import Scenario, parse, read
from distro_conformance.release import STRICT
from distro_conformance.ui.walk import Part
from distro_conformance.verdict import UsageError
from distro_traces.event import Event, Kind
from distro_traces.exports.causal import describe

if TYPE_CHECKING:
    from distro_traces.windows import Windows

SCENARIO_SUFFIX = ".scenario"
ROWS_SHOWN = 40
"""The number of rows shown, which end with the current row."""
FAULTS = (Kind.LINK_FAULT, Kind.NODE_STARTED, Kind.NODE_STOPPED)
DIGEST_LETTERS = 8


@dataclass(frozen=True)
class Recorded:
    """One run, seen at the row `at`. `steps` are the lines of the played scenario, if any."""

    windows: Windows
    title: str
    scenario: Scenario | None = None
    steps: tuple[StepResult, ...] = ()
    at: int = 0

    @property
    def total(self) -> int:
        return self.windows.total

    @property
    def event(self) -> Event:
        return self.windows.at(self.at, 1)[0]

    @property
    def sentence(self) -> str:
        event = self.event
        return f"{event.at_ms / 1000:.3f} s, {event.node}: {describe(event)}"

    def move(self, steps: int) -> Recorded:
        return self.go(self.at + steps)

    def go(self, place: int) -> Recorded:
        return replace(self, at=min(max(place, 0), self.total - 1))

    def to_next_fault(self) -> Recorded:
        """Raises UsageError when no later row is a fault."""
        place = self.windows.next_of(FAULTS, self.at)
        if place is None:
            raise UsageError("no link is cut and no node stops after this row")
        return self.go(place)

    def nodes(self) -> Iterator[Part]:
        """The state of each node at this row; lines that the row changed are marked."""
        event = self.event
        for node, clients in self.windows.held_at(self.at).items():
            lines = tuple(
                (
                    f"{client} {'native' if row.owned else 'synced'}, revision {row.revision}, "
                    f"content {(row.digest or '')[:DIGEST_LETTERS]}",
                    (row.node, row.seq) == (event.node, event.seq),
                )
                for client, row in sorted(clients.items())
            )
            yield Part(node, lines)

    def diagram(self) -> Diagram:
        """The rows up to the current one, which is the last item."""
        first = max(0, self.at + 1 - ROWS_SHOWN)
        events = self.windows.at(first, self.at + 1 - first)
        return sequence_of_client(events, None)


def opened(path: Path, kept: ExitStack) -> Recorded:
    """A scenario is played on embedded nodes first. Resources that must be closed go into `kept`.

    Raises ScenarioError, the TraceError family, and the errors of `replay`.
    """
    if path.suffix == SCENARIO_SUFFIX:
        return played(read(path), "embedded", kept)
    windows = _windows(path, kept)
    if not windows.total:
        raise UsageError(f"{path} has no rows")
    return Recorded(windows, f"{windows.run} in {path}")


def played(scenario: Scenario | str, target: str, kept: ExitStack) -> Recorded:
    """The recording of a scenario on a target. Raises the errors of `replay`."""
    parsed = parse(scenario) if isinstance(scenario, str) else scenario
    directory = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="distrocheck-ui-")))
    run = re.sub(r"[^\w.-]+", "-", target)
    done = record(parsed, target=target, profile=parsed.profile or STRICT, directory=directory, run=run)
    windows = _windows(directory, kept)
    ended = {step.verdict for step in done.steps}
    verdict = done.verdict.value if ended else "not played"
    return Recorded(windows, f"the scenario on {target}, profile {done.profile}: {verdict}", parsed, done.steps)


def _windows(path: Path, kept: ExitStack) -> Windows:
    from distro_traces.windows import Windows  # noqa: PLC0415 - DuckDB is an extra that a walk does not need

    return kept.enter_context(Windows(path))
