"""Java is checked before Spark starts it; an unusable Java is reported in one line; processes that it started end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from distro_spark.errors import JavaMissingError, SessionError
from distro_spark.java import JAVA_MIN, require_java
from distro_spark.session import local_session
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder


def java_home(directory: Path, script: str) -> str:
    """A directory with a `java` that runs `script`."""
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize(
    ("says", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "25-ea" 2025-09-16', 25),
    ],
)
def test_a_java_that_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, major: int) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, f"echo '{says}' >&2"))
    assert require_java() == major >= JAVA_MIN


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11, the trace check needs 17 or later"),
        ("echo 'java version \"1.8.0_402\"' >&2", "is Java 8, the trace check needs 17 or later"),
        ("echo hello", "does not say its version"),
        ("exit 3", "does not run"),
    ],
)
def test_an_unusable_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, script))
    with pytest.raises(JavaMissingError, match=said) as raised:
        require_java()
    assert "\n" not in str(raised.value)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissingError, match="does not run"):
        require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError, match="no Java found, the trace check needs 17 or later; install one"):
        require_java()


def refused(_: object) -> None:
    raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})


@pytest.mark.parametrize(
    ("master", "said"),
    [("bogus://x", "no Spark master 'bogus://x'"), ("spark://x:7077", "does not start on spark://x:7077: .*GATEWAY")],
)
def test_where_spark_does_not_start_is_one_line(monkeypatch: pytest.MonkeyPatch, master: str, said: str) -> None:
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refused)
    with pytest.raises(SessionError, match=said) as raised:
        local_session(master)
    assert "\n" not in str(raised.value)


@pytest.mark.spark
@pytest.mark.slow
def test_a_check_that_is_terminated_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    """SIGTERM after Spark has begun to write, sent to the started process alone, as by a supervisor."""
    with Recorder(tmp_path / "traces", "r1", profile="strict", target="test", nodes=["a"]) as recorder:
        recorder.record("a", Kind.NODE_STARTED, at_ms=0, detail="a")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    places = {name: str(scratch) for name in ("TMPDIR", "SPARK_LOCAL_DIRS")}
    java = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={scratch}"}
    command = str(Path(sys.executable).with_name("distrocheck"))
    check = [command, "check", str(tmp_path / "traces"), "--engine", "spark"]
    checking = subprocess.Popen(
        check,
        env={**os.environ, **places, **java},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _until(lambda: any(scratch.glob("blockmgr-*")), "Spark does not start")
    checking.terminate()
    assert checking.wait(timeout=60) == -signal.SIGTERM
    _until(lambda: not _of_session(checking.pid), "a process is left")
    _until(lambda: not any(scratch.iterdir()), "a file is left")


def _of_session(leader: int) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
    return found


def _until(is_so: Callable[[], bool], otherwise: str, seconds: float = 60) -> None:
    end_s = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end_s, otherwise
        time.sleep(0.1)
