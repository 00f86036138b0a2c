"""What Distro has done on this node since it began, in numbers: `DistroRecord`.

The counters of the metrics; they only grow. Source: class DistroRecord.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DistroRecord:
    """A request that was not sent, because its target is not UP, has failed as well."""

    sync_successes: int = 0
    sync_failures: int = 0
    verifies: int = 0
    verify_failures: int = 0
    verify_rounds_late: int = 0
    """Rounds to one member that had to wait for the end of the one before."""
    load_ms: int | None = None
    """From the start of the node to the end of its initial load; None until then."""

    def synced(self, *, is_success: bool) -> None:
        """An attempt to send a CHANGE or DELETE has come to its end."""
        if is_success:
            self.sync_successes += 1
        else:
            self.sync_failures += 1

    def verified(self, *, is_success: bool) -> None:
        self.verifies += 1
        if not is_success:
            self.verify_failures += 1
