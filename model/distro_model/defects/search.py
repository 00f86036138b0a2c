"""Properties of the model that releases violate because of known defects.

A violation is explained when defects of the release are listed as breaking the property, and the property holds in the
model with every defect of the release repaired: so a known defect cannot hide a second cause, however long its
counterexample is.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.defects.defect import Defect
from distro_model.defects.table import DEFECTS
from distro_model.profile import Profile


def breaking(property_id: str, profile: str, bounds: object) -> tuple[Defect, ...]:
    """The defects that are listed as breaking the property in that profile within these bounds."""
    return tuple(defect for defect in DEFECTS.values() if property_id in defect.breaks_in(profile, bounds))


def repaired(profile: Profile) -> Profile:
    """The profile without the defects of its release that break properties."""
    for defect in DEFECTS.values():
        if defect.breaks_in(profile.name):
            profile = replace(profile.with_rules(*defect.repair), **defect.parameters)
    return profile
