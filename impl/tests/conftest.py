"""Gives each test a `Lab` that ends with it.

pytest imports test modules without making their directory importable (import mode `importlib`), so the helpers, in
`impl_lab.py`, are put on the path here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from impl_lab import Lab


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Lab:
    """Three-node clusters, faulty links and raw clients on demand. The clusters of a module with OVER_GRPC use real
    gRPC; messages of the others stay in memory, which takes half the time."""
    return Lab(over_grpc=getattr(request.module, "OVER_GRPC", False))
