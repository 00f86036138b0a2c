"""What a node must do, one sentence and one check each.

`requirement` is the table and its rules. Every other file in this directory holds the requirements of one area and is
imported automatically.
"""

from importlib import import_module
from pkgutil import iter_modules

from distro_conformance.requirements.requirement import Requirement, all_requirements

for _area in iter_modules(__path__):
    import_module(f"{__name__}.{_area.name}")

__all__ = ["Requirement", "all_requirements"]
