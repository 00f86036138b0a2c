"""Failures as files: a scenario and a pytest file each, and those that the user keeps from run to run.

Those of `--database DIR` are replayed before anything new is searched for. They are scenarios, one file each, so that a
user can read, edit and delete them, and a change of the machine that drew them does not invalidate them. A file counts
for the profile and the mutant that it names. A failure that holds again stays in the directory, as a test that costs a
second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from distro_conformance.drivers.registry import ClusterOptions
from distro_conformance.language.replay import replay
from distro_conformance.language.text import Scenario, read
from distro_conformance.verdict import Verdict
from distro_conformance.walks.result import FoundFailure

SUFFIX = ".scenario"
DEFAULT_PROFILE = "strict"


def still_failing(directory: Path, profile: str, mutant: str | None) -> Iterator[tuple[Scenario, str]]:
    """The kept failures that still fail, with the reason. Raises ScenarioError for a file that is no scenario."""
    for file in sorted(directory.glob(f"*{SUFFIX}")):
        scenario = read(file)
        if (scenario.profile or DEFAULT_PROFILE, scenario.mutant) != (profile, mutant):
            continue
        found = replay(scenario, target="embedded", options=ClusterOptions(profile=profile, mutant=mutant))
        if found.verdict is Verdict.VIOLATES:
            last = found.steps[-1]
            yield (
                scenario,
                f"{file.name} fails again: line {last.line} '{last.text}' at {last.at_ms} ms: {last.outcome}",
            )


def save_scenario(directory: Path, scenario: Scenario, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}{SUFFIX}"
    path.write_text(scenario.render(), encoding="utf-8")
    return path


def save_failure(failure: FoundFailure, directory: Path, name: str) -> tuple[Path, Path]:
    """Write `NAME.scenario` and `test_NAME.py`; returns both paths."""
    scenario = save_scenario(directory, failure.scenario, name)
    test = directory / f"test_{name.replace('-', '_')}.py"
    test.write_text(pytest_file(failure.scenario, name, failure.target), encoding="utf-8")
    return scenario, test


def pytest_file(scenario: Scenario, name: str, target: str = "embedded") -> str:
    """The text of `test_NAME.py`: it fails by itself until the scenario holds."""
    return _TEXT.format(name=re.sub(r"\W", "_", name), text=scenario.render(), target=target)


_TEXT = '''"""A failing run, saved by distrocheck. It fails until the nodes do what the model allows."""

from distro_conformance.language.replay import assert_scenario

SCENARIO = """
{text}"""


def test_{name}() -> None:
    assert_scenario(SCENARIO, target="{target}")
'''
