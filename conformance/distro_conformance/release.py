"""Profiles as users and servers name them. What a name stands for is in `distro_model.release`."""

from __future__ import annotations

import re

from distro_conformance.verdict import UsageError
from distro_model.release import STRICT, Release, Span, UnreadableReleaseError
from distro_model.release import release_of as _release_of

__all__ = ["STRICT", "Release", "Span", "listed_profile", "numbers_of", "release_of"]


def release_of(profile: str) -> Release | None:
    """(2, 2, 4) for `nacos-2.2.4`, None for `strict`. Raises UsageError for a text that is no profile's name."""
    try:
        return _release_of(profile)
    except UnreadableReleaseError as error:
        raise UsageError(str(error)) from error


def numbers_of(version: str) -> str:
    """3.1.0 of 3.1.0-SNAPSHOT and 2.5.1 of 2.5.1-vendor.2: a build is judged as the release that it is made from."""
    return re.sub(r"(?<=\d)[-+_].*", "", version)


def listed_profile(name: str) -> str:
    """The listed profile that `name` behaves as: a release between two listed ones is as the one before it.

    Raises UsageError for releases that were never read. It is asked about what a user named; what a server says of
    itself is taken as it is.
    """
    from distro_impl.profiles import UnknownProfileError, listed  # noqa: PLC0415 - findings are light

    try:
        return listed(name).name
    except UnknownProfileError as error:
        raise UsageError(str(error)) from error
