"""The extra of the package that contains a missing module.

The base install is enough for a cluster in a test suite; heavy packages are in extras (pyproject.toml). The modules are
imported where they are used, and this table turns a failing import into the command that installs the extra.
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
    "pyspark": "spark",
}
"""By top-level module."""

CHECKOUT_ONLY = "distro_interop"
"""The package beside this one that the wheel leaves out."""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """The advice to install, as a sentence; None for a module that is in no extra."""
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
    """The extras with a missing module."""
    return frozenset(extra for module, extra in EXTRAS.items() if not _is_installed(module))


def missing_extras(*needed: str) -> str | None:
    """The same before the start of a verb that needs several extras: all in one command."""
    absent = absent_extras()
    if missing := ",".join(extra for extra in needed if extra in absent):
        return f"this needs more than is installed; install it with: pip install 'distrocheck[{missing}]'"
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
