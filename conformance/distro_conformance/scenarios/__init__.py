"""The scenarios that the kit itself plays, as files beside this one; those that only teach are in the repository."""

from __future__ import annotations

from importlib import resources

from distro_conformance.language.text import Scenario, parse

RECORDED_LIFE = "recorded-life"


def scenario_named(name: str) -> Scenario:
    file = f"{name}.scenario"
    return parse(resources.files(__package__).joinpath(file).read_text("utf-8"), file)
