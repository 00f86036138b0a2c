"""What holds for tests of every folder: which of them must run in one process, and that a busy machine fails none."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("no hurry", parent=settings.default, deadline=None)
settings.load_profile("no hurry")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Spark share one session; the blocks of a page go on where the one before ended."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.path.suffix == ".md":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
            if item.path.name != "tutorial.md":
                item.add_marker(pytest.mark.slow)
