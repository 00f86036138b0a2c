"""Which extra of the package brings what a verb has found missing.

The base install is what a cluster in somebody's tests needs; what is heavy stands in extras (pyproject.toml). The
modules are imported where they are used, and this table turns the failing import into the command that mends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

EXTRAS: Mapping[str, str] = {
    "duckdb": "traces",
    "matplotlib": "report",
    "networkx": "explore",
    "numba": "explore",
    "numpy": "explore",
    "scipy": "explore",
    "polars": "traces",
    "pyarrow": "traces",
    "pandas": "spark",
    "cryptography": "tls",
    # Comes with pyspark, and may be imported before it.
    "py4j": "spark",
    "pyspark": "spark",
}
"""By top-level module."""

CHECKOUT_ONLY = "distro_interop"
"""The package beside this one that the wheel leaves out."""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What to install, as a sentence; None for a module that no extra brings."""
    package = (error.name or "").partition(".")[0]
    if package == CHECKOUT_ONLY:
        return (
            "this verb checks the reference node of the repository and is not in the package; "
            "run it in a checkout, after: pip install -e '.[all]'"
        )
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    return f"this needs {package}, which is not installed; install it with: pip install 'distrocheck[{extra}]'"


def absent_extras() -> frozenset[str]:
    """Those of which any module is missing."""
    return frozenset(extra for module, extra in EXTRAS.items() if not _is_installed(module))


def missing_extras(*needed: str) -> str | None:
    """The same for a verb that needs several, before it begins: all in one command."""
    absent = absent_extras()
    if missing := ",".join(extra for extra in needed if extra in absent):
        return f"this needs more than is installed; install it with: pip install 'distrocheck[{missing}]'"
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
