"""The execute task engine: takes over what is due and starts it in the order in which it came.

Java has a FIFO queue for each of several workers, chosen by the hash of the key. A worker there only hands the request
to the transport, which is asynchronous; two requests for one key may be under way together and be answered in any order
(wire-protocol.md section 6.2). Started in order on one event loop, with nothing waiting for anything, is the same.
"""

from __future__ import annotations

from collections.abc import Coroutine

from distro_impl.clocks.clock import Clock


class ExecuteTaskEngine:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def add_task(self, name: str, task: Coroutine[None, None, None]) -> None:
        self._clock.spawn(task, name)
