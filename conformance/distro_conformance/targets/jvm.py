"""A server as a child process, Java or not: started in a process group of its own, watched, and gone when we are gone.

Its own group, so that Ctrl-C reaches us first and the server is stopped in order; a leash (see `leash.py`), so that it
does not survive us when there is no order at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from distro_conformance.targets import leash
from distro_conformance.verdict import TargetError

_LEASH = str(Path(leash.__file__))


def find_java() -> str:
    """JAVA_HOME's java, else the one on the path. Raises TargetError when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java") if home else "java") or shutil.which("java")
    if java is None:
        raise TargetError("no Java found: install Java 17 or newer, or point JAVA_HOME at it")
    return java


class Leashed:
    """One command at a time that ends with us. What it wrote since it was started last is in the file `console`."""

    def __init__(self, console: Path) -> None:
        self.console = console
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Of the running process, None when it is stopped."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def said(self) -> str:
        """All of it; empty before the first start."""
        return self.console.read_text("utf-8", "replace") if self.console.exists() else ""

    async def start(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None) -> None:
        """`environment` None: ours."""
        with self.console.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _LEASH, str(os.getpid()), *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )

    async def stop(self) -> None:
        """End the group at once and wait until it is gone; a throw-away home has nothing to put in order."""
        if self._process is not None:
            end_group(self._process.pid)
            await self._process.wait()
            self._process = None


def end_group(pid: int) -> None:
    """Kill the process group that `pid` leads; nothing to do when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
