"""What holds for tests of every folder: which of them must run in one process, that a busy machine fails none, and that
one may be a coroutine."""

from __future__ import annotations

import asyncio
import gc
import inspect
from typing import Any

import pytest
from hypothesis import settings

gc.disable()  # while the tests are collected: what is made then stays until the end
settings.register_profile("no hurry", parent=settings.default, deadline=None)
settings.load_profile("no hurry")

REAL_TIMEOUT_S = 60.0
"""Of a test that is a coroutine."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the Spark session share it, and those that start Spark in a process of their own need not wait for
    them. Real servers run for one test at a time: on a machine that also runs the servers of other tests, much of what
    they do in real time is not judged. The blocks of a page go on where the one before ended. The quick tests of the
    model share the search, which its first user compiles for some seconds, and the tests that use a fixture of their
    module share it: each process would make it again."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "need_release" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("real servers"))
        elif item.path.suffix == ".md":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
            item.add_marker(pytest.mark.slow)
        elif item.path.parts[-3] == "model" and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.xdist_group("model"))
        elif item.get_closest_marker("xdist_group") is None and _uses_the_module(item):
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def _uses_the_module(item: pytest.Item) -> bool:
    """Whether the test uses a fixture that is made once for its module."""
    fixtures = getattr(item, "_fixtureinfo", None)
    return fixtures is not None and any(made[-1].scope == "module" for made in fixtures.name2fixturedefs.values())


def pytest_collection_finish() -> None:
    """What stays until the end, some million objects, is looked at by no garbage collection, which else is a tenth of
    all work. A collection for each 700 new objects, as Python does it, would be a thirtieth."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(_bounded(pyfuncitem.obj, arguments))
    return True


async def _bounded(test: Any, arguments: dict[str, Any]) -> None:
    """What a fixture gave and has to be closed, is closed in the same event loop."""
    try:
        await asyncio.wait_for(test(**arguments), REAL_TIMEOUT_S)
    finally:
        for value in arguments.values():
            if inspect.iscoroutinefunction(close := getattr(value, "close", None)):
                await close()
