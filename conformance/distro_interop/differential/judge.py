"""The differences of two logs that are not listed, and the verdict on the reference node.

A difference that is not listed is a violation, and so is a listed one that is gone. Where the target was played twice,
both runs have to show it: a difference in one of two runs is chance on the target's side, reported without a verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from distro_conformance.findings.finding import MUST, SHOULD, Finding, Judgement, command
from distro_conformance.plain import fields_of
from distro_interop.differential.compare import Difference, differences
from distro_interop.differential.exchange import Exchange
from distro_interop.differential.listed import DEVIATIONS, VARIES, listing
from distro_interop.differential.scripts.registry import Script

BY = "differential"
Exchanges = Sequence[Exchange]
Log = Mapping[str, Exchanges]
"""By script, normalised."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One run of the target compared with the reference node. `gone`: listed for a played script, and not found."""

    exchanges: int
    unexplained: tuple[Difference, ...]
    explained: tuple[tuple[str, Difference], ...]
    """With the deviation."""
    gone: tuple[Difference, ...]

    @property
    def otherwise(self) -> frozenset[tuple[str, str, str]]:
        """The places that differ from the list: script, step, field."""
        return frozenset(each.key for each in (*self.unexplained, *self.gone))

    @property
    def scripts(self) -> frozenset[str]:
        return frozenset(script for script, _, _ in self.otherwise)


def compared(real: Log, reference: Log, profile: str) -> Compared:
    """`profile`: whose listed differences count."""
    found = {each.key: each for name in real for each in differences(name, real[name], reference.get(name, ()))}
    listed = listing(profile)
    explained = {key: listed[key] for key, each in found.items() if key in listed and listed[key].explains(each)}
    return Compared(
        sum(map(len, real.values())),
        tuple(each for key, each in found.items() if key not in explained),
        tuple((each.deviation, found[key]) for key, each in explained.items()),
        tuple(
            each.difference
            for key, each in listed.items()
            if key[0] in real and key not in found and each.difference.real != VARIES
        ),
    )


def judged(
    runs: Sequence[Compared],
    scripts: Sequence[Script],
    target: str,
    profile: str | None = None,
    mutant: str | None = None,
) -> Iterator[Finding]:
    """`runs`: of the target, one or two. `profile` and `mutant`: of the reference node, where they were named."""
    otherwise = {each.key: each for run in runs for each in (*run.unexplained, *run.gone)}
    shown = Counter(key for run in runs for key in run.otherwise)
    for script in scripts:
        asked = ("--target", target, "--script", script.id)
        again = command("test differential", *asked, profile=profile, mutant=mutant)
        about = Finding(about=script.id, by=BY, judgement=Judgement.CONFORMS, text=script.text, again=again)
        own = [key for key in otherwise if key[0] == script.id]
        for key in own:
            is_gone = not any(each.key == key for run in runs for each in run.unexplained)
            yield _of(otherwise[key], about, times=shown[key], of=len(runs), is_gone=is_gone)
        if all(shown[key] < len(runs) for key in own):
            yield about
    explained = Counter(deviation for deviation, _ in runs[-1].explained)
    for deviation, times in sorted(explained.items()):
        yield Finding(
            about=deviation,
            by=BY,
            judgement=Judgement.KNOWN,
            text=DEVIATIONS[deviation],
            message=f"{times} differences",
            known=deviation,
            times=times,
        )


def _of(difference: Difference, about: Finding, *, times: int, of: int, is_gone: bool) -> Finding:
    message = f"listed, and gone: {difference}" if is_gone else str(difference)
    if times < of:
        message = f"in {times} of {of} runs of the target: {message}"
    return replace(
        about,
        judgement=Judgement.VIOLATES if times == of else Judgement.NOT_JUDGED,
        level=MUST if times == of else SHOULD,
        message=message,
        expected="" if is_gone else str(difference.real),
        observed={} if is_gone else {"ours": str(difference.ours)},
        details=fields_of(difference, seen=times, of=of, gone=is_gone),
    )
