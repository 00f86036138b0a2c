"""The event loop that gRPC runs on: uvloop where the extra `fast` has installed it, else Python's own.

Many small calls are a quarter faster on uvloop; nothing else depends on it. It takes 14 MB, which a cluster in a test
suite does not need, and it does not exist for Windows.
"""

from __future__ import annotations

import asyncio
import importlib.util
from functools import cache


def new_event_loop() -> asyncio.AbstractEventLoop:
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415

    return uvloop.new_event_loop()


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """The loop for all synchronous callers: Hypothesis, a replay, a fixture. There is one for the whole process: gRPC
    keeps serving every loop that it has ever used, closed ones too."""
    return new_event_loop()
