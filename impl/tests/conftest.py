"""Runs tests that are coroutines, and gives each a `Lab` that ends with it.

pytest imports test modules without making their directory importable (import mode `importlib`), so the helpers, in
`impl_lab.py`, are put on the path here.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from impl_lab import Lab

REAL_TIMEOUT_S = 60.0


@pytest.fixture
def lab() -> Lab:
    """Three-node clusters, faulty links and raw clients on demand."""
    return Lab()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(_bounded(pyfuncitem.obj, arguments))
    return True


async def _bounded(test: Any, arguments: dict[str, Any]) -> None:
    try:
        await asyncio.wait_for(test(**arguments), REAL_TIMEOUT_S)
    finally:
        for value in arguments.values():
            if isinstance(value, Lab):
                await value.close()
