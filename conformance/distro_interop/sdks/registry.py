"""The list of SDKs: one entry each, with its sources and its abilities.

The version is pinned where the language pins versions (requirements.txt, pom.xml, go.mod, package-lock.json), or by a
property of the build where one source serves several releases.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "programs"
"""One folder a language; built elsewhere, in the cache."""


class Transport(StrEnum):
    GRPC = "gRPC"
    """One connection to one server; its instances are removed when the connection ends."""
    HTTP = "HTTP"
    """Requests to any server, kept alive by heartbeats: unhealthy after 15 s without one, gone after 30 s."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """`build` are commands that run in a copy of `folder`; `command` and `environment` may say {built}, which is where
    that copy is."""

    name: str
    folder: str
    transport: Transport
    has_batch: bool
    command: tuple[str, ...]
    build: tuple[tuple[str, ...], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    here: tuple[str, str] | None = None
    """A module that the running Python must have, and its pip requirement."""

    @property
    def sources(self) -> Path:
        return SOURCES / self.folder


def _java(name: str, version: str, transport: Transport, *, has_batch: bool) -> Sdk:
    variant = "batch" if has_batch else "single"
    return Sdk(
        name,
        "java",
        transport,
        has_batch,
        command=(
            *("java", "-Xmx128m", "-Duser.home={home}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
            *("-cp", "{built}/target/classes:{built}/target/jars/*", "Client"),
        ),
        build=(("mvn", "--batch-mode", "--quiet", "package", f"-Dnacos.version={version}", f"-Dvariant={variant}"),),
    )


SDKS: dict[str, Sdk] = {
    sdk.name: sdk
    for sdk in (
        # The one of the test extra, so it is there wherever the tests run.
        Sdk(
            "python",
            "python",
            Transport.GRPC,
            True,
            command=(sys.executable, "{built}/client.py"),
            here=("v2", "nacos-sdk-python>=3.2,<3.3"),
        ),
        Sdk(
            "python-2.0",
            "python",
            Transport.GRPC,
            True,
            command=(sys.executable, "{built}/client.py"),
            build=((sys.executable, "-m", "pip", "install", "-q", "--target", "packages", "-r", "requirements.txt"),),
            environment={"PYTHONPATH": "{built}/packages"},
        ),
        _java("java2", "2.5.1", Transport.GRPC, has_batch=True),
        _java("java2.3", "2.3.3", Transport.GRPC, has_batch=True),
        _java("java2.0", "2.0.4", Transport.GRPC, has_batch=False),
        _java("java1", "1.4.8", Transport.HTTP, has_batch=False),
        Sdk(
            "go", "go", Transport.GRPC, True, command=("{built}/client",), build=(("go", "build", "-o", "client", "."),)
        ),
        Sdk("node", "node", Transport.HTTP, False, ("node", "{built}/client.js"), build=(("npm", "ci"),)),
    )
}
