"""A server as a child process, Java or not: started in its own process group, watched, and ended with the kit.

It has its own group, so that Ctrl-C reaches the kit first and the server is stopped in order; and a watchdog (see
`watchdog.py`), so that it ends even when the kit is killed. Its files are in its own home directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from distro_conformance import interruption
from distro_conformance.targets import watchdog
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import RealClock, eventually, gather_all

HOST = "127.0.0.1"
_WATCHDOG = str(Path(watchdog.__file__))


class ServerProcess:
    """One server at a base port. `start` and `stop` may alternate; the home lives until `close`."""

    def __init__(self, kind: str, port: int, members: Sequence[str]) -> None:
        self.port = port
        self.address = f"{HOST}:{port}"
        self.home = Path(tempfile.mkdtemp(prefix=f"distrocheck-{kind}-{port}-"))
        interruption.removes(self.home)
        self.console = self.home / "console.log"
        self._members = tuple(members)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The id of the running process, None when it is stopped."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def logs(self) -> Sequence[Path]:
        return (self.console,) if self.console.exists() else ()

    @property
    def output(self) -> str:
        """Its output since its last start; empty before the first start."""
        return self.console.read_text("utf-8", "replace") if self.console.exists() else ""

    async def start(self, *, until_loaded: bool = True) -> None:
        """Returns when it serves. Raises TargetError with its last output."""
        raise NotImplementedError

    async def change_members(self, addresses: Sequence[str]) -> None:
        """Set the members, from now on and for its next start."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End the group at once and wait until it has ended; a temporary home needs no orderly stop."""
        if self._process is not None:
            end_group(self._process.pid)
            await self._process.wait()
            self._process = None

    async def close(self) -> None:
        await self.stop()
        shutil.rmtree(self.home, ignore_errors=True)
        interruption.keeps(self.home)

    async def _run(
        self,
        command: Sequence[str],
        cwd: Path,
        within_s: float,
        *conditions: Callable[[], Awaitable[bool]],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Returns when the conditions hold, one after the other. On TargetError the process has ended.

        `environment` None: that of the kit.
        """
        with self.console.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *with_watchdog(*command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        try:
            for condition in conditions:
                await self._until(condition, within_s)
        except BaseException:
            await self.stop()
            raise

    async def _until(self, condition: Callable[[], Awaitable[bool]], within_s: float) -> None:
        async def holds() -> bool:
            if self.pid is None:
                raise self._failed("ended while it was starting")
            return await condition()

        if await eventually(holds, RealClock(), round(within_s * 1000), step_ms=100) is None:
            raise self._failed(f"is not ready after {within_s:.0f} s{self._awaited}")

    @property
    def _awaited(self) -> str:
        """The condition that does not hold, if it can be named."""
        return ""

    def _failed(self, what: str) -> TargetError:
        """The error with its last output."""
        raise NotImplementedError


@contextlib.asynccontextmanager
async def running(servers: Sequence[ServerProcess]) -> AsyncIterator[None]:
    """Run the servers inside; they start together, because each is loaded only once another one has answered it."""
    try:
        await gather_all(server.start() for server in servers)
        yield
    finally:
        await asyncio.gather(*(server.close() for server in servers))


@contextlib.asynccontextmanager
async def child(*command: str, cwd: Path | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that does one thing; the caller reads its output from `stdout`. It is ended on exit."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            end_group(process.pid)
            await process.wait()


def signal_group(pid: int | None, name: str, number: int) -> None:
    """Send a signal to the process group that `pid` leads. Raises TargetError when it has ended."""
    if pid is None:
        raise TargetError(f"{name} has ended")
    os.killpg(pid, number)


def with_watchdog(*command: str) -> tuple[str, ...]:
    """The command, wrapped so that it ends with this process."""
    return (sys.executable, "-I", "-S", _WATCHDOG, str(os.getpid()), *command)


def end_group(pid: int) -> None:
    """Kill the process group that `pid` leads, if it exists."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
