"""Processes that a bench starts or finds, and the resources that they use."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SERVER = Path(__file__).with_name("node_server.py")
MIB = 1024
"""`ps` counts in KiB."""


class Server:
    """A process of `node_server.py`."""

    def __init__(self, process: asyncio.subprocess.Process, ready_s: float, reported: dict[str, float]) -> None:
        self._process = process
        self.ready_s, self.reported = ready_s, reported
        self._watched: list[list[object]] | None = None

    @classmethod
    async def start(cls, *arguments: str) -> Server:
        began_s = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(SERVER), *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**28
        )
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise SystemExit(f"node_server.py {' '.join(arguments)} ended at its start; its message is above")
        return cls(process, time.perf_counter() - began_s, json.loads(line))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def mib(self) -> float:
        return resident_mib([self._process.pid])

    async def end(self) -> list[list[object]]:
        """What it watched. A second end gives the same again."""
        if self._watched is None:
            out, _ = await self._process.communicate(b"")  # it waits for the end of its input
            self._watched = json.loads(out or b"[]")
        return self._watched


def resident_mib(pids: Sequence[int]) -> float:
    """Resident memory of these processes and all that they started."""
    rows = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True).stdout
    processes = {int(pid): (int(parent), int(rss)) for pid, parent, rss in map(str.split, rows.splitlines())}
    wanted = set(pids)
    while more := {pid for pid, (parent, _) in processes.items() if parent in wanted} - wanted:
        wanted |= more
    return sum(processes[pid][1] for pid in wanted if pid in processes) / MIB


def cpu_s(pids: Sequence[int]) -> float:
    """Processor time of these processes so far, without those that they started. The scheduler counts nanoseconds."""
    threads = (thread for pid in pids for thread in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
