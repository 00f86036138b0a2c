"""The pytest plugin as a user of an installed distrocheck runs it: another pytest run, in another directory."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from programs import Ran, executed

from distro_conformance.plugin import pytest_configure

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "pytest-cluster"

LOADED = """
import sys
def test_the_plugin_is_there_and_has_loaded_nothing_of_weight():
    assert "distro_conformance.plugin" in sys.modules
    heavy = {"grpc", "hypothesis", "aiohttp", "distro_impl", "distro_model", "typer"} & set(sys.modules)
    assert not heavy or "hypothesis" in heavy, heavy  # Hypothesis has a plugin of its own
"""

VIRTUAL = """
import asyncio, pytest
from distro_conformance.verdict import UsageError

pytestmark = pytest.mark.distro(time="virtual", nodes=2, http=False)

def test_requests_held_back_arrive_when_they_are_released(distro_cluster):
    distro_cluster.hold("a", "b")
    for line in ("connect c1 a", "register c1 web 10.0.0.1:80"):
        assert distro_cluster.do(line) == "done"
    distro_cluster.advance("2s")
    assert distro_cluster.held()["b"] == {}
    distro_cluster.release("a", "b")
    assert distro_cluster.do("expect b has c1 web 10.0.0.1:80") == "holds"
    assert distro_cluster.do("query web at b") == "10.0.0.1:80"

def test_an_async_test_awaits_the_same(distro_cluster):
    async def run():
        await distro_cluster.crash("b")
        assert (await distro_cluster.held())["b"] is None
        await distro_cluster.restart("b")
        with pytest.raises(AssertionError, match="b does not have c9"):
            await distro_cluster.do("expect b has c9")
    asyncio.run(run())

def test_a_mistake_is_reported(distro_cluster):
    with pytest.raises(UsageError, match="there is no node 'z'; the nodes are a b"):
        distro_cluster.crash("z")
    with pytest.raises(UsageError, match="'5' is no duration such as"):
        distro_cluster.advance("5")
    with pytest.raises(UsageError, match="unknown verb"):
        distro_cluster.do("crush a")
    with pytest.raises(UsageError, match="there is no step in this line"):
        distro_cluster.do("")

@pytest.mark.parametrize("as_line", [False, True])
def test_a_node_is_up_or_down(distro_cluster, as_line):
    crash = (lambda node: distro_cluster.do(f"crash {node}")) if as_line else distro_cluster.crash
    restart = (lambda node: distro_cluster.do(f"restart {node}")) if as_line else distro_cluster.restart
    with pytest.raises(UsageError, match="a is up") as raised:
        restart("a")
    assert raised.value.__context__ is None
    crash("a")
    with pytest.raises(UsageError, match="a is down"):
        crash("a")
    restart("a")
"""

UNAWAITED = """
import asyncio, pytest

@pytest.mark.distro(time="virtual", nodes=2, http=False)
@pytest.mark.parametrize("line", ["expect b has c9", "expect all agree"])
def test_what_is_not_awaited(distro_cluster, line):
    async def run():
        await distro_cluster.do("connect c1 a")
        distro_cluster.do(line)
    asyncio.run(run())
"""

WRONGLY_MARKED = """
import pytest

@pytest.mark.distro(clock="virtual")
def test_word(distro_cluster): ...

@pytest.mark.distro(nodes="two")
def test_number(distro_cluster): ...

@pytest.mark.distro(profile="nacos-9")
def test_profile(distro_cluster): ...
"""

BROKEN = """
import pytest
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets import registry

@pytest.fixture(scope="session", autouse=True)
def broken():
    registry.EmbeddedTarget = lambda profile, _: EmbeddedTarget(profile, "B18")
    yield
    registry.EmbeddedTarget = EmbeddedTarget
"""


def run_pytest(directory: Path, *arguments: str) -> Ran:
    pytest_here = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=.")
    return executed(*pytest_here, *arguments, cwd=directory, env={"HOME": str(directory), "PATH": "/usr/bin:/bin"})


@pytest.mark.slow
def test_tests_without_the_plugin_do_not_load_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(LOADED)
    ran = run_pytest(tmp_path, "-q")
    assert ran.returncode == 0, ran.stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One run of the next two tests' files: to start pytest costs more than the files."""
    place = tmp_path_factory.mktemp("both")
    (place / "test_virtual.py").write_text(VIRTUAL)
    (place / "test_unawaited.py").write_text(UNAWAITED)
    return run_pytest(place, "-v")


@pytest.mark.wire
def test_faults_in_virtual_time_from_sync_and_async_tests(both: Ran) -> None:
    assert re.findall(r"^test_virtual\.py::\S+ ([A-Z]+)", both.stdout, re.MULTILINE) == ["PASSED"] * 5, both.stdout


@pytest.mark.wire
@pytest.mark.slow
def test_faults_in_virtual_time_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(VIRTUAL)
    ran = run_pytest(tmp_path, "-q", "-n", "2")
    assert ran.returncode == 0, ran.stdout
    assert "5 passed" in ran.stdout


@pytest.mark.wire
def test_a_call_that_an_async_test_does_not_await_is_no_pass(both: Ran) -> None:
    """Its expectation fails where no test looks, or was not judged yet."""
    assert both.returncode == 1, both.stdout
    assert re.findall(r"^ERROR (\S+?)::", both.stdout, re.MULTILINE) == ["test_unawaited.py"] * 2, both.stdout
    assert "2 errors" in both.stdout
    assert "never awaited, so nothing was expected: expect b has c9" in both.stdout


@pytest.mark.slow
def test_a_mark_that_says_nothing_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(WRONGLY_MARKED)
    said = run_pytest(tmp_path, "-q").stdout
    assert "3 errors" in said
    for problem in ("takes http=, nodes=, profile=, time=", "has 2 to 9 nodes and real", "profile 'nacos-9'"):
        assert re.search(rf"E +pytest.UsageError: @pytest.mark.distro.*{problem}", said), said


@pytest.mark.slow
@pytest.mark.wire
def test_the_example_project_works_as_it_stands(tmp_path: Path) -> None:
    example = shutil.copytree(EXAMPLE, tmp_path / "example")
    ran = run_pytest(example, "-q", "--show-capture=no")
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=" ".join)
def test_a_target_that_there_is_not_is_one_mistake(options: tuple[str, ...], tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "--distro-target", "bogus", *options)
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR, ran.stdout
    assert "ERROR: --distro-target: no target 'bogus'; known: embedded" in ran.stderr
    assert "FAILED" not in ran.stdout


@pytest.mark.parametrize(
    ("target", "profile", "expected", "problem"),
    [
        ("process:nope.toml", None, None, "cannot read the description nope.toml: No such file or directory"),
        ("embedded", "nacos-9", None, "no profile 'nacos-9'; known: nacos-2.0.0"),
        ("embedded", None, Path("x.toml"), "--expect-failures and --write-expected are for process:"),
        ("process:x {port}", "strict", Path("x.toml"), "--expect-failures x."),
    ],
)
def test_options_that_name_no_target_are_refused_before_any_test(
    target: str, profile: str | None, expected: Path | None, problem: str
) -> None:
    given = {"--distro-target": target, "--distro-profile": profile, "--distro-expect-failures": expected}
    config: Any = SimpleNamespace(addinivalue_line=lambda *_: None, getoption=given.get)
    with pytest.raises(pytest.UsageError, match=f"--distro-target: {re.escape(problem)}"):
        pytest_configure(config)


@pytest.mark.slow
@pytest.mark.wire
def test_a_target_that_does_not_start_is_started_once(tmp_path: Path) -> None:
    target = "process:sh -c 'echo again >> started; exit 3' {port}"
    ran = run_pytest(tmp_path, "-q", "--distro-target", target, "--distro-profile", "strict", "-k", "DISTRO-SYNC")
    assert ran.returncode == 1, ran.stdout
    assert "ended while it was starting" in ran.stdout
    assert (tmp_path / "started").read_text() == "again\n"


@pytest.mark.wire
def test_each_requirement_is_a_test_of_the_target_and_fails_where_it_is_violated(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(BROKEN)
    (tmp_path / "test_it.py").write_text("def test_first(distro_target): assert distro_target.profile == 'strict'\n")
    some = "test_first or DISTRO-BATCH-002 or DISTRO-SYNC-001"
    ran = run_pytest(tmp_path, "-v", "--distro-target", "embedded", "-k", some)
    assert ran.returncode == 1, ran.stdout
    ends = dict(re.findall(r"(test_first|DISTRO-\S+-\d+)\S* (PASSED|FAILED)", ran.stdout))
    assert ends == {"test_first": "PASSED", "DISTRO-SYNC-001": "PASSED", "DISTRO-BATCH-002": "FAILED"}, ran.stdout
    assert "violates: expected" in ran.stdout
