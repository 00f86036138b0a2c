"""The accuracy of the times of events inside a node that is observed from outside.

Two of these figures are constants, part of each bound: the delay of an idle server, and the delay until its messages
are observed. The other two are measured by the observer, outside of the node, and passed in unchanged; the response
time of the node is no part of them. Measured delays make more states possible; an observation that only a state within
them explains does not count as explained: the client is undecided (`client.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

DUE_WITHIN_MS = 10_000
"""Every timer of a node expires within the longest of its periods, that of a retry after a call that timed out."""


@dataclass(slots=True)
class Slack:
    """`at_leisure_late_ms`, `at_leisure_skew_ms`: both 0 where time is virtual, and then nothing is measured."""

    at_leisure_late_ms: int = 0
    at_leisure_skew_ms: int = 0
    taken_ms: int = 0
    """The machine's delay within `DUE_WITHIN_MS`."""
    peak_ms: int = 0
    """The machine's delay at a time."""

    @property
    def late_ms(self) -> int:
        """The delay of an event after it is due."""
        return self.at_leisure_late_ms + self.taken_ms

    @property
    def skew_ms(self) -> int:
        """The delay until a message that was sent before an event is observed."""
        return self.at_leisure_skew_ms + self.peak_ms

    @property
    def is_starved(self) -> bool:
        """The machine took more than half of the time. Delays of several threads then add up, more than is measured."""
        return 2 * self.taken_ms > DUE_WITHIN_MS

    def measure(self, taken_ms: int, peak_ms: int) -> None:
        if self.at_leisure_late_ms or self.at_leisure_skew_ms:
            self.taken_ms, self.peak_ms = taken_ms, peak_ms
