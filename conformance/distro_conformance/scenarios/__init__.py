"""The scenarios that the kit itself plays, as files beside this one; those that only teach are in the repository.

`provoking/` has what provokes a mutant: in each scenario `strict` does no wrong, and the mutants that its first line
names cannot do right. Written after the triggers that the catalogue of bugs names, as short as they become.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from distro_conformance.language.text import Scenario, parse

RECORDED_LIFE = "recorded-life"


def scenario_path(name: str) -> Path:
    return Path(str(resources.files(__package__))) / f"{name}.scenario"


def scenario_named(name: str) -> Scenario:
    path = scenario_path(name)
    return parse(path.read_text("utf-8"), path.name)


@cache
def provoking() -> Mapping[str, Scenario]:
    """By mutant. Each ends with a checkpoint."""
    files = sorted(resources.files(__package__).joinpath("provoking").iterdir(), key=lambda file: file.name)
    scenarios = [parse(file.read_text("utf-8"), file.name) for file in files]
    return {mutant: scenario for scenario in scenarios for mutant in scenario.comment.splitlines()[0].split()}
