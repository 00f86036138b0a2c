"""What differs between releases: what a profile is, and the releases as a history of changes."""

from distro_impl.profiles.profile import (
    InnerAuth,
    MissingClient,
    Profile,
    ReportTransport,
    RevisionTakenOver,
    UnknownProfileError,
)
from distro_impl.profiles.releases import PROFILES, listed, profile_named

__all__ = [
    "PROFILES",
    "InnerAuth",
    "MissingClient",
    "Profile",
    "ReportTransport",
    "RevisionTakenOver",
    "UnknownProfileError",
    "listed",
    "profile_named",
]
