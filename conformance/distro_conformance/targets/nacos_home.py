"""The configuration of a real Nacos server: its files, its system properties, its command line.

`NamingApp` alone lacks what the console module does at start, hence the bean file: without it every HTTP API answers
501. Authentication is off, everything is bound to loopback as far as Nacos allows. Source: docs/real-servers.md
#starting.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from distro_conformance.targets.jars import class_path
from distro_conformance.targets.releases import NacosRelease
from distro_conformance.targets.server_process import HOST
from distro_conformance.verdict import TargetError

LEASE_KEY = "nacos.naming.client.expired.time"
LOAD_RETRY_MS = 1000
"""Shortened from 30 s (2.0.x: 60 s): the first load of a cold start usually fails and is retried after this time."""

_STARTS_SOON = "-XX:TieredStopAtLevel=1"
"""Without the optimising compiler a start takes half the processor time (4.4 s instead of 8.7 s for 2.2.4)."""
ALL_COMPILERS = "-XX:TieredStopAtLevel=4"
"""For a server whose performance is measured."""

_NO_SECURITY = (
    "org.springframework.boot.autoconfigure.security.servlet.SecurityAutoConfiguration,"
    "org.springframework.boot.actuate.autoconfigure.security.servlet.ManagementWebSecurityAutoConfiguration"
)


def write_home(home: Path, release: NacosRelease, members: Sequence[str]) -> None:
    """Write the member list, the bean file and other files of the release. A whole server has no other members and has
    its own beans."""
    beans = {} if release.auth_configs is None else {"beans.xml": _beans(release)}
    of_naming = {"conf/cluster.conf": "".join(f"{member}\n" for member in members), **beans}
    files = {**({} if release.is_whole else of_naming), **release.home_files}
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def server_command(
    home: Path,
    release: NacosRelease,
    jars: Path,
    port: int,
    jvm_properties: Mapping[str, str],
    jvm_options: Sequence[str] = (),
) -> list[str]:
    """The caller's own properties and options win. Raises TargetError when there is no Java."""
    properties = {**_properties(home, release, port), **release.jvm_properties, **jvm_properties}
    defines = [f"-D{key}={value}" for key, value in properties.items()]
    heap = "-Xmx384m" if release.is_whole else "-Xmx256m"
    return [find_java(), "-Xms64m", heap, _STARTS_SOON, *jvm_options, *defines, "-cp", class_path(jars), release.main]


def find_java() -> str:
    """JAVA_HOME's java, else the one on the path. Raises TargetError when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java") if home else "java") or shutil.which("java")
    if java is None:
        raise TargetError("no Java found: install Java 17 or newer, or point JAVA_HOME at it")
    return java


def _properties(home: Path, release: NacosRelease, port: int) -> dict[str, str]:
    common = {
        "nacos.home": str(home),
        "user.home": str(home),
        "java.io.tmpdir": str(home),  # files of a killed server are removed with its home
        "nacos.server.ip": HOST,
        "com.alibaba.nacos.client.local.ip": HOST,
        "com.alibaba.nacos.client.naming.local.ip": HOST,
        release.port_key: str(port),
        "server.address": HOST,
        "nacos.standalone": str(release.is_whole).lower(),
        "server.tomcat.accesslog.enabled": "false",
        "server.tomcat.basedir": str(home),
        "server.servlet.contextPath": "/nacos",
        "nacos.logs.path": f"{home}/logs",
        "nacos.core.auth.enabled": "false",
    }
    if release.is_whole:
        return common
    common[release.load_retry_key] = str(LOAD_RETRY_MS)
    if release.auth_configs is None:
        return common
    return {
        **common,
        "spring.main.sources": f"file:{home}/beans.xml",
        "spring.autoconfigure.exclude": _NO_SECURITY,
    }


def _beans(release: NacosRelease) -> str:
    """The beans that the console module would define (docs/real-servers.md#starting)."""
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
    <property name="targetSource">
      <bean class="org.springframework.aop.target.EmptyTargetSource" factory-method="forClass">
        <constructor-arg value="{interface}"/>
      </bean>
    </property>
  </bean>"""
        for interface in release.proxied_beans
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd">
  <bean class="{release.auth_configs}"/>{scanned}{proxies}
</beans>
"""
