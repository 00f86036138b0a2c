"""The package as a user installs it: a wheel in an empty environment, far from any checkout.

Every verb of the base install works there or says which extra it needs; nothing that the wheel leaves out is missed.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from blocks import block
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from programs import ROOT, Call, Ran, executed, two_ports

from distro_conformance.cli import VERBS
from distro_conformance.extras import EXTRAS

BASE_MB_MAX = 80
DONE_WITHOUT = {
    "uvloop",  # a faster loop where it is
    "pytest",  # users of the plugin have it
    "v2",  # the official SDK, in the program that tries it
    "llvmlite",  # comes with numba, after which alone it is imported
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with wheel and source distribution; the wheel is made from the latter."""
    out = tmp_path_factory.mktemp("dist")
    executed(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, check=True)
    return out


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Call:
    """`uv` or `uvx`, which keep what they fetch until the end of these tests. They are quicker than pip, which installs
    what the tutorial says."""
    place = tmp_path_factory.mktemp("uv")
    kept = {"UV_CACHE_DIR": str(place / "cache"), "UV_TOOL_DIR": str(place / "tools")}

    def command(program: str, *arguments: str | Path, **options: Any) -> Ran:
        return executed(Path(sys.executable).with_name(program), *arguments, env={**os.environ, **kept}, **options)

    return command


@pytest.fixture(scope="module")
def installed(built: Path, uv: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which there is the wheel and what it depends on, nothing else."""
    place = tmp_path_factory.mktemp("environment")
    uv("uv", "venv", "-q", "--clear", "--python", sys.executable, place, check=True)
    (wheel,) = built.glob("*.whl")
    uv("uv", "pip", "install", "-q", "--python", place, wheel, check=True)
    return place


@pytest.fixture(scope="module")
def with_pytest(installed: Path, uv: Call) -> Path:
    """The same environment. Tests of it stand last: the verbs need no pytest."""
    uv("uv", "pip", "install", "-q", "--python", installed, "pytest", check=True)
    return installed


@pytest.fixture(scope="module")
def run(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Call:
    """`distrocheck` in a directory in which there are a scenario and the logs of a server, and nothing else."""
    directory = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(ROOT / "traces" / "tests" / "data" / "nacos-2.2.4", directory / "logs")
    life = "nodes a b\nconnect c1 a\nregister c1 web 10.0.0.1:80\nadvance 2s\nexpect b has c1\n"
    (directory / "life.scenario").write_text(life)

    def command(*arguments: str) -> Ran:
        return executed(installed / "bin" / "distrocheck", *arguments, cwd=directory)

    return command


WORKS = (
    ("--version",),
    ("list", "requirements"),
    ("explain", "B24"),
    ("mutants",),
    ("list", "mutants"),
    ("list", "profiles"),
    ("doctor",),
    ("replay", "life.scenario"),
    ("replay", "life.scenario", "--target", "model"),
    ("test", "node", "--requirement", "DISTRO-SYNC-001"),
    ("test", "node", "--machine", "--examples", "1", "--steps", "5"),
    ("import", "nacos-logs", "logs"),
    ("ui", "--help"),
    ("serve", "--help"),
    ("audit", "--help"),
    ("fetch-nacos", "--help"),
)
IN_CHECKOUT = (("test", "differential"), ("test", "sdks"))
"""They test the reference node of this repository; the wheel does not have them."""
NEEDS = {
    ("gate",): "explore,report,traces",
    ("check", "."): "traces",
    ("explore",): "explore",
    ("test", "cluster"): "explore",
    ("mutants", "run", "--mutant", "B02"): "explore,traces",
    ("simulate", "--out", "made"): "traces",
    ("validate", "."): "traces",
    ("compact", ".", "--out", "made"): "traces",
    ("query", "SELECT 1", "."): "traces",
    ("export", ".", "--to", "itf"): "traces",
}


def test_every_verb_is_tried() -> None:
    groups = {"test", "import"}
    tried = (*WORKS, *IN_CHECKOUT, *NEEDS)
    verbs = {(group, verb) if group in groups else (verb,) for group, of in VERBS.items() for verb in of}
    assert [verb for verb in verbs if verb[0] not in {each[0] for each in tried}] == []
    assert [verb for verb in verbs if len(verb) == 2 and verb not in {each[:2] for each in tried}] == []


def in_the_base_install() -> set[str]:
    """Modules of what comes along with a package without extras."""
    names, seen = ["distrocheck"], set[str]()
    while names:
        name = canonicalize_name(names.pop())
        if name not in seen:
            seen.add(name)
            needed = [Requirement(text) for text in requires(name) or ()]
            names += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    brought = packages_distributions().items()
    return {module for module, owners in brought if not seen.isdisjoint(map(canonicalize_name, owners))}


def imported(file: Path) -> Iterator[str]:
    """The packages that a module of the project imports, at any place in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.slow
def test_a_package_that_is_imported_is_in_the_base_or_named_with_its_extra() -> None:
    files = [file for room in ROOT.glob("*/distro_*") for file in room.rglob("*.py")]
    assert len(files) > 500
    foreign = {package for file in files for package in imported(file)} - sys.stdlib_module_names
    foreign = {package for package in foreign if not package.startswith("distro_")}
    assert foreign - in_the_base_install() - EXTRAS.keys() - DONE_WITHOUT == set()


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
@pytest.mark.xdist_group("package")
class TestInstalled:
    @pytest.mark.parametrize("verb", WORKS, ids=" ".join)
    def test_a_verb_of_the_base_install_works(self, run: Call, verb: tuple[str, ...]) -> None:
        done = run(*verb)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("verb", NEEDS, ids=" ".join)
    def test_another_verb_says_which_extra_it_needs(self, run: Call, verb: tuple[str, ...]) -> None:
        done = run(*verb)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        line = done.stderr.splitlines()[-1]
        assert re.search(rf"pip install 'distrocheck\[{NEEDS[verb]}\]'", line), line

    @pytest.mark.parametrize("verb", IN_CHECKOUT, ids=" ".join)
    def test_a_verb_about_the_reference_node_names_the_checkout(self, run: Call, verb: tuple[str, ...]) -> None:
        done = run(*verb)
        assert (done.returncode, done.stdout) == (2, "")
        assert "run it in a checkout" in done.stderr

    def test_the_explorer_opens(self, installed: Path) -> None:
        program = [installed / "bin" / "distrocheck", "ui"]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as explorer:
            try:
                assert explorer.stdout is not None
                browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                with browser.open(explorer.stdout.readline().strip(), timeout=30) as page:
                    assert "<title>" in page.read().decode()
            finally:
                explorer.terminate()

    def test_nodes_are_served_and_audited(self, installed: Path, run: Call) -> None:
        program = [installed / "bin" / "distrocheck", "serve", "--nodes", "2", "--port", str(two_ports())]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as nodes:
            try:
                assert nodes.stdout is not None
                members = [json.loads(nodes.stdout.readline())["address"] for _ in range(2)]
                done = run("audit", "--member", members[0], "--member", members[1], "--interval-s", "0.5")
                assert done.returncode == 3, done.stderr
                assert "0 clients on 2 members: no member holds a client" in done.stdout
            finally:
                nodes.terminate()

    def test_the_list_that_a_release_brings_names_every_package(
        self, installed: Path, uv: Call, tmp_path: Path
    ) -> None:
        """As `make release` writes it; protobuf's licence is missing there, not its name."""
        listed = tmp_path / "sbom.json"
        program = [
            Path(sys.executable).with_name("cyclonedx-py"),
            "environment",
            "--pyproject",
            ROOT / "pyproject.toml",
        ]
        executed(*program, "--output-file", listed, installed / "bin" / "python", check=True)
        listing = ("pip", "list", "--python", installed, "--format", "json", "--exclude", "distrocheck")
        there = json.loads(uv("uv", *listing, check=True).stdout)
        installed_there, named = (
            {(canonicalize_name(each["name"]), each["version"]) for each in of}
            for of in (there, json.loads(listed.read_text())["components"])
        )
        assert installed_there <= named

    def test_types_come_along(self, installed: Path) -> None:
        build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
        packages = [Path(each).name for each in build["targets"]["wheel"]["packages"]]
        assert [name for name in packages if not list(installed.rglob(f"{name}/py.typed"))] == []

    def test_the_node_with_the_plugin_is_light(self, with_pytest: Path) -> None:
        (site,) = with_pytest.glob("lib/python*/site-packages")
        files = [path for path in site.rglob("*") if path.is_file()]
        assert sum(file.stat().st_size for file in files) < BASE_MB_MAX * 1_000_000

    def test_the_fixture_starts_a_cluster(self, with_pytest: Path, tmp_path: Path) -> None:
        test = tmp_path / "test_mine.py"
        test.write_text("def test_mine(distro_cluster):\n    assert len(distro_cluster.addresses) == 3\n")
        done = executed(with_pytest / "bin" / "python", "-m", "pytest", "-q", test, cwd=tmp_path)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("package")
def test_uvx_runs_the_wheel_on_a_machine_that_has_none_of_it(built: Path, uv: Call, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    done = uv("uvx", "--python", sys.executable, "--from", wheel, "distrocheck", "doctor", cwd=tmp_path)
    assert re.match(r"good +python +3\.", done.stdout), done.stderr
    assert "none installed: pip install 'distrocheck[" in done.stdout, "the extras of this environment are not seen"


@pytest.mark.slow
@pytest.mark.xdist_group("package")
def test_the_tutorial_installs_what_its_first_command_needs(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    tracked = executed("git", "ls-files", cwd=ROOT, check=True).stdout.split()
    for name in tracked:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    installation = block("docs/tutorial.md", "python3 -m venv")
    first = "type -p distrocheck && python -m pytest --version && distrocheck replay scenarios/healthy-life.scenario"
    no_bytecode = {**os.environ, "PIP_NO_COMPILE": "1"}  # which takes half of the time
    done = executed("bash", "-c", f"set -e\n{installation}\n{first}", cwd=clone, env=no_bytecode)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{clone}/.venv/bin/distrocheck\n" in f"\n{done.stdout}"
