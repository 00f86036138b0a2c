"""Two logs of one script, side by side: where they differ, down to the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distro_interop.differential.exchange import Exchange

MISSING = "{missing}"
"""Stands where one side has nothing at that path."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`path` leads to the field in the answer: `serviceInfo.hosts[0].port`."""

    script: str
    step: str
    path: str
    real: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.script} / {self.step} / {self.path}: real {self.real!r}, ours {self.ours!r}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Where it is."""
        return self.script, self.step, self.path


def differences(script: str, real: Sequence[Exchange], ours: Sequence[Exchange]) -> Iterator[Difference]:
    """Steps are matched by what they are called: one that only one side has is a difference too."""
    of_ours = {exchange.step: exchange.answer for exchange in ours}
    of_real = {exchange.step: exchange.answer for exchange in real}
    for step in dict.fromkeys([*of_real, *of_ours]):
        theirs, own = of_real.get(step, MISSING), of_ours.get(step, MISSING)
        if _kind(theirs) != _kind(own):
            yield Difference(script, step, "", theirs, own)
        else:
            yield from (Difference(script, step, *unequal) for unequal in _unequal("", theirs, own))


def _kind(answer: Any) -> Any:
    """A response of another type or another HTTP status differs as a whole, not field by field."""
    if not isinstance(answer, Mapping):
        return None
    return answer.get("status"), None if "status" in answer else answer.get("type")


def _unequal(path: str, real: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    """1 and 1.0 differ: readers of JSON that have types tell them apart, and so do booleans."""
    if isinstance(real, Mapping) and isinstance(ours, Mapping):
        for key in dict.fromkeys([*real, *ours]):
            below = f"{path}.{key}" if path else str(key)
            yield from _unequal(below, real.get(key, MISSING), ours.get(key, MISSING))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (theirs, own) in enumerate(zip(real, ours, strict=True)):
            yield from _unequal(f"{path}[{index}]", theirs, own)
    elif type(real) is not type(ours) or real != ours:
        yield path, real, ours
