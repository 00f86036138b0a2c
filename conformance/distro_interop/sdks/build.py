"""SDK programs, built once into the cache directory and started from there afterwards.

A build is named after everything it depends on, so that a change of the program or of a version is a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import shutil
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

from distro_conformance.targets.jars import cache_directory, made_for
from distro_conformance.targets.server_process import child
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import KitError
from distro_interop.sdks.registry import Sdk

_BUILD_TIMEOUT_S = 900.0
_LOCK_POLL_S = 0.2
_OUTPUT_CHARACTERS = 400


class SdkMissingError(KitError):
    """The SDK is unavailable on this machine: its tools are missing, or cannot fetch it. No finding about a node."""

    exit_code = 3


async def built(sdk: Sdk, on_progress: OnProgress) -> Path:
    """The directory with the runnable program. Raises SdkMissingError in one line."""
    if sdk.here is not None and find_spec(sdk.here[0]) is None:
        raise SdkMissingError(f"the SDK {sdk.name} is not installed; install it with: pip install '{sdk.here[1]}'")
    if not sdk.command[0].startswith("{built}"):
        _tool(sdk, sdk.command[0])
    directory = cache_directory() / "sdks" / f"{sdk.name}-{_fingerprint(sdk)}"
    if directory.is_dir():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    async with _alone(directory.parent.with_suffix(".lock")):
        if not directory.is_dir():
            await _build(sdk, directory, on_progress)
    return directory


@contextlib.asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[None]:
    """One build at a time on this machine: Maven's repository is not made for two."""
    with path.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
        yield


async def _build(sdk: Sdk, directory: Path, on_progress: OnProgress) -> None:
    if sdk.build:
        on_progress(f"building the SDK program {sdk.name}; only the first start takes this")
    with made_for(directory) as place:
        shutil.copytree(sdk.sources, place)
        for command in sdk.build:
            await _run(sdk, command, place)


def _fingerprint(sdk: Sdk) -> str:
    content = hashlib.sha256(repr(sdk.build).encode())
    for path in sorted(path for path in sdk.sources.rglob("*") if path.is_file()):
        content.update(str(path.relative_to(sdk.sources)).encode() + b"\0" + path.read_bytes())
    return content.hexdigest()[:12]


def _tool(sdk: Sdk, name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SdkMissingError(f"the SDK {sdk.name} needs {name!r}, which is not installed")
    return found


async def _run(sdk: Sdk, command: tuple[str, ...], place: Path) -> None:
    tool = _tool(sdk, command[0])
    try:
        async with child(tool, *command[1:], cwd=place) as process, asyncio.timeout(_BUILD_TIMEOUT_S):
            said, _ = await process.communicate()
    except TimeoutError:
        raise SdkMissingError(f"the SDK {sdk.name} was not built in {_BUILD_TIMEOUT_S:.0f} s") from None
    if process.returncode != 0:
        problem = " ".join(said.decode(errors="replace").split())[:_OUTPUT_CHARACTERS]
        raise SdkMissingError(f"the SDK {sdk.name} cannot be built: '{' '.join(command)}' says: {problem}")
