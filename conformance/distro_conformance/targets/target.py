"""What the kit needs of a node under test, whatever it is; and the table of the kinds there are.

Deliberately little, since everything else is said over the wire: start with a member list, stop, where it listens, and
whose clock counts. A kind of target is one file with a class and one entry in `_KINDS`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from distro_conformance.verdict import UsageError

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

    async def client_gone(self, client_id: str) -> None:
        """Until the node has noticed that this client's connection ended, where the target can tell."""
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


def resolve_target(spec: str, profile: str | None = None, mutant: str | None = None) -> Target:
    """The target that a `--target` text names. Nothing is started yet.

    `profile` None means the target's own: `strict` for `embedded`, the release for a real server.
    Raises UsageError when the text, the profile or the mutant is unknown, or does not go with the target.
    """
    kind, _, rest = spec.partition(":")
    make = _KINDS.get(kind)
    if make is None:
        raise UsageError(f"no target {spec!r}; known: {', '.join(known_targets())}")
    return make(rest, profile, mutant)


def known_targets() -> tuple[str, ...]:
    """The forms that `resolve_target` understands, for messages and help texts."""
    return ("embedded", "nacos:VERSION", "nacos:DIRECTORY")


def _embedded(rest: str, profile: str | None, mutant: str | None) -> Target:
    from distro_conformance.targets.embedded import EmbeddedTarget  # noqa: PLC0415 - a real server needs no node of ours

    if rest:
        raise UsageError(f"the target embedded takes no argument, got {rest!r}")
    return EmbeddedTarget(profile or "strict", mutant)


def _nacos(rest: str, profile: str | None, mutant: str | None) -> Target:
    from distro_conformance.targets.nacos_target import NacosTarget  # noqa: PLC0415 - as above

    if mutant is not None:
        raise UsageError(f"the target nacos:{rest} has no mutants; they are built into the embedded node only")
    return NacosTarget(rest, profile)


_KINDS: dict[str, Callable[[str, str | None, str | None], Target]] = {"embedded": _embedded, "nacos": _nacos}
