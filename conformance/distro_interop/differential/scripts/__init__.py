"""The requests to both nodes: one entry for each script, in files by what they are about."""

import importlib

from distro_interop.differential.scripts.registry import SCRIPTS

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
    "login",
    "secured",
)
for name in FILES:
    importlib.import_module(f"{__name__}.{name}")

__all__ = ["SCRIPTS"]
