"""What may become of one Distro request on a link, and for which request that is meant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from distro_conformance.wire.messages import DistroCall


class Fate(StrEnum):
    """What becomes of one request. A link names it as a scenario does."""

    DELIVER = "deliver"
    DROP = "drop"
    SWALLOW = "swallow"
    LOSE_REPLY = "lose-reply"
    GARBLE = "garble"
    MISTYPE = "mistype"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    ANSWER_LATE = "answer-late"


_SYNCS = frozenset({"CHANGE", "ADD", "DELETE"})
_MEETS = {Fate.SWALLOW: _SYNCS | {"VERIFY"}, **dict.fromkeys((Fate.GARBLE, Fate.MISTYPE), _SYNCS)}
"""Operations whose reply says nothing but that they arrived, so that somebody else can answer; the model garbles the
answers of syncs only."""


@dataclass(frozen=True, slots=True)
class Armed:
    """A fault that waits for its call, or what is said of one that is held; None matches any operation, any client."""

    fate: Fate
    operation: str | None
    client: str | None

    def matches(self, call: DistroCall) -> bool:
        if call.operation not in _MEETS.get(self.fate, (call.operation,)):
            return False
        return self.operation in (None, call.operation) and self.client in (None, call.client)

    def __str__(self) -> str:
        return f"{self.operation or 'any'} {self.client or ''}".rstrip()
