"""A Java child process: started in a process group of its own, watched, and gone when we are gone.

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


async def start_leashed(
    command: Sequence[str], console: Path, cwd: Path, environment: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Start a command that ends with us; its output goes to the file `console`. `environment` None: ours."""
    with console.open("wb") as output:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _LEASH, str(os.getpid()), *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )


def end_group(pid: int) -> None:
    """Kill the process group that `pid` leads; nothing to do when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


async def stop(process: asyncio.subprocess.Process) -> None:
    """End the group at once and wait until it is gone; a server with a throw-away home has nothing to put in order."""
    end_group(process.pid)
    await process.wait()
