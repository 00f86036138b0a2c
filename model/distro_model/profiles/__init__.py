"""Profiles: the behaviour of each release where releases differ, as data.

`releases` is the table of the releases; `distro_model.profile` defines a profile.
"""

from distro_model.profile import Profile
from distro_model.profiles.releases import (
    NACOS_2_0_4,
    NACOS_2_2_4,
    PROFILES,
    RELEASES,
    STRICT,
    Release,
    UnknownProfileError,
    beside_nodes,
    profile_named,
)

__all__ = [
    "NACOS_2_0_4",
    "NACOS_2_2_4",
    "PROFILES",
    "RELEASES",
    "STRICT",
    "Profile",
    "Release",
    "UnknownProfileError",
    "beside_nodes",
    "profile_named",
]
