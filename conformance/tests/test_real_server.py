"""Real child processes: none may be left behind, and a start that fails has a readable error.

The runs against a started Nacos are made by `distrocheck gate --target nacos:2.2.4`; here is what surrounds them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from distro_conformance.node.run import run_node_conformance
from distro_conformance.targets import nacos, watchdog
from distro_conformance.targets.jars import class_path, jars_of
from distro_conformance.targets.nacos import NacosServer, reason_in
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.releases import RELEASES
from distro_conformance.verdict import TargetError, Verdict

RELEASE = RELEASES["2.2.4"]
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="no Java here")
needs_maven = pytest.mark.skipif(shutil.which("mvn") is None, reason="no Maven here")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a child that its parent died")
def test_a_process_with_a_watchdog_dies_with_a_parent_that_was_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, watchdog.__file__, sys.executable], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert _is_running(child)

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    deadline = time.monotonic() + 5
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(child)
    parent.stdout.close()


def test_without_maven_an_empty_cache_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(TargetError, match=r"Maven \(mvn\) is not installed; install Maven, or") as caught:
        asyncio.run(jars_of(RELEASE, lambda _: None))

    assert "\n" not in str(caught.value)
    assert _files_below(tmp_path) == []


@pytest.mark.slow
@needs_maven
def test_maven_offline_with_an_empty_cache_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2" / "settings.xml").write_text("<settings><offline>true</offline></settings>")
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={home}")
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path / "cache"))

    with pytest.raises(TargetError, match="Maven cannot resolve io") as caught:
        asyncio.run(jars_of(RELEASE, lambda _: None))

    assert "\n" not in str(caught.value)
    assert _files_below(tmp_path / "cache") == []


def test_a_filled_cache_needs_no_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    (tmp_path / "nacos" / "2.2.4").mkdir(parents=True)

    assert asyncio.run(jars_of(RELEASE, lambda _: None)) == tmp_path / "nacos" / "2.2.4"


@needs_java
@pytest.mark.wire
def test_a_server_that_ends_while_starting_says_why_and_keeps_its_home(tmp_path: Path) -> None:
    server = _server(tmp_path)  # a directory without jars: Java finds no main class

    with pytest.raises(TargetError, match=r"ended while it was starting: .*NamingApp.*its home: ") as caught:
        asyncio.run(_start_and_close(server))

    assert "\n" not in str(caught.value)
    assert "Caused by: java.lang.ClassNotFoundException" in str(caught.value)
    assert server.console.exists()
    shutil.rmtree(server.home)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("a.b.C: x\nstarting\nup soon", "a.b.C: x | starting | up soon"),
        (
            'Exception in thread "main" java.lang.IllegalStateException: Nacos don\'t start up.\n\tat a.B.c(B.java)\n',
            'Exception in thread "main" java.lang.IllegalStateException: Nacos don\'t start up.',
        ),
        (
            "a.OldException: 1\nCaused by: a.CauseException: 2\n\tat a.B.c(B.java)\n\n"
            "a.b.BeanError: 3\n\tat a.B.c(B.java)\nCaused by: java.net.BindException: 4\n\tat a.B.c(B.java)\n"
            "\t... 8 more\nNacos is shutting down",
            "Caused by: java.net.BindException: 4",
        ),
        (
            "a.BeanError: 1\n\tat a.B.c(B.java)\nCaused by: a.NoSuchBeanException: 2\n\n"
            "ERROR Event listener exception :\n\njava.lang.InterruptedException: null\n\tat a.B.c(B.java)\n",
            "Caused by: a.NoSuchBeanException: 2",
        ),
        ("a.FirstException: 1\nCaused by: a.CauseException: 2\n\nb.LastError: 3\n\tat x\n", "b.LastError: 3"),
        ("", ""),
    ],
)
def test_the_innermost_exception_of_a_failed_start_is_named(log: str, reason: str) -> None:
    assert reason_in(log) == reason


@pytest.mark.parametrize(("failed", "stays"), [(False, False), (True, True)])
def test_an_interrupt_leaves_no_home_but_that_of_a_failed_start(failed: bool, stays: bool) -> None:
    """Also one that leaves the servers no time to be closed."""
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(failed)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert ended.returncode == 130
    home = Path(ended.stdout.splitlines()[0])
    assert home.name.startswith("distrocheck-nacos-")
    assert home.exists() is stays
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.wire
def test_a_server_that_is_not_ready_in_time_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(nacos, "READY_WITHIN_S", 0)
    server = _server(tmp_path)

    with pytest.raises(TargetError, match="is not ready after 0 s"):
        asyncio.run(_start_and_close(server))

    assert server.pid is None
    shutil.rmtree(server.home)


@needs_java
@pytest.mark.wire
@pytest.mark.slow
def test_a_server_laid_out_as_it_is_distributed_is_a_node_under_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    try:
        jars = asyncio.run(jars_of(RELEASE, lambda _: None))
    except TargetError as error:
        pytest.skip(f"INCONCLUSIVE: Nacos {RELEASE.version} cannot be fetched: {error}")
    runnable = tmp_path / "nacos" / "target" / "nacos-server.jar"
    runnable.parent.mkdir(parents=True)
    with zipfile.ZipFile(runnable, "w") as archive:
        for jar in map(Path, class_path(jars).split(os.pathsep)):  # its order is that of the class path
            archive.write(jar, f"BOOT-INF/lib/{jar.name}")
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path / "cache"))

    judged = run_node_conformance(resolve_target(f"nacos:{tmp_path / 'nacos'}"), ["DISTRO-SYNC-001"])

    assert judged.verdict is Verdict.CONFORMS, judged.findings
    assert judged.profile == "nacos-2.2.4"


def _server(jars: Path) -> NacosServer:
    (port,) = free_base_ports()
    return NacosServer(RELEASE, jars, port=port, members=[f"127.0.0.1:{port}"], jvm_properties={})


async def _start_and_close(server: NacosServer) -> None:
    try:
        await server.start()
    finally:
        await server.close()


def _files_below(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def _is_running(pid: int) -> bool:
    """A process that ended and whose new parent has not looked yet does not run any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


_INTERRUPTED = """
import sys
from pathlib import Path
from distro_conformance import interruption
from distro_conformance.targets.nacos import NacosServer
from distro_conformance.targets.releases import RELEASES
server = NacosServer(RELEASES["2.2.4"], Path("."), port=11111, members=[], jvm_properties={})
print(server.home, flush=True)
if sys.argv[1] == "True":
    server._failed("ended")
interruption._end_at_once()
"""
_PARENT = """
import os, subprocess, sys, time
watchdog, python = sys.argv[1:]
child = subprocess.Popen([python, watchdog, str(os.getpid()), python, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""
