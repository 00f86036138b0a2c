"""The values that `--target` accepts, and its errors for others."""

from __future__ import annotations

import asyncio
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from distro_conformance.drivers.registry import ClusterOptions, resolve_cluster
from distro_conformance.gate.options import BUDGETS, GateOptions
from distro_conformance.gate.run import Gate
from distro_conformance.node_mutants import MUTANTS, Mutant
from distro_conformance.release import disagreements, judged_as, listed_profile, numbers_of
from distro_conformance.targets import embedded
from distro_conformance.targets.credentials import IDENTITY
from distro_conformance.targets.embedded import EmbeddedTarget
from distro_conformance.targets.jars import class_path
from distro_conformance.targets.nacos import release_and_jars
from distro_conformance.targets.nacos_home import ALL_COMPILERS, server_command, write_home
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.releases import OF_3, RELEASES
from distro_conformance.verdict import UsageError
from distro_impl.profiles import PROFILES, Profile
from distro_model.profiles import RELEASES as OF_MODEL
from distro_model.profiles import UnknownProfileError
from distro_model.profiles import profile_named as rules_named


def test_a_target_brings_its_own_profile() -> None:
    assert resolve_target("embedded").profile == "strict"
    assert resolve_target("embedded", "nacos-2.0.4").profile == "nacos-2.0.4"
    assert resolve_target("nacos:2.2.4").profile == "nacos-2.2.4"


def test_a_directory_of_jars_is_a_target_of_the_release_that_it_holds(tmp_path: Path) -> None:
    (tmp_path / "nacos-naming-2.3.2.jar").touch()

    assert resolve_target(f"nacos:{tmp_path}").profile == "nacos-2.3.2"


@pytest.mark.parametrize(
    ("version", "needs_as"),
    [("2.0.3", "2.0.4"), ("2.1.0", "2.1.1"), ("2.2.0.1", "2.2.3"), ("2.2.5", "2.2.4"), ("2.4.3", "2.3.2")],
)
def test_jars_of_an_unlisted_release_start_like_the_nearest_one_and_are_judged_as_their_own_release(
    tmp_path: Path, version: str, needs_as: str
) -> None:
    (tmp_path / f"nacos-naming-{version}.jar").touch()
    assert resolve_target(f"nacos:{tmp_path}").profile == f"nacos-{version}"
    assert release_and_jars(str(tmp_path))[1] == replace(RELEASES[needs_as], version=version)


def test_a_distribution_is_a_target_of_the_release_in_its_runnable_jar(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISTROCHECK_CACHE", str(tmp_path / "cache"))
    runnable = tmp_path / "nacos" / "target" / "nacos-server.jar"
    runnable.parent.mkdir(parents=True)
    with zipfile.ZipFile(runnable, "w") as archive:
        archive.writestr("BOOT-INF/classes/com/alibaba/nacos/Nacos.class", b"the console")
        for name in ("nacos-naming-2.3.2", "nacos-common-2.3.2", "nacos-client-2.3.2"):
            archive.writestr(f"BOOT-INF/lib/{name}.jar", name)
    assert resolve_target(f"nacos:{tmp_path / 'nacos'}").profile == "nacos-2.3.2"
    assert resolve_cluster(f"nacos:{tmp_path / 'nacos'}", ClusterOptions()).profile == "nacos-2.3.2"
    (jars,) = (tmp_path / "cache" / "nacos").iterdir()
    assert {jar.read_text() for jar in jars.glob("*.jar")} == {
        f"nacos-{each}-2.3.2" for each in ("naming", "common", "client")
    }
    ordered = ["classes", "nacos-naming-2.3.2.jar", "nacos-common-2.3.2.jar", "nacos-client-2.3.2.jar"]
    assert [Path(each).name for each in class_path(jars).split(os.pathsep)] == ordered, "as in the archive"
    assert (jars / "classes/com/alibaba/nacos/Nacos.class").read_bytes() == b"the console"
    runnable.write_bytes(b"no archive")
    with pytest.raises(UsageError, match=f"the jars of {runnable} cannot be extracted: File is not a zip file"):
        resolve_target(f"nacos:{tmp_path / 'nacos'}")


def test_a_server_of_3x_is_started_by_its_own_main_class_and_shows_an_identity(tmp_path: Path) -> None:
    """A build of a release is that release; the text after its number is ignored."""
    (tmp_path / "nacos-naming-3.1.0-SNAPSHOT.jar").touch()
    directory, release = release_and_jars(str(tmp_path))
    assert directory == tmp_path
    assert release == replace(OF_3, version="3.1.0")
    assert resolve_target(f"nacos:{tmp_path}").member_headers == {IDENTITY.key: IDENTITY.value}
    write_home(tmp_path, release, ["127.0.0.1:8848"])
    assert not (tmp_path / "beans.xml").exists(), "its main class defines all beans"

    command = server_command(tmp_path, release, tmp_path, 8848, {})

    assert command[-1] == "com.alibaba.nacos.bootstrap.NacosBootstrap"
    assert {"-Dnacos.server.main.port=8848", f"-Dnacos.core.auth.server.identity.key={IDENTITY.key}"} < set(command)
    assert not [each for each in command if each.startswith(("-Dserver.port", "-Dspring.main.sources"))]


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("3.1.0-SNAPSHOT", "3.1.0"),
        ("2.5.1-vendor.2", "2.5.1"),
        ("2.2.0.1", "2.2.0.1"),
        ("3.0.3_r4", "3.0.3"),
        ("x", "x"),
    ],
)
def test_a_suffix_of_the_number_of_a_release_is_ignored(version: str, numbers: str) -> None:
    assert numbers_of(version) == numbers


@pytest.mark.parametrize(
    ("spec", "profile", "mutant", "message"),
    [
        ("zookeeper", None, None, "no target 'zookeeper'; known: embedded, nacos:VERSION"),
        ("embedded:x", None, None, "takes no argument"),
        ("embedded", "nacos-9.9.9", None, "nacos-9.9.9.*known: nacos-2.0.0"),
        ("embedded", None, "B99", "B99.*most like it: B"),
        ("nacos:9.9.9", None, None, "Maven has no Nacos release '9.9.9'; known: 2.0.4"),
        ("nacos:", None, None, "Maven has no Nacos release ''"),
        ("nacos:/dev", None, None, "no directory with the jars"),
        ("nacos:2.2.4", "strict", None, "behaves as nacos-2.2.4, not as strict"),
        ("nacos:2.2.4", None, "B99", "a real server has no mutant 'B99'; 'distrocheck list mutants' shows all"),
        ("nacos:2.2.4", None, "B43", r"a real server has no mutant 'B43'; the model has it \(level model\)"),
        ("embedded", None, "m-no-verify", r"a real server has it \(level real\)"),
        ("process:x {port}", "nacos-9", None, "no profile 'nacos-9'; known: nacos-2.0.0"),
        ("attach:h:1,h:2,h:1", None, None, "attach:h:1,h:2,h:1 names h:1 twice; name each once"),
        ("attach:127.0.0.1:9", "nacos-2.2", None, "no profile 'nacos-2.2'; known: nacos-2.0.0"),
    ],
)
def test_an_impossible_target_is_refused_in_one_line(
    spec: str, profile: str | None, mutant: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        resolve_target(spec, profile, mutant)

    assert "\n" not in str(caught.value)


def test_the_client_with_its_shaded_classes_comes_last(tmp_path: Path) -> None:
    for name in ("nacos-client-2.5.1.jar", "nacos-common-2.5.1.jar", "zookeeper-1.jar"):
        (tmp_path / name).touch()
    names = [Path(each).name for each in class_path(tmp_path).split(os.pathsep)]
    assert names == ["nacos-common-2.5.1.jar", "zookeeper-1.jar", "nacos-client-2.5.1.jar"]


def test_hessian_4_comes_before_hessian_3(tmp_path: Path) -> None:
    for name in ("asm-6.0.jar", "hessian-3.3.6.jar", "hessian-4.0.63.jar", "zookeeper-1.jar"):
        (tmp_path / name).touch()

    path = class_path(tmp_path)

    assert path.index("hessian-4.0.63.jar") < path.index("hessian-3.3.6.jar")
    assert path.count(".jar") == 4


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_a_home_lists_the_members_of_the_server_and_nothing_listens_elsewhere(release, tmp_path: Path) -> None:
    write_home(tmp_path, release, ["127.0.0.1:8848", "127.0.0.1:8858"])

    assert (tmp_path / "conf/cluster.conf").read_text() == "127.0.0.1:8848\n127.0.0.1:8858\n"
    assert release.auth_configs in (tmp_path / "beans.xml").read_text()


def test_the_callers_properties_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(_a_java(tmp_path)))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    command = server_command(tmp_path, RELEASES["2.2.4"], tmp_path, 8848, {"nacos.core.auth.enabled": "true"})

    assert "-Dnacos.core.auth.enabled=true" in command
    assert "-Dnacos.core.auth.enabled=false" not in command
    assert f"-Djava.io.tmpdir={tmp_path}" in command, "a server that is killed leaves its temporary files there"


def test_the_callers_options_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java uses the later one of two options with one name."""
    monkeypatch.setenv("PATH", str(_a_java(tmp_path)))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    command = server_command(tmp_path, RELEASES["2.2.4"], tmp_path, 8848, {}, [ALL_COMPILERS])

    tiers = [option for option in command if option.startswith("-XX:TieredStopAtLevel")]
    assert len(tiers) > 1
    assert tiers[-1] == ALL_COMPILERS


def _a_java(directory: Path) -> Path:
    java = directory / "java"
    java.touch(mode=0o755)
    return directory


def test_a_node_is_broken_last_so_that_nothing_repairs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option that nodes know their members from the start must not undo the mutant, also in a fresh target."""
    monkeypatch.setitem(MUTANTS, "m-shy", Mutant("m-shy", "", {"connects_to_reported_only": True}))
    started: list[Profile] = []
    monkeypatch.setattr(embedded, "Node", lambda config, **_: started.append(config.profile))
    broken = EmbeddedTarget("strict", "m-shy")
    for each in (broken, broken.fresh()):
        with pytest.raises(AttributeError):  # there is no node to start
            asyncio.run(each.start((), print))
    assert [(each.connects_to_reported_only, each.mutant and each.mutant.id) for each in started] == [
        (True, "m-shy")
    ] * 2


def test_a_profile_is_known_to_node_and_model_alike() -> None:
    for name in (*PROFILES, "nacos-2.2.3", "nacos-2.2.44", "nacos-3.1.0"):
        assert name in PROFILES or listed_profile(name) in PROFILES
        assert rules_named(name).name == name


RELEASED = {"2.0": 5, "2.1": 3, "2.2": 5, "2.3": 3, "2.4": 4, "2.5": 3, "3.0": 4, "3.1": 2}
"""The number of the last release of each generation."""


def test_a_release_behaves_as_the_same_profile_in_the_model_and_the_node() -> None:
    """For a release between two listed ones, node and model must choose the same one of the two."""
    names = [f"nacos-{generation}.{number}" for generation, last in RELEASED.items() for number in range(last + 1)]
    taken = {name: (rules_named(name), replace(rules_named(listed_profile(name)), name=name)) for name in names}
    assert [name for name, (model, node) in taken.items() if model != node] == []


VERSIONS = [each.version for each in PROFILES.values() if each.name != "strict"]
SPANS = [each.span for each in OF_MODEL]


def test_the_lists_of_releases_of_node_and_model_agree() -> None:
    """If node or model does not list a release, both judge it as the same listed one, or neither judges it."""
    assert disagreements(VERSIONS, SPANS) == []


def test_a_release_that_only_one_list_has_is_reported() -> None:
    newer = [*VERSIONS, "3.2.0"]
    assert disagreements(newer, SPANS) == [
        "the model was not read at 3.2.0",
        "the node's last release is 3.2.0, the model's 3.1.0",
    ]
    assert disagreements(newer, [*SPANS, "3.2.0"]) == []
    assert disagreements(VERSIONS, [*SPANS, "3.2.0"]) == ["the node's last release is 3.1.0, the model's 3.2.0"]
    assert disagreements(VERSIONS, SPANS[:-3] + SPANS[-2:]) != [], "a gap in the model's spans"


@pytest.mark.parametrize(
    ("profile", "note"),
    [
        ("nacos-3.1.2", "nacos-3.1.2 is judged as nacos-3.1.0, the last release known here"),
        ("nacos-3.0.7", "nacos-3.0.7 is judged as nacos-3.0.3, which behaves the same"),
        ("nacos-3.1.0", None),
        ("nacos-3.0.1", "nacos-3.0.1 is judged as nacos-3.0.3, which behaves the same"),
        ("nacos-2.4.1", "nacos-2.4.1 is judged as nacos-2.4.0, which behaves the same"),
        ("nacos-3.0.3", None),
        ("strict", None),
        ("nacos-4.0.0", None),
    ],
)
def test_a_note_names_the_release_as_which_an_unlisted_one_is_judged(
    profile: str, note: str | None, tmp_path: Path
) -> None:
    assert judged_as(profile) == note
    described = tmp_path / "server.toml"
    described.write_text(f"command = ['x', '{{port}}']\nprofile = '{profile}'")
    if profile != "nacos-4.0.0":
        gate = Gate(GateOptions(target=f"process:{described}", budget=BUDGETS["quick"], seed=0, out=tmp_path / "out"))
        assert gate.scope.startswith(f"{note}; node on " if note else "node on ")


def test_a_profile_is_unknown_to_node_and_model_alike() -> None:
    for name in ("nacos-1.4.7", "nacos-2", "nacos-2.2", "nacos-4.0.0", "nacos-2.2.x", "2.2.4", "", "Strict"):
        hint = " (a release is named nacos-2.2.4)" if name == "2.2.4" else ""
        unknown = re.escape(f"no profile '{name}'{hint}; known: nacos-2.0.0, ")
        with pytest.raises(UsageError, match=unknown):
            listed_profile(name)
        with pytest.raises(UnknownProfileError, match=unknown):
            rules_named(name)
