"""Profiles: how a generation of Nacos behaves where generations differ, as data.

`profile` is the record of switches, whose defaults are `strict`; `releases` the table of the releases.
"""

from distro_model.profiles.profile import OwnerRing, Profile, RetryAction, TakesRevision
from distro_model.profiles.releases import (
    NACOS_2_0_4,
    NACOS_2_2_4,
    PROFILES,
    RELEASES,
    STRICT,
    Release,
    UnknownProfileError,
    profile_named,
)

__all__ = [
    "NACOS_2_0_4",
    "NACOS_2_2_4",
    "PROFILES",
    "RELEASES",
    "STRICT",
    "OwnerRing",
    "Profile",
    "Release",
    "RetryAction",
    "TakesRevision",
    "UnknownProfileError",
    "profile_named",
]
