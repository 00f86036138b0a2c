"""How a check ends that is not met: violated, not judged, or beyond what the kit can do with this server.

Apart from `observer`, since played members raise these too.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_conformance.findings.finding import NOTHING

Observed = Mapping[str, object]


class ViolationError(Exception):
    """The node does not do what the requirement says: the expectation and the observation, with
    the named values by which symptoms of known failures are recognized. `found`: what came too late."""

    def __init__(
        self, message: str, *, expected: str, observed: Observed = NOTHING, found: object | None = None
    ) -> None:
        super().__init__(message)
        self.expected = expected
        self.observed = observed
        self.found = found


class NotJudgedError(Exception):
    """The check could not be carried out; the message says what was missing. `found`: what came late, by no more than
    the machine took."""

    def __init__(self, message: str, *, found: object | None = None) -> None:
        super().__init__(message)
        self.found = found


class BeyondError(NotJudgedError):
    """The kit cannot do this with the server, since it did not start it."""


class LacksError(BeyondError):
    """The server lacks the feature that is to be checked."""
