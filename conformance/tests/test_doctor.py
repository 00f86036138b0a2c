"""A missing part of the machine is reported in one line with its remedy."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from distro_conformance import doctor
from distro_conformance.targets.ports import free_base_ports


def look(name: str) -> tuple[str, str]:
    return doctor.CHECKS[name]()


def test_every_check_states_its_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_reaches_a_repository", lambda _: True)  # Maven has tests of its own
    checks = list(doctor.examine())
    assert [check.name for check in checks] == list(doctor.CHECKS)
    assert all(check.found and "\n" not in check.found + check.advice for check in checks)


def test_a_java_that_is_not_there_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/java/here")
    found, advice = look("java")
    assert found == "none that will do"
    assert "install Java 17" in advice


def test_without_maven_real_servers_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look("maven") == ("not installed", "install Maven; it fetches the real servers of --target nacos:VERSION")


def test_a_maven_that_fails_reaches_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mvn").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path / "cache"))
    found, advice = look("maven")
    assert found == "Maven, which reaches no repository"
    assert "DISTROCHECK_CACHE" in advice


def test_a_taken_port_that_serve_would_need_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (base,) = free_base_ports(1)
    monkeypatch.setattr(doctor, "SERVE_PORT", base)
    assert look("ports")[1] == ""
    with socket.create_server(("127.0.0.1", base + 1001)):
        found, advice = look("ports")
    assert found == f"{base + 1001} is in use"
    assert "--port" in advice
