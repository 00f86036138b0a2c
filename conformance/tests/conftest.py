"""Shared by several files of tests: the command, called in this process, and the browser in which pages are opened.

pytest imports test modules without making their directory importable (import mode `importlib`), so what several of
them use, as `promises.py`, is put on the path here.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distro_conformance.cli import COMMAND, main
from distro_conformance.targets.jars import jars_of
from distro_conformance.targets.releases import NacosRelease
from distro_conformance.verdict import TargetError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))
from promises import hold

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def _call(*arguments: str) -> subprocess.CompletedProcess[str]:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", [COMMAND, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code or 0
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def call() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`distrocheck` with these arguments in this process, which saves the seconds that starting takes."""
    return _call


@pytest.fixture(scope="session")
def document() -> Callable[..., tuple[int, dict[str, Any]]]:
    """Exit code and document of such a call; it has what its schema promises and nothing else."""

    def read(*arguments: str) -> tuple[int, dict[str, Any]]:
        ran = _call(*arguments, "--json")
        found = json.loads(ran.stdout)
        hold(found, found["schema"].split("/")[1])
        return ran.returncode, found

    return read


@pytest.fixture(scope="session")
def need_release() -> Callable[..., None]:
    """Skips where the servers of one of these releases cannot be fetched, with the reason. Tests that use it run one
    after the other (conftest.py of the checkout)."""

    def need(*releases: NacosRelease) -> None:
        if shutil.which("java") is None:
            pytest.skip("there is no Java here")
        for release in releases:
            try:
                asyncio.run(jars_of(release, print))
            except TargetError as error:
                pytest.skip(f"Nacos {release.version} cannot be fetched: {error}")

    return need


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program `distrocheck` is in the path, as after an installation."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.fixture(scope="class")
def browser() -> Iterator[Browser]:
    """For the tests of a class: while it is there an event loop runs in this thread, and other tests need their own."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    assert CHROMIUM, "these tests need Chromium on the path; on Debian: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
