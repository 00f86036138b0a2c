"""The event loop of everything that is driven synchronously: Hypothesis, a replay, a fixture."""

from __future__ import annotations

import asyncio
from functools import cache

from distro_conformance.event_loop import new_event_loop


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """One for the whole process: gRPC keeps serving every loop that it has ever met, closed ones too."""
    return new_event_loop()
