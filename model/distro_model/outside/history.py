"""What was observed of each client lately, and of the members: the evidence of a divergence, in order of time.

Every observation is noted, and few are ever shown: words are kept as values, and formatted when they are.
"""

from __future__ import annotations

from collections import deque

from distro_model.clock.cluster import View
from distro_model.outside.unexplained import view_text

OF_CLIENT, OF_MEMBERS = 24, 16
"""The number of lines that are kept of one client, and of the members together."""

_Line = tuple[int, tuple[object, ...]]


class History:
    def __init__(self) -> None:
        self._lines: dict[str | None, deque[_Line]] = {}

    def note(self, client: str | None, at_ms: int, *words: object) -> None:
        """`client` None: about a member, which concerns every client. The same words in succession are one line. A word
        may be the view of a client."""
        lines = self._lines.setdefault(client, deque(maxlen=OF_MEMBERS if client is None else OF_CLIENT))
        if not lines or lines[-1][1] != words:
            lines.append((at_ms, words))

    def of(self, client: str | None) -> tuple[str, ...]:
        """The last lines about the client and about the members."""
        of_members = self._lines.get(None, ())
        of_client = () if client is None else self._lines.get(client, ())
        both = sorted((*of_members, *of_client), key=lambda line: line[0])
        return tuple(f"{at_ms} ms: {' '.join(map(_text, words))}" for at_ms, words in both)


def _text(word: object) -> str:
    return view_text(word) if isinstance(word, View) else "unknown" if word is None else str(word)
