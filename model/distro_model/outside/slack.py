"""How well the times are known at which things happen inside a node that is seen from outside.

Two of these figures are constants, part of each bound: what a server at leisure is late, and by how much later what it
sent is observed. The other two are measured by the observer, outside of the node, and passed in as they are; how
long the node takes to answer is no part of them. What was measured makes more states possible; an observation that only
a state within it explains is no explained one: the client is left open (`client.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Slack:
    """`at_leisure_late_ms`, `at_leisure_skew_ms`: both 0 where time is virtual, and then nothing is measured."""

    at_leisure_late_ms: int = 0
    at_leisure_skew_ms: int = 0
    taken_ms: int = 0
    """Of the time in which something becomes due the machine took so much."""
    peak_ms: int = 0
    """And so much at a time."""

    @property
    def late_ms(self) -> int:
        """So much later than it is due something may happen."""
        return self.at_leisure_late_ms + self.taken_ms

    @property
    def skew_ms(self) -> int:
        """So much later may be observed what was sent before something happened."""
        return self.at_leisure_skew_ms + self.peak_ms

    def measure(self, taken_ms: int, peak_ms: int) -> None:
        if self.at_leisure_late_ms or self.at_leisure_skew_ms:
            self.taken_ms, self.peak_ms = taken_ms, peak_ms
