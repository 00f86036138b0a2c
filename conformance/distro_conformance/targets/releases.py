"""The Nacos releases that can be fetched, and what each needs beside its jars.

One row per release. The project's own server modules are not in the public Maven repository; these coordinates are
faithful re-publications, compared class by class. Source: docs/real-servers.md#where-they-come-from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from distro_conformance.release import release_of
from distro_conformance.verdict import named

_AUTH_2_0, _AUTH = "com.alibaba.nacos.auth.common.AuthConfigs", "com.alibaba.nacos.auth.config.AuthConfigs"
_LOAD_RETRY_2_1 = "nacos.naming.clean.loadDataRetryDelayMillis"


@dataclass(frozen=True, slots=True)
class NacosRelease:
    """`proxied_beans`: interfaces of the console module that must exist although nobody calls them with auth off."""

    version: str
    group: str
    auth_configs: str = _AUTH
    load_retry_key: str = "nacos.core.protocol.distro.data.load.retryDelayMs"
    loaded_line: str = "[DISTRO-INIT] load snapshot data success"
    proxied_beans: tuple[str, ...] = ()
    jvm_properties: dict[str, str] = field(default_factory=dict)
    home_files: dict[str, str] = field(default_factory=dict)  # path below the home directory -> content
    excluded: tuple[str, ...] = ()  # artifacts (group:name) that the server does without
    managed: tuple[str, ...] = ()  # artifacts (group:name:version) of which Maven would take too old ones
    artifact_name: str | None = None
    schema: str | None = None
    """In the jar of the console: what the database of a whole server is made from. None: this is naming alone."""

    @property
    def is_whole(self) -> bool:
        return self.schema is not None

    @property
    def artifact(self) -> str:
        return self.artifact_name or ("nacos-console" if self.is_whole else "nacos-naming")

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def directory(self) -> str:
        """Of its jars, in the cache."""
        return f"{self.version}-whole" if self.is_whole else self.version


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
            home_files={"conf/derby-schema.sql": "CREATE SCHEMA nacos AUTHORIZATION nacos;\n"},
        ),
    )
}


_NOT_NEEDED_WHOLE = ("mysql:mysql-connector-java", "com.mysql:mysql-connector-j", "org.springframework:spring-test")
_SCHEMA_2_0, _SCHEMA = "META-INF/schema.sql", "META-INF/derby-schema.sql"

WHOLE_RELEASES: dict[str, NacosRelease] = {
    "2.0.4": NacosRelease("2.0.4", "org.jeecgframework.nacos", excluded=_NOT_NEEDED_WHOLE, schema=_SCHEMA_2_0),
    "2.2.4": NacosRelease(
        "2.2.3",
        "org.jeecgframework.nacos",
        excluded=_NOT_NEEDED_WHOLE,
        managed=("org.springframework:spring-beans:5.3.24", "org.springframework:spring-tx:5.3.24"),
        schema=_SCHEMA,
    ),
    "2.3.2": NacosRelease("2.3.2", "org.jeecgframework.nacos", excluded=_NOT_NEEDED_WHOLE, schema=_SCHEMA),
}
"""Servers with console and users, by the release that they stand for. There is no whole 2.2.4; 2.2.3 differs from it in
three classes, and in none of what such a server is fetched for."""


def nacos_release(version: str) -> NacosRelease:
    """Raises UsageError that lists the known releases."""
    return named("Nacos release", RELEASES, version)


def release_like(version: str) -> NacosRelease:
    """Of whose jars somebody has a directory: what is not listed needs what the last listed one before it does, of the
    same generation (2.2) if there is any, be it a later one. Raises UsageError for a text that is no release."""
    asked = release_of(f"nacos-{version}") or ()
    numbered = {release_of(f"nacos-{each.version}") or (): each for each in RELEASES.values()}
    alike = [number for number in numbered if number[:2] == asked[:2]] or list(numbered)
    before = [number for number in alike if number <= asked]
    return replace(numbered[before[-1] if before else alike[0]], version=version)
