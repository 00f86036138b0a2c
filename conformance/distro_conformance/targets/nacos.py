"""A real Nacos server on loopback: started as `real-nacos.md` section 2 tells, ready, stopped, cleaned up.

`NamingApp` alone lacks what the console module does at start, hence the bean file. Everything a server writes goes
into a home directory of its own, which is removed at the end and kept when the start fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from distro_conformance.targets import jvm
from distro_conformance.targets.maven import OnProgress, class_path, jars_of
from distro_conformance.targets.ports import CLUSTER_OFFSET, SDK_OFFSET, require_free
from distro_conformance.targets.releases import NacosRelease, nacos_release
from distro_conformance.verdict import TargetError

HOST = "127.0.0.1"
LOAD_RETRY_MS = 1000
"""Shortened from 30 s (2.0.x: 60 s): the first load of a cold start usually fails and is repeated after this."""

_READY_TIMEOUT_S = 120.0
_POLL_S = 0.1
_MAIN = "com.alibaba.nacos.naming.NamingApp"
_NO_SECURITY = (
    "org.springframework.boot.autoconfigure.security.servlet.SecurityAutoConfiguration,"
    "org.springframework.boot.actuate.autoconfigure.security.servlet.ManagementWebSecurityAutoConfiguration"
)
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy


def _silent(_: str) -> None: ...


@contextlib.asynccontextmanager
async def start_nacos(
    release: str,
    *,
    port: int,
    members: Sequence[str],
    jvm_properties: Mapping[str, str] | None = None,
    on_progress: OnProgress = _silent,
) -> AsyncIterator[NacosServer]:
    """A running, loaded server; it is gone when the block ends, however it ends.

    `members` are all members as host:port, this one included; `jvm_properties` are -D options of the caller's own.
    The other members must run already: the server is ready only once one of them has answered its first load.
    """
    properties = {port: jvm_properties or {}}
    async with _started(release, (port,), members, properties, on_progress) as (server,):
        yield server


@contextlib.asynccontextmanager
async def start_nacos_cluster(
    release: str,
    *,
    ports: Sequence[int],
    jvm_properties: Mapping[int, Mapping[str, str]] | None = None,
    on_progress: OnProgress = _silent,
) -> AsyncIterator[tuple[NacosServer, ...]]:
    """Servers at these base ports that are each other's members, all running and loaded; `jvm_properties` by port.

    They start together, because each is loaded only once another one has answered it.
    """
    members = [f"{HOST}:{port}" for port in ports]
    async with _started(release, ports, members, jvm_properties or {}, on_progress) as servers:
        yield servers


@contextlib.asynccontextmanager
async def _started(
    release: str,
    ports: Sequence[int],
    members: Sequence[str],
    properties: Mapping[int, Mapping[str, str]],
    on_progress: OnProgress,
) -> AsyncIterator[tuple[NacosServer, ...]]:
    found = nacos_release(release)
    jars = await jars_of(found, on_progress)
    servers = tuple(
        NacosServer(
            found, jars, port=port, members=members, jvm_properties=properties.get(port, {}), on_progress=on_progress
        )
        for port in ports
    )
    starts = [asyncio.create_task(server.start(), name=f"start of {server.address}") for server in servers]
    try:
        await asyncio.gather(*starts)
        yield servers
    finally:
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in servers))


class NacosServer:
    """One server process. `start` and `stop` may alternate; the home directory lives until `close`."""

    def __init__(
        self,
        release: NacosRelease,
        jars: Path,
        *,
        port: int,
        members: Sequence[str],
        jvm_properties: Mapping[str, str],
        on_progress: OnProgress = _silent,
    ) -> None:
        self.release = release
        self.port = port
        self.address = f"{HOST}:{port}"
        self.sdk_address = f"{HOST}:{port + SDK_OFFSET}"
        self.cluster_address = f"{HOST}:{port + CLUSTER_OFFSET}"
        self.home = Path(tempfile.mkdtemp(prefix=f"distrocheck-nacos-{port}-"))
        self._jars = jars
        self._members = tuple(members)
        self._own_properties = dict(jvm_properties)
        self._on_progress = on_progress
        self._process: asyncio.subprocess.Process | None = None
        self._start_failed = False

    @property
    def pid(self) -> int | None:
        """Of the running process, None when it is stopped."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if self._process is not None and running else None

    async def start(self, *, ready_within_s: float = _READY_TIMEOUT_S) -> None:
        """Returns when the server is up and its Distro data are loaded.

        Raises TargetError with the last log lines and the home directory, which `close` then keeps.
        """
        require_free(self.port)
        self._write_home()
        started = time.monotonic()
        self._process = await jvm.start_leashed(self._command(), self.console, self.home)
        try:
            async with asyncio.timeout(ready_within_s):
                await self._until(self._is_up)
                await self._until(self._is_loaded)
        except TimeoutError:
            await self.stop()
            raise self._failed(f"is not ready after {ready_within_s:.0f} s") from None
        except BaseException:
            await self.stop()
            raise
        self._on_progress(
            f"Nacos {self.release.version} at {self.address} is ready ({time.monotonic() - started:.1f} s)"
        )

    async def stop(self) -> None:
        if self._process is not None:
            await jvm.stop(self._process)
            self._process = None

    async def close(self) -> None:
        """Stop, and remove the home directory unless a start failed: then the user wants to look at it."""
        await self.stop()
        if not self._start_failed:
            shutil.rmtree(self.home, ignore_errors=True)

    @property
    def console(self) -> Path:
        return self.home / "console.log"

    def log(self, name: str) -> Path:
        """A log file by its short name, `protocol-distro` for instance (real-nacos.md section 7)."""
        return self.home / "logs" / f"{name}.log"

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        while not await condition():
            if self.pid is None:
                raise self._failed("ended while it was starting")
            await asyncio.sleep(_POLL_S)

    async def _is_up(self) -> bool:
        return '"UP"' in await asyncio.to_thread(_get, f"http://{self.address}/nacos/v1/ns/operator/metrics")

    async def _is_loaded(self) -> bool:
        """Up does not mean loaded; a server without other members has nothing to load."""
        if len(self._members) < 2:
            return True
        with contextlib.suppress(FileNotFoundError):
            return self.release.loaded_line in self.log("protocol-distro").read_text("utf-8", "replace")
        return False

    def _failed(self, what: str) -> TargetError:
        self._start_failed = True
        lines = [line.strip() for line in _read(self.console).splitlines() if line.strip()]
        last = " | ".join(lines[-3:])[-600:] or "nothing was logged"
        return TargetError(f"Nacos {self.release.version} at {self.address} {what}: {last} (its home: {self.home})")

    def _write_home(self) -> None:
        files = {
            "conf/cluster.conf": "".join(f"{member}\n" for member in self._members),
            "beans.xml": _beans(self.release),
            **self.release.home_files,
        }
        for name, text in files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def _command(self) -> list[str]:
        properties = {**self._properties(), **self.release.jvm_properties, **self._own_properties}
        defines = [f"-D{key}={value}" for key, value in properties.items()]
        return [jvm.find_java(), "-Xms64m", "-Xmx256m", *defines, "-cp", class_path(self._jars), _MAIN]

    def _properties(self) -> dict[str, str]:
        home = str(self.home)
        return {
            "nacos.home": home,
            "user.home": home,
            "nacos.server.ip": HOST,
            "com.alibaba.nacos.client.local.ip": HOST,
            "com.alibaba.nacos.client.naming.local.ip": HOST,
            "server.port": str(self.port),
            "server.address": HOST,
            "nacos.standalone": "false",
            "server.tomcat.accesslog.enabled": "false",
            "server.tomcat.basedir": home,
            "server.servlet.contextPath": "/nacos",
            "nacos.logs.path": f"{home}/logs",
            "nacos.core.auth.enabled": "false",
            "spring.main.sources": f"file:{home}/beans.xml",
            "spring.autoconfigure.exclude": _NO_SECURITY,
            self.release.load_retry_key: str(LOAD_RETRY_MS),
        }


def _beans(release: NacosRelease) -> str:
    """What the console module would have defined (real-nacos.md section 2, trap 2)."""
    scanned = "".join(
        f"""
  <bean class="org.springframework.beans.factory.config.MethodInvokingBean">
    <property name="targetObject" ref="controllerMethodsCache"/>
    <property name="targetMethod" value="initClassMethod"/>
    <property name="arguments" value="com.alibaba.nacos.{package}"/>
  </bean>"""
        for package in ("core.controller", "naming.controllers")
    )
    proxies = "".join(
        f"""
  <bean class="org.springframework.aop.framework.ProxyFactoryBean">
    <property name="proxyInterfaces" value="{interface}"/>
  </bean>"""
        for interface in release.proxied_beans
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd">
  <bean class="{release.auth_configs}"/>{scanned}{proxies}
</beans>
"""


def _get(url: str) -> str:
    """The body of an answer, empty when there is none (yet)."""
    try:
        with _direct.open(url, timeout=1.0) as answer:
            return str(answer.read().decode("utf-8", "replace"))
    except (OSError, urllib.error.URLError):
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
