"""What a search or a tour found, as a finding: nodes beside the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from distro_conformance.findings import Finding, Judgement
from distro_conformance.verdict import Verdict
from distro_conformance.walks.hunt import FoundFailure, Hunt

LOCKSTEP = "LOCKSTEP"
_LOCKSTEP_TEXT = "After every action the nodes hold and say what the model allows."


class Walks(Protocol):
    """A hunt, or tours."""

    @property
    def failure(self) -> FoundFailure | None: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def steps(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def finding_of_hunt(hunt: Hunt) -> Finding:
    options = hunt.options
    mutant = f" --mutant {options.mutant}" if options.mutant else ""
    again = f"distrocheck test cluster --profile {options.profile}{mutant} --seed {options.seed}"
    return finding_of_walks(hunt, again)


def finding_of_walks(walks: Walks, again: str, about: str = LOCKSTEP) -> Finding:
    finding = Finding(
        about=about,
        by="lockstep",
        judgement=Judgement.CONFORMS,
        text=_LOCKSTEP_TEXT,
        message=f"{walks.steps} steps",
        again=again,
        seconds=walks.seconds,
        details={"steps": walks.steps},
    )
    return finding if walks.failure is None else _failed(finding, walks.failure, walks.verdict)


def _failed(finding: Finding, failure: FoundFailure, verdict: Verdict) -> Finding:
    lines = failure.scenario.render().splitlines()
    judgement = Judgement.VIOLATES if verdict is Verdict.VIOLATES else Judgement.NOT_JUDGED
    return replace(
        finding,
        judgement=judgement,
        message=failure.message,
        evidence=tuple(lines),
        details={"steps": failure.steps, "steps_until_found": failure.steps_until_found},
    )
