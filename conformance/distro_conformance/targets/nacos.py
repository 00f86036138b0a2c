"""A real Nacos server on loopback: started as described in docs/real-servers.md#starting, stopped and cleaned up.

`nacos_home.py` has its configuration; this module has its life cycle, and the target that makes such servers. A server
writes all its files into its own home directory, which is removed at the end and kept when the start fails.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc.aio

from distro_conformance import interruption
from distro_conformance.release import Span
from distro_conformance.targets.direct import NO_HEADERS, get
from distro_conformance.targets.jars import RUNNABLE, jars_in, jars_of
from distro_conformance.targets.mutants import Fired, agent_options, no_mutant, real_mutants
from distro_conformance.targets.nacos_home import LEASE_KEY, server_command, write_home
from distro_conformance.targets.ports import SDK_OFFSET, require_free
from distro_conformance.targets.releases import NacosRelease, nacos_release, release_like
from distro_conformance.targets.server_process import HOST, ServerProcess
from distro_conformance.targets.target import OnProgress, Place, Target
from distro_conformance.verdict import TargetError, UsageError
from distro_conformance.wire.connection import Connection

NODES_PATHS = ("/nacos/v1/core/cluster/nodes", "/nacos/v3/admin/core/cluster/node/list")
"""The paths of the member list: up to 2.5, and from 3.0 on (3.x answers 410 on the first)."""
_EXCEPTION = re.compile(r'(?:Caused by: |Exception in thread "[^"]*" )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\b')
_INTERRUPTED = "java.lang.InterruptedException"
READY_WITHIN_S = 300.0
"""A start takes 5 s on an idle machine, and minutes on a busy one."""


def _silent(_: str) -> None: ...


class NacosServer(ServerProcess):
    """The home directory is kept when a start failed, so that the user can read its logs."""

    def __init__(
        self,
        release: NacosRelease,
        jars: Path,
        *,
        port: int,
        members: Sequence[str],
        jvm_properties: Mapping[str, str],
        jvm_options: Sequence[str] = (),
        on_progress: OnProgress = _silent,
        on_end: Callable[[str], None] = _silent,
    ) -> None:
        """`on_end` gets what it has written, when it is closed."""
        super().__init__("nacos", port, members)
        self.release = release
        self.sdk_address = f"{HOST}:{port + SDK_OFFSET}"
        self._jars = jars
        self._own_properties, self._options = dict(jvm_properties), tuple(jvm_options)
        self._on_progress, self._on_end = on_progress, on_end
        self._start_failed = False
        self._loads_before = 0

    async def start(self, *, until_loaded: bool = True) -> None:
        """Returns when the server is up and, with `until_loaded`, its Distro data are loaded.

        Raises TargetError with the last log lines and the home directory, which `close` then keeps.
        """
        require_free(self.port)
        self._on_progress(f"starting Nacos {self.release.version} at {self.address}")
        write_home(self.home, self.release, self._members)
        started = time.monotonic()
        command = server_command(self.home, self.release, self._jars, self.port, self._own_properties, self._options)
        self._loads_before = self._loads()
        conditions = (self._is_up, *((self._is_loaded,) if until_loaded else ()), self._is_started)
        await self._run(command, self.home, READY_WITHIN_S, *conditions)
        self._on_progress(
            f"Nacos {self.release.version} at {self.address} is ready ({time.monotonic() - started:.1f} s)"
        )

    async def close(self) -> None:
        await self.stop()
        self._on_end(self.output)
        if not self._start_failed:
            await super().close()

    async def get(self, path: str) -> str:
        """The body of the answer to an HTTP GET, empty when there is none (yet)."""
        return await asyncio.to_thread(get, f"http://{self.address}{path}") or ""

    @property
    def logs(self) -> Sequence[Path]:
        return (*super().logs, *sorted((self.home / "logs").glob("*.log")))

    def log(self, name: str) -> Path:
        """A log file by its short name, `protocol-distro` for instance (docs/protocol #log-lines)."""
        return self.home / "logs" / f"{name}.log"

    async def change_members(self, addresses: Sequence[str]) -> None:
        """Write the list into the file that the server watches; it also counts for its next start."""
        self._members = tuple(addresses)
        write_home(self.home, self.release, self._members)

    async def members(self) -> Mapping[str, str]:
        """Address to state, as the server lists its members; empty while it does not answer."""
        listed = await asyncio.to_thread(listed_members, self.address, self.release.member_headers)
        return {member["address"]: member["state"] for member in listed}

    async def _is_up(self) -> bool:
        return self.release.ready_text in await self.get(self.release.ready_path)

    async def _is_loaded(self) -> bool:
        """Up does not mean loaded; a server without other members has nothing to load."""
        if len(self._members) < 2:
            return True
        return self._loads() > self._loads_before

    async def _is_started(self) -> bool:
        """Whether it accepts requests: a server that is up and loaded may still refuse every request."""
        connection = Connection.bare(self.sdk_address)
        try:
            return (await connection.ask("ServerCheckRequest", {"headers": {}})).type == "ServerCheckResponse"
        except grpc.aio.AioRpcError:  # the port is not open yet
            return False
        finally:
            await connection.close()

    def _loads(self) -> int:
        """The number of its loads since its first start: a home keeps its logs over a restart."""
        return _read(self.log("protocol-distro")).count(self.release.loaded_line)

    def _failed(self, what: str) -> TargetError:
        self._start_failed = True
        interruption.keeps(self.home)
        reason = reason_in(self.output) or reason_in(_read(self.log("nacos"))) or "nothing was logged"
        return TargetError(f"Nacos {self.release.version} at {self.address} {what}: {reason} (its home: {self.home})")


def listed_members(address: str, headers: Mapping[str, str] = NO_HEADERS) -> Sequence[Mapping[str, Any]]:
    """The members as a server lists them, with `address` and `state`; none while it does not answer."""
    for path in NODES_PATHS:
        try:
            found = json.loads(get(f"http://{address}{path}", headers=headers) or "{}").get("data") or ()
        except (ValueError, AttributeError):
            continue
        if listed := [each for each in found if isinstance(each, dict) and {"address", "state"} <= each.keys()]:
            return listed
    return ()


def reason_in(log: str) -> str:
    """The innermost exception of the last stack trace, else the last lines. A server that gives up interrupts its
    threads; their stack traces do not contain the reason."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    exceptions = [line for line in lines if _EXCEPTION.match(line) and not line.startswith(_INTERRUPTED)]
    return (exceptions[-1] if exceptions else " | ".join(lines[-3:]))[:600]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def release_and_jars(text: str) -> tuple[Path | None, NacosRelease]:
    """A text with a slash, or of an existing path, names a directory; the naming jar's name has its release."""
    named = Path(text)
    if not text or ("/" not in text and not named.is_dir()):
        return None, nacos_release(text)
    directory = jars_in(named)
    found = sorted(directory.glob("nacos-naming-*.jar"))
    if len(found) != 1:
        raise UsageError(
            f"{named} is no directory with the jars of one Nacos release (it holds {len(found)} nacos-naming-*.jar); "
            f"name a release, nacos:2.2.4, a directory that Maven filled, or a distribution with {RUNNABLE}"
        )
    return directory, release_like(found[0].stem.removeprefix("nacos-naming-"))


LEASE_MS = 40_000
"""Shortened from 180 s, so that a check can observe the end of a lease; 2.0.x does not read it at start
(docs/real-servers.md#starting).
"""

OFFSET_PROPERTY = "nacos.server.grpc.port.offset"
_TAKES_A_LEASE = Span(since="2.2.0")


class NacosTarget(Target):
    """`nacos:2.2.4` fetches the jars of a release, `nacos:DIRECTORY` uses the jars of the directory, or of a
    distribution.

    `mutant`: rules that change the behaviour of the server (`mutants.py`); `fired` is known after its stop."""

    kind = "nacos"

    def __init__(self, version_or_directory: str, profile: str | None = None, mutant: str | None = None) -> None:
        super().__init__(f"nacos:{version_or_directory}")
        self._jars, self.release = release_and_jars(version_or_directory)
        self.profile = f"nacos-{self.release.version}"
        if profile not in (None, self.profile):
            raise UsageError(f"the target {self.spec} behaves as {self.profile}, not as {profile}")
        if mutant is not None and mutant not in real_mutants():
            raise no_mutant("real", mutant)
        self.member_headers = self.release.member_headers
        self.mutant = mutant
        self.fired = Fired()
        self.short_lease_ms = LEASE_MS if self.profile in _TAKES_A_LEASE else None
        self._has_short_lease = True  # a fresh one has the default: copies from a snapshot must outlive a busy start

    async def node(self, place: Place, on_progress: OnProgress) -> NacosServer:
        configured = {OFFSET_PROPERTY: place.offset, LEASE_KEY: place.lease_ms}
        return NacosServer(
            self.release,
            self._jars or await jars_of(self.release, on_progress),
            port=place.port,
            members=place.members,
            jvm_properties={key: str(value) for key, value in configured.items() if value is not None},
            jvm_options=await agent_options(self.mutant, on_progress) if self.mutant else (),
            on_progress=on_progress,
            on_end=self.fired.add if self.mutant else lambda _: None,
        )

    def unaltered(self) -> str | None:
        return None if self.mutant is None else self.fired.missing()
