"""What Distro has done on this node since it began, in numbers: `DistroRecord`.

The counters of the metrics; they only grow. What is logged is counted with its line (distro_log.py). Source: class
DistroRecord.
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
