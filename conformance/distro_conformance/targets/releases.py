"""The Nacos releases that can be started, and the needs of each beside its jars.

One row per release. The server modules of Nacos are not in the public Maven repository; these coordinates are
faithful re-publications, compared class by class. A row without coordinates is for a distribution of the user.
Source: docs/real-servers.md#where-they-come-from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from distro_conformance.release import numbers_of, release_of
from distro_conformance.targets.credentials import IDENTITY, headers_of
from distro_conformance.targets.direct import NO_HEADERS
from distro_conformance.verdict import UsageError, named

HOW_TO_BUILD = "docs/how-to/nacos-from-source.md"
_NAMING, _WHOLE = "com.alibaba.nacos.naming.NamingApp", "com.alibaba.nacos.Nacos"
_AUTH_2_0, _AUTH = "com.alibaba.nacos.auth.common.AuthConfigs", "com.alibaba.nacos.auth.config.AuthConfigs"
_LOAD_RETRY_2_1 = "nacos.naming.clean.loadDataRetryDelayMillis"


@dataclass(frozen=True, slots=True)
class NacosRelease:
    """`group` None: it is not published. `auth_configs` None: the main class defines all beans. `proxied_beans`:
    interfaces of the console module that must exist although they are not called with auth off. `ready_text`: in the
    answer to `ready_path` once the server is up. `member_headers`: headers that members must send."""

    version: str
    group: str | None
    auth_configs: str | None = _AUTH
    main_class: str = _NAMING
    ready_path: str = "/nacos/v1/ns/operator/metrics"
    ready_text: str = '"UP"'
    port_key: str = "server.port"
    member_headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    load_retry_key: str = "nacos.core.protocol.distro.data.load.retryDelayMs"
    loaded_line: str = "[DISTRO-INIT] load snapshot data success"
    proxied_beans: tuple[str, ...] = ()
    jvm_properties: dict[str, str] = field(default_factory=dict)
    home_files: dict[str, str] = field(default_factory=dict)  # path below the home directory -> content
    excluded: tuple[str, ...] = ()  # artifacts (group:name) that the server does not need
    managed: tuple[str, ...] = ()  # artifacts (group:name:version) for which Maven would choose a too old version
    artifact_name: str | None = None
    schema: str | None = None
    """In the jar of the console: the schema of a whole server's database. None: naming alone."""

    @property
    def is_whole(self) -> bool:
        return self.schema is not None

    @property
    def artifact(self) -> str:
        return self.artifact_name or ("nacos-console" if self.is_whole else "nacos-naming")

    @property
    def main(self) -> str:
        return _WHOLE if self.is_whole else self.main_class

    @property
    def coordinates(self) -> str:
        assert self.group is not None, "it is published nowhere"
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def directory(self) -> str:
        """The directory of its jars in the cache."""
        return f"{self.version}-whole" if self.is_whole else self.version


_EMPTY_SCHEMA = "CREATE SCHEMA nacos AUTHORIZATION nacos;\n"
_NOT_NEEDED = (
    "org.rocksdb:rocksdbjni",
    "mysql:mysql-connector-java",
    "org.springframework:spring-test",
    "org.springframework.boot:spring-boot-test",
)

RELEASES: dict[str, NacosRelease] = {
    release.version: release
    for release in (
        NacosRelease(
            "2.0.4",
            "org.jeecgframework.nacos",
            auth_configs=_AUTH_2_0,
            load_retry_key=_LOAD_RETRY_2_1,
            loaded_line="ClientData",
            proxied_beans=("com.alibaba.nacos.auth.AuthManager",),
        ),
        NacosRelease("2.1.1", "io.springboot.nacos", load_retry_key=_LOAD_RETRY_2_1, loaded_line="ClientData"),
        NacosRelease("2.2.3", "org.jeecgframework.nacos"),
        NacosRelease("2.2.4", "io.springboot.nacos", excluded=_NOT_NEEDED),
        NacosRelease(
            "2.3.2",
            "org.jeecgframework.nacos",
            jvm_properties={"embeddedStorage": "true", "db.pool.config.connectionTimeout": "300000"},
            home_files={"conf/derby-schema.sql": _EMPTY_SCHEMA},
        ),
    )
}

OF_3 = NacosRelease(
    "3.0.0",
    None,
    auth_configs=None,
    main_class="com.alibaba.nacos.bootstrap.NacosBootstrap",
    ready_path="/nacos/v3/admin/core/state/readiness",
    ready_text='"ok"',
    port_key="nacos.server.main.port",
    member_headers=headers_of(IDENTITY),
    jvm_properties={
        "nacos.deployment.type": "server",
        "nacos.functionMode": "naming",
        "embeddedStorage": "true",
        "db.pool.config.connectionTimeout": "300000",
        "nacos.core.auth.admin.enabled": "false",
        "nacos.core.auth.console.enabled": "false",
        "nacos.core.auth.server.identity.key": IDENTITY.key,
        "nacos.core.auth.server.identity.value": IDENTITY.value,
        "nacos.core.api.compatibility.admin.enabled": "true",
    },
    home_files={"conf/derby-schema.sql": _EMPTY_SCHEMA},
)
"""Started whole except for the console. Members' requests without the identity get 403 once all members are 3.x."""


def nacos_release(version: str) -> NacosRelease:
    """Raises UsageError that lists the known releases, and says how to build a release that Maven does not have."""
    try:
        return named("Nacos release", RELEASES, version)
    except UsageError as error:
        raise UsageError(
            f"Maven has {error}; of another one name the directory of a distribution ({HOW_TO_BUILD})"
        ) from error


def release_like(version: str) -> NacosRelease:
    """The row for a directory of jars: an unlisted release has the needs of the last listed release before it, of the
    same generation (2.2) if there is one, even a later one. Raises UsageError for a text that is no release."""
    asked = release_of(f"nacos-{numbers_of(version)}") or ()
    numbered = {release_of(f"nacos-{each.version}") or (): each for each in (*RELEASES.values(), OF_3)}
    alike = [number for number in numbered if number[:2] == asked[:2]] or list(numbered)
    before = [number for number in alike if number <= asked]
    return replace(numbered[before[-1] if before else alike[0]], version=numbers_of(version))
