"""The differences of two logs of one script, down to the field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distro_interop.differential.exchange import Exchange

MISSING = "{missing}"
"""The value of a side that has no field at that path."""


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


def differences(script: str, real: Sequence[Exchange], reference: Sequence[Exchange]) -> Iterator[Difference]:
    """Steps are matched by name: a step that only one side has is a difference too."""
    of_reference = {exchange.step: exchange.answer for exchange in reference}
    of_real = {exchange.step: exchange.answer for exchange in real}
    for step in dict.fromkeys([*of_real, *of_reference]):
        answer, own = of_real.get(step, MISSING), of_reference.get(step, MISSING)
        if _kind(answer) != _kind(own):
            yield Difference(script, step, "", answer, own)
        else:
            yield from (Difference(script, step, *unequal) for unequal in _unequal("", answer, own))


def _kind(answer: Any) -> Any:
    """A response of another type or another HTTP status differs as a whole, not field by field."""
    if not isinstance(answer, Mapping):
        return None
    return answer.get("status"), None if "status" in answer else answer.get("type")


def _unequal(path: str, real: Any, reference: Any) -> Iterator[tuple[str, Any, Any]]:
    """1 and 1.0 differ, and 1 and true: readers of JSON with types distinguish them."""
    if isinstance(real, Mapping) and isinstance(reference, Mapping):
        for key in dict.fromkeys([*real, *reference]):
            below = f"{path}.{key}" if path else str(key)
            yield from _unequal(below, real.get(key, MISSING), reference.get(key, MISSING))
    elif isinstance(real, list) and isinstance(reference, list) and len(real) == len(reference):
        for index, (answer, own) in enumerate(zip(real, reference, strict=True)):
            yield from _unequal(f"{path}[{index}]", answer, own)
    elif type(real) is not type(reference) or real != reference:
        yield path, real, reference
