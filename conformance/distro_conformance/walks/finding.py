"""The result of a search or a tour, as a finding."""

from __future__ import annotations

from dataclasses import replace

from distro_conformance.commands import command
from distro_conformance.findings import Finding, Judgement
from distro_conformance.verdict import Verdict
from distro_conformance.walks.result import FoundFailure, Hunt
from distro_model.defects import link_of
from distro_model.outside import Unexplained
from distro_model.possible import Rejection
from distro_model.rules.rule import RULES

_LOCKSTEP_TEXT = "After every action the nodes hold and send what the model allows."
_AGREE_TEXT = "At the end of each run, when its faults are healed, all nodes come to hold the same."
_MACHINE_TEXT = "Whatever members and clients do, the node sends, answers and holds what the model allows."


def finding_of(hunt: Hunt, again: str | None = None) -> Finding:
    """`again`: the command that judges it again, if it is not the same search."""
    options = hunt.options
    played = ("--played",) if options.among_played else ()
    seeded = command("test cluster", *played, "--seed", options.seed, profile=options.profile, mutant=options.mutant)
    finding = Finding(
        about=options.name.upper(),
        by="machine" if options.among_played else "lockstep",
        judgement=Judgement.CONFORMS,
        text=_MACHINE_TEXT if options.among_played else _AGREE_TEXT if options.is_elsewhere else _LOCKSTEP_TEXT,
        message=f"{hunt.steps} steps",
        link=link_of(options.mutant),
        again=seeded if again is None else again,
        seconds=hunt.seconds,
        details={"steps": hunt.steps},
    )
    if hunt.failure is not None:
        return _failed(finding, hunt.failure, hunt.verdict)
    if hunt.runs_known:
        bugs = sorted({each.known for each in hunt.checked if each.known})
        message = f"known, {', '.join(bugs)}: in {hunt.runs_known} of {hunt.runs} runs the nodes do not come to agree"
        return replace(finding, judgement=Judgement.KNOWN, known=bugs[0], link=link_of(bugs[0]), message=message)
    if hunt.verdict is Verdict.CONFORMS:
        return finding
    why = f"nothing was asked of the nodes in {hunt.steps} steps: give it more time (--seconds)"
    if open_runs := hunt.not_judged["runs_open"]:
        why = f"in {open_runs} of {hunt.runs} runs this machine took too much of the time"
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
