"""Which releases a profile stands for, and spans of releases; requirements and known failures both speak of them.

A profile is called after the release whose behaviour it is, `nacos-2.2.4`; the one without a number is `strict`, the
protocol with every known defect repaired, and counts as later than every release.
"""

from __future__ import annotations

from dataclasses import dataclass

from distro_conformance.verdict import UsageError

STRICT = "strict"
Release = tuple[int, ...]


def release_of(profile: str) -> Release | None:
    """(2, 2, 4) for `nacos-2.2.4`, None for `strict`. Raises UsageError for a text that is no profile's name."""
    if profile == STRICT:
        return None
    name, _, version = profile.partition("-")
    if name != "nacos" or not all(part.isdigit() for part in version.split(".")):
        raise UsageError(f"no profile {profile!r}; profiles are called nacos-2.2.4, for instance, or {STRICT}")
    return _parse(version)


def listed_profile(name: str) -> str:
    """The listed profile that `name` behaves as: a release between two listed ones is as the one before it.

    Raises UsageError for what nobody has looked at. A user's word is held against it; what a server says of itself is
    taken as it is.
    """
    from distro_impl.profiles import UnknownProfileError, listed  # noqa: PLC0415 - findings are light

    try:
        return listed(name).name
    except UnknownProfileError as error:
        raise UsageError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Span:
    """Releases from `since` to `until`, both included; None is open."""

    since: str | None = None
    until: str | None = None

    def __contains__(self, profile: str) -> bool:
        release = release_of(profile)
        if release is None:
            return self.until is None
        return not (
            (self.since is not None and release < _parse(self.since))
            or (self.until is not None and release > _parse(self.until))
        )

    def __str__(self) -> str:
        if self.until is not None:
            return f"from {self.since} to {self.until}" if self.since else f"up to {self.until}"
        return f"from {self.since} on" if self.since else "all releases"


def _parse(version: str) -> Release:
    return tuple(int(part) for part in version.split("."))
