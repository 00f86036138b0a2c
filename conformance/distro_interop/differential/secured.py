"""Two nodes with authentication on, one real and one reference, that know the same users, secret and identity.

The real one is a whole server with its console, since naming alone has neither users nor a way to log in. It is
started without other members: so it keeps its users in a database of its own, and needs no Raft majority.
Source: docs/protocol #member-auth; the properties are those of a distribution's application.properties.
"""

from __future__ import annotations

import base64
import contextlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp

from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.jars import jars_of
from distro_conformance.targets.nacos import NacosServer
from distro_conformance.targets.releases import NacosRelease
from distro_conformance.targets.target import OnProgress, Place, Target
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import eventually
from distro_impl.options import READS_ALL, AuthOptions, NodeOptions, ServerIdentity, User

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
"""Servers with console and users, by the release that they represent. There is no whole 2.2.4; 2.2.3 differs from it in
three classes, none of which matters for the use of such a server."""

SECRET = b"a secret that all members share!"
IDENTITY = ("cluster", "is-ours")
ADMIN, READER = ("nacos", "operator-password"), ("reader", "reader-password")
_LOGIN_WITHIN_MS, _LOGIN_TIMEOUT_S = 60_000, 5.0
_HASHED = {  # bcrypt, as the servers keep passwords
    ADMIN[0]: "$2a$04$MXLr91sGhEdmGbr8ALJIXeR8z0d.IwkvXRM.MWFRMkdRbfpH1yUKW",
    READER[0]: "$2a$04$DnNrRB/faeipeSKXAE/jk.0R70nCwvcrns5fRygaFP0RamyGqzuzW",
}
_USERS = f"""
DELETE FROM roles;
DELETE FROM users;
INSERT INTO users (username, password, enabled) VALUES ('{ADMIN[0]}', '{_HASHED[ADMIN[0]]}', TRUE);
INSERT INTO users (username, password, enabled) VALUES ('{READER[0]}', '{_HASHED[READER[0]]}', TRUE);
INSERT INTO roles (username, role) VALUES ('{ADMIN[0]}', 'ROLE_ADMIN');
INSERT INTO roles (username, role) VALUES ('{READER[0]}', 'READERS');
INSERT INTO permissions (role, resource, action) VALUES ('READERS', '*:*:*', 'r');
"""


def secured_reference(profile: str, mutant: str | None = None) -> EmbeddedTarget:
    users = {ADMIN[0]: User(*ADMIN), READER[0]: User(*READER, READS_ALL)}
    options = NodeOptions(identity=ServerIdentity(*IDENTITY), auth=AuthOptions(secret=SECRET, users=users))
    return EmbeddedTarget(profile, mutant, with_known_members=False, options=options)


class SecuredNacos(Target):
    """A whole server for the release of a profile; see `offers`."""

    kind = "nacos"
    member_headers: Mapping[str, str] = dict([IDENTITY])

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self._release = WHOLE_RELEASES[profile.removeprefix("nacos-")]
        super().__init__(f"nacos:{self._release.directory}")

    @staticmethod
    def offers(profile: str) -> bool:
        """Whether there is a whole server to fetch."""
        return profile.removeprefix("nacos-") in WHOLE_RELEASES

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        """Returns when the server knows its users. Raises TargetError."""
        await super().start(other_members, on_progress, until_loaded=until_loaded)
        await self._logged_in()

    async def node(self, place: Place, on_progress: OnProgress) -> NacosServer:
        assert place.members == (self.address,), "it is started alone"
        jars = await jars_of(self._release, on_progress)
        server = NacosServer(
            self._release,
            jars,
            port=place.port,
            members=place.members,
            jvm_properties=_properties(),
            on_progress=on_progress,
        )
        _write_schema(server.home, jars, self._release)
        return server

    async def _logged_in(self) -> None:
        """The users are read from the database a while after the start."""
        url = f"http://{self.address}/nacos/v1/auth/login"
        data = dict(zip(("username", "password"), ADMIN, strict=True))
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_LOGIN_TIMEOUT_S), trust_env=False) as session:

            async def logged_in() -> bool:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.post(url, data=data) as reply:
                        return reply.status == 200
                return False

            if await eventually(logged_in, self.clock, _LOGIN_WITHIN_MS) is None:
                raise TargetError(f"{self.spec} accepts no login within {_LOGIN_WITHIN_MS / 1000:.0f} s")


def _properties() -> dict[str, str]:
    secret = base64.b64encode(SECRET).decode()
    return {
        "nacos.core.auth.enabled": "true",
        "nacos.core.auth.system.type": "nacos",
        "db.pool.config.connectionTimeout": "60000",  # a busy machine is slow to make the database
        "nacos.core.auth.server.identity.key": IDENTITY[0],
        "nacos.core.auth.server.identity.value": IDENTITY[1],
        "nacos.core.auth.plugin.nacos.token.secret.key": secret,
        "nacos.core.auth.default.token.secret.key": secret,
    }


def _write_schema(home: Path, jars: Path, release: NacosRelease) -> None:
    """The release's own tables, with the users of the kit in place of its own."""
    assert release.schema is not None
    with zipfile.ZipFile(jars / f"{release.artifact}-{release.version}.jar") as jar:
        tables = jar.read(release.schema).decode()
    path = home / "conf" / Path(release.schema).name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tables + _USERS, encoding="utf-8")
