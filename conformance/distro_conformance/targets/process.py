"""Any server that takes a member list, started as a process by a description file or a command.

A description is a small TOML file. Its texts may hold `{port}`, `{sdk_port}`, `{cluster_port}`, `{address}`,
`{members}` (all of them, with commas), `{home}` (its own directory, removed at the end) and `{offset}` (the number that
the server adds to a peer's port when it connects: with it the kit can put links between the members).

    command = ["java", "-jar", "server.jar", "--server.port={port}"]
    member = ["--member", "{member}"]        # added to the command for each other member
    profile = "nacos-2.2.4"                  # the expected behaviour; --profile wins; default: as the server reports
    lacks = ["http", "batch"]                # missing features: requirements that need them do not apply
    [environment]                            # beside that of the kit
    [files]                                  # path below {home} = content; {member_lines} is one member a line
    [identity]                               # header that members send to each other; --identity wins
    key = "cluster"
    value = "is-ours"
    [ready]                                  # until then it counts as starting; default: both ports accept connections
    line = "started"                         # on its standard output or error
    http = "/health"                         # answers with status 200
    seconds = 60
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path, PurePath
from typing import Any

from distro_conformance.node.player import PlayedClient
from distro_conformance.release import STRICT, listed_profile, numbers_of
from distro_conformance.targets.attached import NoReleaseError, asked_profile
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.direct import get
from distro_conformance.targets.ports import CLUSTER_OFFSET, SDK_OFFSET, free_base_ports, require_free, with_offset
from distro_conformance.targets.server_process import HOST, ServerProcess
from distro_conformance.targets.target import FEATURES, UNLIMITED, OnProgress, Place, Target
from distro_conformance.verdict import TargetError, UsageError, why_unreadable
from distro_impl.options import ServerIdentity

SUFFIX = ".toml"
_TABLES = ("environment", "files", "identity", "ready")
_KEYS = {"command": list, "member": list, "profile": str, "lacks": list, **dict.fromkeys(_TABLES, dict)}
PLACEHOLDERS = ("port", "sdk_port", "cluster_port", "address", "members", "member_lines", "home", "offset")
_IDENTITY_KEYS = {"key": str, "value": str}
_READY_KEYS = {"line": str, "http": str, "seconds": int}


@dataclass(frozen=True, slots=True)
class Description:
    """How a server is started. `directory` is the working directory of its command."""

    command: tuple[str, ...]
    directory: Path
    member: tuple[str, ...] = ()
    profile: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ready_line: str | None = None
    ready_http: str | None = None
    ready_seconds: int = 60
    identity: ServerIdentity | None = None
    lacks: frozenset[str] = frozenset()

    @property
    def takes_offset(self) -> bool:
        """Whether it can be configured to connect to its peers over the kit's links."""
        texts = (*self.command, *self.member, *self.environment.values(), *self.files.values())
        return any("{offset}" in text for text in texts)

    def shown(self, credentials: Credentials) -> Credentials:
        """The credentials with the server's own identity, if the user names none."""
        return credentials if credentials.identity is not None else replace(credentials, identity=self.identity)

    @property
    def rereads_members(self) -> bool:
        """Whether a running server can read a changed member list: from a file that names the members."""
        return any("{members}" in text or "{member_lines}" in text for text in self.files.values())


def description_of(text: str) -> Description:
    """From the text after `process:`, a description file or a command. Raises UsageError."""
    if not text.strip():
        raise UsageError(f"process: needs a description, process:FILE{SUFFIX}, or a command with {{port}} in it")
    if not text.endswith(SUFFIX):
        return _checked(Description(tuple(shlex.split(text)), Path.cwd()), text)
    path = Path(text)
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the description {path}: {why_unreadable(error)}") from error
    _refuse_unknown(found, _KEYS, path, "")
    ready = found.get("ready", {})
    _refuse_unknown(ready, _READY_KEYS, path, "ready.")
    identity = found.get("identity", {})
    _refuse_unknown(identity, _IDENTITY_KEYS, path, "identity.")
    if identity and not (identity.get("key") and "value" in identity):
        raise UsageError(f"{path}: [identity] takes a 'key' and a 'value'")
    if unknown := [each for each in found.get("lacks", ()) if each not in FEATURES]:
        raise UsageError(f"{path}: there is no feature {unknown[0]!r} to lack; features are {', '.join(FEATURES)}")
    described = Description(
        tuple(map(str, found.get("command", ()))),
        path.resolve().parent,
        tuple(map(str, found.get("member", ()))),
        numbers_of(found["profile"]) if "profile" in found else None,
        {key: str(value) for key, value in found.get("environment", {}).items()},
        {key: str(value) for key, value in found.get("files", {}).items()},
        ready.get("line"),
        ready.get("http"),
        ready.get("seconds", 60),
        ServerIdentity(identity["key"], identity["value"]) if identity else None,
        frozenset(found.get("lacks", ())),
    )
    return _checked(described, str(path))


def _refuse_unknown(found: Mapping[str, Any], known: Mapping[str, type], path: Path, prefix: str) -> None:
    for key, value in found.items():
        if key not in known:
            raise UsageError(f"{path}: there is no key '{prefix}{key}'; keys are {', '.join(known)}")
        if not isinstance(value, known[key]):
            shown = "what stands there" if known is _IDENTITY_KEYS else repr(value)
            raise UsageError(f"{path}: '{prefix}{key}' is a {known[key].__name__}, not {shown}")


def _checked(described: Description, name: str) -> Description:
    if not described.command:
        raise UsageError(
            f"{name}: there is no 'command' to start the server; it, the environment or a file must contain {{port}}"
        )
    places = (*described.command, *described.environment.values(), *described.files.values())
    if not any("{port}" in text for text in places):
        message = "the command, the environment or a file must contain {port}, where the server shall listen"
        raise UsageError(f"{name}: {message}")
    texts = (*described.command, *described.environment.values(), *described.files.values(), described.ready_line or "")
    _refuse_misspelt(texts, PLACEHOLDERS, name)
    _refuse_misspelt(described.member, (*PLACEHOLDERS, "member"), name)
    for path in map(PurePath, described.files):
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise UsageError(f"{name}: [files] '{path}' is no path below {{home}}; name one without / before it and ..")
    if described.ready_seconds < 1:
        raise UsageError(f"{name}: 'ready.seconds' is {described.ready_seconds}; give it a second at least")
    if described.profile is not None:
        listed_profile(described.profile)
    return described


def _refuse_misspelt(texts: Iterable[str], known: Sequence[str], name: str) -> None:
    """Refuse texts that look like a placeholder and are unknown: they would reach the server unfilled. Other braces
    follow a `$`, a `%` or a word, are doubled, or contain more than small letters."""
    for found in re.findall(r"(?<![\w$%{])\{([a-z_]+)\}", "\n".join(texts)):
        if found not in known:
            there_are = ", ".join(f"{{{each}}}" for each in known)
            raise UsageError(f"{name}: there is no placeholder '{{{found}}}'; placeholders are {there_are}")


@cache
def profile_of(text: str, credentials: Credentials = NO_CREDENTIALS) -> str:
    """The profile of the description, else the release that the server reports, for which it is started once, alone;
    `strict` if it reports none. Raises TargetError when it does not start."""
    described = description_of(text)
    if described.profile is not None:
        return described.profile
    with ThreadPoolExecutor(1) as thread:  # the caller may run in an event loop
        return thread.submit(asyncio.run, _asked(described, described.shown(credentials))).result()


async def _asked(described: Description, credentials: Credentials) -> str:
    (port,) = free_base_ports()
    server = ProcessServer(described, port, (f"{HOST}:{port}",))
    try:
        await server.start()
        headers = await asyncio.to_thread(credentials.client_headers, server.address)
        return await asyncio.to_thread(asked_profile, server.address, headers)
    except NoReleaseError:
        return STRICT
    finally:
        await server.close()


class ProcessServer(ServerProcess):
    """The described server, at a base port."""

    def __init__(self, described: Description, port: int, members: Sequence[str], offset: int | None = None) -> None:
        super().__init__("process", port, members)
        self._described, self._offset = described, offset

    async def start(self, *, until_loaded: bool = True) -> None:  # noqa: ARG002 - the kit cannot know it
        """Returns when it is ready. Raises TargetError with its last output."""
        require_free(self.port)
        self._write_files()
        described = self._described
        others = [member for member in self._members if member != self.address]
        command = [self._filled(text) for text in described.command]
        command += [self._filled(text).replace("{member}", other) for other in others for text in described.member]
        program = described.directory / command[0]
        if not shutil.which(command[0]) and not program.is_file():
            raise TargetError(f"there is no program '{command[0]}' to start, neither in the path nor as {program}")
        environment = {**os.environ, **{key: self._filled(text) for key, text in described.environment.items()}}
        await self._run(command, described.directory, described.ready_seconds, self._is_ready, environment=environment)

    async def change_members(self, addresses: Sequence[str]) -> None:
        """Write the files that name the members; the server may watch them or not."""
        self._members = tuple(addresses)
        self._write_files()

    async def members(self) -> Mapping[str, str]:
        """All as UP: a server need not have an API for member states."""
        return dict.fromkeys(self._members, "UP")

    async def _is_ready(self) -> bool:
        described = self._described
        if described.ready_line is not None:
            return self._filled(described.ready_line) in self.output
        if described.ready_http is not None:
            return await asyncio.to_thread(get, f"http://{self.address}{described.ready_http}") is not None
        try:
            await (await PlayedClient.connect(with_offset(self.address, SDK_OFFSET))).close()
            (await asyncio.open_connection(HOST, self.port + CLUSTER_OFFSET))[1].close()
        except (TargetError, OSError):
            return False
        return True

    def _write_files(self) -> None:
        for name, text in self._described.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(text), encoding="utf-8")

    def _filled(self, text: str) -> str:
        values = (
            self.port,
            self.port + SDK_OFFSET,
            self.port + CLUSTER_OFFSET,
            self.address,
            ",".join(self._members),
            "".join(f"{member}\n" for member in self._members),
            self.home,
            CLUSTER_OFFSET if self._offset is None else self._offset,
        )
        for name, value in zip(PLACEHOLDERS, values, strict=True):
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def _failed(self, what: str) -> TargetError:
        text = " ".join(self.output.split())[-400:]
        wrote = f"its output: {text}" if text else "it wrote nothing"
        return TargetError(f"{self._described.command[0]} at {self.address} {what}; {wrote}")

    @property
    def _awaited(self) -> str:
        described = self._described
        if described.ready_line is not None:
            return f": it has not written '{self._filled(described.ready_line)}'"
        if described.ready_http is not None:
            return f": http://{self.address}{described.ready_http} does not answer with status 200"
        sdk, cluster = self.port + SDK_OFFSET, self.port + CLUSTER_OFFSET
        return f": its SDK port {sdk} takes no client, or nothing listens on its cluster port {cluster}"


class ProcessTarget(Target):
    """`process:FILE.toml` or `process:COMMAND`."""

    kind = "process"

    def __init__(self, text: str, profile: str | None = None, credentials: Credentials = NO_CREDENTIALS) -> None:
        self._described = described = description_of(text)
        super().__init__(f"process:{text}")
        self._profile, self.credentials = profile, described.shown(credentials)
        self.member_headers = self.client_headers = self.credentials.headers
        self.limits = replace(UNLIMITED, lacks=described.lacks)
        self.takes_offset = described.takes_offset
        if not described.rereads_members:
            self.fixed_list = "its description names no file of members: a running server cannot get another list"

    @cached_property
    def profile(self) -> str:
        return self._profile or profile_of(self.spec.partition(":")[2], self.credentials)

    async def node(self, place: Place, on_progress: OnProgress) -> ProcessServer:
        """There is no general way to configure a lease."""
        on_progress(f"starting {self._described.command[0]} at {HOST}:{place.port}")
        return ProcessServer(self._described, place.port, sorted(place.members), place.offset)
