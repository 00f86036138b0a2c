"""What is asked of both nodes: one entry for each script, in files by what they are about."""

import importlib
from collections.abc import Sequence

from distro_conformance.differential.scripts.registry import SCRIPTS, Script
from distro_conformance.verdict import UsageError

FILES = (
    "envelope",
    "instances",
    "lookups",
    "distro",
    "members",
    "http",
    "udp",
    "operator",
    "administration",
    "loader",
    "login",
    "secured",
)
for name in FILES:
    importlib.import_module(f"{__name__}.{name}")


def scripts_named(ids: Sequence[str] | None) -> tuple[Script, ...]:
    """All of them when none is named. Raises UsageError."""
    unknown = [each for each in ids or () if each not in SCRIPTS]
    if unknown:
        raise UsageError(f"no script {', '.join(unknown)}; known: {', '.join(SCRIPTS)}")
    return tuple(SCRIPTS.values()) if ids is None else tuple(SCRIPTS[each] for each in ids)
