"""An event loop in a thread of its own, on which nodes run while a test does something else.

A test may be synchronous or have a loop of its own: a call blocks in the first case and can be awaited in the second.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine, Generator
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from distro_conformance.event_loop import event_loop

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = event_loop()
    loop.set_exception_handler(_ignore_wake_up)
    threading.Thread(target=loop.run_forever, name="distrocheck", daemon=True).start()
    return loop


class Pending(Awaitable[T]):
    """What is under way, and whether its result was awaited."""

    def __init__(self, future: Future[T]) -> None:
        self._future = future
        self.is_awaited = False

    def __await__(self) -> Generator[Any, None, T]:
        self.is_awaited = True
        return asyncio.wrap_future(self._future).__await__()


def do(coroutine: Coroutine[Any, Any, T]) -> T | Pending[T]:
    """The result; within a running event loop an awaitable of it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    return Pending(future) if _is_within_a_loop() else future.result()


def _is_within_a_loop() -> bool:
    """Asked by itself, so that what fails in a test does not begin with the answer."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def do_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs it on the background loop and returns its result; blocks the calling thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()


def _ignore_wake_up(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Two loops share gRPC's one wake-up socket, and each may find that the other has already read it."""
    if not isinstance(context.get("exception"), BlockingIOError):
        loop.default_exception_handler(context)
