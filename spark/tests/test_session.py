"""Java is looked at before Spark starts it, and what is wrong with it is said in one line."""

from pathlib import Path

import pytest

from distro_spark.java import JAVA_MIN, JavaMissingError, require_java


def java_home(directory: Path, script: str) -> str:
    """A directory with a `java` that does what `script` says."""
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
def test_a_java_that_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
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
