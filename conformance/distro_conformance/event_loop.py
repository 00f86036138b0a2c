"""The event loop that gRPC runs on: uvloop where the extra `fast` has installed it, else Python's own.

Many small calls are made a quarter faster on uvloop; nothing else depends on it, and it is 14 MB that a cluster in
somebody's tests can do without (nor is there one for Windows).
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
    """That of everything that is driven synchronously: Hypothesis, a replay, a fixture. One for the whole process: gRPC
    keeps serving every loop that it has ever met, closed ones too."""
    return new_event_loop()
