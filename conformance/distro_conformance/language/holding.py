"""Whether and how long a condition holds, and the last event before it stopped holding.

"within" waits until the condition holds in every possible state. "for" requires that it holds all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from distro_conformance.drivers.cluster import Cluster
from distro_conformance.language.expectations import Expect
from distro_conformance.verdict import Verdict
from distro_conformance.waiting import Pass, Timeliness, never, wait_until_found

STEP_MS = 100


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step. `outcome` is "done", "holds", or the observation instead. `held_from_ms`, `held_to_ms`:
    when its condition was first and last observed to hold; None if it never did, or if the step conforms. `detail` is
    the text of the target (its answer, or the last event), and may differ between targets."""

    verdict: Verdict
    outcome: str
    held_from_ms: int | None = None
    held_to_ms: int | None = None
    detail: str = field(default="", compare=False)
    is_lost: bool = False
    """Whether the run ends here, since later steps would test something else."""
    line: int = 0
    text: str = ""
    at_ms: int = 0

    def with_outcome(self, outcome: str) -> StepResult:
        return replace(self, outcome=outcome)


async def hold(cluster: Cluster, expect: Expect, pass_ms: Pass | None = None) -> StepResult:
    """`pass_ms`: the function that lets time pass, if the clock of the cluster is virtual."""
    watched = cluster.clock
    began_ms = watched.now_ms()
    reasons: Sequence[str | None] = ()
    from_ms = to_ms = None

    async def holds() -> bool | None:
        nonlocal reasons, from_ms, to_ms
        reasons = await expect.condition.unmet(cluster)
        if any(reasons):
            return None
        to_ms = watched.now_ms()
        from_ms = to_ms if from_ms is None else from_ms
        return True

    async def fails() -> bool | None:
        return None if await holds() else True

    wait = await wait_until_found(holds, watched, expect.within_ms, step_ms=STEP_MS, pass_ms=pass_ms)
    is_in_time = wait.timeliness is Timeliness.IN_TIME
    if is_in_time:
        wait = await never(fails, watched, expect.for_ms, step_ms=STEP_MS, pass_ms=pass_ms)
        if wait.found is None:
            return StepResult(Verdict.CONFORMS, "holds")
    found = " or ".join(sorted({reason for reason in reasons if reason})) or "it holds too late"
    when = _when(began_ms, from_ms, to_ms, watched.now_ms())
    last = cluster.last_event()
    detail = f"the last event before: {last}" if last else ""
    if wait.timeliness is Timeliness.OPEN or (is_in_time and watched.is_starved_since(began_ms)):
        taken = f"this machine took {watched.slack_since(began_ms)} ms of the time"
        return StepResult(Verdict.INCONCLUSIVE, f"not judged: {taken}; {found}{when}", from_ms, to_ms, detail)
    is_late = wait.timeliness is Timeliness.MISSED and wait.found is not None
    if not is_late and not all(reasons):
        return StepResult(
            Verdict.INCONCLUSIVE, f"depends on the order of timers: {found}{when}", from_ms, to_ms, detail
        )
    return StepResult(Verdict.VIOLATES, found + when, from_ms, to_ms, detail)


def _when(began_ms: int, from_ms: int | None, to_ms: int | None, now_ms: int) -> str:
    if from_ms is not None and from_ms == to_ms == now_ms:
        return f", at {_seconds(now_ms)}"
    if from_ms is not None and to_ms is not None:
        return f"; it held from {_seconds(from_ms)} to {_seconds(to_ms)}, and no longer at {_seconds(now_ms)}"
    if now_ms > began_ms:
        return f"; it never held from {_seconds(began_ms)} to {_seconds(now_ms)}"
    return ""


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
