"""One running SDK program: commands in, JSON lines out (programs/README.md is the contract).

It gets a home of its own, since every SDK keeps a cache and logs there, and one program must not see what another one
remembers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from distro_conformance.node.player import Host
from distro_conformance.targets.server_process import end_group, with_watchdog
from distro_conformance.verdict import KitError
from distro_interop.sdks.listing import Listing, listing
from distro_interop.sdks.registry import Sdk

START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 20.0
_CONSOLE_CHARACTERS = 300


class ProgramError(KitError):
    """The SDK answered with an error, not at all, or its program ended."""


class SdkProgram:
    """Use `await SdkProgram.start(...)`; `kill` and `close` both leave nothing behind."""

    def __init__(self, sdk: Sdk, process: asyncio.subprocess.Process, home: Path) -> None:
        self.sdk, self.pid = sdk, process.pid
        self._process, self._home = process, home
        self._pushes: list[tuple[str, Listing]] = []
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._pushed = asyncio.Condition()
        self._reader = asyncio.create_task(self._read(), name=f"stdout of the SDK program {sdk.name}")

    @classmethod
    async def start(cls, sdk: Sdk, place: Path, servers: Sequence[str], credentials: Sequence[str] = ()) -> Self:
        """Returns when the SDK is ready. `place` is where the program was built, `servers` are main addresses,
        `credentials` the options of the contract that name a user."""
        home = Path(tempfile.mkdtemp(prefix=f"distrocheck-sdk-{sdk.name}-"))
        words = {"built": str(place), "home": str(home)}
        command = [word.format_map(words) for word in sdk.command]
        with (home / "console.txt").open("wb") as console:
            process = await asyncio.create_subprocess_exec(
                *with_watchdog(*command, "--server", ",".join(servers), *credentials),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=console,
                env=_environment(sdk, words, home),
                start_new_session=True,
            )
        program = cls(sdk, process, home)
        try:
            await program._answer(START_TIMEOUT_S, "start")
        except BaseException:
            await program.kill()
            raise
        return program

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def ask(self, *words: object) -> dict[str, Any]:
        """One command; returns the SDK's answer. Raises ProgramError when it is an error or does not come."""
        command = " ".join(map(str, words))
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # it ended: there will be no answer
            self._process.stdin.write(f"{command}\n".encode())
            await self._process.stdin.drain()
        return await self._answer(ANSWER_TIMEOUT_S, command)

    async def query(self, service: str) -> Listing:
        return _hosts(await self.ask("query", service))

    def last_push(self, service: str) -> Listing | None:
        """The last list that the SDK reported to its subscriber."""
        return next((hosts for name, hosts in reversed(self._pushes) if name == service), None)

    async def pushed(self, service: str, is_meant: Callable[[Listing], bool], within_s: float) -> bool:
        """Wait until the SDK reports such a list to its subscriber; False when it did not in time."""

        def is_there() -> bool:
            last = self.last_push(service)
            return last is not None and is_meant(last)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._pushed:
                await self._pushed.wait_for(is_there)
        return is_there()

    async def kill(self) -> None:
        """SIGKILL: the SDK can send nothing more."""
        end_group(self.pid)
        await self._process.wait()
        await self._reader
        shutil.rmtree(self._home, ignore_errors=True)

    async def close(self) -> None:
        """Let the SDK shut down, and make sure that it has."""
        try:
            if self.is_running:
                await self.ask("close")
        finally:
            await self.kill()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            try:
                line = json.loads(raw)
            except ValueError:  # an SDK that prints
                continue
            if "pushed" in line:
                async with self._pushed:
                    self._pushes.append((line["pushed"], _hosts(line)))
                    self._pushed.notify_all()
            else:
                self._answers.put_nowait(line)
        self._answers.put_nowait({"error": "the program ended"})

    async def _answer(self, within_s: float, command: str) -> dict[str, Any]:
        started = time.monotonic()
        try:
            async with asyncio.timeout(within_s):
                answer = await self._answers.get()
        except TimeoutError:
            raise ProgramError(f"{command}: no answer in {time.monotonic() - started:.0f} s") from None
        if "error" in answer:
            console = (self._home / "console.txt").read_text("utf-8", "replace")[-_CONSOLE_CHARACTERS:]
            said = "" if self.is_running else f"; it wrote: {' '.join(console.split())}"
            raise ProgramError(f"{command}: {answer['error']}{said}")
        return answer


def _environment(sdk: Sdk, words: Mapping[str, str], home: Path) -> dict[str, str]:
    """The kit's environment without variables that redirect the SDK: home, proxies, Python modules of the kit."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.lower().endswith("_proxy") and not name.upper().startswith("NACOS")
    }
    own = {name: value.format_map(words) for name, value in sdk.environment.items()}
    return {**inherited, "HOME": str(home), **own}


def _hosts(line: Mapping[str, Any]) -> Listing:
    return listing(
        Host(h["ip"], h["port"], h["healthy"], h["metadata"] or {}, h["weight"], h["cluster"])
        for h in line["instances"] or ()
    )
