"""What the kit needs of a node under test, whatever it is.

Deliberately little, since everything else is said over the wire: start with a member list, stop, where it listens, and
whose clock counts. A kind of target is one file with a class and one entry in `registry.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

OnProgress = Callable[[str], None]


class TargetClock(Protocol):
    """Protocol time. On a real server it passes by itself, on an embedded node when somebody lets it pass."""

    slack_ms: int
    """Added to every bound: what a busy machine may cost. 0 where time is virtual."""

    def now_ms(self) -> int: ...

    async def pass_ms(self, ms: int) -> None:
        """Returns when that much time has passed and, where the target can tell, the node has done what was due."""
        ...


class Target(Protocol):
    """One node. `profile` names the behaviour that is expected of it: `nacos-2.2.4`, `strict`, …"""

    kind: str
    spec: str
    profile: str

    @property
    def address(self) -> str:
        """The node's name in every message, host:port."""
        ...

    @property
    def clock(self) -> TargetClock: ...

    async def start(self, other_members: Sequence[str], on_progress: OnProgress) -> None:
        """Returns when the node serves. Raises TargetError; `stop` must be called all the same."""
        ...

    async def stop(self) -> None:
        """Leaves nothing behind; safe to call twice, and after a start that failed."""
        ...


class RealClock:
    """Milliseconds since it was made."""

    def __init__(self, slack_ms: int) -> None:
        self.slack_ms = slack_ms
        self._start_s = time.monotonic()

    def now_ms(self) -> int:
        return round((time.monotonic() - self._start_s) * 1000)

    async def pass_ms(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
