"""Results that the CI of this repository accepts: `.ci/run` with programs in place of the long ones that it starts."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from blocks import block
from programs import ROOT, Call, Ran, executed


def ci_run(directory: Path, *, maven: int = 0, gate: int = 0, set_to: str = "", **budgets: str) -> Ran:
    """The script where `make` succeeds, the jars are asked for with the exit code `maven`, and the gate ends with
    `gate`. Its cache is `directory`/cache; `set_to`: NACOS_DISTRIBUTION. Budgets as it says, but for a stage in
    `budgets`."""
    (directory / ".ci").mkdir()
    (directory / ".venv" / "bin").mkdir(parents=True)
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    for target, minutes in budgets.items():
        script = re.sub(rf"stage \d+ make {target}", f"stage {minutes} make {target}", script)
    (directory / ".ci" / "run").write_text(script, encoding="utf-8")
    programs = {
        ".venv/bin/distrocheck": f'$([ "$1" = fetch-nacos ] && echo {maven} || echo {gate})',
        "bin/make": 0,
        "bin/chromium": 0,
        "bin/pg_ctlcluster": 0,
    }
    (directory / "bin").mkdir()
    for name, code in programs.items():
        wait = "sleep 2\n" if budgets and name == "bin/make" else ""
        (directory / name).write_text(f'#!/bin/sh\necho "$0 $*" >> {directory}/called\n{wait}exit {code}\n')
        (directory / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{directory / 'bin'}:{os.environ['PATH']}", "NACOS_DISTRIBUTION": set_to}
    environment |= {"DISTROCHECK_CACHE": str(directory / "cache")}
    return executed("bash", directory / ".ci" / "run", env=environment)


def test_only_that_maven_cannot_resolve_the_jars_excuses_the_real_server(tmp_path: Path) -> None:
    ran = ci_run(tmp_path, maven=4, gate=1)
    assert ran.returncode == 0, ran.stderr
    assert "NOT JUDGED, Maven cannot resolve its jars here" in ran.stdout
    assert "gate --target nacos" not in (tmp_path / "called").read_text()


@pytest.mark.parametrize("code", [1, 2, 3, 4, 70])
def test_with_the_jars_at_hand_every_other_result_is_red(tmp_path: Path, code: int) -> None:
    assert ci_run(tmp_path, maven=0, gate=code).returncode == code


def test_a_pass_is_a_pass(tmp_path: Path) -> None:
    assert ci_run(tmp_path, maven=0, gate=0).returncode == 0
    assert "fetch-nacos 2.2.4" in (tmp_path / "called").read_text()


def test_a_current_release_is_judged_where_there_is_a_distribution(tmp_path: Path) -> None:
    def judged(directory: Path, **options: str) -> list[str]:
        ran = ci_run(directory, **options)
        assert ran.returncode == 0, ran.stderr
        targets = re.findall(r"gate --target nacos:(/\S+)", (directory / "called").read_text())
        assert ("current release: NOT JUDGED" in ran.stdout) is (targets == [])
        return targets

    nowhere, cached, named = (tmp_path / name for name in ("nowhere", "cached", "named"))
    for version in ("3.0.3", "3.0.10", "2.5.1"):
        (cached / "cache" / "distributions" / f"nacos-{version}").mkdir(parents=True)
    for directory in (nowhere, named):
        directory.mkdir()
    assert judged(nowhere) == []
    assert judged(cached) == [str(cached / "cache" / "distributions" / "nacos-3.0.10")]
    assert judged(named, set_to="/opt/nacos") == ["/opt/nacos"]


def test_the_sample_for_current_releases_has_requirement_ids(call: Call) -> None:
    """The command of the script, with reference nodes in the place of the distribution."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    [sample] = re.findall(r"sample=\((.*)\)", script)
    options = [f"--requirement=DISTRO-{each}" for each in sample.split()]
    ran = call("test", "node", "--target", "embedded", "--profile", "nacos-3.0.3", *options)
    assert ran.returncode == 0, ran.stdout
    assert "0 not judged" in ran.stdout


def test_the_two_commands_of_the_readme_are_run(tmp_path: Path) -> None:
    """The whole of `make test`, which leaves out slow tests."""
    assert ci_run(tmp_path).returncode == 0
    called = re.findall(r"/make (\S+)", (tmp_path / "called").read_text())
    shown = re.findall(r"^make (\S+)", block("README.md", "make gate"), re.MULTILINE)
    assert shown == ["gate", "test"]
    assert {"gate", "test-all"} <= set(called)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    java = "\t@sh tools/preflight.sh java\n"
    assert f'\ntest: $(READY)\n{java}\t@$(PYTEST) -m "not slow"\n' in makefile
    assert f"\ntest-all: $(READY) $(SPARK_CLASSES)\n{java}\t@$(PYTEST)\n" in makefile


def test_a_stage_that_is_over_its_budget_is_red_and_says_so(tmp_path: Path) -> None:
    ran = ci_run(tmp_path, lint="0.0001")
    assert ran.returncode == 124, ran.stdout
    assert "stage 'make lint': over its budget" in ran.stdout
    called = tmp_path / "called"  # perhaps the stage was over its budget before its program had begun
    assert not called.exists() or "make gate" not in called.read_text()


def test_the_budgets_have_room_for_a_slow_machine_and_not_for_an_hour_and_a_half() -> None:
    """All stages take less than an hour, also where each takes twice as long as usual."""
    budgets = re.findall(r"^ *stage (\d+) ", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert len(budgets) == 5
    assert sum(map(int, budgets)) <= 80
