"""A scenario as a plain pytest file, to be kept beside other tests: it fails by itself until the scenario holds."""

from __future__ import annotations

import re

from distro_conformance.language.text import Scenario


def pytest_file(scenario: Scenario, name: str, target: str = "embedded") -> str:
    """The text of `test_NAME.py`."""
    return _TEXT.format(name=re.sub(r"\W", "_", name), text=scenario.render(), target=target)


_TEXT = '''"""A failing run, saved by distrocheck. It fails until the nodes do what the model allows."""

from distro_conformance.language.replay import assert_scenario

SCENARIO = """
{text}"""


def test_{name}() -> None:
    assert_scenario(SCENARIO, target="{target}")
'''
