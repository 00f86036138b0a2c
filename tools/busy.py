"""Programs that want a core each, to measure on a busy machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


def spin(parent: int) -> None:
    """Until the parent process is gone, however it ended."""
    while os.getppid() == parent:
        for _ in range(100_000):
            pass


@contextmanager
def others(count: int) -> Iterator[None]:
    """So many of them."""
    with ExitStack() as stack:
        for _ in range(count):
            busy = multiprocessing.get_context("spawn").Process(target=spin, args=(os.getpid(),), daemon=True)
            busy.start()
            stack.callback(busy.kill)
        yield
