"""The time limits of the actions of a node, by release: the windows in which the kit waits for them."""

from __future__ import annotations

from dataclasses import dataclass

from distro_conformance.release import release_of

_TICK_MS = 100


@dataclass(frozen=True, slots=True)
class Timings:
    """The time limits of a node's actions, with the tick of the delay engine. Source: docs/protocol #sync-merge,
    #releases-matrix."""

    sync_ms: int
    resync_ms: int
    retry_ms: int  # from a failed sync to its repetition
    verify_ms: int
    view_ms: int  # until a query shows a change (docs/real-servers.md#a-played-member)
    push_ms: int
    lease_ms: int
    clean_ms: int = 5000  # between two runs of the cleaner
    call_ms: int = 3000  # the time-out of a member's call
    idle_ms: int = 20_000  # until a silent connection gets a detection

    @classmethod
    def of(cls, profile: str, lease_ms: int | None = None) -> Timings:
        """`lease_ms`: the lease of the target if it differs from the default."""
        release = release_of(profile)
        delay_ms, retry_ms = (2000, 5000) if release is not None and release < (2, 2, 0) else (1000, 3000)
        documented_ms = 30_000 if release is not None and release < (2, 0, 3) else 180_000
        return cls(
            sync_ms=delay_ms + _TICK_MS,
            resync_ms=_TICK_MS,
            retry_ms=retry_ms + _TICK_MS,
            verify_ms=5000,
            view_ms=600,
            push_ms=500 + _TICK_MS,
            lease_ms=lease_ms or documented_ms,
        )
