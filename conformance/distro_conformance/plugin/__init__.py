"""The pytest plugin: a cluster for tests, and the requirements as tests of a target.

Pytest loads this module in every run wherever the kit is installed, so it is light: the nodes, gRPC and the rest are
imported by the fixture or the item that needs them. docs/how-to/pytest.md shows how to use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from distro_conformance.plugin.cluster import TestCluster
    from distro_conformance.plugin.target import TargetRun
    from distro_conformance.verdict import KitError

_MARK = "distro(nodes=3, profile='strict', time='real', http=True): what distro_cluster starts for this test"
_OPTIONS = {"nodes", "profile", "time", "http"}
_OF_TARGET = ("--distro-target", "--distro-profile", "--distro-expect-failures")
_KEY: pytest.StashKey[TargetRun | KitError] = pytest.StashKey()
"""The target, or why it did not start."""
_DEFAULT = "embedded"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("distrocheck", "a cluster of Nacos' Distro protocol, without Java")
    group.addoption(
        "--distro-target",
        metavar="TARGET",
        help="hold this node against the requirements, a test each: embedded, nacos:2.2.4, process:FILE.toml, ...",
    )
    group.addoption("--distro-profile", metavar="PROFILE", help="the behaviour expected of it; default: its own")
    group.addoption(
        "--distro-expect-failures",
        metavar="FILE",
        type=Path,
        help="on process: and attach:, the failures that this file lists are expected, and xfail",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)
    spec, profile, expected = (config.getoption(name) for name in _OF_TARGET)
    if spec is None and profile is None and expected is None:
        return
    from distro_conformance.targets.registry import resolve_target  # noqa: PLC0415
    from distro_conformance.verdict import KitError  # noqa: PLC0415

    try:
        resolve_target(spec or _DEFAULT, profile)
        if expected is not None:
            from distro_conformance.plugin.target import expectations_of  # noqa: PLC0415

            expectations_of(spec or _DEFAULT, expected)
    except KitError as error:  # one usage error instead of a failure of each test
        raise pytest.UsageError(f"--distro-target: {error}") from error


@pytest.fixture
def distro_cluster(request: pytest.FixtureRequest) -> Iterator[TestCluster]:
    """A cluster that SDKs cannot distinguish from Nacos; see `distro_conformance.plugin.cluster.TestCluster`."""
    from distro_conformance.plugin.cluster import started  # noqa: PLC0415 - slow to import
    from distro_conformance.verdict import UsageError  # noqa: PLC0415

    marker = request.node.get_closest_marker("distro") or pytest.mark.distro.mark
    if marker.args or not marker.kwargs.keys() <= _OPTIONS:
        raise pytest.UsageError(f"@pytest.mark.distro takes {', '.join(f'{name}=' for name in sorted(_OPTIONS))}")
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(started(**marker.kwargs))
        except (UsageError, ValueError) as error:
            raise pytest.UsageError(f"@pytest.mark.distro: {error}") from None
        yield cluster
        if cluster.unawaited:
            pytest.fail(f"never awaited, so nothing was expected: {'; '.join(cluster.unawaited)}", pytrace=False)


@pytest.fixture(scope="session")
def distro_target(request: pytest.FixtureRequest) -> TargetRun:
    """The node of `--distro-target` (default: embedded), running: `address`, `profile`, `client()`."""
    return _target(request.config)


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--distro-target") is not None:
        from distro_conformance.plugin.target import requirement_items  # noqa: PLC0415

        items += requirement_items(session, lambda: _target(config))


def pytest_unconfigure(config: pytest.Config) -> None:
    target = config.stash.get(_KEY, None)
    if target is not None and not isinstance(target, Exception):
        target.stop()


def _target(config: pytest.Config) -> TargetRun:
    """Started once, by the first test that needs it; a target that fails to start is not started again by each test."""
    from distro_conformance.plugin.target import TargetRun  # noqa: PLC0415
    from distro_conformance.verdict import KitError  # noqa: PLC0415

    if _KEY not in config.stash:
        spec, profile, expected = (config.getoption(name) for name in _OF_TARGET)
        try:
            config.stash[_KEY] = TargetRun(spec or _DEFAULT, profile, expected)
        except KitError as error:
            config.stash[_KEY] = error
    found = config.stash[_KEY]
    if isinstance(found, Exception):
        raise found
    return found
